package nginxconf

import (
	"fmt"
	"slices"
	"strings"
)

// Path names a block from the outside in; empty is the main context. An element is a directive's name alone (the
// first block of that name), its name and the number of the block among those of the name, from 0 ("server[1]"), or its
// name and arguments as a configuration has them, as in "location = /hello".
type Path []string

// String is how errors name the block.
func (p Path) String() string {
	if len(p) == 0 {
		return "the main context"
	}
	return strings.Join(p, " > ")
}

// tree is a configuration that has been read.
type tree struct {
	root  string            // name of the file with the main context
	text  map[string][]byte // of each file
	list  []Directive       // of the main context
	times map[string]int    // how often each file is included
}

func (t tree) set(in Path, name, value string) ([]edit, error) {
	asked, err := elements(name, value)
	if err != nil {
		return nil, err
	}
	s, err := t.find(in)
	if err != nil {
		return nil, err
	}
	old := s.named(func(d Directive) bool { return d.Name == name && !d.Block })
	blocks := s.named(func(d Directive) bool { return d.Name == name && d.Block })
	if len(old) == 0 && len(blocks) > 0 && !slices.ContainsFunc(asked, func(e element) bool { return e.block }) {
		return nil, fmt.Errorf("%s in %s is a block", name, in)
	}
	var edits []edit
	var added []string
	if len(old) > 0 && len(simple(asked)) > 0 {
		edits = t.replace(old, simple(asked))
	} else {
		added = simple(asked)
	}
	for _, e := range asked {
		if !e.block {
			continue
		}
		same := s.named(func(d Directive) bool { return d.Block && d.Name == name && slices.Equal(d.Args, e.args) })
		if len(same) > 0 {
			edits = append(edits, t.replace(same, []string{e.text})...)
			continue
		}
		added = append(added, e.text)
	}
	if len(added) > 0 {
		edits = append(edits, t.insertion(s, added))
	}
	return edits, t.once(edits)
}

func (t tree) remove(in Path, name string) ([]edit, error) {
	words, err := reference(name)
	if err != nil {
		return nil, err
	}
	s, err := t.find(in)
	if err != nil {
		return nil, err
	}
	edits := t.removal(s.named(func(d Directive) bool { return matches(d, words) }))
	return edits, t.once(edits)
}

// replace puts the texts in the place of the first and removes the others; there is one at least.
func (t tree) replace(old []Directive, texts []string) []edit {
	first := old[0]
	conf := t.text[first.File]
	between := " "
	if indent, own := indentation(conf, first.Start); own {
		between = newline(conf, first.Start) + indent
	}
	text := strings.Join(texts, between)
	return append([]edit{{first.File, first.Start, first.End, text}}, t.removal(old[1:])...)
}

func (t tree) setParameter(in Path, name, parameter, value string) ([]edit, error) {
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
	s, err := t.find(in)
	if err != nil {
		return nil, err
	}
	all := s.named(func(d Directive) bool { return d.Name == name && !d.Block && !isQUIC(d) })
	if len(all) == 0 {
		return nil, fmt.Errorf("no %s in %s", name, in)
	}
	var edits []edit
	for _, d := range all {
		edits = append(edits, parameterEdits(t.text[d.File], d, parameter, word)...)
	}
	return edits, t.once(edits)
}

// isQUIC reports whether a directive opens a socket of UDP.
func isQUIC(d Directive) bool { return d.Name == "listen" && slices.Contains(d.Args, "quic") }

// append adds a text of directives at the end of a block.
func (t tree) append(in Path, text string) ([]edit, error) {
	if _, err := Parse([]byte(text)); err != nil {
		return nil, err
	}
	s, err := t.find(in)
	if err != nil {
		return nil, err
	}
	edits := []edit{t.insertion(s, []string{text})}
	return edits, t.once(edits)
}

// parameterEdits replace the first word of the parameter and remove its others, or add it behind the last argument.
func parameterEdits(conf []byte, d Directive, parameter, word string) []edit {
	p := parser{conf: conf[:d.Stop], at: d.Words}
	var edits []edit
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
			edits = append(edits, edit{d.File, start, p.at, word})
			word = ""
		}
		last = p.at
	}
	if word != "" {
		edits = append(edits, edit{d.File, last, last, " " + word})
	}
	return edits
}

// element is one directive of a value.
type element struct {
	text  string // the whole directive
	block bool
	args  []string
}

// simple are the texts of the elements that are no blocks.
func simple(list []element) []string {
	var all []string
	for _, e := range list {
		if !e.block {
			all = append(all, e.text)
		}
	}
	return all
}

// elements reads a value into directives of that name. A value that would end in a comment or leave a quote or brace
// open is refused, and so is a block that is given twice.
func elements(name, value string) ([]element, error) {
	refused := fmt.Errorf("%q is not a value that %q can have", value, name)
	var list []element
	for rest := strings.TrimSpace(value); ; {
		text := strings.TrimSpace(name+" "+rest) + ";" // that the last one may lack
		p := parser{conf: []byte(text)}
		d, err := p.directive(0)
		if err != nil || d.Name != name || d.Words != len(name) || len(list) > 0 && len(d.Args) == 0 && !d.Block {
			return nil, refused
		}
		e := element{text[:d.End], d.Block, d.Args}
		if e.block && slices.ContainsFunc(list, func(o element) bool { return o.block && slices.Equal(o.args, e.args) }) {
			return nil, refused
		}
		list = append(list, e)
		if d.End == len(text) {
			return list, nil
		}
		rest = strings.TrimLeft(text[d.End:len(text)-1], " \t\r\n")
		if d.Block {
			rest = strings.TrimLeft(strings.TrimPrefix(rest, ";"), " \t\r\n")
		}
		if rest == "" {
			return list, nil
		}
	}
}
