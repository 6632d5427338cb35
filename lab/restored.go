package lab

import "fmt"

// Text says what became of the knob, without its name: "put back from 8192 to 4096".
func (r Restored) Text() string {
	text := r.outcome()
	if r.Note != "" {
		text += "; " + r.Note
	}
	return text
}

func (r Restored) outcome() string {
	found, original := Shown(r.Knob, r.Found), Shown(r.Knob, r.Original)
	switch {
	case r.Outcome == RestoreDone:
		return fmt.Sprintf("put back from %s to %s", found, original)
	case r.Outcome == RestoreAlready:
		return "already " + original
	case r.Outcome == RestoreForeign:
		return fmt.Sprintf("kept at %s: changed by someone else (it was %s)", found, original)
	case r.Outcome == RestoreRebooted && found == original:
		return fmt.Sprintf("back by itself at %s: the host was rebooted", found)
	case r.Outcome == RestoreRebooted:
		return fmt.Sprintf("at %s since the host was rebooted (it was %s before)", found, original)
	}
	return fmt.Sprintf("could not be put back: is %s, was %s: %s", found, original, r.Error)
}
