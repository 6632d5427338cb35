package verdict

import (
	"testing"

	"ngxlab/lab"
)

func TestEnoughCountsRoundsThenWidth(t *testing.T) {
	p := planOf(1, []string{"a"}, lab.Repeat{Min: 6, Max: 8, Precision: 0.02, Effect: 0.02})
	tight := figures(p, lab.Goodput, func(string, string) float64 { return 1 })
	upTo := func(round int) (out []lab.Run) {
		for _, r := range tight {
			if r.Round <= round {
				out = append(out, r)
			}
		}
		return out
	}
	for _, c := range []struct {
		runs []lab.Run
		done bool
		want lab.Reason
	}{{nil, false, lab.ReasonMinimum}, {upTo(5), false, lab.ReasonMinimum}, {upTo(6), true, lab.ReasonPrecise}} {
		if done, reason := Enough(p, c.runs); done != c.done || reason != c.want {
			t.Errorf("%d runs: %v, %s; want %s", len(c.runs), done, reason, c.want)
		}
	}
	for i := range tight {
		if tight[i].Cell.State == "step1" && tight[i].Round%2 == 0 {
			tight[i].Figures = lab.Figures{lab.Goodput: 1.5 * tight[i].Figures[lab.Goodput]}
		}
	}
	if done, reason := Enough(p, tight); done || reason != lab.ReasonContinue {
		t.Errorf("wide: %v, %s", done, reason)
	}
	for i := range tight {
		tight[i].Round += 2
	}
	if done, reason := Enough(p, tight); !done || reason != lab.ReasonMax {
		t.Errorf("round 8 of 8: %v, %s", done, reason)
	}
}
