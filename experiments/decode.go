// Package experiments reads experiment files: it decodes them strictly, with the position of everything, fills in every
// default of METHOD §8, and holds the library of files that ship with ngxlab, a scaffold for one's own, and the JSON
// Schema of the file, made from the very tables that decode it.
package experiments

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"ngxlab/lab"
)

// maxBytes bounds an experiment file; the largest in the library has 6 KiB.
const maxBytes = 1 << 20

// Decode reads one experiment file. file is the name to print and to store, "" when there is none.
//
// Every default is filled in; Text, Hash and Where are set. A template that the file names is read from beside it: it is in
// the server section whole, and Hash is of it too. Where holds, for each key, the place of the key
// ("server.port", "steps[2].sysctl.net.core.somaxconn") and, for each element of a list, its own ("load[0].connections[2]").
// Everything wrong with the file is returned at once as an *Error; the experiment is then zero.
func Decode(file string, r io.Reader) (lab.Experiment, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return lab.Experiment{}, fmt.Errorf("read experiment %s: %w", file, err)
	}
	if len(text) > maxBytes {
		return lab.Experiment{}, fmt.Errorf("read experiment %s: larger than %d bytes", file, maxBytes)
	}
	d := &decoding{lines: strings.Split(string(text), "\n"), where: map[string]lab.Position{}, read: map[string]map[string]string{}}
	if file != "" {
		d.folder = filepath.Dir(file)
	}
	e := d.experiment(text)
	if len(d.problems) > 0 {
		return lab.Experiment{}, &Error{File: file, Problems: sorted(d.problems)}
	}
	e.File, e.Text, e.Hash, e.Where = file, string(text), d.hashed(text), d.where
	return e, nil
}

// decoding is one file being decoded.
type decoding struct {
	lines    []string
	where    map[string]lab.Position
	folder   string                       // of the file, "" when it is none
	read     map[string]map[string]string // further files that were read, by the path of the key that names them and their own names
	problems []Problem
}

// experiment decodes the text; it checks what the keys mean together only when each of them is well.
func (d *decoding) experiment(text []byte) lab.Experiment {
	root, ok := d.parse(text)
	if !ok {
		return lab.Experiment{}
	}
	e, ok := experimentValue.read(d, "", root)
	if ok && len(d.problems) == 0 {
		fill(&e, d.given)
		d.spelling()
		d.check(e)
	}
	return e
}

// parse returns the one document of the file.
func (d *decoding) parse(text []byte) (ast.Node, bool) {
	tree, err := parseYAML(text)
	if err != nil {
		d.syntax(err)
		return nil, false
	}
	var bodies []ast.Node
	for _, document := range tree.Docs {
		if document.Body != nil && document.Body.Type() != ast.CommentType {
			bodies = append(bodies, document.Body)
		}
	}
	switch len(bodies) {
	case 1:
		return bodies[0], true
	case 0:
		d.add(lab.Position{Line: 1, Column: 1}, "the file is empty", `"ngxlab init" writes one to start from`)
	default:
		d.add(position(bodies[1]), "a second YAML document", "one file holds one experiment")
	}
	return nil, false
}

// parseYAML turns a panic of the parser, which broken input can cause, into an error.
func parseYAML(text []byte) (tree *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is not YAML: %v", p)
		}
	}()
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
}

func (d *decoding) syntax(err error) {
	at, message := lab.Position{Line: 1, Column: 1}, err.Error()
	var located yaml.Error
	if errors.As(err, &located) {
		message = located.GetMessage()
		if t := located.GetToken(); t != nil && t.Position != nil {
			at = lab.Position{Line: t.Position.Line, Column: t.Position.Column}
		}
	}
	d.add(at, "YAML: "+message, "")
}

func (d *decoding) add(at lab.Position, message, hint string) {
	line := ""
	if at.Line >= 1 && at.Line <= len(d.lines) {
		line = strings.TrimRight(d.lines[at.Line-1], "\r")
	}
	d.problems = append(d.problems, Problem{Position: at, Line: line, Message: message, Hint: hint})
}

// given reports whether the file has the path.
func (d *decoding) given(path string) bool {
	_, ok := d.where[path]
	return ok
}

// at returns the place of a path, or of the nearest enclosing one that is in the file.
func (d *decoding) at(path string) lab.Position {
	for path != "" {
		if p, ok := d.where[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return lab.Position{Line: 1, Column: 1}
}

// position is the place of a node; of a mapping, that of its first key.
func position(n ast.Node) lab.Position {
	t := n.GetToken()
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		t = m.Values[0].Key.GetToken()
	}
	if t == nil || t.Position == nil {
		return lab.Position{Line: 1, Column: 1}
	}
	return lab.Position{Line: t.Position.Line, Column: t.Position.Column}
}
