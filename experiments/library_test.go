package experiments

import (
	"slices"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/server"
)

func opened(t *testing.T, name string) lab.Experiment {
	t.Helper()
	text, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

func TestQuickstartIsTheStudyThatTheReadmePromises(t *testing.T) {
	e := opened(t, "quickstart")
	states, err := lab.States(e)
	if err != nil {
		t.Fatal(err)
	}
	points, err := lab.LoadPoints(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(states) != 6 || states[5].Name != lab.ControlName || len(points) != 3 {
		t.Fatalf("%d states, %d load points", len(states), len(points))
	}
	for i, want := range []string{"wrk 10 keep-alive", "wrk 100 keep-alive", "ab 100 close"} {
		if p := points[i]; p.Name != want || p.Duration.Seconds() != 2 || p.WarmupFirst.Seconds() != 0.5 || p.Warmup.Seconds() != 0.2 {
			t.Errorf("load point %d is %+v, want %q", i, p, want)
		}
	}
	if r := e.Repeat; r.Min != 6 || r.Max != 6 || r.Precision != 0.05 || r.Effect != 0.05 || r.CoolDown.Seconds() != 0.1 || r.Why == "" {
		t.Errorf("repeat %+v", r)
	}
	if s := e.Server; s.Site != "file" || s.BodyBytes != 1024 || s.CPUs != "auto" {
		t.Errorf("server %+v", s)
	}
	if kernel := e.Steps[4]; kernel.Cannot != lab.CannotSkip || len(kernel.Sysctl) < 2 || len(kernel.Nginx) != 0 {
		t.Errorf("the kernel step %+v is not one that is dropped when not root", kernel)
	}
	if c := e.Capacity; c == nil || c.Holders < 2 || c.Ramps != 3 || c.Connections[5] != 20000 || c.Nginx["events.worker_connections"] != "15000" {
		t.Errorf("capacity %+v", c)
	}
}

func TestLibraryNamesOnlyDirectivesThatCanBePlaced(t *testing.T) {
	for _, entry := range Library() {
		e := opened(t, entry.Name)
		all := []map[string]string{e.Server.Nginx}
		for _, s := range e.Steps {
			all = append(all, s.Nginx)
		}
		if e.Capacity != nil {
			all = append(all, e.Capacity.Nginx)
		}
		for _, directives := range all {
			for name := range directives {
				if err := server.Known(name); err != nil {
					t.Errorf("%s: %v", entry.Name, err)
				}
			}
		}
	}
}

func TestToolsAndSitesAreThoseOfTheLab(t *testing.T) {
	var names []string
	for _, tool := range load.Tools() {
		names = append(names, tool.Name)
	}
	known := slices.Clone(tool.schema["enum"].([]string))
	slices.Sort(known)
	slices.Sort(names)
	if !slices.Equal(known, names) {
		t.Errorf("the file takes tools %v, the lab drives %v", known, names)
	}
	for site, url := range siteURL {
		if got := server.DefaultURL(site); got != url {
			t.Errorf("site %s serves %s, the file's default is %s", site, got, url)
		}
	}
}
