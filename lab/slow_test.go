package lab

import (
	"testing"
	"time"
)

// TestSlowKnobsHaveTimeForAllThatIsDoneWithThem: a restore has a second round, an apply a reading before and after.
func TestSlowKnobsHaveTimeForAllThatIsDoneWithThem(t *testing.T) {
	command := CommandValue{Apply: []string{"a"}, Verify: []string{"b"}, Revert: []string{"c"}, Timeout: Seconds(600)}
	for _, c := range []struct {
		kind  string
		least Slowness
	}{
		{KnobSysctl, Slowness{}},
		{KnobCommand, Slowness{Read: 10 * time.Minute, Apply: 30 * time.Minute, Restore: 100 * time.Minute}},
		{KnobService, Slowness{Read: 20 * time.Second, Apply: 2 * time.Minute, Restore: 370 * time.Second}},
		{KnobUnit, Slowness{Read: 20 * time.Second, Apply: 142 * time.Second, Restore: 404 * time.Second}},
	} {
		p := Pending{Knob: KnobID{Kind: c.kind, Name: "x"}, Original: Value{Text: command.String()}}
		got := SlownessOf(Originals([]Pending{p, p}))
		if got.Read < 2*c.least.Read || got.Apply < 2*c.least.Apply || got.Restore < 2*c.least.Restore || (c.least == Slowness{}) != (got == Slowness{}) {
			t.Errorf("%s twice: %+v, want at least twice %+v", c.kind, got, c.least)
		}
	}
}
