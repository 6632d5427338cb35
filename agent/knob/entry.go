package knob

import (
	"slices"
	"strings"
	"unicode"

	"ngxlab/lab"
)

// entry is what the journal knows of one knob that is not restored.
type entry struct {
	knob     lab.KnobID
	original lab.Value
	ours     []lab.Value // every value the lab wrote or left, oldest first
	open     *lab.Value  // a value announced of which it is not known whether and how it was written
	own      bool        // the lab announced a write of the knob itself
	unknown  bool        // another knob was to be written, and it is not known what that made of this one
	foreign  *lab.Value  // someone else's, over which a restore was about to write
	boot     string
	campaign lab.CampaignID
	since    string
}

func (e *entry) add(v lab.Value) {
	if !slices.Contains(e.ours, v) {
		e.ours = append(e.ours, v)
	}
}

// news reports whether the journal would learn something from v being written or found. Of a command it always does: one
// that is killed on its way back to a value known before has done a part of it.
func (e *entry) news(v lab.Value) bool {
	return e.knob.Kind == lab.KnobCommand || e.open != nil || e.unknown || !slices.Contains(e.ours, v)
}

// isOurs reports whether the lab wrote v, or found it right after a write of its own.
func (e *entry) isOurs(v lab.Value) bool {
	return slices.ContainsFunc(e.ours, func(o lab.Value) bool { return same(e.knob, o, v) })
}

// halfway reports whether a command was killed or failed: it may have done a part, of which verifying does not tell.
func (e *entry) halfway() bool { return e.knob.Kind == lab.KnobCommand && e.open != nil }

// mayBeNothing reports whether the command may have been killed before it applied anything, so that there may be nothing to
// revert.
func (e *entry) mayBeNothing() bool { return e.halfway() && !same(e.knob, *e.open, e.original) }

// names reports whether an entry is a file in which the lab wrote a word that names a knob.
func (e *entry) names(id lab.KnobID) bool {
	return e.knob.Kind == lab.KnobFile && slices.ContainsFunc(e.ours, func(v lab.Value) bool {
		f, err := lab.ParseFileValue(v.Text)
		if err != nil || v.Absent {
			return false
		}
		content, err := f.Bytes()
		return err == nil && slices.ContainsFunc(words(string(content)), func(w string) bool {
			return w == id.Name || sameKnob(lab.KnobID{Kind: id.Kind, Name: w}, id)
		})
	})
}

// words are those of lines as "key = value", "-key=value" and "w /sys/key - - - - value".
func words(content string) []string {
	all := strings.FieldsFunc(content, func(r rune) bool { return unicode.IsSpace(r) || r == '=' })
	for i, w := range all {
		all[i] = strings.TrimPrefix(w, "-")
	}
	return all
}

func sameKnob(a, b lab.KnobID) bool {
	if a.Kind != lab.KnobSysctl || b.Kind != lab.KnobSysctl {
		return false
	}
	p, err := Path(a.Name)
	q, err2 := Path(b.Name)
	return err == nil && err2 == nil && p == q
}
