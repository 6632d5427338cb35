package lab

import (
	"fmt"
	"strings"
)

// Shown is how a value is written for people, on one line: a file as its size, mode and owner, a command as whether it is
// applied, a value that there is not as "none", an empty text as two quotes.
func Shown(k KnobID, v Value) string {
	switch {
	case v.Absent:
		return "none"
	case k.Kind == KnobFile:
		return shownFile(v.Text)
	case k.Kind == KnobCommand:
		return shownCommand(v.Text)
	case k.Kind == KnobNginx:
		return notEmpty(Printable(OnOff(strings.TrimSpace(v.Text)))) // blanks within quotes count
	}
	return notEmpty(Printable(strings.Join(strings.Fields(v.Text), " ")))
}

func notEmpty(text string) string {
	if text == "" {
		return `""`
	}
	return text
}

// Quoted is a value within a sentence: Shown, but a plain text as it is, in quotes.
func Quoted(k KnobID, v Value) string {
	if v.Absent || k.Kind == KnobFile || k.Kind == KnobCommand {
		return Shown(k, v)
	}
	return fmt.Sprintf("%q", v.Text)
}

func shownFile(text string) string {
	f, err := ParseFileValue(text)
	if err != nil {
		return Printable(text)
	}
	shown := []string{shownSize(f)}
	if f.Mode != "" {
		shown[0] += ","
		shown = append(shown, f.Mode)
	}
	switch f.Owner {
	case "":
	case "0:0", "root:root":
		shown = append(shown, "root")
	default:
		shown = append(shown, f.Owner)
	}
	return strings.Join(shown, " ")
}

func shownSize(f FileValue) string {
	content, err := f.Bytes()
	switch {
	case err != nil || f.Content == nil:
		return "content kept"
	case len(content) == 1:
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", len(content))
}

func shownCommand(text string) string {
	if c, err := ParseCommandValue(text); err == nil && c.Applied {
		return "applied"
	}
	return "not applied"
}
