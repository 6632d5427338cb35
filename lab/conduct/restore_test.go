package conduct

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

func TestHostThatCannotBeRestoredIsNamedInTheOutcome(t *testing.T) {
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
	if len(why) != 1 || !strings.Contains(why[0], errInjected.Error()) {
		t.Errorf("the events say %q", why)
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
	if len(out.Kept[web]) == 0 || !strings.HasPrefix(knob, "kept sysctl ") || !strings.Contains(knob, "changed by someone else (it was ") {
		t.Errorf("of the knob: %q, outcome %+v", knob, out)
	}
}
