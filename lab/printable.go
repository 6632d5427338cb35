package lab

import (
	"strings"
	"unicode"
)

// Printable is a text without what steers a terminal or turns the order of what is read: much of what is printed was said by
// hosts. Line breaks (CR LF becomes LF) and tabs stay; each other control character becomes U+FFFD, as does a byte that is no UTF-8.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if Steers(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

// Steers tells whether a terminal, or who reads, would take a character for an order.
func Steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}
