package tune

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ngxlab/lab"
)

// Complete fills into each state, for every knob that any of the states sets on a host, the original value where the
// state does not set it. Between completed states, and between them and original, Transition is exact.
//
// Knobs that a fresh server brings (nginx, nofile, build) have no original value: absent from a state, they are at the
// server's own default. The states given are not changed. It fails when original lacks a knob that is set on a host.
func Complete(states []lab.State, original lab.State) ([]lab.State, error) {
	complete := make([]lab.State, len(states))
	for i, s := range states {
		complete[i] = s
		complete[i].Settings = maps.Clone(s.Settings)
		for host, known := range original.Settings {
			complete[i].Settings[host] = fill(s.Settings[host], known)
		}
		if err := covered(complete[i], original); err != nil {
			return nil, err
		}
	}
	return complete, nil
}

// fill adds the originals that are missing; both lists and the result are sorted by knob.
func fill(settings, originals []lab.Setting) []lab.Setting {
	have := byKnob(settings)
	filled := slices.Clone(settings)
	for _, o := range originals {
		if _, set := have[o.Knob]; !set {
			filled = append(filled, o)
		}
	}
	slices.SortFunc(filled, func(a, b lab.Setting) int { return compareKnobs(a.Knob, b.Knob) })
	return filled
}

func covered(s, original lab.State) error {
	for host, settings := range s.Settings {
		known := byKnob(original.Settings[host])
		for _, setting := range settings {
			if _, ok := known[setting.Knob]; OnHost(setting.Knob.Kind) && !ok {
				return fmt.Errorf("state %q on %s: the original value of %s is not known", s.Name, host, setting.Knob)
			}
		}
	}
	return nil
}

// Transition returns the differences from one state to another on one host, in the order in which they are to be put
// in force; empty when there are none. Going back is the transition to the original state.
//
// A knob that a fresh server brings is absent in a state that does not name it. It fails when a knob that is set on a
// host is missing from either state: such a state is not complete.
func Transition(from, to lab.State, host lab.HostName) ([]lab.Change, error) {
	before, after := byKnob(from.Settings[host]), byKnob(to.Settings[host])
	var changes []lab.Change
	for _, knob := range unionKnobs(before, after) {
		change := lab.Change{Knob: knob, From: valueOf(before, knob), To: valueOf(after, knob), BestEffort: after[knob].BestEffort}
		if !has(before, knob) || !has(after, knob) {
			return nil, fmt.Errorf("transition on %s: state %q or %q is not complete: no value of %s", host, from.Name, to.Name, knob)
		}
		if !EqualValues(knob, change.From, change.To) {
			changes = append(changes, change)
		}
	}
	slices.SortStableFunc(changes, compareChanges)
	return changes, nil
}

func byKnob(settings []lab.Setting) map[lab.KnobID]lab.Setting {
	m := make(map[lab.KnobID]lab.Setting, len(settings))
	for _, s := range settings {
		m[s.Knob] = s
	}
	return m
}

func unionKnobs(a, b map[lab.KnobID]lab.Setting) []lab.KnobID {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.SortedFunc(maps.Keys(all), compareKnobs)
}

func valueOf(settings map[lab.KnobID]lab.Setting, knob lab.KnobID) lab.Value {
	s, ok := settings[knob]
	return lab.Value{Text: s.Value, Absent: !ok || s.Absent}
}

// has reports whether a complete state has what it must of a knob: any entry for one that is set on a host, and one
// with a value unless there are such without.
func has(settings map[lab.KnobID]lab.Setting, knob lab.KnobID) bool {
	s, named := settings[knob]
	kind := kindOf(knob.Kind)
	return !kind.OnHost || named && (kind.MayLack || !s.Absent)
}

func compareKnobs(a, b lab.KnobID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
