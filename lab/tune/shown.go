package tune

import (
	"fmt"

	"ngxlab/lab"
)

// Shown is how a value is shown to people, in one line: a file as its size, mode and owner, a command as whether it is
// applied, all else as its text. "none" when the knob has no value.
func Shown(k lab.KnobID, v lab.Value) string {
	switch {
	case v.Absent:
		return "none"
	case k.Kind == lab.KnobFile:
		return shownFile(v.Text)
	case k.Kind == lab.KnobCommand && applied(v):
		return "applied"
	case k.Kind == lab.KnobCommand:
		return "not applied"
	}
	return lab.Printable(Normalise(k, v.Text))
}

func shownFile(text string) string {
	f, err := lab.ParseFileValue(normaliseFile("", text))
	if err != nil {
		return lab.Printable(text)
	}
	size := "content kept"
	if content, err := f.Bytes(); err == nil && f.Content != nil {
		size = fmt.Sprintf("%d bytes", len(content))
	}
	shown := size
	if f.Mode != "" {
		shown += ", " + f.Mode
	}
	switch f.Owner {
	case "":
	case "0:0":
		shown += " root"
	default:
		shown += " " + f.Owner
	}
	return shown
}
