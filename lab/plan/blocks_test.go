package plan_test

import (
	"testing"

	"ngxlab/lab"
)

// TestBlockStandsBesideThoseWithOtherArguments: location /x does not take the place of the site's own location.
func TestBlockStandsBesideThoseWithOtherArguments(t *testing.T) {
	e := withStep(lab.Step{Name: "tried", Nginx: map[string]string{"server.location": "/x { return 200; }"}})
	p := make1(t, e)
	for _, c := range p.Changes["here"] {
		if c.Knob.Name == "server.location" && c.State == "tried" {
			if !c.Before.Absent || c.To.Text != "/x { return 200; }" || c.Same {
				t.Errorf("told as %+v", c)
			}
			return
		}
	}
	t.Errorf("not told of: %+v", p.Changes["here"])
}
