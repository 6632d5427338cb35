package lab

import "strings"

// OnOff writes YAML's booleans as nginx does, and leaves every other value of a directive as it is.
func OnOff(value string) string {
	switch value {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return value
}

// Switched is OnOff for what is off when nothing is said of it, such as a parameter of listen.
func Switched(value string) string {
	if value == "" {
		return "off"
	}
	return OnOff(value)
}

// Unquoted is a value of one word as nginx reads it: without the white space and the quotes around it. A value of several
// words, or with a backslash, is left as it is.
func Unquoted(value string) string {
	word := strings.TrimSpace(value)
	if len(word) < 2 || word[0] != '"' && word[0] != '\'' || word[len(word)-1] != word[0] {
		return word
	}
	if inner := word[1 : len(word)-1]; !strings.ContainsAny(inner, word[:1]+`\`) {
		return inner
	}
	return word
}
