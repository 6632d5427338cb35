package tune

import (
	"ngxlab/lab"
	"strings"
)

// directive writes what follows a directive's name in one way: white space between words is one space, a directive
// and a block end without one before. Quoted words are left alone, and YAML's booleans are written as nginx does.
func directive(_, value string) string {
	list := words(value)
	for len(list) > 0 && list[len(list)-1] == ";" {
		list = list[:len(list)-1]
	}
	var out strings.Builder
	for i, word := range list {
		if i > 0 && word != ";" {
			out.WriteByte(' ')
		}
		out.WriteString(word)
	}
	return lab.OnOff(out.String())
}

// words splits text as nginx's own tokenizer does (src/core/ngx_conf_file.c, ngx_conf_read_token): a quote counts at
// the beginning of a word only, a backslash keeps the next character, and "${" opens a variable, not a block.
func words(text string) []string {
	var list []string
	for text = strings.TrimLeft(text, space); text != ""; text = strings.TrimLeft(text, space) {
		n := wordLen(text)
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

const space = " \t\r\n"

func wordLen(text string) int {
	switch text[0] {
	case ';', '{', '}':
		return 1
	case '"', '\'':
		return quotedLen(text)
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '$' && strings.HasPrefix(text[i:], "${"):
			i++
		case strings.IndexByte(space+";{", c) >= 0:
			return i
		}
	}
	return len(text)
}

func quotedLen(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}
