package conduct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ngxlab/lab"
)

func ignore(lab.Event) {}

func run(ctx context.Context, host *fakeHost, store *fakeStore, p lab.Plan) (lab.Outcome, error) {
	return Run(ctx, "small-1", p, map[lab.HostName]Machine{web: host.machine()}, store, ignore)
}

func TestEveryCellIsMeasuredOncePerRoundOnAFreshServerPerState(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(6)
	out, err := run(t.Context(), host, store, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(store.runs) != 6*len(p.Cells) || out.Runs != len(store.runs) || out.Rounds != 6 || out.Status != lab.StatusDone {
		t.Errorf("outcome %+v with %d runs, want %d runs in 6 rounds", out, len(store.runs), 6*len(p.Cells))
	}
	for _, r := range store.runs {
		if r.Server.Serving != r.Cell.State {
			t.Errorf("%v was measured on the server of %q", r.Cell, r.Server.Serving)
		}
		if r.Validity == lab.Invalid {
			t.Errorf("%v, round %d is invalid: %v", r.Cell, r.Round, grave(r.Findings))
		}
	}
	if want := len(p.States) * 7; len(host.served) != want { // a rehearsal and six rounds
		t.Errorf("%d servers were started, want %d", len(host.served), want)
	}
	host.mustBeAsBefore()
}

func TestOriginalsAreRecordedBeforeTheFirstChange(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	store.before = func(what string) error {
		if what == "originals" && len(host.writes) == 0 && len(store.firsts) > 0 && store.firsts[0].From.Text != "4096" {
			t.Errorf("recorded %q as the original", store.firsts[0].From.Text)
		}
		return nil
	}
	if _, err := run(t.Context(), host, store, smallPlan(1)); err != nil {
		t.Fatal(err)
	}
	for _, c := range store.firsts {
		if c.From.Text != "4096" {
			t.Errorf("a tuned value %q was recorded as original", c.From.Text)
		}
	}
	if len(store.firsts) == 0 {
		t.Error("no original was recorded")
	}
}

// TestCancelledCampaignRestoresHosts cancels at every call that a campaign makes on its host, one after the other.
func TestCancelledCampaignRestoresHosts(t *testing.T) {
	atEveryCall(t, func(t *testing.T, n int) {
		host, store := newFakeHost(t), &fakeStore{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		host.before = func(call int, _ string) error {
			if call == n {
				cancel()
			}
			return nil
		}
		out, err := run(ctx, host, store, withCapacity(smallPlan(2)))
		if err == nil || out.Status != lab.StatusInterrupted {
			t.Errorf("cancelled at call %d (%s): status %s, error %v", n, host.calls[n-1], out.Status, err)
		}
		if len(store.ends) != 1 || store.ends[0].Status != lab.StatusInterrupted {
			t.Errorf("cancelled at call %d: recorded ends %v", n, store.ends)
		}
		host.mustBeAsBefore()
	})
}

// TestFailureAtAnyCallRestoresHosts injects a fault into every call but the last restore.
func TestFailureAtAnyCallRestoresHosts(t *testing.T) {
	atEveryCall(t, func(t *testing.T, n int) {
		host, store := newFakeHost(t), &fakeStore{}
		host.before = func(call int, _ string) error {
			if call == n {
				return errInjected
			}
			return nil
		}
		out, err := run(t.Context(), host, store, withCapacity(smallPlan(2)))
		if !errors.Is(err, errInjected) || out.Status != lab.StatusFailed {
			t.Errorf("fault at call %d (%s): status %s, error %v", n, host.calls[n-1], out.Status, err)
		}
		host.mustBeAsBefore()
	})
}

// atEveryCall runs check for the number of every call of an undisturbed campaign before its last restore.
func atEveryCall(t *testing.T, check func(*testing.T, int)) {
	host := newFakeHost(t)
	if _, err := run(t.Context(), host, &fakeStore{}, withCapacity(smallPlan(2))); err != nil {
		t.Fatal(err)
	}
	last := len(host.calls) - 1
	for host.calls[last] != "restore" {
		last--
	}
	for n := 1; n <= last; n++ {
		if host.calls[n-1] == "release" {
			continue // a fault there is told, the connections end with the agent
		}
		t.Run(fmt.Sprintf("%d %s", n, host.calls[n-1]), func(t *testing.T) { check(t, n) })
	}
}

func TestResumeMeasuresOnlyWhatIsMissing(t *testing.T) {
	p := withCapacity(smallPlan(2))
	first := &fakeStore{}
	if _, err := run(t.Context(), newFakeHost(t), first, p); err != nil {
		t.Fatal(err)
	}
	store := &fakeStore{done: lab.Done{Runs: first.runs[:5], Levels: first.levels[:3]}}
	out, err := run(t.Context(), newFakeHost(t), store, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(store.runs) != len(first.runs)-5 || out.Runs != len(first.runs) {
		t.Errorf("measured %d runs after %d of %d were done", len(store.runs), 5, len(first.runs))
	}
	for _, r := range store.runs {
		if slices.ContainsFunc(first.runs[:5], func(d lab.Run) bool { return d.Cell == r.Cell && d.Round == r.Round }) {
			t.Errorf("%v of round %d was measured again", r.Cell, r.Round)
		}
	}
	if len(store.levels) != 2 {
		t.Errorf("held %d levels, want the 2 of the ramp that was not complete", len(store.levels))
	}
}

func TestResumedCampaignDoesNotSayAgainThatARoundIsComplete(t *testing.T) {
	p, first := smallPlan(2), &fakeStore{}
	if _, err := run(t.Context(), newFakeHost(t), first, p); err != nil {
		t.Fatal(err)
	}
	var complete []int
	hosts := map[lab.HostName]Machine{web: newFakeHost(t).machine()}
	store := &fakeStore{done: lab.Done{Runs: first.runs[:len(p.Cells)]}}
	_, err := Run(t.Context(), "small-1", p, hosts, store, func(e lab.Event) {
		if e.Kind == lab.EventRound {
			complete = append(complete, e.Round)
		}
	})
	if err != nil || !slices.Equal(complete, []int{2}) {
		t.Errorf("complete were said %v, want round 2; error %v", complete, err)
	}
}

// TestCampaignInterruptedInItsLastRoundIsCompleted has all runs of two rounds but the last ones.
func TestCampaignInterruptedInItsLastRoundIsCompleted(t *testing.T) {
	p, first := smallPlan(2), &fakeStore{}
	if _, err := run(t.Context(), newFakeHost(t), first, p); err != nil {
		t.Fatal(err)
	}
	for _, missing := range []int{1, len(p.Cells) - 1, len(p.Cells) + 1} {
		store := &fakeStore{done: lab.Done{Runs: first.runs[:len(first.runs)-missing]}}
		out, err := run(t.Context(), newFakeHost(t), store, p)
		if err != nil || len(store.runs) != missing || out.Reason != lab.ReasonMax {
			t.Errorf("%d runs were missing, %d were made; %s, error %v", missing, len(store.runs), out.Reason, err)
		}
	}
}

func TestRunsOfAnotherPartAreNotTakenOver(t *testing.T) {
	p := smallPlan(1)
	first := &fakeStore{}
	if _, err := run(t.Context(), newFakeHost(t), first, p); err != nil {
		t.Fatal(err)
	}
	p.Part = 2
	store := &fakeStore{done: lab.Done{Runs: first.runs}}
	if _, err := run(t.Context(), newFakeHost(t), store, p); err != nil {
		t.Fatal(err)
	}
	if len(store.runs) != len(p.Cells) || store.runs[0].Part != 2 {
		t.Errorf("part 2 has %d runs, want all %d", len(store.runs), len(p.Cells))
	}
}

func TestRunWithoutFiguresIsInvalidAndRepeatedAtTheEndOfItsRound(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(2)
	host.nothing = func(fired int) bool { return fired == 2 } // the first measurement: the fire before it is its warm-up
	out, err := run(t.Context(), host, store, p)
	if err != nil {
		t.Fatal(err)
	}
	if store.runs[0].Validity != lab.Invalid || out.Invalid != 1 {
		t.Fatalf("the run that measured nothing is %s; outcome %+v", store.runs[0].Validity, out)
	}
	again := store.runs[len(p.Cells)]
	if again.Cell != store.runs[0].Cell || again.Round != 1 || again.Attempt != 2 || again.Validity == lab.Invalid {
		t.Errorf("after round 1 came %v, round %d, attempt %d, %s", again.Cell, again.Round, again.Attempt, again.Validity)
	}
}

func TestRepetitionsOfInvalidRunsAreBounded(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(3)
	host.nothing = func(int) bool { return true }
	rounds := 0
	_, err := Run(t.Context(), "small-1", p, map[lab.HostName]Machine{web: host.machine()}, store, func(e lab.Event) {
		if e.Kind != lab.EventRound {
			return
		}
		rounds++
		if open := e.Total - e.Done; open != (3-rounds)*len(p.Cells) {
			t.Errorf("after round %d, %d of %d runs are done", rounds, e.Done, e.Total)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	planned := 3 * len(p.Cells)
	if extra := len(store.runs) - planned; extra < 1 || float64(extra) > 0.2*float64(planned)+1 {
		t.Errorf("%d repetitions of %d runs, at most a fifth is allowed", extra, planned)
	}
}

func TestFullStoreStopsTheCampaignAndRestoresHosts(t *testing.T) {
	for _, what := range []string{"originals", "commit", "event"} {
		t.Run(what, func(t *testing.T) {
			host, store := newFakeHost(t), &fakeStore{}
			n := 0
			store.before = func(now string) error {
				if n++; n > 20 && now == what || n > 200 {
					return errInjected
				}
				return nil
			}
			if _, err := run(t.Context(), host, store, smallPlan(2)); !errors.Is(err, errInjected) {
				t.Errorf("error %v", err)
			}
			host.mustBeAsBefore()
		})
	}
}

func TestServerRefusedInRehearsalChangesNothing(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	serves := 0
	host.before = func(_ int, call string) error {
		if call == "serve" {
			if serves++; serves == 2 {
				return errInjected
			}
		}
		return nil
	}
	if _, err := run(t.Context(), host, store, smallPlan(1)); !errors.Is(err, errInjected) {
		t.Errorf("error %v", err)
	}
	if len(host.writes) > 0 || len(store.runs) > 0 {
		t.Errorf("writes %v, %d runs", host.writes, len(store.runs))
	}
}

func TestPlanWithARefusalIsNotBegun(t *testing.T) {
	p := smallPlan(1)
	p.Refused = []lab.Refusal{{Reason: "no such sysctl", Fatal: true}}
	host := newFakeHost(t)
	if _, err := run(t.Context(), host, &fakeStore{}, p); err == nil || len(host.calls) > 0 {
		t.Errorf("error %v, calls %v", err, host.calls)
	}
}

func TestBlockedOrderMeasuresAllRoundsOfAStateTogether(t *testing.T) {
	store, p := &fakeStore{}, smallPlan(3)
	p.Experiment.Order = lab.Blocked
	if _, err := run(t.Context(), newFakeHost(t), store, p); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range store.runs {
		if len(order) == 0 || order[len(order)-1] != r.Cell.State {
			order = append(order, r.Cell.State)
		}
	}
	if want := []string{"defaults", "sockets", "control"}; !slices.Equal(order, want) || len(store.runs) != 3*len(p.Cells) {
		t.Errorf("%d runs in blocks %v, want %d in %v", len(store.runs), order, 3*len(p.Cells), want)
	}
}

// TestClampedBestEffortChangeIsToldAndTheStartOfTheNextTransition has a host that clamps what it is given.
func TestClampedBestEffortChangeIsToldAndTheStartOfTheNextTransition(t *testing.T) {
	host, p := newFakeHost(t), smallPlan(1)
	host.clamp = "16384"
	store := &fakeStore{}
	if _, err := run(t.Context(), host, store, p); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.runs {
		back := r.Server.ReadBack
		if clamped := r.Cell.State == "sockets"; clamped != (len(back) == 1) || clamped && (back[0].ReadBack.Text != "16384" || !back[0].Differs) {
			t.Errorf("%v: read back %+v", r.Cell, back)
		}
		if f, _ := drift(t, r); f.Outcome != lab.Quiet {
			t.Errorf("%v: %+v", r.Cell, f)
		}
	}
	host.mustBeAsBefore()
}

func TestCapacityAloneIsHeldOnTheHostsClock(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, withCapacity(smallPlan(1))
	p.Cells, p.Rounds = nil, nil
	out, err := run(t.Context(), host, store, p)
	if err != nil || out.Status != lab.StatusDone || out.Reason != "" {
		t.Errorf("outcome %+v, error %v", out, err)
	}
	if len(store.levels) != 4 || !slices.Contains(host.calls, "clock") {
		t.Errorf("%d levels, calls %v", len(store.levels), host.calls)
	}
}

func TestMissedDeadlineIsAFailureAndNotAnInterruption(t *testing.T) {
	host := newFakeHost(t)
	host.before = func(_ int, call string) error {
		if call == "fire" {
			return context.DeadlineExceeded
		}
		return nil
	}
	out, err := run(t.Context(), host, &fakeStore{}, smallPlan(1))
	if out.Status != lab.StatusFailed || err == nil {
		t.Errorf("status %s, error %v", out.Status, err)
	}
}
