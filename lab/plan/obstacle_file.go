package plan

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// fileObstacle: one file under two names, of which a host alone can tell, has what is left out of one of them as it was before
// both. It is told of the later name.
func (p *planner) fileObstacle(host lab.Host, s lab.Setting) obstacle {
	for _, other := range p.written(host, s) {
		if other.Knob.Name < s.Knob.Name {
			return obstacle{mistake: true, cure: "write it under one name",
				reason: fmt.Sprintf("%s of step %q and %s of step %q are one file on %s", other.Knob.Name, other.Step, s.Knob.Name, s.Step, host.Name)}
		}
	}
	return obstacle{}
}

// written are the settings of `files`, in the order of their steps, that are to a host the same file as s: by whatever name.
func (p *planner) written(host lab.Host, s lab.Setting) []lab.Setting {
	if s.Knob.Kind != lab.KnobFile {
		return nil
	}
	var all []lab.Setting
	for _, step := range p.plan.Experiment.Steps {
		for _, other := range lab.StepSettings(step, host) {
			if other.Knob == s.Knob || other.Knob.Kind == lab.KnobFile && p.oneKnob(host.Name, other, s) {
				all = append(all, other)
			}
		}
	}
	return all
}

// oneKnob reports whether two settings come to one knob on a host.
func (p *planner) oneKnob(host lab.HostName, a, b lab.Setting) bool {
	return slices.ContainsFunc(said(p.facts[host], a), func(x lab.KnobFact) bool {
		return slices.ContainsFunc(said(p.facts[host], b), func(y lab.KnobFact) bool { return x.Knob == y.Knob })
	})
}

// alias names the other name of a file, "" when it has none.
func alias(file, other lab.Setting) string {
	if file.Knob == other.Knob {
		return ""
	}
	return ", which calls it " + other.Knob.Name
}
