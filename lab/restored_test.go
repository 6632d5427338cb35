package lab_test

import (
	"testing"

	"ngxlab/lab"
)

func TestTextOfARestoredKnobTellsBothValuesAndTheNote(t *testing.T) {
	k := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}
	v := func(text string) lab.Value { return lab.Value{Text: text} }
	for _, c := range []struct {
		r    lab.Restored
		want string
	}{
		{lab.Restored{Knob: k, Original: v("4096"), Found: v("8192"), Outcome: lab.RestoreDone}, "put back from 8192 to 4096"},
		{lab.Restored{Knob: k, Original: v("4096"), Found: v("4096"), Outcome: lab.RestoreRebooted}, "back by itself at 4096: the host was rebooted"},
		{lab.Restored{Knob: k, Original: v("4096"), Found: v("128"), Outcome: lab.RestoreRebooted}, "at 128 since the host was rebooted (it was 4096 before)"},
		{lab.Restored{Knob: k, Original: v("4096"), Found: v("7"), Outcome: lab.RestoreForeign, Note: "set at boot"},
			"kept at 7: changed by someone else (it was 4096); set at boot"},
		{lab.Restored{Knob: k, Original: v("4096"), Found: v("7"), Outcome: lab.RestoreFailed, Error: "no"}, "could not be put back: is 7, was 4096: no"},
	} {
		if got := c.r.Text(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
