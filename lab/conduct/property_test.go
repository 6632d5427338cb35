package conduct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// ladders is how many random campaigns are made.
const ladders = 400

// TestEveryHostComesBackFromAnyLadderHoweverItEnds makes campaigns of random ladders over random knobs of a target and two
// load hosts, and lets each end in its own way: by itself, cancelled, by a host that fails once, that is lost, that cannot
// put a knob back at first or at all, or of which someone else changes a knob.
func TestEveryHostComesBackFromAnyLadderHoweverItEnds(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(ladders) {
		synctest.Test(t, func(t *testing.T) { randomCampaign(t, seed, ends) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%v", ends)
	for _, end := range []lab.CampaignStatus{lab.StatusDone, lab.StatusFailed, lab.StatusInterrupted, lab.StatusUnrestored} {
		if ends[string(end)] < 10 {
			t.Errorf("only %d campaigns ended %s", ends[string(end)], end)
		}
	}
}

func randomCampaign(t *testing.T, seed uint64, ends map[string]int) {
	random := rand.New(rand.NewPCG(seed, 4))
	c := newCluster(t)
	p := randomPlan(t, random, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	victim := []lab.HostName{web, gen1, gen2}[random.IntN(3)]
	happened := disturb(random, c.all[victim], cancel)
	out, err := c.run(ctx, p)
	ends[string(out.Status)]++
	if (err == nil) != (out.Status == lab.StatusDone) || err != nil && !*happened {
		t.Errorf("status %s, error %v; was it disturbed: %v", out.Status, err, *happened)
	}
	for name, host := range c.all {
		mustBeBackOrTold(t, name, host, out)
	}
	if host := c.all[victim]; errors.Is(err, errForeign) && !host.meddled {
		t.Errorf("a change did not start from the present value: %v", err)
	}
}

// mustBeBackOrTold holds each knob of a host against its original: what is other must be told by the outcome.
func mustBeBackOrTold(t *testing.T, name lab.HostName, host *fakeHost, out lab.Outcome) {
	host.mu.Lock()
	defer host.mu.Unlock()
	left, unrestored := out.Unrestored[name]
	told := map[lab.KnobID]bool{}
	for _, r := range slices.Concat(left, out.Kept[name]) {
		told[r.Knob] = true
	}
	mute := unrestored && len(left) == 0 // it did not say what is left
	if mute && !host.lost && len(host.journal) > 0 && host.stuck == nil {
		t.Errorf("%s: not restored, although it answers", name)
	}
	all := maps.Clone(host.original)
	maps.Copy(all, host.knobs)
	for k := range all {
		was, had := host.original[k]
		is, has := host.knobs[k]
		if (was != is || had != has) && !told[k] && !mute && k != host.meddledKnob {
			t.Errorf("%s: %s is %q, was %q, and nobody says so: %+v", name, k, is, was, out)
		}
	}
	if !unrestored && len(host.journal) > 0 {
		t.Errorf("%s: pending are %v, and nobody says so", name, slices.Collect(maps.Keys(host.journal)))
	}
	if !host.lost && (host.serving != "" || len(host.armed) > 0 || host.held > 0) {
		t.Errorf("%s: left running: %q, %d armed, %d held", name, host.serving, len(host.armed), host.held)
	}
}

// disturb lets one thing happen to a host at a random call, or nothing; the result tells at the end whether it did.
func disturb(random *rand.Rand, host *fakeHost, cancel func()) *bool {
	happened := new(bool)
	at, before := 1+random.IntN(60), host.before
	knobs := slices.SortedFunc(maps.Keys(host.original), func(a, b lab.KnobID) int { return compareNames(a, b) })
	knob := knobs[random.IntN(len(knobs))]
	attempts, stuckFor := 0, 1+random.IntN(4)
	stick := func() {
		host.stuck = func(k lab.KnobID) bool {
			if k == knob {
				attempts++
			}
			return k == knob && attempts <= stuckFor
		}
	}
	kind := random.IntN(7)
	once := map[int]func() error{
		0: func() error { return nil },
		1: func() error { cancel(); return nil },
		2: func() error { return errInjected },
		3: func() error { host.mu.Lock(); defer host.mu.Unlock(); host.lost = true; return lab.ErrLost },
		4: func() error {
			host.meddled, host.meddledKnob = true, knob
			host.someoneSets(knob, "someone's")
			return nil
		},
		5: func() error { stick(); return nil },
		6: func() error { stick(); cancel(); return nil },
	}[kind]
	host.before = func(n int, call string) error {
		if n == at {
			*happened = kind > 0
			if err := once(); err != nil {
				return err
			}
		}
		return before(n, call)
	}
	return happened
}

func compareNames(a, b lab.KnobID) int {
	return slices.Compare([]string{a.Kind, a.Name}, []string{b.Kind, b.Name})
}

// randomPlan is the plan for several hosts with the states of a random ladder; the hosts get the original values.
func randomPlan(t *testing.T, random *rand.Rand, c *cluster) lab.Plan {
	p := severalPlan(1 + random.IntN(2))
	p.Capacity = nil
	e := randomExperiment(random, p.Experiment)
	states, err := lab.States(e)
	if err != nil {
		t.Fatal(err)
	}
	p.Original = originalOf(states, e.Hosts)
	if p.States, err = tune.Complete(states, p.Original); err != nil {
		t.Fatal(err)
	}
	p.Experiment = e
	for name, host := range c.all {
		host.live = e.Server.Restart == lab.RestartNeeded
		host.knobs, host.original = map[lab.KnobID]string{}, map[lab.KnobID]string{}
		for _, s := range p.Original.Settings[name] {
			if !s.Absent {
				host.knobs[s.Knob], host.original[s.Knob] = s.Value, s.Value
			}
		}
		host.original[somaxconn], host.knobs[somaxconn] = "4096", "4096" // one that perhaps no step sets
	}
	return withTurns(p, random)
}

// randomExperiment has two to five steps, each with some of six knobs, on some of the hosts.
func randomExperiment(random *rand.Rand, e lab.Experiment) lab.Experiment {
	kinds := []lab.LadderKind{lab.Cumulative, lab.Isolated, lab.LeaveOneOut, lab.Listed}
	e.Ladder.Kind = kinds[random.IntN(len(kinds))]
	e.Server.Restart = []lab.Restart{lab.RestartAlways, lab.RestartNeeded}[random.IntN(2)]
	names := []string{somaxconn.Name, finTimeout.Name, "vm.swappiness", "net.core.rmem_max"}
	for i := range 2 + random.IntN(4) {
		step := lab.Step{Name: fmt.Sprintf("step %d", i), Sysctl: map[string]string{}, On: []lab.Role{lab.RoleTarget}}
		if random.IntN(2) == 0 {
			step.On = append(step.On, lab.RoleLoad)
		}
		for _, name := range names {
			if random.IntN(2) == 0 {
				step.Sysctl[name] = fmt.Sprint(random.IntN(4))
			}
		}
		for _, path := range []string{"/etc/a", "/etc/b"} {
			if random.IntN(3) == 0 {
				step.Knobs = append(step.Knobs, lab.Setting{
					Knob: lab.KnobID{Kind: lab.KnobFile, Name: path}, Value: fileOf(random.IntN(3)), Absent: random.IntN(3) == 0,
				})
			}
		}
		e.Steps = append(e.Steps, step)
	}
	var list []string
	for _, i := range random.Perm(len(e.Steps) - 1) {
		list = append(list, e.Steps[i+1].Name)
	}
	if e.Ladder.Lists = [][]string{list}; len(list) > 1 {
		e.Ladder.Lists = append(e.Ladder.Lists, list[1:])
	}
	return e
}

func fileOf(n int) string {
	return lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte(fmt.Sprint(n))).String()
}

// originalOf has a value for each knob that any state sets on a host: of one of the files, that there is none.
func originalOf(states []lab.State, hosts []lab.Host) lab.State {
	original := lab.State{Name: "original", Settings: map[lab.HostName][]lab.Setting{}}
	for _, h := range hosts {
		all := map[lab.KnobID]lab.Setting{}
		for _, s := range states {
			for _, setting := range s.Settings[h.Name] {
				if tune.OnHost(setting.Knob.Kind) {
					all[setting.Knob] = lab.Setting{Knob: setting.Knob, Value: "4096"}
				}
			}
		}
		for k := range all {
			switch k.Name {
			case "/etc/a":
				all[k] = lab.Setting{Knob: k, Absent: true}
			case "/etc/b":
				all[k] = lab.Setting{Knob: k, Value: fileOf(1)}
			}
		}
		original.Settings[h.Name] = slices.SortedFunc(maps.Values(all), func(a, b lab.Setting) int { return compareNames(a.Knob, b.Knob) })
	}
	return original
}

// withTurns gives every state a server and its cells in each round, in random order of the states.
func withTurns(p lab.Plan, random *rand.Rand) lab.Plan {
	like, rounds := p.Servings[0], len(p.Rounds)
	p.Servings, p.Cells, p.Rounds = nil, nil, nil
	for _, s := range p.States {
		like.State = s.Name
		p.Servings = append(p.Servings, like)
		p.Cells = append(p.Cells, lab.Cell{ID: lab.CellID{Target: web, State: s.Name, Load: p.Loads[0].Name}})
	}
	for range rounds {
		var ids []lab.CellID
		for _, i := range random.Perm(len(p.Cells)) {
			ids = append(ids, p.Cells[i].ID)
		}
		p.Rounds = append(p.Rounds, ids)
	}
	return p
}
