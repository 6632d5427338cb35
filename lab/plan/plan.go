// Package plan turns an experiment and the facts of its hosts into everything a campaign will do, and says before
// anything changes what cannot be done. It is pure: the same inputs give the same plan.
package plan

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// planner holds a plan while its parts are made, one after another.
type planner struct {
	e       lab.Experiment // what can be carried out of the experiment: refused knobs and emptied steps are left out
	facts   map[lab.HostName]lab.Facts
	plan    lab.Plan
	said    []lab.Warning           // without their places and the states in which they hold
	found   map[sited]lab.Value     // what configurations have of directives before any step, as far as asked
	places  map[string]string       // of directives named without a context, as they are found
	asked   []lab.State             // as the experiment has them, with the knobs that hosts cannot have
	cpus    map[lab.HostName][]int  // of the server, per target; nil is not pinned
	reached map[lab.HostName]string // where load hosts elsewhere reach a target
	targets []lab.Host

	upstreamCPUs []int // of the server of the upstream; nil is not pinned
}

// New makes the plan of a campaign. facts has one entry per host of the experiment.
//
// A plan with fatal refusals is returned without an error, so that all of them can be shown; it must not be carried
// out. An error means that no plan can be made: facts are missing, or the experiment contradicts itself.
func New(e lab.Experiment, facts map[lab.HostName]lab.Facts, seed uint64) (lab.Plan, error) {
	p := planner{e: e, facts: facts, places: map[string]string{}, found: map[sited]lab.Value{}, plan: lab.Plan{Experiment: e, Facts: facts, Seed: seed, Part: 1}}
	for _, part := range []func() error{
		p.hosts, p.kernels, p.pinServers, p.knobs, p.states, p.loads, p.addresses, p.rounds, p.software,
		p.servings, p.changes, p.restarts, p.drivings, p.crosschecks, p.limits, p.capacity,
	} {
		if err := part(); err != nil {
			return lab.Plan{}, fmt.Errorf("plan of %q: %w", e.Name, err)
		}
	}
	p.estimate()
	return p.plan, nil
}

// hosts finds the targets and holds that every host has facts.
func (p *planner) hosts() error {
	for _, h := range p.e.Hosts {
		if _, known := p.facts[h.Name]; !known {
			return fmt.Errorf("no facts of host %s", h.Name)
		}
		if h.Has(lab.RoleTarget) {
			p.targets = append(p.targets, h)
		}
	}
	if len(p.targets) == 0 {
		return fmt.Errorf("no host has the role %q", lab.RoleTarget)
	}
	if len(p.e.Steps) == 0 {
		return fmt.Errorf("no steps")
	}
	return nil
}

func (p *planner) refuse(r lab.Refusal) { p.plan.Refused = append(p.plan.Refused, r) }

// refuseOnce leaves out what several load points of one entry have in common.
func (p *planner) refuseOnce(r lab.Refusal) {
	if !slices.Contains(p.plan.Refused, r) {
		p.refuse(r)
	}
}

// warn adds a warning once.
func (p *planner) warn(host lab.HostName, path, text string) {
	w := lab.Warning{Host: host, Path: path, Text: text}
	if !slices.Contains(p.plan.Warnings, w) {
		p.plan.Warnings = append(p.plan.Warnings, w)
	}
}

// value returns what a state gives to a knob on a host, "" when it does not name it.
func value(s lab.State, host lab.HostName, kind, name string) string {
	for _, setting := range s.Settings[host] {
		if setting.Knob == (lab.KnobID{Kind: kind, Name: name}) && !setting.Absent {
			return setting.Value
		}
	}
	return ""
}
