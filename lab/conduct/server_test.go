package conduct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"ngxlab/lab"
)

// needed is the small plan under the policy that restarts servers only when needed. First warm-ups are told apart.
func needed(rounds int) lab.Plan {
	p := smallPlan(rounds)
	p.Experiment.Server.Restart = lab.RestartNeeded
	for i := range p.Drivings {
		first := commands()
		first[web][0].Argv = append(first[web][0].Argv, "first")
		p.Drivings[i].First = first
	}
	return p
}

// TestServerGoesOnWhereNothingStandsAgainstIt has rounds of baseline, tuned state and control: from the control to the next
// round's baseline nothing differs, and to the tuned state and back what a server takes over at its start.
func TestServerGoesOnWhereNothingStandsAgainstIt(t *testing.T) {
	finish := func(p lab.Plan, tuned string) lab.Plan { // in place of somaxconn
		for _, s := range append(p.States, p.Original) {
			s.Settings[web][0] = lab.Setting{Knob: finTimeout, Value: map[bool]string{true: tuned, false: "60"}[s.Name == "sockets"]}
		}
		return p
	}
	for name, test := range map[string]struct {
		plan   lab.Plan
		served int // in two rounds, after the rehearsals
	}{
		"always":                        {smallPlan(2), 6},
		"needed, for the listen queue":  {needed(2), 5},
		"needed, for a knob that lives": {finish(needed(2), "15"), 1},
		"needed, for the configuration": {func() lab.Plan { p := finish(needed(2), "15"); p.Servings[1].Config += "#"; return p }(), 5},
	} {
		host, store := newFakeHost(t), &fakeStore{}
		host.knobs[finTimeout], host.original[finTimeout], host.live = "60", "60", test.served == 1
		if _, err := run(t.Context(), host, store, test.plan); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := len(host.served) - 3; got != test.served {
			t.Errorf("%s: %d servers, want %d", name, got, test.served)
		}
		firsts := 0
		for _, argv := range host.firedArgv {
			if argv[len(argv)-1] == "first" {
				firsts++
			}
		}
		if want := test.served; firsts != want && test.plan.Experiment.Server.Restart == lab.RestartNeeded {
			t.Errorf("%s: %d first warm-ups of %d servers", name, firsts, want)
		}
		for _, r := range store.runs {
			if r.Validity == lab.Invalid {
				t.Errorf("%s: %v: %v", name, r.Cell, grave(r.Findings))
			}
		}
		host.mustBeAsBefore()
	}
}

func TestServerThatDiedIsReplacedAlsoWhereItCouldGoOn(t *testing.T) {
	host, p := newFakeHost(t), needed(2)
	n := 0
	host.seen = func(s *lab.Sample) {
		if n++; n >= 39 && n <= 42 { // in the last cell of the first round, until its end
			s.Processes = nil
		}
	}
	if _, err := run(t.Context(), host, &fakeStore{}, p); err != nil {
		t.Fatal(err)
	}
	if len(host.served)-3 <= 5 {
		t.Errorf("servers %v", host.served)
	}
	host.mustBeAsBefore()
}

func TestServerIsStoppedOnAnyErrorWhereItWouldGoOn(t *testing.T) {
	host := newFakeHost(t)
	atCall(host, "fire", 3, func() { host.mu.Lock(); host.lost = true; host.mu.Unlock() })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if _, err := run(ctx, host, &fakeStore{}, needed(1)); !errors.Is(err, lab.ErrLost) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		if host.serving != "" {
			t.Errorf("still serving %q", host.serving)
		}
	})
}

// TestKnobsChangeAfterTheOldServersEndAndBeforeTheFreshOnesStart has servers that take their time to end.
func TestKnobsChangeAfterTheOldServersEndAndBeforeTheFreshOnesStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newFakeHost(t)
		before := host.before
		host.before = func(n int, call string) error {
			host.mu.Lock()
			defer host.mu.Unlock()
			if call == "fire" {
				host.lingers = 3
			}
			if call == "apply" && (host.lingers > 0 || host.serving != "") {
				t.Errorf("knobs are changed under the server of %q, which is not at its end for %d looks", host.serving, host.lingers)
			}
			return before(n, call)
		}
		if _, err := run(t.Context(), host, &fakeStore{}, smallPlan(1)); err != nil {
			t.Fatal(err)
		}
		order := strings.Join(strings.Fields(fmt.Sprint(host.calls)), " ")
		if !strings.Contains(order, "ended ended ended ended apply serve") {
			t.Errorf("order of the calls: %s", order)
		}
	})
}

// TestServerThatNeedsItsKnobsIsNotTriedBeforeThem has a state whose open-file limit is above the present fs.nr_open.
func TestServerThatNeedsItsKnobsIsNotTriedBeforeThem(t *testing.T) {
	file := lab.KnobID{Kind: lab.KnobFile, Name: "/etc/nginx/tuned.conf"}
	for want, change := range map[string]func(lab.Plan) lab.KnobID{
		"its open-file limit of 2000000 needs a higher fs.nr_open than the present 1048576": func(p lab.Plan) lab.KnobID {
			alsoSet(p, nrOpen, "1048576", "3000000")
			p.Servings[1].Nofile = 2000000
			return nrOpen
		},
		"its configuration names /etc/nginx/tuned.conf, which the state writes": func(p lab.Plan) lab.KnobID {
			alsoSet(p, file, "1048576", "new")
			p.Servings[1].Config += "include /etc/nginx/tuned.conf;\n"
			return file
		},
	} {
		host, p := newFakeHost(t), smallPlan(1)
		knob := change(p)
		host.knobs[knob], host.original[knob] = "1048576", "1048576"
		var said []string
		_, err := Run(t.Context(), "small-1", p, map[lab.HostName]Machine{web: host.machine()}, &fakeStore{}, func(e lab.Event) {
			if e.Kind == lab.EventProblem {
				said = append(said, e.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(said) != 1 || said[0] != `the server of state "sockets" is not tried before anything is changed: `+want {
			t.Errorf("said %q", said)
		}
		if want := "[defaults control defaults sockets control]"; fmt.Sprint(host.served) != want {
			t.Errorf("served %v, want %s", host.served, want)
		}
		host.mustBeAsBefore()
	}
}

func TestTargetWhoseServersCannotBeTriedIsReachedFromTheFirstOfThem(t *testing.T) {
	c, p := newCluster(t), severalPlan(1)
	p.Capacity = nil
	for _, s := range append(p.States, p.Original) {
		s.Settings[web] = append([]lab.Setting{{Knob: nrOpen, Value: map[bool]string{true: "1048576", false: "3000000"}[s.Name == "original"]}}, s.Settings[web]...)
	}
	for i := range p.Servings {
		p.Servings[i].Nofile = 2000000
	}
	c.all[web].knobs[nrOpen], c.all[web].original[nrOpen] = "1048576", "1048576"
	c.all[gen2].deaf = "connect: connection refused"
	_, err := c.run(t.Context(), p)
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Refusal.Host != gen2 || len(c.store.runs) > 0 {
		t.Errorf("error %v", err)
	}
	c.mustBeAsBefore("")
}
