package nginxconf

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Files is a configuration of several files. Their names are those that nginx opens them by: absolute, or relative as
// Root is.
type Files struct {
	Root string            // the file that nginx is started with
	Text map[string][]byte // of every file that may be included, Root with it
}

// includeLimit bounds how many files are read, the same counted each time: files that include each other twice grow
// without a cycle.
const includeLimit = 10_000

// Parse returns the directives of the main context in order, those of included files after the include, in the context
// where it stands. A name is relative to the directory of Root; a pattern is one of path.Match, its files are taken in the
// order of their names, and there may be none (ngx_conf_include, nginx 1.22). Errors: a file that is not there, one that
// includes itself, and those of the function Parse; they carry the file's name.
func (f Files) Parse() ([]Directive, error) {
	t, err := f.tree()
	return t.list, err
}

// Set gives a directive of a block the value, which is what stands behind its name: arguments as they are written
// ("max=10"), several directives of that name ("X-A 1; X-B 2"), a block with its arguments and braces
// ("$uri $x { default 0; }"), or several of these.
//
// Simple directives take the place of the first simple one of that name in the block; the others of that name are
// removed, as Remove does. A block takes the place of the one of that name and those arguments. What is not there yet is
// added at the end of the block, on lines of its own when the closing brace has one.
//
// Over several files a directive is edited in the file where it stands, and added to the file with the closing brace of
// its block. A file that is included in several places is not edited. The result shares the bytes of the files that are
// unchanged.
func (f Files) Set(in Path, name, value string) (Files, error) {
	return f.change(func(t tree) ([]edit, error) { return t.set(in, name, value) })
}

// SetParameter gives every simple directive of that name in a block a parameter, such as backlog=1024 of listen: with
// the value "on" or "true" the parameter stands alone (reuseport), with "off", "false" or "" it is removed. A listen for
// QUIC is left as it is: its socket is one of UDP, which takes other parameters (ngx_http_core_listen, nginx 1.26).
func (f Files) SetParameter(in Path, name, parameter, value string) (Files, error) {
	return f.change(func(t tree) ([]edit, error) { return t.setParameter(in, name, parameter, value) })
}

// Remove takes every directive of that name out of a block, or with arguments ("map $uri $x") only those that have
// them. When nothing but white space is left of the lines it stood on they go as well, with their line end; a comment
// beside it stays where it is. A directive that is not there is no error. An empty file stays.
func (f Files) Remove(in Path, name string) (Files, error) {
	return f.change(func(t tree) ([]edit, error) { return t.remove(in, name) })
}

// Append adds directives, given as text, at the end of a block, whatever it has.
func (f Files) Append(in Path, text string) (Files, error) {
	return f.change(func(t tree) ([]edit, error) { return t.append(in, text) })
}

// Value returns the directives of that name in a block as Set takes them: as they are written, "; " between several.
// It is false when there is none. Errors: a configuration or path that cannot be.
func (f Files) Value(in Path, name string) (value string, found bool, err error) {
	t, err := f.tree()
	if err != nil {
		return "", false, err
	}
	return t.value(in, name)
}

// Parameter returns a parameter of the first directive of that name in a block as SetParameter takes it; "on" when it
// stands alone. It is false when there is none.
func (f Files) Parameter(in Path, name, parameter string) (value string, found bool, err error) {
	t, err := f.tree()
	if err != nil {
		return "", false, err
	}
	return t.parameter(in, name, parameter)
}

func (f Files) change(edits func(tree) ([]edit, error)) (Files, error) {
	t, err := f.tree()
	if err != nil {
		return f, err
	}
	list, err := edits(t)
	if err != nil {
		return f, err
	}
	byFile := map[string][]edit{}
	for _, e := range list {
		byFile[e.File] = append(byFile[e.File], e)
	}
	f.Text = maps.Clone(f.Text)
	for name, list := range byFile {
		f.Text[name] = apply(f.Text[name], list)
	}
	return f, nil
}

// tree reads all files.
func (f Files) tree() (tree, error) {
	r := reading{files: f, times: map[string]int{}}
	list, err := r.file(f.Root)
	return tree{root: f.Root, text: f.Text, list: list, times: r.times}, err
}

// reading is the state of following includes.
type reading struct {
	files Files
	open  []string       // from the outside in
	times map[string]int // each file was read
	reads int
}

func (r *reading) file(name string) ([]Directive, error) {
	if slices.Contains(r.open, name) {
		return nil, fmt.Errorf("%s includes itself: %s", name, strings.Join(append(r.open, name), " > "))
	}
	if r.reads++; r.reads > includeLimit {
		return nil, fmt.Errorf("more than %d includes", includeLimit)
	}
	text, ok := r.files.Text[name]
	if !ok {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	list, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.times[name]++
	r.open = append(r.open, name)
	defer func() { r.open = r.open[:len(r.open)-1] }()
	return r.spliced(list, name)
}

// spliced puts what is included behind each include.
func (r *reading) spliced(list []Directive, name string) ([]Directive, error) {
	all := []Directive{}
	for _, d := range list {
		d.File = name
		var err error
		if d.Body != nil {
			if d.Body, err = r.spliced(d.Body, name); err != nil {
				return nil, err
			}
		}
		all = append(all, d)
		if d.Name != "include" || d.Block {
			continue
		}
		included, err := r.included(d)
		if err != nil {
			return nil, err
		}
		all = append(all, included...)
	}
	return all, nil
}

func (r *reading) included(d Directive) ([]Directive, error) {
	if len(d.Args) != 1 {
		return nil, fmt.Errorf("%s: include has %d arguments", d.File, len(d.Args))
	}
	names, err := r.names(d.Args[0])
	if err != nil {
		return nil, fmt.Errorf("%s: include %s: %w", d.File, d.Args[0], err)
	}
	var all []Directive
	for _, name := range names {
		list, err := r.file(name)
		if err != nil {
			return nil, fmt.Errorf("%s: include %s: %w", d.File, d.Args[0], err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// names are the files that an include names, sorted.
func (r *reading) names(pattern string) ([]string, error) {
	if !path.IsAbs(pattern) {
		pattern = path.Join(path.Dir(r.files.Root), pattern)
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	var names []string
	for name := range r.files.Text {
		match, err := path.Match(pattern, name)
		if err != nil {
			return nil, err
		}
		// As glob(3), a pattern does not match a leading dot.
		if match && (!strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(path.Base(pattern), ".")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
