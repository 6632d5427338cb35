package lab_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

func seconds(n int) lab.Duration { return lab.Duration{Duration: time.Duration(n) * time.Second} }

func loaded(specs ...lab.LoadSpec) lab.Experiment {
	e := study(lab.Cumulative)
	for _, spec := range specs {
		if spec.URL == "" {
			spec.URL = "/"
		}
		if spec.Duration.Duration == 0 {
			spec.Duration = seconds(10)
		}
		e.Load = append(e.Load, spec)
	}
	return e
}

func loadNames(t *testing.T, e lab.Experiment) []string {
	t.Helper()
	points, err := lab.LoadPoints(e)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range points {
		names = append(names, p.Name)
	}
	return names
}

func TestLoadPointsAreTheProductOfTheAxes(t *testing.T) {
	wrk := lab.LoadSpec{Tool: "wrk", KeepAlive: []bool{true, false}, Connections: []int{10, 100}}
	ab := lab.LoadSpec{Tool: "ab", KeepAlive: []bool{false}, Connections: []int{100}, Processes: 2}
	want := []string{"wrk 10 keep-alive", "wrk 100 keep-alive", "wrk 10 close", "wrk 100 close", "ab 100 close"}
	if got := loadNames(t, loaded(wrk, ab)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNamesTellOnlyWhatVaries(t *testing.T) {
	on := func(url string, hosts []int, processes int) lab.LoadSpec {
		return lab.LoadSpec{Tool: "wrk", URL: url, KeepAlive: []bool{true}, Connections: []int{10}, Hosts: hosts, Processes: processes}
	}
	long, fixed, pinned := on("/", nil, 1), on("/", nil, 1), on("/", nil, 1)
	long.Duration, fixed.Requests, pinned.Pin = seconds(20), 5000, true
	threads := on("/", nil, 1)
	threads.Threads = 1
	listed := on("/", nil, 1)
	listed.CPUs = "0-1"
	for _, c := range []struct {
		e    lab.Experiment
		want []string
	}{
		{loaded(on("/a", nil, 1), on("/b", nil, 1)), []string{"wrk 10 keep-alive /a", "wrk 10 keep-alive /b"}},
		{loaded(on("/", []int{1, 2}, 1)), []string{"wrk 10 keep-alive 1 host", "wrk 10 keep-alive 2 hosts"}},
		{loaded(on("/", nil, 1), on("/", nil, 8)), []string{"wrk 10 keep-alive 1 process", "wrk 10 keep-alive 8 processes"}},
		{loaded(on("/", nil, 1), long, fixed), []string{"wrk 10 keep-alive 10s", "wrk 10 keep-alive 20s", "wrk 10 keep-alive 5000 requests"}},
		{loaded(on("/", nil, 1), pinned), []string{"wrk 10 keep-alive", "wrk 10 keep-alive pinned"}},
		{loaded(threads, listed), []string{"wrk 10 keep-alive 1 thread", "wrk 10 keep-alive on CPUs 0-1"}},
	} {
		if got := loadNames(t, c.e); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestLoadHostsAreTheFirstOnesInTheFile(t *testing.T) {
	e := loaded(lab.LoadSpec{Tool: "wrk", KeepAlive: []bool{true}, Connections: []int{10}, Hosts: []int{1}},
		lab.LoadSpec{Tool: "ab", KeepAlive: []bool{true}, Connections: []int{10}})
	points, err := lab.LoadPoints(e)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(points[0].Hosts, []lab.HostName{"load1"}) || !slices.Equal(points[1].Hosts, []lab.HostName{"load1", "load2"}) {
		t.Errorf("hosts are %v and %v", points[0].Hosts, points[1].Hosts)
	}
}

func TestHeadlineIsEveryPointUnlessSomeAreNamed(t *testing.T) {
	a := lab.LoadSpec{Tool: "wrk", KeepAlive: []bool{true}, Connections: []int{10}}
	b := lab.LoadSpec{Tool: "ab", KeepAlive: []bool{true}, Connections: []int{10}}
	for _, c := range []struct{ set, wantA, wantB bool }{{false, true, true}, {true, false, true}} {
		b.Headline = c.set
		points, err := lab.LoadPoints(loaded(a, b))
		if err != nil {
			t.Fatal(err)
		}
		if points[0].Headline != c.wantA || points[1].Headline != c.wantB {
			t.Errorf("named %v: headline %v and %v", c.set, points[0].Headline, points[1].Headline)
		}
	}
}

func TestLoadPointsRefuseWhatCannotBeDriven(t *testing.T) {
	good := lab.LoadSpec{Tool: "wrk", KeepAlive: []bool{true}, Connections: []int{10}}
	tooMany, noAxis := good, good
	tooMany.Hosts, noAxis.Connections = []int{3}, nil
	noLoad := loaded(good)
	noLoad.Hosts = noLoad.Hosts[:1]
	for name, c := range map[string]struct {
		e    lab.Experiment
		want string
	}{
		"repeated": {loaded(good, good), `load[1] repeats "wrk 10 keep-alive" of load[0]`},
		"hosts":    {loaded(tooMany), "3 load hosts asked for, the experiment has 2"},
		"axis":     {loaded(noAxis), "at least one value"},
		"role":     {noLoad, `no host has the role "load"`},
		"nothing":  {loaded(), "no load points"},
	} {
		if _, err := lab.LoadPoints(c.e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %s", name, err, c.want)
		}
	}
}
