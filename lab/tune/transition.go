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
// A state that sets one half of a pair of sysctls (Halves) has 0 for the other, as the kernel will; of two halves that
// steps set, the later step's counts. Knobs that a fresh server brings (nginx, nofile, nproc, build) have no original
// value: absent from a state, they are at the server's own default. The states given are not changed.
//
// It fails when original lacks a knob that is set on a host or its other half (Needs), when one step sets both halves,
// and when a command is defined in two ways.
func Complete(states []lab.State, original lab.State) ([]lab.State, error) {
	complete := make([]lab.State, len(states))
	for i, s := range states {
		complete[i] = s
		complete[i].Settings = maps.Clone(s.Settings)
		for host := range s.Settings {
			paired, err := pair(s, host)
			if err != nil {
				return nil, err
			}
			complete[i].Settings[host] = paired
		}
		for host, known := range original.Settings {
			complete[i].Settings[host] = fill(complete[i].Settings[host], known)
		}
		if err := covered(complete[i], original); err != nil {
			return nil, err
		}
	}
	return complete, nil
}

// pair returns a state's settings on a host, sorted by knob, with 0 for the other half of each half that is set.
func pair(s lab.State, host lab.HostName) ([]lab.Setting, error) {
	have := byKnob(s.Settings[host])
	for _, setting := range s.Settings[host] {
		other, half := Halves(setting.Knob.Name)
		if setting.Knob.Kind != lab.KnobSysctl || !half || fields(setting.Value) == "0" {
			continue
		}
		id := lab.KnobID{Kind: lab.KnobSysctl, Name: other}
		rival, both := have[id]
		later := slices.Index(s.Steps, setting.Step) - slices.Index(s.Steps, rival.Step)
		switch {
		case both && fields(rival.Value) != "0" && later == 0:
			return nil, fmt.Errorf("state %q on %s: %s and %s cannot both be set: each sets the other to 0", s.Name, host, setting.Knob, id)
		case !both || later > 0:
			zero := setting
			zero.Knob, zero.Value = id, "0"
			have[id] = zero
		}
	}
	return slices.SortedFunc(maps.Values(have), func(a, b lab.Setting) int { return compareKnobs(a.Knob, b.Knob) }), nil
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
			was, ok := known[setting.Knob]
			if OnHost(setting.Knob.Kind) && !ok {
				return fmt.Errorf("state %q on %s: the original value of %s is not known", s.Name, host, setting.Knob)
			}
			if setting.Knob.Kind == lab.KnobCommand && defined(setting.Value) != defined(was.Value) {
				return fmt.Errorf("state %q on %s: %s is defined in two ways", s.Name, host, setting.Knob)
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
