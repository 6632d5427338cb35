package plan

import (
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// originalName names the state in which the hosts were found.
const originalName = "original"

// states makes the complete states, the original one, and what each changes.
func (p *planner) states() error {
	states, err := lab.States(p.e)
	if err != nil {
		return err
	}
	p.plan.Original = p.original(states)
	if p.plan.States, err = tune.Complete(states, p.plan.Original); err != nil {
		return err
	}
	return p.tellChanges()
}

func (p *planner) tellChanges() error {
	told := map[lab.HostName][]lab.StateChange{}
	for _, s := range p.plan.States {
		over, _ := p.plan.State(s.Over)
		for _, h := range p.e.Hosts {
			changes, err := p.changes(s, over, h.Name)
			if err != nil {
				return err
			}
			if len(changes) > 0 {
				told[h.Name] = append(told[h.Name], changes...)
			}
		}
	}
	if len(told) > 0 {
		p.plan.Changes = told
	}
	return nil
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
		for _, setting := range s.Settings[host] {
			now, present := p.facts[host].Sysctls[setting.Knob.Name]
			if present && tune.OnHost(setting.Knob.Kind) && !seen[setting.Knob] {
				seen[setting.Knob] = true
				original = append(original, lab.Setting{Knob: setting.Knob, Value: now})
			}
		}
	}
	sortSettings(original)
	return original
}

// changes are, for people, the values of a state that the state it is compared with does not have.
// Of the baseline they are all that its step sets.
func (p *planner) changes(s, over lab.State, host lab.HostName) ([]lab.StateChange, error) {
	differs := asked(s, host)
	if over.Name != "" {
		var err error
		if differs, err = tune.Transition(over, s, host); err != nil {
			return nil, err
		}
	}
	var changes []lab.StateChange
	for _, d := range differs {
		now := p.now(host, d.Knob)
		c := lab.StateChange{State: s.Name, Step: stepOf(s, host, d.Knob), Knob: d.Knob, Now: now, To: d.To}
		c.Same = tune.EqualValues(d.Knob, now, d.To)
		c.Note = note(d, c.Same)
		changes = append(changes, c)
	}
	return changes, nil
}

func asked(s lab.State, host lab.HostName) []lab.Change {
	var all []lab.Change
	for _, setting := range s.Settings[host] {
		if setting.Step != "" {
			all = append(all, lab.Change{Knob: setting.Knob, To: lab.Value{Text: setting.Value}})
		}
	}
	return all
}

// stepOf is the step that gave a knob its value, or, when the knob is given up, the step that is left out.
func stepOf(s lab.State, host lab.HostName, knob lab.KnobID) string {
	for _, setting := range s.Settings[host] {
		if setting.Knob == knob {
			return setting.Step
		}
	}
	return s.Step
}

// now is the value before the campaign: of a sysctl what the host has, of the rest what the `server:` section says.
func (p *planner) now(host lab.HostName, knob lab.KnobID) lab.Value {
	facts, spec := p.facts[host], p.e.Server
	switch knob.Kind {
	case lab.KnobSysctl:
		return lab.Value{Text: facts.Sysctls[knob.Name]}
	case lab.KnobNofile:
		if spec.Nofile > 0 {
			return lab.Value{Text: strconv.Itoa(spec.Nofile)}
		}
		return lab.Value{Text: strconv.Itoa(facts.NofileSoft)}
	case lab.KnobBuild:
		return lab.Value{Text: spec.Build}
	}
	text, set := spec.Nginx[knob.Name]
	return lab.Value{Text: text, Absent: !set}
}

func note(c lab.Change, same bool) string {
	var notes []string
	if tune.NeedsRoot(c.Knob) && !same {
		notes = append(notes, "needs root")
	}
	if text := tune.Note(c.Knob, c.To.Text); text != "" {
		notes = append(notes, text)
	}
	if c.Knob.Kind == lab.KnobSysctl && !tune.Namespaced(c.Knob.Name) && !same {
		notes = append(notes, "one value for the whole machine")
	}
	return strings.Join(notes, "; ")
}
