package nginxconf

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// edit replaces the bytes from Start to End of a file. Edits of one call do not overlap.
type edit struct {
	File       string
	Start, End int
	Text       string
}

// apply makes the edits of one file on a copy.
func apply(conf []byte, edits []edit) []byte {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(conf[at:e.Start])
		out.WriteString(e.Text)
		at = e.End
	}
	out.Write(conf[at:])
	return out.Bytes()
}

// scope is the inside of a block.
type scope struct {
	list   []Directive
	file   string // with the closing brace
	end    int    // of the closing brace, or of the file
	nested bool
}

// named returns the directives of a scope that are meant.
func (s scope) named(meant func(Directive) bool) []Directive {
	var all []Directive
	for _, d := range s.list {
		if meant(d) {
			all = append(all, d)
		}
	}
	return all
}

// find returns the inside of the block that the path names.
func (t tree) find(in Path) (scope, error) {
	s := scope{list: t.list, file: t.root, end: len(t.text[t.root])}
	for i, element := range in {
		element, number := numbered(element)
		words, err := reference(element)
		if err != nil {
			return scope{}, err
		}
		all := s.named(func(d Directive) bool { return d.Body != nil && matches(d, words) })
		if number >= len(all) {
			return scope{}, fmt.Errorf("no block %s", in[:i+1])
		}
		d := all[number]
		s = scope{list: d.Body, file: d.File, end: d.End - 1, nested: true}
	}
	return s, nil
}

// numbered takes the number off an element of a path; 0 when it has none.
func numbered(element string) (name string, number int) {
	name, rest, found := strings.Cut(element, "[")
	digits, closed := strings.CutSuffix(rest, "]")
	number, err := strconv.Atoi(digits)
	if !found || !closed || err != nil || number < 0 || strings.ContainsAny(name, " \t\"'") {
		return element, 0
	}
	return name, number
}

// reference reads a name with or without arguments into its words.
func reference(text string) ([]string, error) {
	list, err := Parse([]byte(text + ";"))
	if err != nil || len(list) != 1 || list[0].Block {
		return nil, fmt.Errorf("%q does not name a directive", text)
	}
	return append([]string{list[0].Name}, list[0].Args...), nil
}

// matches reports whether words of a reference name the directive.
func matches(d Directive, words []string) bool {
	return words[0] == d.Name && (len(words) == 1 || slices.Equal(words[1:], d.Args))
}

// once refuses edits of a file that is included in several places: they would change more than the block named.
func (t tree) once(edits []edit) error {
	for _, e := range edits {
		if t.times[e.File] > 1 {
			return fmt.Errorf("%s is included in several places, which an edit would change all", e.File)
		}
	}
	return nil
}

// insertion puts texts at the end of a block, on lines of their own when the closing brace has one.
func (t tree) insertion(s scope, texts []string) edit {
	conf := t.text[s.file]
	indent, own := indentation(conf, s.end)
	end := newline(conf, s.end)
	switch {
	case !s.nested && len(conf) > 0 && conf[len(conf)-1] != '\n':
		return edit{s.file, s.end, s.end, end + strings.Join(texts, end) + end}
	case !s.nested:
		return edit{s.file, s.end, s.end, strings.Join(texts, end) + end}
	case own && len(indent) < s.end: // the first line has no line before it
		line := s.end - len(indent)
		indent += "    "
		return edit{s.file, line, line, indent + strings.Join(texts, end+indent) + end}
	}
	return edit{s.file, s.end, s.end, " " + strings.Join(texts, " ") + " "}
}

// removal takes directives out, which are in the order of their files. Those that stand together on lines of their own
// take the lines with them.
func (t tree) removal(list []Directive) []edit {
	var edits []edit
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && t.adjacent(list[to-1], list[to]) {
			to++
		}
		edits = append(edits, t.removed(list[from:to])...)
		from = to
	}
	return edits
}

// adjacent reports whether nothing but blanks is between two directives.
func (t tree) adjacent(a, b Directive) bool {
	return a.File == b.File && a.End <= b.Start && blank(t.text[a.File][a.End:b.Start])
}

// removed takes out directives that are adjacent.
func (t tree) removed(list []Directive) []edit {
	file, conf := list[0].File, t.text[list[0].File]
	start, end := list[0].Start, list[len(list)-1].End
	indent, own := indentation(conf, start)
	rest := len(conf)
	if at := bytes.IndexByte(conf[end:], '\n'); at >= 0 {
		rest = end + at + 1
	}
	if own && blank(bytes.TrimSuffix(conf[end:rest], []byte("\n"))) {
		return []edit{{file, start - len(indent), rest, ""}}
	}
	var edits []edit
	for _, d := range list {
		edits = append(edits, edit{file, d.Start, d.End, ""})
	}
	return edits
}

// indentation is the white space between the start of the line and at; own is false when there is more before at.
func indentation(conf []byte, at int) (indent string, own bool) {
	line := bytes.LastIndexByte(conf[:at], '\n') + 1
	return string(conf[line:at]), blank(conf[line:at])
}

// blank reports whether there is nothing but white space within a line.
func blank(text []byte) bool { return len(bytes.Trim(text, " \t\r")) == 0 }

// newline is how the line before at ends, or else the file's first.
func newline(conf []byte, at int) string {
	end := bytes.LastIndexByte(conf[:at], '\n')
	if end < 0 {
		end = bytes.IndexByte(conf, '\n')
	}
	if end > 0 && conf[end-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
