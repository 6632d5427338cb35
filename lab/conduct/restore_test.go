package conduct

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ngxlab/lab"
)

func TestHostThatCannotBeRestoredIsTriedThreeTimesAndNamedInTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, store := newFakeHost(t), &fakeStore{}
		host.before = func(_ int, call string) error {
			if call == "restore" {
				return errInjected
			}
			return nil
		}
		var why []string
		out, err := Run(t.Context(), "c1", smallPlan(1), map[lab.HostName]Machine{web: host.machine()}, store, func(e lab.Event) {
			if e.Kind == lab.EventProblem && e.Host == web {
				why = append(why, e.Text)
			}
		})
		if _, named := out.Unrestored[web]; !named || !errors.Is(err, errInjected) {
			t.Errorf("outcome %+v, error %v", out, err)
		}
		if len(why) != 3 || !strings.Contains(why[0], "trying again") || why[2] != "restore: "+errInjected.Error() {
			t.Errorf("the events say %q", why)
		}
	})
}

func TestKnobThatCannotBePutBackAtFirstIsTriedAgain(t *testing.T) {
	for failures, left := range map[int]int{1: 0, 2: 0, 3: 1} {
		synctest.Test(t, func(t *testing.T) {
			host, p := newFakeHost(t), smallPlan(1)
			host.knobs[finTimeout], host.original[finTimeout] = "60", "60"
			alsoSet(p, finTimeout, "60", "15")
			attempts := 0
			host.stuck = func(k lab.KnobID) bool {
				if k == finTimeout {
					attempts++
				}
				return k == finTimeout && attempts <= failures
			}
			p.Rounds[0] = p.Rounds[0][:4] // it ends in the tuned state
			began := time.Now()
			out, err := run(t.Context(), host, &fakeStore{}, p)
			if len(out.Unrestored[web]) != left || (err != nil) != (left > 0) {
				t.Errorf("after %d failures: not restored %v, error %v", failures, out.Unrestored, err)
			}
			if took := time.Since(began); took > 2*time.Second || took < 200*time.Millisecond {
				t.Errorf("after %d failures: it took %v", failures, took)
			}
			if left == 0 {
				host.mustBeAsBefore()
			}
		})
	}
}

func TestHostsAreRestoredWithoutWaitingForOneThatDoesNotAnswer(t *testing.T) {
	host, silent := newFakeHost(t), newFakeHost(t)
	others := make(chan struct{})
	host.before = func(_ int, call string) error {
		if call == "restore" {
			close(others)
		}
		return nil
	}
	silent.before = func(_ int, call string) error {
		if call != "restore" {
			return nil
		}
		select {
		case <-others:
			return nil
		case <-time.After(10 * time.Second):
			return errors.New("the other host was not restored meanwhile")
		}
	}
	hosts := map[lab.HostName]Machine{"silent": silent.machine(), web: host.machine()}
	if _, err := Run(t.Context(), "small-1", smallPlan(1), hosts, &fakeStore{}, ignore); err != nil {
		t.Error(err)
	}
	host.mustBeAsBefore()
}

func TestWhatSomeoneElseChangedIsSaidOfARestoredHost(t *testing.T) {
	host := newFakeHost(t)
	host.foreign = true
	var said, knob string
	out, err := Run(t.Context(), "small-1", smallPlan(1), map[lab.HostName]Machine{web: host.machine()}, &fakeStore{}, func(e lab.Event) {
		switch e.Kind {
		case lab.EventRestored:
			said = e.Text
		case lab.EventRestore:
			knob = e.Text
		}
	})
	if err != nil || len(out.Unrestored) > 0 || said != "as it was before the campaign, but for what someone else changed" {
		t.Errorf("said %q, outcome %+v, error %v", said, out, err)
	}
	if len(out.Kept[web]) == 0 || !strings.Contains(knob, ": kept at ") || !strings.Contains(knob, "changed by someone else (it was ") {
		t.Errorf("of the knob: %q, outcome %+v", knob, out)
	}
}

// TestSlowHostIsNoLostOne: it verifies and reverts a command of five minutes twice, and answers.
func TestSlowHostIsNoLostOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, p := newFakeHost(t), smallPlan(1)
		command := lab.CommandValue{Apply: []string{"a"}, Verify: []string{"b"}, Revert: []string{"c"}, Timeout: lab.Seconds(300)}
		original := command.String()
		command.Applied = true
		knob := lab.KnobID{Kind: lab.KnobCommand, Name: "slow"}
		alsoSet(p, knob, original, command.String())
		host.knobs[knob] = original
		host.before = func(_ int, call string) error {
			if call == "restore" {
				<-time.After(6 * 5 * time.Minute)
			}
			return nil
		}
		out, err := run(t.Context(), host, &fakeStore{}, p)
		if err != nil || len(out.Unrestored) > 0 {
			t.Errorf("outcome %+v, error %v", out, err)
		}
	})
}
