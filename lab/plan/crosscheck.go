package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// sight is one host in one state, for holding its values against each other.
type sight struct {
	p      *planner
	state  lab.State
	host   lab.Host
	facts  lab.Facts // with the sysctls in force
	bounds bounds    // of the server, on a target
}

// crosschecks says where values of one state do not go together: with each other, or with the machine.
func (p *planner) crosschecks() error {
	for _, s := range p.plan.States {
		if s.Control {
			continue
		}
		facts := p.inForce(s)
		for _, h := range p.e.Hosts {
			v := sight{p: p, state: s, host: h, facts: facts[h.Name], bounds: p.bounds(s, h.Name)}
			for _, check := range hostChecks() {
				check(v)
			}
			if !h.Has(lab.RoleTarget) {
				continue
			}
			if !v.bounds.foreign {
				for _, check := range nginxChecks() {
					check(v)
				}
			}
			for _, check := range serverChecks() {
				check(v)
			}
		}
	}
	return nil
}

func hostChecks() []func(sight) {
	return []func(sight){tcpMemory, socketBuffers, portRange, reuse, serverPorts}
}

func nginxChecks() []func(sight) {
	return []func(sight){openFiles, systemFiles, backlog, workers, affinity, misplaced}
}

func serverChecks() []func(sight) { return []func(sight){processes, tracked} }

func sysctl(name string) lab.KnobID    { return lab.KnobID{Kind: lab.KnobSysctl, Name: name} }
func directive(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobNginx, Name: name} }

// say warns of a knob at the place that gave it its value, once for all states in which it is so.
func (v sight) say(knob lab.KnobID, format string, args ...any) {
	w := lab.Warning{Host: v.host.Name, Text: fmt.Sprintf(format, args...)}
	if slices.Contains(v.p.said, w) {
		return
	}
	v.p.said = append(v.p.said, w)
	v.p.warn(w.Host, v.place(knob), fmt.Sprintf("state %q: %s", v.state.Name, w.Text))
}

// setting is what the state gives to a knob, a directive being named with or without its context.
func (v sight) setting(knob lab.KnobID) (lab.Setting, bool) {
	var last lab.Setting
	at, found := -2, false
	for _, s := range v.state.Settings[v.host.Name] {
		_, bare, _ := strings.Cut(knob.Name, ".")
		named := s.Knob == knob || knob.Kind == lab.KnobNginx && s.Knob == directive(bare)
		if step := slices.Index(v.state.Steps, s.Step); named && step >= at {
			last, at, found = s, step, true
		}
	}
	return last, found
}

// set reports whether the experiment gives the knob a value in this state.
func (v sight) set(knob lab.KnobID) bool {
	s, found := v.setting(knob)
	return found && (s.Step != "" || knob.Kind != lab.KnobSysctl)
}

// place is where the file gives the knob its value, "" when it does not.
func (v sight) place(knob lab.KnobID) string {
	s, found := v.setting(knob)
	if !found || !v.set(knob) {
		return ""
	}
	return knobPath(v.p.stepPath(s.Step), s.Knob)
}

// number is a sysctl in force, 0 when the host has none.
func (v sight) number(name string) int { return number(v.facts.Sysctls[name], 0) }

// numbers are those of a vector.
func (v sight) numbers(name string) []int64 {
	var all []int64
	for _, text := range strings.Fields(v.facts.Sysctls[name]) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}
