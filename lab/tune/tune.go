// Package tune knows the kinds of knobs: how their values are written and compared, in which order they are set, what
// they need, and what they cost. It is pure; agent/knob and fresh servers put values in force.
package tune

import (
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// Kind is one kind of knob.
type Kind struct {
	Name string // as in lab.KnobID
	// OnHost tells a value written on the host and journaled there (true) from one that a fresh server brings.
	OnHost bool
	// NeedsRoot tells whether setting one takes privilege as a rule.
	NeedsRoot bool
	// Normalise returns the one way to write a value, so that equal values are equal texts.
	Normalise func(value string) string
	// Check says what is wrong with a value whatever the host, nil when nothing is known to be.
	Check func(name, value string) error
}

// Kinds returns every kind, in the order in which a transition sets them.
func Kinds() []Kind {
	return []Kind{
		{Name: lab.KnobSysctl, OnHost: true, NeedsRoot: true, Normalise: fields, Check: checkSysctl},
		{Name: lab.KnobNofile, Normalise: strings.TrimSpace, Check: checkNofile},
		{Name: lab.KnobBuild, Normalise: strings.TrimSpace, Check: anything},
		{Name: lab.KnobNginx, Normalise: directive, Check: anything},
	}
}

// kindOf returns the kind of that name; of an unknown name, a kind that compares byte for byte.
func kindOf(name string) Kind {
	kinds := Kinds()
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{Name: name, Normalise: func(value string) string { return value }, Check: anything}
}

// rank is the place of a kind in a transition.
func rank(kind string) int {
	return slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == kind })
}

// OnHost reports whether knobs of the kind are written on the host; the others are in force through a fresh server.
func OnHost(kind string) bool { return kindOf(kind).OnHost }

// Normalise returns the one way to write the value of a knob.
func Normalise(k lab.KnobID, value string) string { return kindOf(k.Kind).Normalise(value) }

// Equal reports whether two texts are the same value of the knob: "4096\t131072" and "4096 131072" of a sysctl,
// "on" and "true" of an nginx directive.
func Equal(k lab.KnobID, a, b string) bool { return Normalise(k, a) == Normalise(k, b) }

// EqualValues is Equal for values, where absent equals only absent.
func EqualValues(k lab.KnobID, a, b lab.Value) bool {
	return a.Absent == b.Absent && (a.Absent || Equal(k, a.Text, b.Text))
}

// Check says what is wrong with a value whatever the host; nil when nothing is known to be.
func Check(k lab.KnobID, value string) error { return kindOf(k.Kind).Check(k.Name, value) }

// fields collapses white space: the kernel separates the numbers of a vector with tabs, people with spaces.
func fields(value string) string { return strings.Join(strings.Fields(value), " ") }

// directive also writes YAML's booleans as nginx does.
func directive(value string) string {
	switch text := fields(value); text {
	case "true":
		return "on"
	case "false":
		return "off"
	default:
		return text
	}
}

func anything(string, string) error { return nil }

func checkNofile(_, value string) error {
	if n, err := strconv.Atoi(strings.TrimSpace(value)); err != nil || n < 1 {
		return &ValueError{Value: value, Want: "a whole number of at least 1"}
	}
	return nil
}
