package nginxconf

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Path names a block from the outside in; empty is the main context. An element is a directive's name alone (the
// first block of that name) or its name and arguments, as in "location = /hello".
type Path []string

// String is how errors name the block.
func (p Path) String() string {
	if len(p) == 0 {
		return "the main context"
	}
	return strings.Join(p, " > ")
}

// Set gives a simple directive of a block the value, which stands for the arguments as they are written. It is added
// at the end of the block when absent; of several of that name the first is changed and the others are removed.
func Set(conf []byte, in Path, name, value string) ([]byte, error) {
	edits, err := set(conf, in, name, value)
	return apply(conf, edits), err
}

// SetParameter gives every directive of that name in a block a parameter, such as backlog=1024 of listen: with the
// value "on" or "true" the parameter stands alone (reuseport), with "off", "false" or "" it is removed.
func SetParameter(conf []byte, in Path, name, parameter, value string) ([]byte, error) {
	edits, err := setParameter(conf, in, name, parameter, value)
	return apply(conf, edits), err
}

// edit replaces the bytes from Start to End. Edits of one call are in order and do not overlap.
type edit struct {
	Start, End int
	Text       string
}

// apply makes the edits on a copy.
func apply(conf []byte, edits []edit) []byte {
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

func set(conf []byte, in Path, name, value string) ([]edit, error) {
	text, err := simple(name, value)
	if err != nil {
		return nil, err
	}
	s, err := find(conf, in)
	if err != nil {
		return nil, err
	}
	var edits []edit
	for _, d := range s.list {
		switch {
		case d.Name != name:
		case d.Block:
			return nil, fmt.Errorf("%s in %s is a block", name, in)
		case edits == nil:
			edits = append(edits, edit{d.Start, d.End, text})
		default:
			edits = append(edits, edit{d.Start, d.End, ""})
		}
	}
	if edits == nil {
		edits = []edit{s.insertion(conf, text)}
	}
	return edits, nil
}

func setParameter(conf []byte, in Path, name, parameter, value string) ([]edit, error) {
	word := parameter + "=" + value
	switch value {
	case "on", "true":
		word = parameter
	case "off", "false", "":
		word = ""
	}
	if list, err := Parse([]byte(name + " " + word + ";")); err != nil || len(list) != 1 || len(list[0].Args) > 1 || list[0].Block {
		return nil, fmt.Errorf("%q is not a value that the parameter %q of %s can have", value, parameter, name)
	}
	s, err := find(conf, in)
	if err != nil {
		return nil, err
	}
	var edits []edit
	for _, d := range s.list {
		if d.Name == name && !d.Block {
			edits = append(edits, parameterEdit(conf, d, parameter, word))
		}
	}
	if edits == nil {
		return nil, fmt.Errorf("no %s in %s", name, in)
	}
	return edits, nil
}

// parameterEdit replaces the word of the parameter, or adds it behind the last argument.
func parameterEdit(conf []byte, d Directive, parameter, word string) edit {
	p := parser{conf: conf[:d.Stop], at: d.Words}
	last := d.Words
	for p.space(); p.at < d.Stop; p.space() {
		start := p.at
		arg, err := p.word()
		if err != nil { // it was read before
			break
		}
		if key, _, _ := strings.Cut(arg, "="); key == parameter {
			if word == "" {
				start = last // with the space before it
			}
			return edit{start, p.at, word}
		}
		last = p.at
	}
	if word != "" {
		word = " " + word
	}
	return edit{last, last, word}
}

// simple is the text of a directive; a value that would end the directive, or open a block or a comment, is refused.
func simple(name, value string) (string, error) {
	text := strings.TrimSpace(name+" "+value) + ";"
	list, err := Parse([]byte(text))
	if err != nil || len(list) != 1 || list[0].Block || list[0].Name != name || list[0].End != len(text) {
		return "", fmt.Errorf("%q is not a value that %q can have", value, name)
	}
	return text, nil
}

// scope is the inside of a block.
type scope struct {
	list   []Directive
	end    int // of the closing brace, or of the file
	nested bool
}

// find returns the inside of the block that the path names.
func find(conf []byte, in Path) (scope, error) {
	list, err := Parse(conf)
	if err != nil {
		return scope{}, err
	}
	s := scope{list: list, end: len(conf)}
	for i, element := range in {
		at := slices.IndexFunc(s.list, func(d Directive) bool { return d.Block && d.Body != nil && named(d, element) })
		if at < 0 {
			return scope{}, fmt.Errorf("no block %s", in[:i+1])
		}
		d := s.list[at]
		s = scope{list: d.Body, end: d.End - 1, nested: true}
	}
	return s, nil
}

// named reports whether a path's element names the directive.
func named(d Directive, element string) bool {
	words := strings.Fields(element)
	if len(words) == 0 || words[0] != d.Name {
		return false
	}
	return len(words) == 1 || slices.Equal(words[1:], d.Args)
}

// insertion puts a text at the end of a block, on a line of its own when the closing brace has one.
func (s scope) insertion(conf []byte, text string) edit {
	line := bytes.LastIndexByte(conf[:s.end], '\n') + 1
	before := conf[line:s.end]
	indent := string(before[:len(before)-len(bytes.TrimLeft(before, " \t"))])
	switch {
	case !s.nested && len(before) > 0:
		return edit{s.end, s.end, "\n" + text + "\n"}
	case !s.nested:
		return edit{s.end, s.end, text + "\n"}
	case len(indent) == len(before) && line > 0:
		return edit{line, line, indent + "    " + text + "\n"}
	}
	return edit{s.end, s.end, " " + text + " "}
}
