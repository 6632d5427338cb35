package nginxconf_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab/server/nginxconf"
)

// node is a directive as the second reader of these tests finds it: written apart from Parse, as a machine that takes
// one byte at a time, and sharing nothing with it.
type node struct {
	words      []string
	block      bool
	lua        string // code of a Lua block, braces left out
	kids       []*node
	file       string
	start, end int
}

// luaBodies is the code of the Lua blocks that are generated: the second reader knows them by heart and so needs no
// lexer.
var luaBodies = []string{
	"\n  local s = \"}\" .. '{' -- } not a brace\n  ngx.say({s, [==[ }}} ]] ]==]}) --[[ } ]]\n",
	` ngx.say("it's ; } here") `,
	" if a then b = {1, {2}} end -- ' \" }\n",
}

// machine is the second reader of one file.
type machine struct {
	files nginxconf.Files
	name  string
	stack []*node

	words  []string
	word   []byte
	begun  int  // first byte of the directive, -1 between directives
	mode   byte // 0 between words, 'w' in a plain word, its quote in a quoted one, '#' in a comment
	escape bool
	dollar bool
}

// second reads a configuration, and follows includes in place.
func second(t *testing.T, files nginxconf.Files) *node {
	t.Helper()
	root := &node{block: true, file: files.Root, end: len(files.Text[files.Root])}
	secondFile(t, files, files.Root, root)
	return root
}

func secondFile(t *testing.T, files nginxconf.Files, name string, into *node) {
	t.Helper()
	text, ok := files.Text[name]
	if !ok {
		t.Fatalf("no file %s", name)
	}
	m := &machine{files: files, name: name, stack: []*node{into}, begun: -1}
	for i := 0; i < len(text); i++ {
		i = m.step(t, text, i)
	}
	if len(m.stack) != 1 || m.begun >= 0 {
		t.Fatalf("%s ends inside of a block or directive:\n%s", name, text)
	}
}

// step takes the byte at i and returns the last that it took.
func (m *machine) step(t *testing.T, text []byte, i int) int {
	t.Helper()
	c := text[i]
	switch {
	case m.mode == '#':
		if c == '\n' {
			m.mode = 0
		}
		return i
	case m.escape:
		m.escape = false
		if at := strings.IndexByte(`"'\trn`, c); at >= 0 {
			m.word = append(m.word, "\"'\\\t\r\n"[at])
		} else {
			m.word = append(m.word, '\\', c)
		}
		return i
	case m.mode == '"' || m.mode == '\'':
		switch c {
		case m.mode:
			m.finishWord()
		case '\\':
			m.escape = true
		default:
			m.word = append(m.word, c)
		}
		return i
	case m.mode == 'w' && (!strings.ContainsRune(" \t\r\n;{", rune(c)) || c == '{' && m.dollar):
		m.dollar, m.escape = c == '$', c == '\\'
		if !m.escape {
			m.word = append(m.word, c)
		}
		return i
	case m.mode == 'w':
		m.finishWord()
	}
	return m.between(t, text, i)
}

// between takes a byte that is in no word.
func (m *machine) between(t *testing.T, text []byte, i int) int {
	t.Helper()
	top := m.stack[len(m.stack)-1]
	switch c := text[i]; c {
	case ' ', '\t', '\r', '\n':
	case '#':
		m.mode = '#'
	case ';':
		top.kids = append(top.kids, m.finish(i+1))
		if last := top.kids[len(top.kids)-1]; last.words[0] == "include" {
			for _, name := range m.included(t, last.words[1]) {
				secondFile(t, m.files, name, top)
			}
		}
	case '{':
		n := m.finish(0)
		n.block = true
		top.kids = append(top.kids, n)
		if strings.HasSuffix(n.words[0], "_by_lua_block") {
			at := slices.IndexFunc(luaBodies, func(body string) bool { return strings.HasPrefix(string(text[i+1:]), body+"}") })
			if at < 0 {
				t.Fatalf("unknown Lua in %s", text[i:])
			}
			n.lua, n.end = luaBodies[at], i+len(luaBodies[at])+2
			return n.end - 1
		}
		m.stack = append(m.stack, n)
	case '}':
		if len(m.stack) == 1 {
			t.Fatalf("a block ends that did not begin, at %q in\n%s", text[i:], text)
		}
		top.end = i + 1
		m.stack = m.stack[:len(m.stack)-1]
	default:
		if m.begun < 0 {
			m.begun = i
		}
		m.mode, m.dollar, m.escape = 'w', c == '$', c == '\\'
		switch {
		case c == '"' || c == '\'':
			m.mode = c
		case !m.escape:
			m.word = append(m.word, c)
		}
	}
	return i
}

func (m *machine) finishWord() {
	m.words = append(m.words, string(m.word))
	m.word, m.mode, m.dollar = nil, 0, false
}

func (m *machine) finish(end int) *node {
	n := &node{words: m.words, file: m.name, start: m.begun, end: end}
	m.words, m.begun = nil, -1
	return n
}

func (m *machine) included(t *testing.T, pattern string) []string {
	t.Helper()
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	var names []string
	for name := range m.files.Text {
		if ok, err := path.Match(pattern, name); err != nil {
			t.Fatal(err)
		} else if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// at returns the first block of each name on the way.
func (n *node) at(way ...string) *node {
	for _, name := range way {
		i := slices.IndexFunc(n.kids, func(k *node) bool { return k.block && k.words[0] == name })
		if i < 0 {
			return nil
		}
		n = n.kids[i]
	}
	return n
}

// String is everything that nginx would find, and nothing of how it is written.
func (n *node) String() string {
	text := fmt.Sprintf("%q", n.words)
	if !n.block {
		return text + "\n"
	}
	text += " {\n" + n.lua
	for _, k := range n.kids {
		text += k.String()
	}
	return text + "}\n"
}
