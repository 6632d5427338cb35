package nginxconf_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab/server/nginxconf"
)

// change is an edit, and what it is to come to as somebody wrote it down who did not ask the code under test.
type change struct {
	way       []string // to the block, by names alone
	name      string
	value     string
	want      []*node // nothing: removed
	parameter string  // of name, then want is empty and value the parameter's
}

func (c change) String() string {
	return fmt.Sprintf("%v: %s %s = %q (%d)", c.way, c.name, c.parameter, c.value, len(c.want))
}

func simpleNode(words ...string) *node { return &node{words: words} }

func blockNode(words []string, kids ...*node) *node {
	return &node{words: words, block: true, kids: kids}
}

// changes are edits that a configuration of the generator is valid with.
func changes() []change {
	list := []change{
		{name: "worker_processes", value: `"2"`, want: []*node{simpleNode("worker_processes", "2")}},
		{name: "worker_rlimit_nofile", value: "2000", want: []*node{simpleNode("worker_rlimit_nofile", "2000")}},
		{name: "env", value: `A; "B=c;{d}"; 'E=\'f\\'`, want: []*node{simpleNode("env", "A"), simpleNode("env", "B=c;{d}"), simpleNode("env", `E='f\`)}},
		{name: "timer_resolution"}, {name: "env"},
		{way: []string{"events"}, name: "worker_connections", value: "128", want: []*node{simpleNode("worker_connections", "128")}},
		{way: []string{"events"}, name: "multi_accept"},
		{way: []string{"http"}, name: "map", value: `$uri $name { default "x;}"; '' y; }`, want: []*node{
			blockNode([]string{"map", "$uri", "$name"}, simpleNode("default", "x;}"), simpleNode("", "y"))}},
		{way: []string{"http"}, name: "map", value: "$host $one {default 1;}\n$host $two {\n  default 2; # }\n}", want: []*node{
			blockNode([]string{"map", "$host", "$one"}, simpleNode("default", "1")), blockNode([]string{"map", "$host", "$two"}, simpleNode("default", "2"))}},
		{way: []string{"http"}, name: "geo", value: "$near { default 2; }", want: []*node{blockNode([]string{"geo", "$near"}, simpleNode("default", "2"))}},
		{way: []string{"http"}, name: "geo"}, {way: []string{"http"}, name: "types"}, {way: []string{"http"}, name: "split_clients"},
		{way: []string{"http"}, name: "upstream", value: "other { server 127.0.0.1:3; }", want: []*node{
			blockNode([]string{"upstream", "other"}, simpleNode("server", "127.0.0.1:3"))}},
		{way: []string{"http"}, name: "types", value: "{ text/html html; }", want: []*node{blockNode([]string{"types"}, simpleNode("text/html", "html"))}},
		{way: []string{"http", "server"}, name: "server_name", value: `a "b;c"`, want: []*node{simpleNode("server_name", "a", "b;c")}},
		{way: []string{"http", "server"}, name: "location", value: "= /added { return 204; }", want: []*node{
			blockNode([]string{"location", "=", "/added"}, simpleNode("return", "204"))}},
		{way: []string{"http", "server"}, name: "if"},
		{way: []string{"http", "server"}, name: "listen", parameter: "backlog", value: "7"},
		{way: []string{"http", "server"}, name: "listen", parameter: "sndbuf", value: "8k"},
		{way: []string{"http", "server"}, name: "listen", parameter: "backlog", value: "off"},
		{way: []string{"http", "server", "location"}, name: "limit_except", value: "GET { allow all; }", want: []*node{
			blockNode([]string{"limit_except", "GET"}, simpleNode("allow", "all"))}},
		{way: []string{"http", "server", "location"}, name: "if", value: `($arg_y = "}") { return 403; }`, want: []*node{
			blockNode([]string{"if", "($arg_y", "=", "}", ")"}, simpleNode("return", "403"))}},
		{way: []string{"http", "server", "location"}, name: "return"},
	}
	for _, way := range [][]string{{"http"}, {"http", "server"}, {"http", "server", "location"}} {
		list = append(list,
			change{way: way, name: "sendfile", value: "on", want: []*node{simpleNode("sendfile", "on")}},
			change{way: way, name: "keepalive_timeout", value: "0", want: []*node{simpleNode("keepalive_timeout", "0")}},
			change{way: way, name: "add_header", value: `X-C 'a "b" \' }'; X-D ${uri}d always`, want: []*node{
				simpleNode("add_header", "X-C", `a "b" ' }`), simpleNode("add_header", "X-D", "${uri}d", "always")}},
			change{way: way, name: "root", value: `"a\tb"`, want: []*node{simpleNode("root", "a\tb")}},
			change{way: way, name: "add_header"}, change{way: way, name: "access_log"}, change{way: way, name: "keepalive_timeout"},
		)
	}
	return list
}

// apply makes the edit with the code under test.
func (c change) apply(f nginxconf.Files) (nginxconf.Files, error) {
	switch {
	case c.parameter != "":
		return f.SetParameter(c.way, c.name, c.parameter, c.value)
	case len(c.want) == 0:
		return f.Remove(c.way, c.name)
	}
	return f.Set(c.way, c.name, c.value)
}

// targets are the directives of a block that the edit replaces or removes.
func (c change) targets(in *node) []*node {
	return slices.DeleteFunc(slices.Clone(in.kids), func(k *node) bool { return !c.replaces(k) })
}

func (c change) replaces(k *node) bool {
	if k.words[0] != c.name || len(c.want) == 0 {
		return k.words[0] == c.name
	}
	return slices.ContainsFunc(c.want, func(w *node) bool {
		return w.block == k.block && (!w.block || slices.Equal(w.words, k.words))
	})
}

// intended makes the edit on what the second reader read, and returns how many directives it adds, which are the last.
func (c change) intended(in *node) (added int) {
	old := c.targets(in)
	if c.parameter != "" {
		for _, k := range old {
			k.words = slices.DeleteFunc(k.words, func(w string) bool { return strings.HasPrefix(w, c.parameter+"=") && c.value == "off" })
			at := slices.IndexFunc(k.words, func(w string) bool { return strings.HasPrefix(w, c.parameter+"=") })
			switch word := c.parameter + "=" + c.value; {
			case at >= 0:
				k.words[at] = word
			case c.value != "off":
				k.words = append(k.words, word)
			}
		}
		return 0
	}
	kept := func(k *node) bool { return !slices.Contains(old, k) }
	var kids []*node
	placed := map[*node]bool{}
	for _, k := range in.kids {
		if kept(k) {
			kids = append(kids, k)
			continue
		}
		for _, w := range c.want {
			if !placed[w] && w.block == k.block && (!w.block || slices.Equal(w.words, k.words)) {
				placed[w] = true
				kids = append(kids, w)
			}
		}
	}
	for _, w := range c.want {
		if !placed[w] {
			kids = append(kids, w)
			added++
		}
	}
	in.kids = kids
	return added
}

// Marks are put where a directive in question is; they occur in no configuration.
const (
	mark  = "\x00"
	added = "\x01" // one that was not there before
)

var (
	markedLines = regexp.MustCompile(`(?m)^[ \t]*[\x00\x01][ \t\r\x00\x01]*(\n|\z)`)
	addedInline = regexp.MustCompile(` \x01( \x01)* `)
)

// outside is a file without the directives of a block that are in question, of which the last few are new, and without
// what an edit may take with them or bring: the rest of a line that has nothing else, and for an addition within a line
// the spaces around it. A last line may get its end.
func outside(f nginxconf.Files, name string, question []*node, few int) string {
	text := bytes.Clone(f.Text[name])
	for i, k := range slices.Backward(question) { // of one file in the order of their bytes
		sign := mark
		if i >= len(question)-few {
			sign = added
		}
		if k.file == name {
			text = slices.Concat(text[:k.start], []byte(sign), text[k.end:])
		}
	}
	text = markedLines.ReplaceAll(text, nil)
	text = addedInline.ReplaceAll(text, nil)
	return strings.TrimRight(strings.ReplaceAll(string(text), mark, ""), "\r\n")
}

// together is the directives found after an edit, but those that took the place of one taken as one.
func together(after []*node, few int) []*node {
	var list []*node
	for i, k := range after {
		if last := len(list) - 1; last >= 0 && i < len(after)-few && !k.block && !list[last].block {
			list[last] = &node{file: k.file, start: list[last].start, end: k.end}
			continue
		}
		list = append(list, k)
	}
	return list
}

// verified makes the edit and holds what came of it against the second reading.
func verified(t *testing.T, f nginxconf.Files, c change) nginxconf.Files {
	t.Helper()
	before, want := second(t, f), second(t, f)
	in := want.at(c.way...)
	got, err := c.apply(f)
	if in == nil {
		if err == nil {
			t.Fatalf("%v: no error without the block", c)
		}
		return f
	}
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	few := c.intended(in)
	after := second(t, got)
	if after.String() != want.String() {
		t.Fatalf("%v: read\n%s\nwant\n%s\nin\n%s", c, after, want, shownFiles(got))
	}
	if len(got.Text) != len(f.Text) {
		t.Fatalf("%d files, before %d", len(got.Text), len(f.Text))
	}
	for name, text := range f.Text {
		if bytes.Equal(text, got.Text[name]) {
			continue
		}
		old, new := outside(f, name, c.targets(before.at(c.way...)), 0), outside(got, name, together(c.targets(after.at(c.way...)), few), few)
		if old != new {
			t.Fatalf("%v: outside of it %s is\n%q\nwas\n%q", c, name, new, old)
		}
	}
	sameReading(t, got, after)
	return got
}

// sameReading holds Parse against the second reader.
func sameReading(t *testing.T, f nginxconf.Files, want *node) {
	t.Helper()
	list, err := f.Parse()
	if err != nil {
		t.Fatal(err)
	}
	var compare func([]nginxconf.Directive, []*node)
	compare = func(list []nginxconf.Directive, nodes []*node) {
		if len(list) != len(nodes) {
			t.Fatalf("%d directives, want %d", len(list), len(nodes))
		}
		for i, d := range list {
			n := nodes[i]
			if words := append([]string{d.Name}, d.Args...); !slices.Equal(words, n.words) || d.Block != n.block || d.File != n.file || d.Start != n.start || d.End != n.end {
				t.Fatalf("read %+v, want %+v", d, n)
			}
			compare(d.Body, n.kids)
		}
	}
	compare(list, want.kids)
}

func shownFiles(f nginxconf.Files) string {
	var out strings.Builder
	for name, text := range f.Text {
		fmt.Fprintf(&out, "--- %s\n%s\n", name, text)
	}
	return out.String()
}

// TestEditsDoWhatIsMeantAndNothingElse makes random edits of generated configurations, those with Lua blocks among
// them, which nginx -t cannot be asked of: the build under test has no Lua.
func TestEditsDoWhatIsMeantAndNothingElse(t *testing.T) {
	all := changes()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := generate(seed, seed%2 == 0)
		for range 5 {
			f = verified(t, f, all[r.IntN(len(all))])
		}
	}
}

// TestNginxAcceptsWhatItAcceptedBefore asks the real nginx of generated configurations, before and after three edits.
func TestNginxAcceptsWhatItAcceptedBefore(t *testing.T) {
	const configurations = 200
	binary := testlab.Nginx(t).Binary
	all := changes()
	accepted := 0
	for seed := range uint64(configurations) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := generate(seed, false)
		if said := tested(t, binary, f); said != "" {
			t.Fatalf("seed %d: the generator is wrong: %s\n%s", seed, said, shownFiles(f))
		}
		var made []change
		for range 3 {
			made = append(made, all[r.IntN(len(all))])
			f = verified(t, f, made[len(made)-1])
		}
		if said := tested(t, binary, f); said != "" {
			t.Fatalf("seed %d after %v: %s\n%s", seed, made, said, shownFiles(f))
		}
		accepted++
	}
	t.Logf("%d configurations accepted before and after", accepted)
}

// tested is what nginx -t says against a configuration; "" when it accepts it. Its sockets are files of the directory.
func tested(t *testing.T, binary string, f nginxconf.Files) string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "conf")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range f.Text {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "-t", "-q", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	return string(said) + err.Error()
}
