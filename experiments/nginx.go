package experiments

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

const directivePattern = `^[a-z0-9_]+(\.[a-z0-9_]+)*$`

var directiveNames = names{what: "an nginx directive", pattern: directivePattern}

// directives are nginx directives by dotted name. The arguments of a list are joined by spaces. true and false are
// "on" and "off", but stay what they are for the flags of listen (listen.reuseport).
var directives = anyKeys(directiveNames, argument, func() map[string]string { return map[string]string{} },
	func(m map[string]string, name, argument string) map[string]string {
		m[name] = onOff(name, argument)
		return m
	})

const yes, no = "true", "false"

func onOff(name, argument string) string {
	words := map[string]string{yes: "on", no: "off"}
	if word := words[argument]; word != "" && !strings.HasPrefix(name, "listen.") {
		return word
	}
	return argument
}

// edits are directives of a step, where null takes one out.
var edits = key[lab.Step]{name: "nginx", doc: "directives, with their context; null takes one out", schema: edited.schema,
	read: func(d *decoding, path string, n ast.Node, s *lab.Step) {
		if e, ok := edited.read(d, path, n); ok {
			s.Nginx, s.Remove = e.Nginx, e.Remove
		}
	}}

var edited = keysAndNulls(directiveNames, argument, func() lab.Step { return lab.Step{Nginx: map[string]string{}} },
	func(s lab.Step, name, argument string) lab.Step {
		s.Nginx[name] = onOff(name, argument)
		return s
	},
	func(s lab.Step, name string) lab.Step {
		s.Remove = append(s.Remove, name)
		return s
	})

// argument is what follows a directive's name: a text, a list of arguments, or, as a list of lists or of texts that hold
// blocks, what follows the name each time.
var argument = value[string]{
	schema{"anyOf": []schema{{"type": []string{"string", "number", "boolean"}}, {"type": "array", "minItems": 1, "items": list(text).schema}}},
	func(d *decoding, path string, n ast.Node) (string, bool) {
		if b, ok := n.(*ast.BoolNode); ok {
			s, _, _ := scalar(b)
			return s, true
		}
		if s, ok := n.(*ast.SequenceNode); ok && several(s) {
			all, ok := elements(d, path, s, arguments)
			return directivesOf(all), ok
		}
		return arguments.read(d, path, n)
	}}

// arguments are those of one directive: a text is as nginx reads it, each element of a list is one argument, and quoted where
// nginx would read more than one, or none.
var arguments = value[string]{list(text).schema, func(d *decoding, path string, n ast.Node) (string, bool) {
	words, ok := list(text).read(d, path, n)
	if n.Type() == ast.SequenceType {
		for i, word := range words {
			words[i] = quoted(word, i == len(words)-1)
		}
	} else if ok && ends(words[0]) {
		d.wrong(n, "the arguments of one directive", "a semicolon ends a directive: put it into quotes, or write a list of lists for several directives of one name")
		return "", false
	}
	return strings.Join(words, " "), ok
}}

// ends reports whether a text without a block has a semicolon outside of quotes.
func ends(text string) bool {
	return !holdsBlock(text) && strings.Contains(stringRE.ReplaceAllString(text, ""), ";")
}

var (
	variableRE = regexp.MustCompile(`\$\{\w+\}`)
	specialRE  = regexp.MustCompile("^#|[\\s;{}\"']")
	stringRE   = regexp.MustCompile(`"(\\.|[^"\\])*"|'(\\.|[^'\\])*'`)
	writtenRE  = regexp.MustCompile(`^"(\\.|[^"\\])*"$|^'(\\.|[^'\\])*'$`)
)

// quoted is an argument as nginx reads it in one (ngx_conf_read_token): with quotes where it needs them and has none. The
// last may be a block.
func quoted(word string, last bool) string {
	isBlock := last && strings.HasPrefix(word, "{") && strings.HasSuffix(word, "}")
	if isBlock || writtenRE.MatchString(word) || !specialRE.MatchString(variableRE.ReplaceAllString(word, "")) {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// several reports whether each element of a list is a directive of its own.
func several(s *ast.SequenceNode) bool {
	for _, n := range s.Values {
		if text, _, ok := scalar(n); n.Type() == ast.SequenceType || ok && holdsBlock(text) {
			return true
		}
	}
	return false
}

var blockRE = regexp.MustCompile(`(?s)\s\{.*\}\s*$`)

func holdsBlock(text string) bool { return blockRE.MatchString(text) }

// directivesOf joins several directives of one name: a block ends with its brace, all else with a semicolon.
func directivesOf(all []string) string {
	var b strings.Builder
	for i, text := range all {
		b.WriteString(text)
		switch {
		case i == len(all)-1:
		case holdsBlock(text):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
	}
	return b.String()
}
