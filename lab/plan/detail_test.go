package plan_test

import (
	"strings"
	"testing"
)

// Whoever multiplies what a bound says must get the bound.
func TestBoundsOnCapacitySayHowTheyComeAbout(t *testing.T) {
	want := map[string]string{
		"worker_connections": "2 workers × 15356: with a sixteenth of its 16384 worker_connections free", // = 30,712
		"hard nofile":        "2 workers × 20000 open files, less 64 of their own",
		"holders' nofile":    "less 64 of their own",
	}
	for _, l := range make1(t, quick()).Capacity.Limits {
		if w, known := want[l.Name]; known && !strings.Contains(l.Detail, w) {
			t.Errorf("%s at %d: %q", l.Name, l.Connections, l.Detail)
		}
	}
}
