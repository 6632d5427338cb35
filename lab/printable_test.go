package lab

import "testing"

func TestPrintableSteersNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc é 漢 ✓":          "a\tb\nc é 漢 ✓",
		"\x1b[2J\x07\r\x00\x7f":  "\uFFFD[2J\uFFFD\uFFFD\uFFFD\uFFFD",
		"a\r\nb\rc":              "a\nb\uFFFDc",
		"\u009b2J":               "\uFFFD2J",
		"\x9b2J":                 "\uFFFD2J",
		"abc\u202etxt.exe\u2066": "abc\uFFFDtxt.exe\uFFFD",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
