package process

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// statement is one directive of a configuration that nginx dumped; nginx itself has read it before.
type statement struct {
	context string // innermost block: "main", "events", "http", "server", "location" …
	server  int    // number of the server block from 1, 0 outside
	depth   int    // blocks around it
	name    string
	args    string // joined by single spaces, without quotes
}

// dump is the output of nginx -T.
type dump []statement

// parseDump reads a dump into its directives; Lua blocks are not understood.
func parseDump(text string) (dump, error) {
	var d dump
	var words, blocks []string
	servers := 0
	for rest := text; ; {
		word, end, after := nextWord(rest)
		rest = after
		if end == 0 {
			return d, nil
		}
		switch end {
		case 'w':
			words = append(words, word)
			continue
		case '{':
			if len(words) == 0 {
				return nil, errors.New("read nginx -T: a block without a name")
			}
			if words[0] == "server" {
				servers++
			}
			blocks = append(blocks, words[0])
		case '}':
			blocks = blocks[:max(0, len(blocks)-1)]
		case ';':
			d = append(d, place(words, blocks, servers))
		}
		words = nil
	}
}

// place makes a statement of its words and the blocks around it.
func place(words, blocks []string, servers int) statement {
	s := statement{context: "main", depth: len(blocks)}
	if len(words) > 0 {
		s.name, s.args = words[0], strings.Join(words[1:], " ")
	}
	if len(blocks) > 0 {
		s.context = blocks[len(blocks)-1]
	}
	if slices.Contains(blocks, "server") {
		s.server = servers
	}
	return s
}

// nextWord returns the next word (end 'w'), or what ends a directive (';', '{', '}'), or end 0 at the end.
func nextWord(text string) (word string, end byte, rest string) {
	for text = strings.TrimLeft(text, " \t\r\n"); strings.HasPrefix(text, "#"); text = strings.TrimLeft(text, " \t\r\n") {
		_, text, _ = strings.Cut(text, "\n")
	}
	if text == "" {
		return "", 0, ""
	}
	switch c := text[0]; c {
	case ';', '{', '}':
		return "", c, text[1:]
	case '"', '\'':
		at := wordEnd(text[1:], string(c))
		return text[1 : 1+at], 'w', text[min(len(text), at+2):]
	}
	at := wordEnd(text, " \t\r\n;{")
	for at < len(text) && text[at] == '{' && at > 0 && text[at-1] == '$' { // ${variable}
		at += 1 + wordEnd(text[at+1:], " \t\r\n;{")
	}
	return text[:at], 'w', text[at:]
}

// wordEnd is the index of the first of the stops that no backslash escapes, or the length.
func wordEnd(text, stops string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.IndexByte(stops, text[i]) >= 0:
			return i
		}
	}
	return len(text)
}

// value returns the arguments of a directive by its dotted name. The site is the first server; without a context the
// outermost place counts.
func (d dump) value(dotted string) (args string, found bool) {
	context, name, qualified := strings.Cut(dotted, ".")
	if !qualified {
		context, name = "", dotted
	}
	best := -1
	for i, s := range d {
		if s.name != name || s.server > 1 || context != "" && s.context != context {
			continue
		}
		if best < 0 || s.depth < d[best].depth {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	return d[best].args, true
}

// parameter returns the value of a parameter of the site's listen: "on" when it stands alone, "off" when absent.
func (d dump) parameter(name string) string {
	listen, _ := d.value("server.listen")
	for _, word := range strings.Fields(listen) {
		key, value, assigned := strings.Cut(word, "=")
		if key == name && assigned {
			return value
		}
		if key == name {
			return "on"
		}
	}
	return "off"
}

// workers is how many workers are configured: at least 1, and 1 for "auto", whose number nginx decides.
func (d dump) workers() int {
	text, _ := d.value("main.worker_processes")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 1
	}
	return n
}
