package process

import "strings"

// luaEnd is the index of the brace that ends Lua code, -1 when there is none. Strings, long brackets and comments may
// hold braces.
func luaEnd(code string) int {
	depth := 1
	for i := 0; i < len(code); {
		rest := code[i:]
		if skip := luaSkip(rest); skip > 0 {
			i += skip
			continue
		}
		switch rest[0] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return i
		}
		i++
	}
	return -1
}

// luaSkip is the length of the comment, string or long bracket that Lua code begins with, 0 when with none.
func luaSkip(code string) int {
	switch {
	case strings.HasPrefix(code, "--"):
		if long := longBracket(code[2:]); long > 0 {
			return 2 + long
		}
		line, _, _ := strings.Cut(code, "\n")
		return len(line)
	case code[0] == '"' || code[0] == '\'':
		return min(len(code), wordEnd(code[1:], code[:1])+2)
	}
	return longBracket(code)
}

// longBracket is the length of the long bracket that a text begins with, [[…]] or [==[…]==]; 0 when it begins with none.
func longBracket(text string) int {
	inner, ok := strings.CutPrefix(text, "[")
	signs := len(inner) - len(strings.TrimLeft(inner, "="))
	if !ok || !strings.HasPrefix(inner[signs:], "[") {
		return 0
	}
	closing := "]" + strings.Repeat("=", signs) + "]"
	open := 1 + signs + 1
	at := strings.Index(text[open:], closing)
	if at < 0 {
		return len(text)
	}
	return open + at + len(closing)
}
