package plan

import (
	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// originalName names the state in which the hosts were found.
const originalName = "original"

// states makes the complete states and the original one.
func (p *planner) states() error {
	states, err := lab.States(p.e)
	if err != nil {
		return err
	}
	p.resolve(states)
	p.plan.Original = p.original(states)
	p.plan.States, err = tune.Complete(states, p.plan.Original)
	return err
}

// original has, for every knob that any state sets on a host, the value found there.
func (p *planner) original(states []lab.State) lab.State {
	original := lab.State{Name: originalName, Settings: map[lab.HostName][]lab.Setting{}}
	for _, h := range p.e.Hosts {
		if found := p.originalOn(h.Name, states); len(found) > 0 {
			original.Settings[h.Name] = found
		}
	}
	return original
}

func (p *planner) originalOn(host lab.HostName, states []lab.State) []lab.Setting {
	var original []lab.Setting
	seen := map[lab.KnobID]bool{}
	for _, s := range states {
		var knobs []lab.KnobID
		for _, setting := range s.Settings[host] {
			knobs = append(knobs, setting.Knob)
		}
		for _, knob := range append(knobs, tune.Needs(knobs)...) {
			now, present := present(p.facts[host], knob)
			if present && !seen[knob] {
				seen[knob] = true
				original = append(original, lab.Setting{Knob: knob, Value: now.Text, Absent: now.Absent})
			}
		}
	}
	sortSettings(original)
	return original
}

// present is the value of a knob that is set on the host; known is false of all others.
func present(f lab.Facts, knob lab.KnobID) (now lab.Value, known bool) {
	if knob.Kind == lab.KnobSysctl {
		text, known := f.Sysctls[knob.Name]
		return lab.Value{Text: text}, known
	}
	fact, known := found(f, knob)
	return fact.Now, known && asksHost(knob.Kind)
}
