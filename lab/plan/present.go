package plan

import (
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
	"ngxlab/lab/tune"
)

// sited is a directive of the server of one target.
type sited struct {
	host lab.HostName
	name string
}

// directive is the value that a directive has in a state: what its steps say, the later first, by whatever name; else
// what the configuration has of itself.
func (p *planner) directive(host lab.Host, s lab.State, name string) lab.Value {
	place := p.directivePlace(name)
	value, at := p.untouched(host, name), -1
	for _, setting := range s.Settings[host.Name] {
		if setting.Knob.Kind != lab.KnobNginx || p.directivePlace(setting.Knob.Name) != place {
			continue
		}
		if step := slices.Index(s.Steps, setting.Step); step >= at {
			value, at = lab.Value{Text: setting.Value, Absent: setting.Absent}, step
		}
	}
	return value
}

// untouched is what the configuration of a target has of a directive before any step.
func (p *planner) untouched(host lab.Host, name string) lab.Value {
	at := sited{host.Name, name}
	value, known := p.found[at]
	if !known {
		text, present := server.Present(p.input(host, lab.State{}), name)
		value = lab.Value{Text: text, Absent: !present}
		p.found[at] = value
	}
	return value
}

// apart tells two blocks that are not one: a block is known by its name and arguments, so that the one a state sets stands
// beside that of the configuration, which neither comes nor goes.
func (p *planner) apart(h lab.Host, knob lab.KnobID, before, after lab.Value) (lab.Value, lab.Value) {
	a, isBlock := blockHead(before.Text)
	b, isOther := blockHead(after.Text)
	if knob.Kind != lab.KnobNginx || !isBlock || !isOther || a == b {
		return before, after
	}
	if own := p.untouched(h, knob.Name); before == own {
		before = lab.Value{Absent: true}
	} else if after == own {
		after = lab.Value{Absent: true}
	}
	return before, after
}

// blockHead is the arguments of a value that is a block.
func blockHead(text string) (string, bool) {
	head, _, isBlock := strings.Cut(text, "{")
	return strings.Join(strings.Fields(head), " "), isBlock && strings.HasSuffix(strings.TrimSpace(text), "}")
}

// anyway reports whether the server of a state, whose configuration has no such directive, does what a value found says all the
// same: it is nginx's own default.
func (p *planner) anyway(h lab.Host, s lab.State, knob lab.KnobID, has, found lab.Value) bool {
	return knob.Kind == lab.KnobNginx && has.Absent && !found.Absent &&
		server.DoesAnyway(p.recipe(value(s, h.Name, lab.KnobBuild, "")), knob.Name, found.Text)
}

// same reports whether two values of a knob are the same to the host, or to nginx.
func same(knob lab.KnobID, a, b lab.Value) bool {
	return tune.EqualValues(knob, a, b) || knob.Kind == lab.KnobNginx && !a.Absent && !b.Absent && server.Same(knob.Name, a.Text, b.Text)
}
