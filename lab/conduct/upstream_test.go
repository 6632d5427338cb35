package conduct

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ngxlab/lab"
)

const back lab.HostName = "back"

// newProxy is the small plan on web, whose servers pass requests to back.
func newProxy(t *testing.T, rounds int) (*cluster, lab.Plan) {
	c := &cluster{all: map[lab.HostName]*fakeHost{web: newFakeHost(t), back: newFakeHost(t)}, store: &fakeStore{}}
	for name, host := range c.all {
		host.name = name
	}
	p := smallPlan(rounds)
	p.Experiment.Hosts = append(p.Experiment.Hosts, lab.Host{Name: back, Address: "10.0.0.14", Roles: []lab.Role{lab.RoleUpstream}})
	p.Facts[back] = lab.Facts{Host: back, Cores: 2, CPUs: []int{0, 1}, BootID: "boot"}
	p.Builds = append(p.Builds, lab.Recipe{Name: "behind", Version: "1.26.3"})
	p.Original.Settings[back] = p.Original.Settings[web]
	for i, s := range p.States {
		s.Settings[back] = s.Settings[web]
		p.Servings[i].Upstream = &lab.Serving{Target: back, State: s.Name, Recipe: "behind", Port: 8090, StatusPort: 8091, URLs: []string{"/"}, Config: "events {}\n"}
	}
	c.all[web].behind = c.all[back]
	c.all[back].seen = idle
	return c, p
}

// idle is a host whose server has nothing to do.
func idle(s *lab.Sample) {
	s.CPUs[0].UserS, s.CPUs[1].UserS = 0, 0
	for i := range s.Processes {
		s.Processes[i].CPUS = 0
	}
	if s.Status != nil {
		s.Status = &lab.ServerStatus{Active: 1, Accepts: s.Status.Polls, Handled: s.Status.Polls, Requests: s.Status.Polls, Polls: s.Status.Polls}
	}
}

func TestUpstreamRunsFromBeforeItsTargetToAfterIt(t *testing.T) {
	c, p := newProxy(t, 2)
	c.all[web].before = func(_ int, call string) error {
		if c.all[back].mu.Lock(); call == "serve" && c.all[back].serving == "" {
			t.Error("the target is started before its upstream")
		}
		c.all[back].mu.Unlock()
		return nil
	}
	ends := 0
	c.all[back].before = func(_ int, call string) error {
		if call == "serve" {
			until := c.all[web].until
			if ends++; ends > 1 && until.Err() == nil {
				t.Error("the upstream is replaced under a target that runs")
			}
		}
		return nil
	}
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if want := 3 * len(p.States); len(c.all[back].served) != want || len(c.all[web].served) != want {
		t.Errorf("%d upstreams and %d servers, want %d", len(c.all[back].served), len(c.all[web].served), want)
	}
	c.mustBeAsBefore("")
	for _, r := range c.store.runs {
		if r.Server.Upstream == nil || r.Server.Upstream.Serving != r.Cell.State {
			t.Fatalf("%v has the upstream %+v", r.Cell, r.Server.Upstream)
		}
		if r.Validity == lab.Invalid {
			t.Errorf("%v: %v", r.Cell, grave(r.Findings))
		}
		ofBack := func(s lab.Sample) bool { return s.Host == back && len(s.Processes) == 2 && s.Status != nil }
		if !slices.ContainsFunc(r.Samples, ofBack) {
			t.Errorf("%v has no samples of the upstream", r.Cell)
		}
	}
	if c.count(back, "build") != 1 || c.count(web, "build") != 1 || c.count(back, "import")+c.count(web, "import") > 0 {
		t.Errorf("builds: %v, %v", c.all[web].calls, c.all[back].calls)
	}
}

func TestCancelledCampaignStopsTheUpstreamAfterItsTarget(t *testing.T) {
	c, p := newProxy(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var early atomic.Bool
	atCall(c.all[web], "fire", 2, func() {
		context.AfterFunc(c.all[back].until, func() { early.Store(early.Load() || c.all[web].until.Err() == nil) })
		cancel()
	})
	out, err := c.run(ctx, p)
	if err == nil || out.Status != lab.StatusInterrupted || early.Load() {
		t.Errorf("%s, error %v, the upstream ended first: %v", out.Status, err, early.Load())
	}
	c.mustBeAsBefore("")
}

func TestUpstreamThatDiedInvalidatesTheRunAndIsReplacedWithItsTarget(t *testing.T) {
	c, p := newProxy(t, 1)
	var dead atomic.Bool
	c.all[back].seen = func(s *lab.Sample) {
		if idle(s); dead.Load() {
			s.Processes = nil
		}
	}
	atCall(c.all[web], "fire", 2, func() { dead.Store(true) })
	atCall(c.all[back], "serve", len(p.States)+2, func() { dead.Store(false) })
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	bad := c.store.runs[0]
	i := slices.IndexFunc(bad.Findings, func(f lab.Finding) bool { return f.Code == "server-restarted" })
	if f := bad.Findings[i]; bad.Validity != lab.Invalid || f.Evidence != "the upstream on back: its processes are gone" {
		t.Errorf("%s: %+v", bad.Validity, f)
	}
	if len(c.all[back].served) < 2*len(p.States)+1 || len(c.all[back].served) != len(c.all[web].served) {
		t.Errorf("%d upstreams, %d servers", len(c.all[back].served), len(c.all[web].served))
	}
	for _, r := range c.store.runs[1:] {
		if r.Validity == lab.Invalid {
			t.Errorf("%v: %v", r.Cell, grave(r.Findings))
		}
	}
}

func TestUpstreamThatDoesNotStartIsToldWithItsPlace(t *testing.T) {
	c, p := newProxy(t, 1)
	atCall(c.all[back], "serve", 1, func() {})
	c.all[back].before = func(_ int, call string) error {
		if call == "serve" {
			return errInjected
		}
		return nil
	}
	_, err := c.run(t.Context(), p)
	var refused *RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, errInjected) || refused.Refusal.Host != back || refused.Refusal.Path != "server.upstream.server" {
		t.Fatalf("error %v", err)
	}
	if len(c.all[web].served) > 0 {
		t.Error("the target was started without its upstream")
	}
}

func TestKnobsOfAnUpstreamAreSetHeldAndRestored(t *testing.T) {
	c, p := newProxy(t, 1)
	atCall(c.all[web], "fire", 2, func() { c.all[back].someoneSets(somaxconn, "128") })
	atCall(c.all[web], "fire", 3, func() { c.all[back].someoneSets(somaxconn, "4096") })
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.all[back].writes, "net.core.somaxconn=65535") {
		t.Errorf("written: %v", c.all[back].writes)
	}
	if f, invalid := drift(t, c.store.runs[0]); !invalid || !strings.HasPrefix(f.Evidence, "back: sysctl") {
		t.Errorf("%+v", f)
	}
	c.mustBeAsBefore("")
}

func TestWhatAnUpstreamRunsUnderIsHeldAgainstItsStart(t *testing.T) {
	c, p := newProxy(t, 1)
	atCall(c.all[web], "fire", 2, func() {
		c.all[back].mu.Lock()
		defer c.all[back].mu.Unlock()
		c.all[back].inForce["nofile"] = "64"
	})
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if f, invalid := drift(t, c.store.runs[0]); !invalid || f.Evidence != "back: the upstream's open-file limit should be 1024, was 64 after the run" {
		t.Errorf("%+v", f)
	}
}

func TestTargetsThatShareAnUpstreamTakeTurns(t *testing.T) {
	c, p := newProxy(t, 1)
	p.Experiment.Server.Restart = lab.RestartNeeded
	r := &running{serving: p.Servings[0], stop: func() { c.said = append(c.said, lab.Event{Text: "stopped"}) }}
	other := &running{serving: lab.Serving{Target: "elsewhere"}, stop: func() {}}
	running := &campaign{servers: map[lab.HostName]*running{web: r, "elsewhere": other}}
	needs := p.Servings[0]
	needs.Target = "web2"
	running.vacate(needs)
	if len(c.said) != 1 || running.servers["elsewhere"] == nil {
		t.Errorf("%d servers are left, said %v", len(running.servers), c.said)
	}
}

func TestUpstreamOnTheTargetsOwnHostIsRefused(t *testing.T) {
	c, p := newProxy(t, 1)
	p.Servings[0].Upstream.Target = web
	if _, err := c.run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "one server at a time") || len(c.all[web].calls) > 0 {
		t.Errorf("error %v, calls %v", err, c.all[web].calls)
	}
}

func TestServerWithAnotherUpstreamIsAnother(t *testing.T) {
	_, p := newProxy(t, 1)
	a, b := p.Servings[0], p.Servings[1]
	if !sameStart(a, b) {
		t.Error("servers that differ in their states' names are taken for others")
	}
	up := *b.Upstream
	up.Config += "#"
	if b.Upstream = &up; sameStart(a, b) {
		t.Error("a server with another upstream goes on")
	}
	if before := p.Servings[1]; !reflect.DeepEqual(before.Upstream.State, "sockets") {
		t.Error("the comparison has changed the plan")
	}
}

// started is the small plan with a server that a command starts, which counts its requests itself.
func started(count *lab.Count) lab.Plan {
	p := smallPlan(1)
	for i := range p.Servings {
		p.Servings[i].Config, p.Servings[i].StatusPort, p.Servings[i].Count = "", 0, count
		p.Servings[i].Command, p.Servings[i].TLS = &lab.ServerCommand{Start: []string{"{binary}"}}, &lab.TLS{Key: lab.KeyECDSA}
	}
	return p
}

func TestServerThatACommandStartedIsMeasured(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	if _, err := run(t.Context(), host, store, started(&lab.Count{URL: "/vars"})); err != nil {
		t.Fatal(err)
	}
	if w := host.asked; w.StatusPort != 0 || w.ServedBy == nil || w.ServedBy.URL != "/vars" || w.Port != 8081 || !w.TLS {
		t.Errorf("asked for %+v", w)
	}
	for _, r := range store.runs {
		for code, want := range map[string]lab.RuleOutcome{"count-mismatch": lab.Quiet, "worker-connections": lab.NotEvaluated, "knob-drift": lab.Quiet} {
			i := slices.IndexFunc(r.Findings, func(f lab.Finding) bool { return f.Code == code })
			if f := r.Findings[i]; f.Outcome != want {
				t.Errorf("%v: %+v", r.Cell, f)
			}
		}
		if r.Validity == lab.Invalid || r.Figures[lab.ServerRequests] != fakeRequests {
			t.Errorf("%v: %v, %g requests", r.Cell, grave(r.Findings), r.Figures[lab.ServerRequests])
		}
	}
	host.mustBeAsBefore()
}

func TestServerThatCountsNothingIsMeasuredWithoutItsCount(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	if _, err := run(t.Context(), host, store, started(nil)); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.runs {
		if _, known := r.Figures[lab.ServerRequests]; known || r.Validity == lab.Invalid {
			t.Errorf("%v: %v", r.Cell, grave(r.Findings))
		}
	}
}

func TestConnectionsToAServerWithoutStatusAreThoseHeld(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, withCapacity(started(nil))
	if _, err := run(t.Context(), host, store, p); err != nil {
		t.Fatal(err)
	}
	for _, l := range store.levels {
		if l.Connections != l.Asked || l.Problem != "" {
			t.Errorf("%+v", l)
		}
	}
}

func TestConfigurationThatTheAgentFillsInIsHeldAgainstItsFirstSample(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(1)
	for i := range p.Servings {
		p.Servings[i].Config = "load_module {build}/modules/x.so;\n" + p.Servings[i].Config
	}
	filled := func(s *lab.Sample) {
		if s.InForce != nil {
			s.InForce["config"] = "of what was filled in"
		}
	}
	host.seen = filled
	if _, err := run(t.Context(), host, store, p); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.runs {
		if f, invalid := drift(t, r); invalid {
			t.Errorf("%v: %+v", r.Cell, f)
		}
	}
}

func TestWhatIsInstalledIsNeverCopied(t *testing.T) {
	c, p := severalTargets(t)
	p.Builds = []lab.Recipe{{Name: "nginx", Flavor: lab.FlavorNginx, Installed: "/usr/sbin/nginx"}}
	for name, host := range c.all {
		host.version = map[bool]string{true: "1.18.0", false: "1.22.1"}[name == "old"]
	}
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for name := range c.all {
		if c.count(name, "build") != 1 || c.count(name, "export")+c.count(name, "import")+c.count(name, "ask") > 0 {
			t.Errorf("%s: %v", name, c.all[name].calls)
		}
	}
	want := ": the targets do not run the same nginx: each has its own installed (old 1.18.0, web 1.22.1, web2 1.22.1, web3 1.22.1)"
	if got := c.texts(lab.EventProblem); !slices.Equal(got, []string{want}) {
		t.Errorf("said %q", got)
	}
	if got := c.texts(lab.EventBuilt); !slices.Contains(got, "web: nginx 1.22.1, installed at /usr/sbin/nginx") {
		t.Errorf("said %q", got)
	}
}

func TestBuildIsMadeOnlyWhereAServerIsOfIt(t *testing.T) {
	c, p := severalTargets(t)
	p.Builds = append(p.Builds, lab.Recipe{Name: "newer"}, lab.Recipe{Name: "unused"})
	for i, s := range p.Servings {
		if s.Target == "web2" {
			p.Servings[i].Recipe = "newer"
		}
	}
	if _, err := c.run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	got := c.texts(lab.EventBuilt)
	slices.Sort(got)
	want := []string{"old: nginx 1.22.1 in 0.0 s", "web2: newer 1.22.1 in 0.0 s", "web3: nginx 1.22.1, copied from web in 0.0 s", "web: nginx 1.22.1 in 0.0 s"}
	if !slices.Equal(got, want) {
		t.Errorf("said %q", got)
	}
}
