package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// obstacle finds why a host cannot have a setting of a step.
func (p *planner) obstacle(host lab.HostName, step lab.Step, s lab.Setting) obstacle {
	if err := tune.CheckSetting(s); err != nil {
		return obstacle{reason: fmt.Sprintf("%s: %v", s.Knob, err), cure: "correct the value", mistake: true}
	}
	facts := p.facts[host]
	switch s.Knob.Kind {
	case lab.KnobSysctl:
		return sysctlObstacle(facts, step, s)
	case lab.KnobNofile:
		return p.nofileObstacle(facts, step, "nofile", s.Value)
	case lab.KnobNproc:
		return nprocObstacle(facts, s.Value)
	case lab.KnobNginx:
		return p.nginxObstacle(facts, step, s)
	case lab.KnobBuild:
		return p.buildObstacle(s.Value)
	}
	if asksHost(s.Knob.Kind) {
		return factObstacle(facts, s)
	}
	return obstacle{reason: fmt.Sprintf("unknown kind of knob %q", s.Knob.Kind), cure: "leave it out", mistake: true}
}

func (p *planner) buildObstacle(name string) obstacle {
	if _, known := p.e.Builds[name]; known {
		return obstacle{}
	}
	known := strings.Join(slices.Sorted(maps.Keys(p.e.Builds)), ", ")
	return obstacle{reason: fmt.Sprintf("there is no build %q", name), cure: "known builds: " + known, mistake: true}
}
