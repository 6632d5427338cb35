package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// factObstacle finds why a host cannot have a knob that it was asked for. What is there already needs no right.
func factObstacle(f lab.Facts, s lab.Setting) obstacle {
	facts := said(f, s)
	if len(facts) == 0 {
		return obstacle{reason: fmt.Sprintf("%s has not said what it has of %s: its facts are older than the experiment, or its agent is", f.Host, s.Knob),
			cure: "plan anew, which asks the host again"}
	}
	for _, fact := range facts {
		told := fact.To != lab.Value{}
		if told && tune.EqualValues(fact.Knob, fact.Now, fact.To) {
			continue
		}
		if o := sharedObstacle(f, fact.Knob); o.reason != "" {
			return o
		}
		if fact.Reason != "" {
			return refusedBy(f, fact)
		}
	}
	return obstacle{}
}

// refusedBy is the host's own reason.
func refusedBy(f lab.Facts, fact lab.KnobFact) obstacle {
	o := obstacle{reason: fact.Reason, cure: fact.Cure, privilege: fact.Privilege}
	if !strings.Contains(o.reason, fact.Knob.Name) {
		o.reason = fmt.Sprintf("%s on %s: %s", fact.Knob, f.Host, fact.Reason)
	}
	switch {
	case o.cure != "":
	case o.privilege:
		o.cure = "run as root"
	default:
		o.cure = "leave it out"
	}
	return o
}

// ownSysfs is what a network namespace has of its own in sysfs.
const ownSysfs = "/sys/class/net/"

// sharedObstacle: what a container shares with the machine would be changed for all, and would outlive the lab.
func sharedObstacle(f lab.Facts, knob lab.KnobID) obstacle {
	if f.Container == "" {
		return obstacle{}
	}
	what := ""
	switch knob.Kind {
	case lab.KnobSysfs:
		if !strings.HasPrefix(knob.Name, ownSysfs) {
			what = "only what its own network interfaces have below " + ownSysfs + " is its own"
		}
	case lab.KnobEthtool:
		name, _, _ := strings.Cut(knob.Name, ".")
		if !slices.ContainsFunc(f.NICs, func(n lab.NIC) bool { return n.Name == name }) {
			what = "it has no interface " + name + " of its own"
		}
	case lab.KnobService:
		what = "services that matter to the kernel are the machine's"
	}
	if what == "" {
		return obstacle{}
	}
	return obstacle{reason: fmt.Sprintf("%s: %s is a container (%s) and shares its kernel with the machine: %s", knob, f.Host, f.Container, what),
		cure: "set it on the machine itself, outside the study, or leave it out"}
}
