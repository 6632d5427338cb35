// Package tune knows the kinds of knobs: how their values are written and compared, in which order they are set, what
// they need, and what they cost. It is pure; agent/knob and fresh servers put values in force.
package tune

import (
	"fmt"
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
	// Volatile tells whether the value ends with a boot of the host.
	Volatile bool
	// MayLack tells whether "no value" is a value of it: a file that is not there, a directive left out.
	MayLack bool
	// Normalise returns the one way to write a value, so that equal values are equal texts.
	Normalise func(name, value string) string
	// Check says what is wrong with a name or a value whatever the host, nil when nothing is known to be.
	Check func(name, value string) error
}

// Kinds returns every kind, in the order in which a transition sets them; compareChanges tells the exceptions.
func Kinds() []Kind {
	return []Kind{
		{Name: lab.KnobFile, OnHost: true, NeedsRoot: true, MayLack: true, Normalise: normaliseFile, Check: checkFile},
		{Name: lab.KnobSysctl, OnHost: true, NeedsRoot: true, Volatile: true, Normalise: normaliseSysctl, Check: checkSysctl},
		{Name: lab.KnobEthtool, OnHost: true, NeedsRoot: true, Volatile: true, Normalise: normaliseEthtool, Check: checkEthtool},
		{Name: lab.KnobSysfs, OnHost: true, NeedsRoot: true, Volatile: true, Normalise: normaliseSysfs, Check: checkSysfs},
		{Name: lab.KnobUnit, OnHost: true, NeedsRoot: true, Volatile: true, Normalise: trimmed, Check: checkUnit},
		{Name: lab.KnobService, OnHost: true, NeedsRoot: true, Volatile: true, Normalise: trimmed, Check: checkService},
		{Name: lab.KnobCommand, OnHost: true, Normalise: normaliseCommand, Check: checkCommand},
		{Name: lab.KnobNofile, MayLack: true, Normalise: trimmed, Check: checkLimit},
		{Name: lab.KnobNproc, MayLack: true, Normalise: trimmed, Check: checkLimit},
		{Name: lab.KnobBuild, MayLack: true, Normalise: trimmed, Check: anything},
		{Name: lab.KnobNginx, MayLack: true, Normalise: directive, Check: anything},
	}
}

// kindOf returns the kind of that name; of an unknown name, a kind that compares byte for byte.
func kindOf(name string) Kind {
	kinds := Kinds()
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{Name: name, Normalise: func(_, value string) string { return value }, Check: anything}
}

// OnHost reports whether knobs of the kind are written on the host; the others are in force through a fresh server.
func OnHost(kind string) bool { return kindOf(kind).OnHost }

// NeedsRoot reports whether setting a knob takes privilege as a rule; of a command nothing is known.
func NeedsRoot(k lab.KnobID) bool { return kindOf(k.Kind).NeedsRoot }

// Volatile reports whether the values of a kind end with a boot of the host, so that nothing is left to restore then.
func Volatile(kind string) bool { return kindOf(kind).Volatile }

// Normalise returns the one way to write the value of a knob.
func Normalise(k lab.KnobID, value string) string { return kindOf(k.Kind).Normalise(k.Name, value) }

// Equal reports whether two texts are the same value of the knob: "4096\t131072" and "4096 131072" of a sysctl,
// "on" and "true" of an nginx directive.
func Equal(k lab.KnobID, a, b string) bool { return Normalise(k, a) == Normalise(k, b) }

// EqualValues is Equal for values, where absent equals only absent.
func EqualValues(k lab.KnobID, a, b lab.Value) bool {
	return a.Absent == b.Absent && (a.Absent || Equal(k, a.Text, b.Text))
}

// Check says what is wrong with a value whatever the host; nil when nothing is known to be.
func Check(k lab.KnobID, value string) error { return kindOf(k.Kind).Check(k.Name, value) }

// CheckSetting is Check for a setting, which may also ask for no value at all: of files and directives only.
func CheckSetting(s lab.Setting) error {
	switch {
	case !s.Absent:
		return Check(s.Knob, s.Value)
	case !kindOf(s.Knob.Kind).MayLack:
		return fmt.Errorf("%s always has a value: it cannot be taken away", s.Knob)
	case s.Knob.Kind == lab.KnobFile:
		return checkFileName(s.Knob.Name)
	}
	return nil
}

// fields collapses white space: the kernel separates the numbers of a vector with tabs, people with spaces.
func fields(value string) string { return strings.Join(strings.Fields(value), " ") }

func trimmed(_, value string) string { return strings.TrimSpace(value) }

func anything(string, string) error { return nil }

func checkLimit(_, value string) error {
	if n, err := strconv.Atoi(strings.TrimSpace(value)); err != nil || n < 1 {
		return &ValueError{Value: value, Want: "a whole number of at least 1"}
	}
	return nil
}
