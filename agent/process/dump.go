package process

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// statement is one directive of a configuration that nginx dumped, with what its block holds. This reading is apart from
// lab/server/nginxconf, which wrote the configuration: it is what the writing is held against.
type statement struct {
	words []string // as nginx reads them: without quotes, escapes translated
	block bool
	lua   string // code of a Lua block
	inner []statement
}

// dump is the output of nginx -T.
type dump []statement

// fileHeading begins each file of a dump (ngx_dump_config, nginx 1.22).
const fileHeading = "# configuration file "

// parseDump reads a dump into its directives, those of included files in the place of their include.
func parseDump(text string) (dump, error) {
	files, root := dumpedFiles(text)
	r := dumpReader{files: files, root: root}
	list, err := r.file(root)
	if err != nil {
		return nil, fmt.Errorf("read nginx -T: %w", err)
	}
	return list, nil
}

// dumpedFiles takes a dump apart. Text without a heading is one file.
func dumpedFiles(text string) (files map[string]string, root string) {
	files = map[string]string{}
	name, begin, at := "", 0, 0
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(line, fileHeading); ok && strings.HasSuffix(heading, ":\n") {
			files[name] += text[begin:at]
			name, begin = strings.TrimSuffix(heading, ":\n"), at+len(line)
			if root == "" {
				root = name
			}
		}
		at += len(line)
	}
	files[name] += text[begin:]
	return files, root
}

// dumpReader reads the files of a dump.
type dumpReader struct {
	files map[string]string
	root  string
	depth int    // of files and blocks
	rest  string // of the file being read
}

// dumpDepth bounds how deep blocks and files nest.
const dumpDepth = 64

func (r *dumpReader) file(name string) ([]statement, error) {
	around := r.rest
	defer func() { r.rest = around }()
	r.rest = r.files[name]
	list, closed, err := r.statements()
	if err == nil && closed {
		err = fmt.Errorf("%s: a block ends that did not begin", name)
	}
	return list, err
}

// statements reads up to the end of the block, or of the file: then closed is false.
func (r *dumpReader) statements() (list []statement, closed bool, err error) {
	if r.depth++; r.depth > dumpDepth {
		return nil, false, errors.New("blocks or files nest too deep")
	}
	defer func() { r.depth-- }()
	var s statement
	for {
		word, end, after := nextWord(r.rest)
		r.rest = after
		switch end {
		case 0, '}':
			if len(s.words) > 0 {
				err = fmt.Errorf("%s has no end", s.words[0])
			}
			return list, end == '}', err
		case 'w':
			s.words = append(s.words, word)
			continue
		case '{':
			err = r.open(&s)
		}
		if err == nil && len(s.words) == 0 {
			err = errors.New("a directive without a name")
		}
		if err != nil {
			return nil, false, err
		}
		list = append(list, s)
		if included, err := r.included(s); err != nil {
			return nil, false, err
		} else if included != nil {
			list = append(list, included...)
		}
		s = statement{}
	}
}

// open reads the inside of a block.
func (r *dumpReader) open(s *statement) error {
	s.block = true
	if len(s.words) > 0 && strings.HasSuffix(s.words[0], "_by_lua_block") {
		at := luaEnd(r.rest)
		if at < 0 {
			return fmt.Errorf("%s has no end", s.words[0])
		}
		s.lua, r.rest = r.rest[:at], r.rest[at+1:]
		return nil
	}
	inner, closed, err := r.statements()
	if err == nil && !closed {
		err = errors.New("a block has no end")
	}
	s.inner = inner
	return err
}

// included are the statements of the files that an include names, by name or by a pattern of theirs.
func (r *dumpReader) included(s statement) ([]statement, error) {
	if s.block || s.words[0] != "include" || len(s.words) != 2 {
		return nil, nil
	}
	pattern := s.words[1]
	if !strings.HasPrefix(pattern, "/") && placeAt(pattern) == 0 {
		pattern = path.Join(path.Dir(r.root), pattern)
	}
	var names []string
	for name := range r.files {
		if match, err := path.Match(pattern, name); name == pattern || err == nil && match {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []statement
	for _, name := range names {
		list, err := r.file(name)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// nextWord returns the next word (end 'w'), or what ends a directive (';', '{', '}'), or end 0 at the end.
func nextWord(text string) (word string, end byte, rest string) {
	for text = strings.TrimLeft(text, " \t\r\n"); strings.HasPrefix(text, "#"); text = strings.TrimLeft(text, " \t\r\n") {
		_, text, _ = strings.Cut(text, "\n")
	}
	if text == "" {
		return "", 0, ""
	}
	switch c := text[0]; {
	case placeAt(text) > 0:
	case c == ';', c == '{', c == '}':
		return "", c, text[1:]
	case c == '"', c == '\'':
		at := wordEnd(text[1:], string(c))
		return translated.Replace(text[1 : 1+at]), 'w', text[min(len(text), at+2):]
	}
	at := wordEnd(text, " \t\r\n;{")
	for at < len(text) && text[at] == '{' && (at > 0 && text[at-1] == '$' || placeAt(text[at:]) > 0) { // ${variable}, {prefix}
		at += 1 + wordEnd(text[at+1:], " \t\r\n;{")
	}
	return translated.Replace(text[:at]), 'w', text[at:]
}

// placeAt is the length of the word in braces that a text begins with and that stands for a directory, 0 without one.
func placeAt(text string) int {
	for _, place := range []string{placePrefix, placeBuild} {
		if strings.HasPrefix(text, place) {
			return len(place)
		}
	}
	return 0
}

// translated is what nginx makes of escapes (ngx_conf_read_token).
var translated = strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`, `\t`, "\t", `\r`, "\r", `\n`, "\n")

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

// context returns what stands in a context of the site, the first of its blocks: "main", "events", "http", "server" and
// "location" as lab/server names them.
func (d dump) context(name string) (list []statement, found bool) {
	ways := map[string][]string{"main": {}, "events": {"events"}, "http": {"http"}, "server": {"http", "server"}, "location": {"http", "server", "location"}}
	way, known := ways[name]
	list = d
	for _, block := range way {
		at := slices.IndexFunc(list, func(s statement) bool { return s.block && s.words[0] == block })
		if at < 0 {
			return nil, false
		}
		list = list[at].inner
	}
	return list, known
}

// named returns the directives of a dotted name, in order. Without a context it is the outermost that has any.
func (d dump) named(dotted string) []statement {
	context, name, qualified := strings.Cut(dotted, ".")
	contexts := []string{context}
	if !qualified {
		name, contexts = dotted, []string{"main", "events", "http", "server", "location"}
	}
	for _, c := range contexts {
		list, _ := d.context(c)
		list = slices.DeleteFunc(slices.Clone(list), func(s statement) bool { return s.words[0] != name })
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// parameter returns the value of a parameter of the site's listen over TCP: "on" when it stands alone, absent when it is not
// there.
func (d dump) parameter(name string) lab.Value {
	for _, listen := range d.named("server.listen") {
		if slices.Contains(listen.words, "quic") {
			continue // has parameters of its own
		}
		for _, word := range listen.words[1:] {
			key, value, assigned := strings.Cut(word, "=")
			if key == name && assigned {
				return lab.Value{Text: value}
			}
			if key == name {
				return lab.Value{Text: "on"}
			}
		}
	}
	return lab.Value{Absent: true}
}

// workers is how many workers are configured: at least 1, and 1 for "auto", whose number nginx decides.
func (d dump) workers() int {
	list := d.named("main.worker_processes")
	if len(list) == 0 || len(list[0].words) < 2 {
		return 1
	}
	n, err := strconv.Atoi(list[0].words[1])
	if err != nil || n < 1 {
		return 1
	}
	return n
}
