package conduct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ngxlab/lab"
)

const gen1, gen2 lab.HostName = "gen1", "gen2"

// cluster is a target and two load hosts.
type cluster struct {
	all   map[lab.HostName]*fakeHost
	store *fakeStore
	mu    sync.Mutex
	said  []lab.Event
}

func newCluster(t *testing.T) *cluster {
	target := newFakeHost(t)
	target.loaders = 2
	c := &cluster{all: map[lab.HostName]*fakeHost{web: target, gen1: newFakeHost(t), gen2: newFakeHost(t)}, store: &fakeStore{}}
	for name, host := range c.all {
		host.name = name
		if name != web {
			host.loads = target
		}
	}
	return c
}

func (c *cluster) run(ctx context.Context, p lab.Plan) (lab.Outcome, error) {
	machines := map[lab.HostName]Machine{}
	for name, host := range c.all {
		machines[name] = host.machine()
	}
	return Run(ctx, "small-1", p, machines, c.store, func(e lab.Event) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, e)
	})
}

// texts are the events of a kind.
func (c *cluster) texts(kind lab.EventKind) []string {
	var texts []string
	for _, e := range c.said {
		if e.Kind == kind {
			texts = append(texts, fmt.Sprintf("%s: %s", e.Host, e.Text))
		}
	}
	return texts
}

// mustBeAsBefore looks at all hosts but one.
func (c *cluster) mustBeAsBefore(but lab.HostName) {
	for name, host := range c.all {
		if name != but {
			host.mustBeAsBefore()
		}
	}
}

// severalPlan is the small plan with load from two hosts, on which knobs are set and a package is missing, and capacity.
func severalPlan(rounds int) lab.Plan {
	p := withCapacity(smallPlan(rounds))
	p.Experiment.Hosts = []lab.Host{
		{Name: web, Address: "10.0.0.10", Roles: []lab.Role{lab.RoleTarget}},
		{Name: gen1, Address: "10.0.0.11", Roles: []lab.Role{lab.RoleLoad}}, {Name: gen2, Address: "10.0.0.12", Roles: []lab.Role{lab.RoleLoad}},
	}
	p.Packages = map[lab.HostName][]string{web: {"gcc"}, gen1: {"wrk"}, gen2: {"wrk"}}
	for _, name := range []lab.HostName{gen1, gen2} {
		p.Facts[name] = lab.Facts{Host: name, Cores: 2, CPUs: []int{0, 1}, Sysctls: map[string]string{"net.ipv4.ip_local_port_range": "1024 1123"}}
		p.Original.Settings[name] = p.Original.Settings[web]
		for _, s := range p.States {
			s.Settings[name] = s.Settings[web]
		}
	}
	for i := range p.Drivings {
		all := commands()
		both := map[lab.HostName][]lab.Command{gen1: all[web], gen2: all[web]}
		p.Drivings[i].Measured, p.Drivings[i].Warmup, p.Drivings[i].First = both, both, both
		p.Loads[i].Hosts, p.Loads[i].CPUs = []lab.HostName{gen1, gen2}, nil
		p.Loads[i].Connections = 20
	}
	p.Capacity.LoadHosts = []lab.HostName{gen1, gen2}
	return p
}

func TestSeveralHostsAreMeasuredAndRestored(t *testing.T) {
	c := newCluster(t)
	out, err := c.run(t.Context(), severalPlan(2))
	if err != nil || out.Status != lab.StatusDone || out.Runs != 12 {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, r := range c.store.runs {
		if r.Figures[lab.Requests] != 2*fakeRequests || r.Window.SkewS > 0.001 || r.Validity == lab.Invalid {
			t.Errorf("%v: %v requests, skew %v s; %v", r.Cell, r.Figures[lab.Requests], r.Window.SkewS, grave(r.Findings))
		}
	}
	c.mustBeAsBefore("")
	for name, host := range c.all {
		if want := 3; len(host.writes) < want { // to the step and back, and to the step of the capacity part
			t.Errorf("%s: writes %v", name, host.writes)
		}
	}
	rounds := map[int]bool{}
	for _, e := range c.said {
		if e.Kind == lab.EventClock {
			rounds[e.Round] = true
			if e.Text != "gen1 ±0.000 ms, gen2 ±0.000 ms, web ±0.000 ms" {
				t.Errorf("clocks: %q", e.Text)
			}
		}
	}
	if !rounds[1] || !rounds[2] {
		t.Errorf("clocks were read in rounds %v", rounds)
	}
}

// TestLostHostEndsTheCampaignAndTheOthersAreRestored loses each kind of host at each of its calls: by an error, or so that it
// never answers again.
func TestLostHostEndsTheCampaignAndTheOthersAreRestored(t *testing.T) {
	undisturbed := newCluster(t)
	if _, err := undisturbed.run(t.Context(), severalPlan(1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []lab.HostName{web, gen1} {
		for n := 1; n < len(undisturbed.all[name].calls); n++ {
			synctest.Test(t, func(t *testing.T) { loseAt(t, name, n, func(*fakeHost) {}) })
			synctest.Test(t, func(t *testing.T) {
				loseAt(t, name, n, func(f *fakeHost) { f.silent = func(call int, _ string) bool { return call >= n } })
			})
		}
	}
}

func loseAt(t *testing.T, name lab.HostName, n int, silence func(*fakeHost)) {
	c := newCluster(t)
	host := c.all[name]
	committed := -1
	host.before = func(call int, _ string) error {
		if call >= n {
			return lab.ErrLost
		}
		return nil
	}
	c.store.before = func(what string) error {
		host.mu.Lock()
		defer host.mu.Unlock()
		if what == "commit" && len(host.calls) >= n && committed < 0 {
			committed = len(c.store.runs)
		}
		return nil
	}
	silence(host)
	began := time.Now()
	out, err := c.run(t.Context(), severalPlan(1))
	at := host.calls[n-1]
	cause := strings.Join(c.texts(lab.EventEnd), "") // without what became of the restore
	if done := at == "release" && out.Status == lab.StatusUnrestored; !done && (out.Status != lab.StatusFailed || !strings.Contains(cause, string(name)+": ")) {
		t.Errorf("%s lost at call %d (%s): status %s, cause %q", name, n, at, out.Status, cause)
	}
	if !errors.Is(err, lab.ErrLost) {
		t.Errorf("%s lost at call %d (%s): error %v", name, n, at, err)
	}
	if _, told := out.Unrestored[name]; !told || len(out.Unrestored) != 1 {
		t.Errorf("%s lost at call %d (%s): not restored are %v", name, n, at, slices.Collect(maps.Keys(out.Unrestored)))
	}
	if committed >= 0 && committed != len(c.store.runs) {
		t.Errorf("%s lost at call %d (%s): a run was committed afterwards", name, n, at)
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		t.Errorf("%s lost at call %d (%s): taken for a refusal of %s", name, n, at, refused.Refusal.Path)
	}
	if took := time.Since(began); took > 4*time.Hour {
		t.Errorf("%s lost at call %d (%s): it took %v", name, n, at, took)
	}
	c.mustBeAsBefore(name)
}

// TestErrorNamesThePhaseInWhichAHostWasLost loses a host at the nth call of a kind.
func TestErrorNamesThePhaseInWhichAHostWasLost(t *testing.T) {
	for want, test := range map[string]struct {
		host lab.HostName
		call string
		n    int
	}{
		"install packages: gen1: install: ":                                             {gen1, "install", 1},
		"make the build nginx: web: build: ":                                            {web, "build", 1},
		`rehearse state "sockets": web: serve: `:                                        {web, "serve", 2},
		"reach web: gen1: hold: ":                                                       {gen1, "hold", 1},
		`move to state "sockets": gen1: apply: `:                                        {gen1, "apply", 1},
		`start the server of state "defaults", round 1: web: serve: `:                   {web, "serve", 5},
		"read the clocks: gen1: clock: ":                                                {gen1, "clock", 1},
		"warm up for defaults, wrk 10 keep-alive, round 1: gen1: arm: ":                 {gen1, "arm", 1},
		"measure defaults, wrk 10 keep-alive, round 1: gen1: fire: ":                    {gen1, "fire", 2},
		"measure defaults, wrk 10 keep-alive, round 1: web: yardstick: ":                {web, "yardstick", 2},
		"measure defaults, wrk 10 keep-alive, round 1: web: watch: ":                    {web, "watch", 2},
		`stop the server of state "sockets": web: ended: `:                              {web, "ended", 1},
		"cool down after defaults, wrk 10 keep-alive, round 1: gen1: watch: ":           {gen1, "watch", 4},
		"capacity idle, ramp 1: hold 0 connections: gen1: release: ":                    {gen1, "release", 2},
		"capacity idle, ramp 1: hold 1000 connections: gen1: hold: ":                    {gen1, "hold", 2},
		"capacity idle, ramp 1: wait until the memory of web has settled: web: watch: ": {web, "watch", 19},
		"restore: gen1: restore: ":                                                      {gen1, "restore", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			seen := 0
			c.all[test.host].before = func(_ int, call string) error {
				if call == test.call {
					if seen++; seen >= test.n {
						return lab.ErrLost
					}
				}
				return nil
			}
			if strings.HasPrefix(want, "cool down") {
				c.all[gen1].seen = func(s *lab.Sample) { s.Sockets["tcp_tw"] = 99 }
			}
			_, err := c.run(t.Context(), severalPlan(1))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		})
	}
}

func TestFailedArmLeavesNothingWaitingOnTheOthers(t *testing.T) {
	c := newCluster(t)
	arms := 0
	c.all[gen2].before = func(_ int, call string) error {
		if call == "arm" {
			if arms++; arms == 2 {
				return errInjected
			}
		}
		return nil
	}
	if _, err := c.run(t.Context(), severalPlan(1)); !errors.Is(err, errInjected) {
		t.Errorf("error %v", err)
	}
	c.mustBeAsBefore("")
	if !slices.Contains(c.all[gen1].calls, "disarm") {
		t.Errorf("calls of gen1: %v", c.all[gen1].calls)
	}
}

func TestStartLiesAheadOfEveryHostOverSlowLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.all[gen1].latency, c.all[web].latency = 50*time.Millisecond, 20*time.Millisecond
		p := severalPlan(1)
		p.Capacity = nil
		if out, err := c.run(t.Context(), p); err != nil || out.Runs != 6 { // the fake looks when it is told to fire
			t.Errorf("%+v, %v; %v", out, err, c.store.runs[0].Findings)
		}
	})
}

func TestTargetThatALoadHostCannotReachIsRefusedBeforeAnythingChanges(t *testing.T) {
	c := newCluster(t)
	c.all[gen2].deaf = "connect: connection refused"
	_, err := c.run(t.Context(), severalPlan(1))
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Refusal.Path != "hosts.web" || refused.Refusal.Host != gen2 {
		t.Fatalf("error %v, refusal %+v", err, refused)
	}
	if got, want := refused.Refusal.Reason, "gen2 cannot reach web at 10.0.0.10:8081: connect: connection refused"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	for _, want := range []string{"port 8081", "load_address", "from gen2 to web"} {
		if !strings.Contains(refused.Refusal.Cure, want) {
			t.Errorf("no %q in the cure %q", want, refused.Refusal.Cure)
		}
	}
	for name, host := range c.all {
		if len(host.writes) > 0 || slices.Contains(host.calls, "arm") {
			t.Errorf("%s: writes %v", name, host.writes)
		}
	}
	c.mustBeAsBefore("")
}

func TestConstantClockOffsetIsNoFindingAndAStepIs(t *testing.T) {
	for want, wall := range map[bool]func(at lab.Instant) int64{
		false: func(at lab.Instant) int64 { return int64(at) + int64(10*time.Minute) },
		true:  func(at lab.Instant) int64 { return int64(at) + int64(at)/10 },
	} {
		c := newCluster(t)
		for _, host := range c.all {
			host.seen = func(s *lab.Sample) { s.WallNS = wall(s.At) }
		}
		p := severalPlan(1)
		p.Capacity = nil
		if _, err := c.run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.store.runs {
			i := slices.IndexFunc(r.Findings, func(f lab.Finding) bool { return f.Code == "clock-step" })
			if got := i >= 0 && r.Findings[i].Outcome == lab.Fired; got != want {
				t.Errorf("%v: clock-step fired: %v, want %v", r.Cell, got, want)
			}
		}
	}
}
