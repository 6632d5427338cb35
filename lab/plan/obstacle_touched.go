package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// touchedObstacle: in a state that sets a knob and leaves another one at its original, the kernel may change that other one when
// the first is written (tune.Touched). Nothing writes it back there, so that the state would not be what it says.
func (p *planner) touchedObstacle(host lab.HostName, s lab.Setting) obstacle {
	if s.Knob.Kind != lab.KnobSysctl && s.Knob.Kind != lab.KnobSysfs {
		return obstacle{}
	}
	now, known := present(p.facts[host], s.Knob)
	if _, half := tune.Halves(s.Knob.Name); half || known && same(s.Knob, now, lab.Value{Text: s.Value}) {
		return obstacle{} // tune.Complete has both halves in every state
	}
	for _, other := range p.asked {
		for _, set := range other.Settings[host] {
			if touches(s.Knob, set.Knob) && p.setWithout(host, s, set.Knob) {
				return undone(s, set)
			}
		}
	}
	return obstacle{}
}

func undone(s, other lab.Setting) obstacle {
	return obstacle{mistake: true, cure: "set one of the two, or both in one step",
		reason: fmt.Sprintf("%s: writing it may change %s, which step %q sets: states of step %q without that one would not have it at its original value",
			s.Knob.Name, other.Knob.Name, other.Step, s.Step)}
}

// touches reports whether the kernel may change a sysctl when a knob is written.
func touches(knob, other lab.KnobID) bool {
	return other.Kind == lab.KnobSysctl && slices.Contains(tune.Touched(knob.Name, []string{interfaceOf(other.Name)}), other.Name)
}

// interfaceOf is the part of the name of a sysctl that may be an interface: net.ipv4.conf.INTERFACE.rp_filter.
func interfaceOf(name string) string {
	if parts := strings.Split(name, "."); len(parts) > 4 {
		return parts[3]
	}
	return ""
}

// setWithout reports whether a state has a setting and does not set another knob.
func (p *planner) setWithout(host lab.HostName, s lab.Setting, knob lab.KnobID) bool {
	return slices.ContainsFunc(p.asked, func(state lab.State) bool {
		settings := state.Settings[host]
		gives := func(of lab.Setting) bool { return of.Knob == s.Knob && of.Step == s.Step }
		sets := func(of lab.Setting) bool { return of.Knob == knob }
		return slices.ContainsFunc(settings, gives) && !slices.ContainsFunc(settings, sets)
	})
}
