package process

import (
	"errors"
	"slices"
	"strings"

	"ngxlab/lab"
)

// asked reads the value that a directive shall have: the arguments of one or, separated by semicolons, of several
// directives; a block with its arguments and braces.
func asked(name, value string) ([]statement, error) {
	r := dumpReader{rest: value}
	var list []statement
	for s := (statement{words: []string{name}}); ; {
		word, end, rest := nextWord(r.rest)
		r.rest = rest
		switch end {
		case 'w':
			s.words = append(s.words, word)
			continue
		case '}':
			return nil, errors.New("a block ends that did not begin")
		case '{':
			if err := r.open(&s); err != nil {
				return nil, err
			}
		}
		if len(list) == 0 || s.block || len(s.words) > 1 {
			list = append(list, s)
		}
		if end == 0 {
			return list, nil
		}
		s = statement{words: []string{name}}
	}
}

// directive reads what is in force of a directive, and whether it is what is asked. Simple directives must be all that
// there are of the name, in their order; of blocks those count that have the same arguments.
func (d dump) directive(e lab.Setting) (found lab.Value, same bool) {
	name := e.Knob.Name
	if e.At != "" {
		name = e.At
	}
	list := d.named(name)
	if e.Absent {
		return textOf(list), len(list) == 0
	}
	want, err := asked(name[strings.LastIndexByte(name, '.')+1:], e.Value)
	if err != nil {
		return textOf(list), false
	}
	sought := slices.DeleteFunc(slices.Clone(list), func(s statement) bool { return !slices.ContainsFunc(want, s.answers) })
	if len(sought) == 0 {
		return textOf(list), false
	}
	slices.SortStableFunc(want, byForm)
	slices.SortStableFunc(sought, byForm)
	return textOf(sought), slices.EqualFunc(want, sought, equal)
}

// answers reports whether s, which is in force, has to be what is wanted.
func (s statement) answers(want statement) bool {
	return want.block == s.block && (!want.block || slices.Equal(want.words, s.words))
}

// byForm sorts simple directives first, in their order, then blocks by their arguments.
func byForm(a, b statement) int {
	switch {
	case !a.block && !b.block:
		return 0
	case !a.block:
		return -1
	case !b.block:
		return 1
	}
	return slices.Compare(a.words, b.words)
}

// equal reports whether nginx reads the same of two directives.
func equal(a, b statement) bool {
	return a.block == b.block && strings.TrimSpace(a.lua) == strings.TrimSpace(b.lua) &&
		slices.Equal(a.words, b.words) && slices.EqualFunc(a.inner, b.inner, equal)
}

// textOf writes directives as an experiment does.
func textOf(list []statement) lab.Value {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.text(1)
	}
	return lab.Value{Text: strings.Join(texts, "; "), Absent: len(list) == 0}
}

// text writes a directive from a word on.
func (s statement) text(from int) string {
	var words []string
	for _, w := range s.words[from:] {
		if w == "" || strings.ContainsAny(w, " \t\r\n;{}\"'") {
			w = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
		}
		words = append(words, w)
	}
	if !s.block {
		return strings.Join(words, " ")
	}
	inside := s.lua
	for _, k := range s.inner {
		inside += " " + k.text(0)
		if !k.block {
			inside += ";"
		}
	}
	return strings.TrimSpace(strings.Join(words, " ") + " {" + inside + " }")
}
