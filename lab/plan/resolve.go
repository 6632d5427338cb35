package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// asksHost reports whether what a host has of knobs of a kind stands in Facts.Knobs: of all that are set on it but
// sysctls, which have facts of their own.
func asksHost(kind string) bool { return tune.OnHost(kind) && kind != lab.KnobSysctl }

// said is what a host says of a setting: several facts of a pattern, none when it was not asked.
func said(f lab.Facts, s lab.Setting) []lab.KnobFact {
	var facts []lab.KnobFact
	for _, fact := range f.Knobs {
		if asking(fact.Asked) == asking(s) {
			facts = append(facts, fact)
		}
	}
	return facts
}

// found is what a host says of a knob by the name it has there.
func found(f lab.Facts, knob lab.KnobID) (lab.KnobFact, bool) {
	at := slices.IndexFunc(f.Knobs, func(fact lab.KnobFact) bool { return fact.Knob == knob })
	if at < 0 {
		return lab.KnobFact{}, false
	}
	return f.Knobs[at], true
}

// resolve turns the settings of each state into those of the hosts: patterns into what they match there, values into
// what they come to there; it adds the files that persist.
func (p *planner) resolve(states []lab.State) {
	for _, s := range states {
		for host := range s.Settings {
			settings := p.concrete(s, host)
			s.Settings[host] = p.persist(s, host, settings)
			sortSettings(s.Settings[host])
		}
	}
}

// concrete: where two steps give one knob a value, by whatever pattern, the later of them wins.
func (p *planner) concrete(s lab.State, host lab.HostName) []lab.Setting {
	values := map[lab.KnobID]lab.Setting{}
	put := func(setting lab.Setting) {
		before, set := values[setting.Knob]
		if !set || slices.Index(s.Steps, setting.Step) >= slices.Index(s.Steps, before.Step) {
			values[setting.Knob] = setting
		}
	}
	for _, setting := range s.Settings[host] {
		if !asksHost(setting.Knob.Kind) {
			put(setting)
			continue
		}
		for _, fact := range said(p.facts[host], setting) {
			on := setting
			on.Knob, on.Value, on.Absent = fact.Knob, fact.To.Text, fact.To.Absent
			put(on)
		}
	}
	return slices.SortedFunc(maps.Values(values), bySetting)
}

// partner is the other half of a coupled sysctl, "" when it has none.
func partner(knob lab.KnobID) string {
	other, coupled := tune.Halves(knob.Name)
	if knob.Kind != lab.KnobSysctl || !coupled {
		return ""
	}
	return other
}

// taken reports whether the kernel sets a half to 0 because a later step sets the other one.
func taken(s lab.State, settings []lab.Setting, half lab.Setting) bool {
	other := partner(half.Knob)
	return other != "" && slices.ContainsFunc(settings, func(o lab.Setting) bool {
		return o.Knob == sysctl(other) && !isZero(o.Value) && slices.Index(s.Steps, o.Step) > slices.Index(s.Steps, half.Step)
	})
}

func isZero(value string) bool { return strings.TrimSpace(value) == "0" }

func byKnob(a, b lab.KnobID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func bySetting(a, b lab.Setting) int { return byKnob(a.Knob, b.Knob) }
