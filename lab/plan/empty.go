package plan

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// sayEmpty warns of a step that changes nothing, on one host or on all that a comparison depends on. Its state stays,
// equal to the one it is compared with.
func (p *planner) sayEmpty(s lab.State, made map[lab.HostName][]lab.StateChange) {
	if s.Step == "" || s.Over == "" || s.Control {
		return
	}
	for _, target := range p.targets {
		if !p.acts(target.Name, made) {
			p.warn(target.Name, p.stepPath(s.Step), fmt.Sprintf("step %q is empty: it changes nothing on %s, %s. States %q and %q are the same, and the verdict on the step is to be read as that of an A/A comparison",
				s.Step, target.Name, emptiness(made[target.Name]), s.Name, s.Over))
		}
	}
	for _, h := range p.e.Hosts {
		if h.Has(lab.RoleTarget) && !p.acts(h.Name, made) || len(made[h.Name]) == 0 || p.anyEffective(h.Name, made) {
			continue
		}
		p.warn(h.Name, p.stepPath(s.Step), fmt.Sprintf("step %q changes nothing on %s: its values are there already", s.Step, h.Name))
	}
}

// acts reports whether anything changes for a target: on itself, or on a host that loads it.
func (p *planner) acts(target lab.HostName, made map[lab.HostName][]lab.StateChange) bool {
	for _, h := range p.e.Hosts {
		if (h.Name == target || h.Has(lab.RoleLoad)) && p.anyEffective(h.Name, made) {
			return true
		}
	}
	return false
}

func (p *planner) anyEffective(host lab.HostName, made map[lab.HostName][]lab.StateChange) bool {
	return slices.ContainsFunc(made[host], func(c lab.StateChange) bool { return p.effective(host, c) })
}

// effective reports whether a change on a host can have an effect on what is measured; a file that persists has none until the
// next boot.
func (p *planner) effective(host lab.HostName, c lab.StateChange) bool {
	kept := slices.ContainsFunc(persistFiles(), func(file persistFile) bool {
		return slices.ContainsFunc(said(p.facts[host], blank(file.path)), func(fact lab.KnobFact) bool { return fact.Knob == c.Knob })
	})
	return !c.Same && !kept
}

func emptiness(changes []lab.StateChange) string {
	if len(changes) == 0 {
		return "for it sets nothing there"
	}
	return "for its values are there already"
}

// stepPath is the place of a step in the experiment file; "server" of none.
func (p *planner) stepPath(name string) string {
	at := slices.IndexFunc(p.plan.Experiment.Steps, func(step lab.Step) bool { return step.Name == name })
	if at < 0 || name == "" {
		return "server"
	}
	return fmt.Sprintf("steps[%d]", at)
}
