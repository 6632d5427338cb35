package nginxconf

import (
	"slices"
	"strings"
	"testing"
)

const sample = `# the main context
user  nobody; worker_processes 1; # inline; with { braces }
events {
    worker_connections  1024;
}
http {
    log_format main '$remote_addr; "{' "it's } ok" ${status}x;
    access_log logs/a.log main;
    map $uri $name { default 0; }
    server {
        listen 8081 backlog=511 reuseport;   # keep me
        location = /hello { return 200 "hello\n"; }
        content_by_lua_block {
            local s = "}" .. '{' -- } not a brace
            local t = [==[ }}} ]] ]==] --[[ } ]]
            ngx.say({s, t})
        }
        access_log logs/b.log;
        location ~ \.(gif|png)${ ends; }
    }
    server { listen 8082; }
}
`

func TestParseReadsBlocksQuotesAndLua(t *testing.T) {
	list, err := Parse([]byte(strings.Replace(sample, "${ ends; }", "$ { root x; }", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(list); got != "user worker_processes events http" {
		t.Errorf("main context: %s", got)
	}
	http := list[3].Body
	if got := names(http); got != "log_format access_log map server server" {
		t.Errorf("http: %s", got)
	}
	if got := strings.Join(http[0].Args, "|"); got != `main|$remote_addr; "{|it's } ok|${status}x` {
		t.Errorf("log_format: %s", got)
	}
	if got := names(http[3].Body); got != "listen location content_by_lua_block access_log location" {
		t.Errorf("server: %s", got)
	}
}

func names(list []Directive) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a b;\n}":                     `line 2: unexpected '}'`,
		"a b;\n;":                     `line 2: unexpected ';'`,
		"http {\n a b;\n":             `line 3: unexpected end of file, expecting "}"`,
		"a\n'b":                       `line 2: unexpected end of file, expecting '\''`,
		"a 'b'c;":                     `line 1: unexpected 'c' after a quoted word`,
		"a b":                         `line 1: unexpected end of file, expecting ";" or "}"`,
		"x_by_lua_block { [[ }":       `line 1: unexpected end of file, expecting "]]"`,
		"x_by_lua_block { {}":         `line 1: unexpected end of file, expecting the "}" of a Lua block`,
		strings.Repeat("a {", 100):    `line 1: more than 64 blocks in each other`,
		"x_by_lua_block { --[[ never": `line 1: unexpected end of file, expecting "]]"`,
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// base is the sample without the line that nginx itself would not read.
var base = strings.Replace(sample, "        location ~ \\.(gif|png)${ ends; }\n", "", 1)

func TestEditsReplaceOnlyTheirOwnBytes(t *testing.T) {
	server := Path{"http", "server"}
	tests := []struct {
		name     string
		edit     func([]byte) ([]byte, error)
		old, new string
	}{
		{"value", func(c []byte) ([]byte, error) { return Set(c, nil, "worker_processes", "4") }, "worker_processes 1;", "worker_processes 4;"},
		{"nested value", func(c []byte) ([]byte, error) { return Set(c, Path{"events"}, "worker_connections", "65535") }, "worker_connections  1024;", "worker_connections 65535;"},
		{"absent value", func(c []byte) ([]byte, error) { return Set(c, Path{"events"}, "accept_mutex", "on") }, "1024;\n}", "1024;\n    accept_mutex on;\n}"},
		{"absent in one line", func(c []byte) ([]byte, error) { return Set(c, Path{"http", "map $uri $name"}, "hostnames", "") }, "default 0; }", "default 0;  hostnames; }"},
		{"the block's own, not the inner one", func(c []byte) ([]byte, error) { return Set(c, Path{"http"}, "access_log", "off") }, "access_log logs/a.log main;", "access_log off;"},
		{"of a server", func(c []byte) ([]byte, error) { return Set(c, server, "access_log", "off") }, "access_log logs/b.log;", "access_log off;"},
		{"of a location", func(c []byte) ([]byte, error) { return Set(c, append(server, "location = /hello"), "return", "204") }, `return 200 "hello\n";`, "return 204;"},
		{"parameter", func(c []byte) ([]byte, error) { return SetParameter(c, server, "listen", "backlog", "4096") }, "backlog=511", "backlog=4096"},
		{"parameter off", func(c []byte) ([]byte, error) { return SetParameter(c, server, "listen", "reuseport", "off") }, " reuseport;", ";"},
		{"parameter there", func(c []byte) ([]byte, error) { return SetParameter(c, server, "listen", "reuseport", "true") }, "reuseport", "reuseport"},
		{"parameter new", func(c []byte) ([]byte, error) { return SetParameter(c, server, "listen", "deferred", "on") }, "reuseport;", "reuseport deferred;"},
		{"parameter not there", func(c []byte) ([]byte, error) { return SetParameter(c, server, "listen", "deferred", "off") }, "reuseport;", "reuseport;"},
		{"main context", func(c []byte) ([]byte, error) { return Set(c, nil, "pcre_jit", "on") }, "8082; }\n}\n", "8082; }\n}\npcre_jit on;\n"},
	}
	for _, test := range tests {
		got, err := test.edit([]byte(base))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if want := strings.Replace(base, test.old, test.new, 1); string(got) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
	}
}

func TestSetLeavesOneOfSeveral(t *testing.T) {
	got, err := Set([]byte("a 1;\nb 2;\na 3; # c"), nil, "a", "9")
	if err != nil || string(got) != "a 9;\nb 2;\n # c" {
		t.Errorf("got %q, error %v", got, err)
	}
	if got, err = Set([]byte("# no line end"), nil, "a", "9"); err != nil || string(got) != "# no line end\na 9;\n" {
		t.Errorf("got %q, error %v", got, err)
	}
}

func TestEditsRefuseWhatWouldBreakTheFile(t *testing.T) {
	conf := []byte(base)
	attempts := map[string]error{}
	for _, value := range []string{"1;; 2", "1 {", "}", "# x", "'open", `a\`} {
		_, attempts["value "+value] = Set(conf, nil, "worker_processes", value)
	}
	for _, value := range []string{"1; daemon on", "1 {", "1 2", `a\`} {
		_, attempts["parameter "+value] = SetParameter(conf, Path{"http", "server"}, "listen", "backlog", value)
	}
	_, attempts["name"] = Set(conf, nil, "a b", "1")
	_, attempts["same block twice"] = Set(conf, Path{"http"}, "map", "$a $b { x 1; } $a $b { x 2; }")
	_, attempts["no name"] = Remove(conf, nil, "")
	_, attempts["block"] = Set(conf, nil, "events", "1")
	_, attempts["no such block"] = Set(conf, Path{"http", "stream"}, "a", "1")
	_, attempts["no such listen"] = SetParameter(conf, nil, "listen", "backlog", "1")
	_, attempts["file"] = Set([]byte("a {"), nil, "a", "1")
	for what, err := range attempts {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// FuzzEdit: an edit of anything never panics; what it does not replace it leaves; what it made can be read again.
func FuzzEdit(f *testing.F) {
	for _, conf := range []string{sample, base, "", "a", "listen 1", "events { a '", "a {a_by_lua_block{[=[", "listen 1 backlog=\\;", "events{a\\\\;}"} {
		f.Add([]byte(conf), "worker_connections", "1")
	}
	f.Fuzz(func(t *testing.T, conf []byte, name, value string) {
		for _, in := range []Path{nil, {"events"}, {"http", "server"}} {
			tree, err := one(conf)
			if err != nil {
				return
			}
			edits, err := tree.set(in, name, value)
			check(t, tree, in, name, edits, err)
			if err == nil {
				found(t, apply(conf, edits), in, name, value)
			}
			edits, err = tree.setParameter(in, "listen", name, value)
			check(t, tree, in, "listen", edits, err)
			edits, err = tree.remove(in, name)
			check(t, tree, in, name, edits, err)
		}
	})
}

// one is a configuration of one file.
func one(conf []byte) (tree, error) {
	list, err := Parse(conf)
	return tree{text: map[string][]byte{"": conf}, list: list}, err
}

// again reads a block of a configuration that was edited.
func again(t *testing.T, conf []byte, in Path) scope {
	t.Helper()
	edited, err := one(conf)
	if err != nil {
		t.Fatalf("cannot be read again: %v", err)
	}
	s, err := edited.find(in)
	if err != nil {
		t.Fatalf("cannot be found again: %v", err)
	}
	return s
}

// found looks for the value that was set.
func found(t *testing.T, conf []byte, in Path, name, value string) {
	t.Helper()
	want, err := elements(name, value)
	if err != nil {
		t.Fatal(err)
	}
	s := again(t, conf, in)
	for _, e := range want {
		if !slices.ContainsFunc(s.list, func(d Directive) bool { return string(conf[d.Start:d.End]) == e.text && slices.Equal(d.Args, e.args) }) {
			t.Fatalf("no %q in %q", e.text, conf)
		}
	}
}

func check(t *testing.T, tree tree, in Path, name string, edits []edit, err error) {
	t.Helper()
	if err != nil {
		return
	}
	conf := tree.text[""]
	before, err := tree.find(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edits {
		inside := e.Start == e.End // an addition
		for _, d := range before.list {
			inside = inside || touches(conf, e, d, name)
		}
		if !inside {
			t.Fatalf("edit %+v is outside of %s", e, name)
		}
	}
	after := again(t, apply(conf, edits), in)
	if got, want := others(after.list, name), others(before.list, name); got != want {
		t.Fatalf("other directives: %q, before %q", got, want)
	}
}

// touches reports whether the edit is of the directive, and of white space around it at most.
func touches(conf []byte, e edit, d Directive, name string) bool {
	words, err := reference(name)
	if err != nil || !matches(d, words) {
		return false
	}
	return d.Start <= e.Start && e.End <= d.End || e.Text == "" && e.Start <= d.Start && blank(conf[e.Start:d.Start])
}

func others(list []Directive, name string) string {
	var all []string
	for _, d := range list {
		if words, err := reference(name); err != nil || words[0] != d.Name {
			all = append(all, d.Name+" "+strings.Join(d.Args, " "))
		}
	}
	return strings.Join(all, ";")
}
