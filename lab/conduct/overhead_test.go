package conduct

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"ngxlab/lab"
)

// TestTimeBetweenRunsIsNeitherLoadNorRestNorServerStart runs two load points on each of three servers; on the second one
// a knob is set, on the third it is back.
func TestTimeBetweenRunsIsNeitherLoadNorRestNorServerStart(t *testing.T) {
	const apply, yardstick, serve = 40 * time.Millisecond, 20 * time.Millisecond, 7 * time.Second
	for rest, late := range map[time.Duration]time.Duration{ // what of the yardstick after a run is not within the rest
		0: yardstick, 5 * time.Millisecond: yardstick - 5*time.Millisecond, time.Second: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			f, store := newFakeHost(t), &fakeStore{}
			f.before = func(_ int, call string) error {
				took := map[string]time.Duration{"apply": apply, "yardstick": yardstick, "serve": serve}
				<-time.After(took[call])
				return nil
			}
			p := smallPlan(1)
			p.Experiment.Repeat.CoolDown = lab.Duration{Duration: rest}
			if _, err := Run(t.Context(), "small-1", p, map[lab.HostName]Machine{web: f.machine()}, store, ignore); err != nil {
				t.Fatal(err)
			}
			next := late + yardstick + fireLead
			for i, want := range []time.Duration{0, next, next + apply, next, next + apply, next} {
				if got := store.runs[i].OverheadS; math.Abs(got-want.Seconds()) > 1e-6 {
					t.Errorf("rest %v, run %d: %v s, want %v", rest, i+1, got, want)
				}
			}
		})
	}
}
