package observe

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestMoreRequestsThanADelayAllowsCannotBe(t *testing.T) {
	o := Observation{
		Point: lab.LoadPoint{Connections: 100}, DelayS: 1, Sampled: true,
		Figures: lab.Figures{lab.Requests: 900, lab.DurationS: 10, lab.Goodput: 90, lab.RequestRate: 90},
	}
	if f := impossible(o); f.Outcome != lab.Quiet {
		t.Errorf("90 of at most 100 per second: %+v", f)
	}
	o.AtOnce = 8
	if f := impossible(o); f.Consequence != lab.Invalidate || !strings.Contains(f.Evidence, "cannot be when each waits 1 s") {
		t.Errorf("90 of at most 8 per second: %+v", f)
	}
	o.DelayS = 0
	if f := impossible(o); f.Outcome != lab.Quiet {
		t.Errorf("without a delay: %+v", f)
	}
}
