package nginxconf

import (
	"slices"
	"strings"
)

func (t tree) value(in Path, name string) (value string, found bool, err error) {
	all, err := t.inside(in, name)
	var texts []string
	for _, d := range all {
		end := d.Stop
		if d.Block {
			end = d.End
		}
		texts = append(texts, strings.TrimSpace(string(t.text[d.File][d.Words:end])))
	}
	return strings.Join(texts, "; "), len(all) > 0, err
}

func (t tree) parameter(in Path, name, parameter string) (value string, found bool, err error) {
	all, err := t.inside(in, name)
	all = slices.DeleteFunc(all, isQUIC)
	if len(all) == 0 {
		return "", false, err
	}
	for _, arg := range all[0].Args {
		switch key, value, assigned := strings.Cut(arg, "="); {
		case key == parameter && assigned:
			return value, true, nil
		case key == parameter:
			return "on", true, nil
		}
	}
	return "", false, nil
}

func (t tree) inside(in Path, name string) ([]Directive, error) {
	s, err := t.find(in)
	if err != nil {
		return nil, err
	}
	return s.named(func(d Directive) bool { return d.Name == name }), nil
}

// Blocks tells of a value, as Set takes it, whether it has simple directives and whether it has blocks. Errors: one
// that Set would refuse.
func Blocks(name, value string) (simple, blocks bool, err error) {
	list, err := elements(name, value)
	for _, e := range list {
		simple, blocks = simple || !e.block, blocks || e.block
	}
	return simple, blocks, err
}

// Same reports whether two values of a directive, as Set takes them, are the same to nginx: white space, comments and
// quotes do not count.
func Same(name, a, b string) bool {
	first, err := elements(name, a)
	second, other := elements(name, b)
	return err == nil && other == nil && slices.EqualFunc(first, second, func(x, y element) bool {
		return sameText(x.text, y.text)
	})
}

func sameText(a, b string) bool {
	first, err := Parse([]byte(a))
	second, other := Parse([]byte(b))
	return err == nil && other == nil && sameDirectives(a, first, b, second)
}

func sameDirectives(a string, first []Directive, b string, second []Directive) bool {
	return slices.EqualFunc(first, second, func(x, y Directive) bool {
		if x.Name != y.Name || x.Block != y.Block || !slices.Equal(x.Args, y.Args) {
			return false
		}
		if x.Block && x.Body == nil { // Lua, whose white space may count
			return a[x.Stop:x.End] == b[y.Stop:y.End]
		}
		return sameDirectives(a, x.Body, b, y.Body)
	})
}
