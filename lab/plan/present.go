package plan

import (
	"slices"

	"ngxlab/lab"
)

// directive is the value that a directive has in a state: what its steps say, the later first, by whatever name.
func (p *planner) directive(host lab.HostName, s lab.State, name string) lab.Value {
	place := p.directivePlace(name)
	found, at := lab.Value{Absent: true}, -2
	for _, setting := range s.Settings[host] {
		if setting.Knob.Kind != lab.KnobNginx || p.directivePlace(setting.Knob.Name) != place {
			continue
		}
		if step := slices.Index(s.Steps, setting.Step); step >= at {
			found, at = lab.Value{Text: setting.Value, Absent: setting.Absent}, step
		}
	}
	return found
}
