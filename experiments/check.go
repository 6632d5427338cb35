package experiments

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// check adds a problem for each thing that is wrong in what the keys mean together, as far as no host need be asked.
func (d *decoding) check(e lab.Experiment) {
	d.checkHosts(e.Hosts)
	d.checkBuilds(e)
	d.checkServer(e)
	d.checkSteps(e)
	d.checkLadder(e)
	for i, l := range e.Load {
		d.checkLoad(fmt.Sprintf("load[%d]", i), l, e)
	}
	d.checkRepeat(e.Repeat)
	if len(d.problems) == 0 {
		d.checkStates(e)
	}
}

// problem is add with a path for the place.
func (d *decoding) problem(path, hint, format string, args ...any) {
	d.add(d.at(path), fmt.Sprintf(format, args...), hint)
}

func (d *decoding) checkSteps(e lab.Experiment) {
	first := map[string]int{}
	for i, s := range e.Steps {
		path := fmt.Sprintf("steps[%d]", i)
		if before, twice := first[s.Name]; twice {
			d.problem(path+".name", "", "step %q is there already, on line %d", s.Name, d.at(fmt.Sprintf("steps[%d]", before)).Line)
		}
		first[s.Name] = i
		if s.Name == lab.ControlName || s.Name == lab.AllSteps {
			d.problem(path+".name", "choose another name", "%q is the lab's own name for a state", s.Name)
		}
		if s.Build != "" {
			d.checkBuild(path+".build", s.Build, e.Builds)
		}
		if len(s.On) > 0 && len(s.Sysctl)+len(s.Knobs) == 0 {
			d.problem(path+".on", "", "on says where knobs of a host are set, and step %q has none", s.Name)
		}
		d.checkKnobs(path, s)
		if i > 0 && len(s.Nginx)+len(s.Remove)+len(s.Sysctl)+len(s.Knobs)+s.Nofile+s.Nproc+len(s.Build) == 0 {
			d.problem(path, "set at least one knob: nginx, sysctl, nofile, files …", "step %q changes nothing", s.Name)
		}
	}
}

func (d *decoding) checkLadder(e lab.Experiment) {
	var names []string
	for _, s := range e.Steps {
		names = append(names, s.Name)
	}
	for i, list := range e.Ladder.Lists {
		for j, name := range list {
			if !slices.Contains(names, name) {
				d.problem(fmt.Sprintf("ladder[%d][%d]", i, j), suggestion(name, names), "there is no step %q", name)
			}
		}
	}
}

func (d *decoding) checkLoad(path string, l lab.LoadSpec, e lab.Experiment) {
	if l.Requests > 0 && l.Duration.Duration > 0 {
		d.problem(path+".requests", "leave one of them out", "requests and duration exclude each other")
	}
	if l.Requests == 0 && l.Duration.Duration < 100*time.Millisecond {
		d.problem(path+".duration", "2s and more give usable figures", "%s is too short to measure anything", l.Duration)
	}
	if l.Threads > 0 && l.Tool != "wrk" {
		d.problem(path+".threads", "processes: N runs several", "threads belong to wrk; %s has one", l.Tool)
	}
	if l.Pin && l.CPUs != "" {
		d.problem(path+".cpus", "leave one of them out", "pin and cpus exclude each other")
	}
	if l.CPUs == "auto" {
		d.problem(path+".cpus", "pin: true", "auto is for the server")
	}
	for i, c := range l.Connections {
		at := fmt.Sprintf("%s.connections[%d]", path, i)
		d.checkConnections(at, c, l)
	}
	loads := 0
	for _, h := range e.Hosts {
		if h.Has(lab.RoleLoad) {
			loads++
		}
	}
	for i, n := range l.Hosts {
		if loads > 0 && n > loads {
			d.problem(fmt.Sprintf("%s.hosts[%d]", path, i), "", "%d load hosts asked for, there are %d", n, loads)
		}
	}
}

func (d *decoding) checkConnections(path string, c int, l lab.LoadSpec) {
	if l.Requests > 0 && l.Requests < c {
		d.problem(path, "requests are counted over all connections: ask for at least 20 per connection",
			"%d requests are fewer than %d connections", l.Requests, c)
	}
	if c < l.Processes {
		d.problem(path, "use fewer processes", "%d connections are fewer than %d processes", c, l.Processes)
	}
	if l.Threads > 0 && c >= l.Processes && c/l.Processes*l.Processes == c && c/l.Processes%l.Threads != 0 {
		d.problem(path, "wrk opens the same number on every thread and drops the rest: choose a multiple",
			"%d connections per process are no multiple of %d threads", c/l.Processes, l.Threads)
	}
}

func (d *decoding) checkRepeat(r lab.Repeat) {
	if r.Min > r.Max {
		d.problem("repeat.min", "", "min %d is above max %d", r.Min, r.Max)
	}
}

// checkStates checks what names states, once everything that makes them is well.
func (d *decoding) checkStates(e lab.Experiment) {
	states, err := lab.States(e)
	if err != nil {
		d.problem("ladder", "", "%s", err)
		return
	}
	if _, err := lab.LoadPoints(e); err != nil {
		d.problem("load", "", "%s", err)
	}
	d.checkFiles(e, states)
	d.checkCommands(e)
	var names []string
	for _, s := range states {
		names = append(names, s.Name)
	}
	for i, c := range e.Claims {
		path := fmt.Sprintf("claims[%d]", i)
		d.checkState(path+".state", c.State, names)
		d.checkState(path+".over", c.Over, names)
		d.checkClaim(path, c)
	}
	if e.Capacity != nil {
		d.checkCapacity(*e.Capacity, names)
	}
}

func (d *decoding) checkState(path, name string, states []string) {
	if !slices.Contains(states, name) {
		d.problem(path, suggestion(name, states), "there is no state %q", name)
	}
}

func (d *decoding) checkClaim(path string, c lab.Claim) {
	switch {
	case c.AtLeast == nil && c.AtMost == nil && c.Published == nil:
		d.problem(path, "", "claim %q says nothing: give at_least, at_most or published", c.Name)
	case c.AtLeast != nil && c.AtMost != nil && *c.AtLeast > *c.AtMost:
		d.problem(path, "", "claim %q: at_least %g is above at_most %g", c.Name, *c.AtLeast, *c.AtMost)
	case c.State == c.Over:
		d.problem(path, "", "claim %q compares %q with itself", c.Name, c.State)
	}
}

func (d *decoding) checkCapacity(c lab.CapacitySpec, states []string) {
	d.checkNginx("capacity.nginx", slices.Collect(maps.Keys(c.Nginx)))
	if c.Connections[0] != 0 {
		d.problem("capacity.connections", "the empty server is what the rest is compared with", "the first level must be 0")
	}
	for i := 1; i < len(c.Connections); i++ {
		if c.Connections[i] <= c.Connections[i-1] {
			d.problem(fmt.Sprintf("capacity.connections[%d]", i), "closing connections leaves memory behind, so levels only rise",
				"%d does not rise above %d", c.Connections[i], c.Connections[i-1])
		}
	}
	if len(c.Connections) < 3 {
		d.problem("capacity.connections", "", "%d levels are too few for a line: at least 3", len(c.Connections))
	}
	for i, bytes := range c.SizesBytes {
		if bytes <= c.ReserveBytes {
			d.problem(fmt.Sprintf("capacity.sizes[%d]", i), "", "nothing is left of %d bytes after a reserve of %d", bytes, c.ReserveBytes)
		}
	}
	if c.State != "" && !strings.EqualFold(c.State, lab.ControlName) {
		d.checkState("capacity.state", c.State, states)
	}
}
