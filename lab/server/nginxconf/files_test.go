package nginxconf

import (
	"slices"
	"strings"
	"testing"
)

func TestRemovingLeavesWhatIsBeside(t *testing.T) {
	for _, c := range []struct{ name, conf, want string }{
		{"a", "b 1;\n  a 1;\nc 1;\n", "b 1;\nc 1;\n"},
		{"a", "b 1;\r\n\ta 1\r\n  2; \t\r\nc 1;\r\n", "b 1;\r\nc 1;\r\n"},
		{"a", "b 1;\na 1; # why\nc 1;\n", "b 1;\n # why\nc 1;\n"},
		{"a", "b 1; a 1; c 1;\n", "b 1;  c 1;\n"},
		{"a", "a 1; a 2;\nb 1;\na 3;", "b 1;\n"},
		{"a", "a 1; a 2; b 1;\n", "  b 1;\n"},
		{"a", "a x { b 1; }\nb 1;\n", "b 1;\n"},
		{"a x", "a x { b 1; }\na y { b 1; }\na x;\n", "a y { b 1; }\n"},
		{`a "x"`, "a x;\na y;\n", "a y;\n"},
		{"none", "a 1;\n", "a 1;\n"},
	} {
		if got, err := Remove([]byte(c.conf), nil, c.name); err != nil || string(got) != c.want {
			t.Errorf("%s from %q: %q, %v; want %q", c.name, c.conf, got, err, c.want)
		}
	}
}

func TestSetPutsSeveralDirectivesInThePlaceOfTheFirst(t *testing.T) {
	for _, c := range []struct{ name, value, conf, want string }{
		{"h", "A 1; B 2", "x 1;\n\th C 3;\ny 1;\n\th D 4;\nz 1;\n", "x 1;\n\th A 1;\n\th B 2;\ny 1;\nz 1;\n"},
		{"h", "A 1; B 2;", "x 1; h C 3; y 1;\r\n", "x 1; h A 1; h B 2; y 1;\r\n"},
		{"h", "A 1;B 2", "x 1;\r\n", "x 1;\r\nh A 1;\r\nh B 2;\r\n"},
		{"m", "$a $b { default 1; }", "m $a $b { x y; } # c\nm $a $c { x y; }\n", "m $a $b { default 1; } # c\nm $a $c { x y; }\n"},
		{"m", "$a $c {x 1;} $d $e {x 2;}; f", "m $a $b { x y; }\nm $a $c { x y; }\n", "m $a $b { x y; }\nm $a $c {x 1;}\nm f;\nm $d $e {x 2;}\n"},
		{"x_by_lua_block", `{ say("}") }`, "x_by_lua_block { return }\n", "x_by_lua_block { say(\"}\") }\n"},
	} {
		if got, err := Set([]byte(c.conf), nil, c.name, c.value); err != nil || string(got) != c.want {
			t.Errorf("%s = %q in %q:\n%q, %v; want\n%q", c.name, c.value, c.conf, got, err, c.want)
		}
	}
}

func TestEveryRepetitionOfAParameterIsTakenBack(t *testing.T) {
	got, err := SetParameter([]byte("listen 1 backlog=1 bind backlog=2;"), nil, "listen", "backlog", "3")
	if err != nil || string(got) != "listen 1 backlog=3 bind;" {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzQuote: an argument that is quoted is read as it was.
func FuzzQuote(f *testing.F) {
	for _, arg := range []string{"", "on", "a b", `a"b`, `a\nb`, `\`, "#", "a#", "$", "${a}", "a{", "}", "'", "a;", "a\n", `\"`, "$x$"} {
		f.Add(arg)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		list, err := Parse([]byte("x " + Quote(arg) + " {y;}"))
		if err != nil || len(list) != 1 || !slices.Equal(list[0].Args, []string{arg}) {
			t.Errorf("%q as %s: %+v, %v", arg, Quote(arg), list, err)
		}
	})
}

func TestPlainArgumentsAreNotQuoted(t *testing.T) {
	for arg, want := range map[string]string{"on": "on", "${uri}x": "${uri}x", `\.gif$`: `\.gif$`, "a#b": "a#b", "": `""`, "a b": `"a b"`, `a\nb`: `"a\\nb"`} {
		if got := Quote(arg); got != want {
			t.Errorf("%q: %s, want %s", arg, got, want)
		}
	}
}

// several is a configuration of several files as they are found on hosts.
func several() Files {
	return Files{Root: "/etc/nginx/nginx.conf", Text: map[string][]byte{
		"/etc/nginx/nginx.conf":      []byte("worker_processes 1;\nevents {}\nhttp {\n    include mime.types;\n    include conf.d/*.conf;\n    gzip on;\n}\n"),
		"/etc/nginx/mime.types":      []byte("types {\n    text/html html;\n}\n"),
		"/etc/nginx/conf.d/b.conf":   []byte("server {\n    listen 2;\n    include proxy;\n}\n"),
		"/etc/nginx/conf.d/a.conf":   []byte("sendfile on; # of all\nserver { listen 1; include proxy; }\n"),
		"/etc/nginx/conf.d/.c.conf":  []byte("}"),
		"/etc/nginx/conf.d/d.conf~":  []byte("}"),
		"/etc/nginx/conf.d/e/f.conf": []byte("}"),
		"/etc/nginx/proxy":           []byte("proxy_buffering on;\n"),
	}}
}

func TestIncludesAreReadWhereTheyStand(t *testing.T) {
	list, err := several().Parse()
	if err != nil {
		t.Fatal(err)
	}
	if got := names(list[2].Body); got != "include types include sendfile server server gzip" {
		t.Errorf("http: %s", got)
	}
	first := list[2].Body[4]
	if got := names(first.Body); got != "listen include proxy_buffering" || first.Body[2].File != "/etc/nginx/proxy" {
		t.Errorf("server: %s", got)
	}
}

func TestOnlyTheFileOfTheDirectiveIsEdited(t *testing.T) {
	f := several()
	for _, c := range []struct {
		edit       func() (Files, error)
		file, want string
	}{
		{func() (Files, error) { return f.Set(Path{"http"}, "sendfile", "off") }, "/etc/nginx/conf.d/a.conf", "sendfile off; # of all\n"},
		{func() (Files, error) { return f.Set(Path{"http", "types"}, "image/gif", "gif") }, "/etc/nginx/mime.types", "html;\n    image/gif gif;\n}\n"},
		{func() (Files, error) { return f.Set(Path{"http"}, "tcp_nopush", "on") }, "/etc/nginx/nginx.conf", "gzip on;\n    tcp_nopush on;\n}\n"},
		{func() (Files, error) { return f.Set(nil, "pcre_jit", "on") }, "/etc/nginx/nginx.conf", "}\npcre_jit on;\n"},
		{func() (Files, error) { return f.SetParameter(Path{"http", "server"}, "listen", "backlog", "9") }, "/etc/nginx/conf.d/a.conf", "listen 1 backlog=9;"},
		{func() (Files, error) { return f.Remove(Path{"http"}, "server") }, "/etc/nginx/conf.d/b.conf", ""},
	} {
		got, err := c.edit()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got.Text[c.file]), c.want) || string(got.Text[c.file]) == string(f.Text[c.file]) {
			t.Errorf("%s: %q, want %q in it", c.file, got.Text[c.file], c.want)
		}
		for name, text := range f.Text {
			if same := string(text) == string(got.Text[name]); !same && name != c.file && c.want != "" {
				t.Errorf("%s was edited as well", name)
			} else if same && &text[0] != &got.Text[name][0] {
				t.Errorf("%s was copied", name)
			}
		}
	}
}

func TestIncludesThatCannotBeAreErrors(t *testing.T) {
	f := several()
	_, err := f.Set(Path{"http", "server"}, "proxy_buffering", "off")
	if err == nil || err.Error() != "/etc/nginx/proxy is included in several places, which an edit would change all" {
		t.Errorf("shared file: %v", err)
	}
	for text, want := range map[string]string{
		"include x;":        "/etc/nginx/proxy: include x: there is no file /etc/nginx/x",
		"\ninclude proxy;":  "/etc/nginx/proxy: include proxy: /etc/nginx/proxy includes itself: ",
		"include a b;":      "/etc/nginx/proxy: include has 2 arguments",
		"a;\n}":             "/etc/nginx/proxy: line 2: unexpected '}'",
		"include [x*;":      "/etc/nginx/proxy: include [x*: syntax error in pattern",
		"include /etc/no*;": "",
	} {
		f.Text["/etc/nginx/proxy"] = []byte(text)
		if _, err := f.Parse(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestBlocksAreFoundByTheirNumberOverAllFiles(t *testing.T) {
	f := Files{Root: "nginx.conf", Text: map[string][]byte{
		"nginx.conf": []byte("http {\n    server { listen 1; }\n    include b.conf;\n}\n"),
		"b.conf":     []byte("server {\n    listen 2;\n    listen 2 quic;\n    location / { a 1; }\n    location = /x { a 2; }\n}\n"),
	}}
	second := Path{"http", "server[1]"}
	if v, found, err := f.Value(append(second, "location[1]"), "a"); v != "2" || !found || err != nil {
		t.Errorf("value %q, %v, %v", v, found, err)
	}
	if v, found, err := f.Parameter(second, "listen", "backlog"); found || err != nil {
		t.Errorf("parameter %q, %v, %v", v, found, err)
	}
	f, err := f.SetParameter(second, "listen", "backlog", "9")
	if err == nil {
		f, err = f.Set(append(second, "location[0]"), "b", "3")
	}
	if err == nil {
		f, err = f.Append(Path{"http"}, "server { listen 3; }")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Text["b.conf"]); got != "server {\n    listen 2 backlog=9;\n    listen 2 quic;\n    location / { a 1;  b 3; }\n    location = /x { a 2; }\n}\n" {
		t.Errorf("b.conf is\n%s", got)
	}
	if got := string(f.Text["nginx.conf"]); got != "http {\n    server { listen 1; }\n    include b.conf;\n    server { listen 3; }\n}\n" {
		t.Errorf("nginx.conf is\n%s", got)
	}
	if _, err := f.Set(Path{"http", "server[3]"}, "a", "1"); err == nil || err.Error() != "no block http > server[3]" {
		t.Errorf("a fourth server: %v", err)
	}
	if _, err := f.Append(nil, "a"); err == nil {
		t.Error("what is no directive is added")
	}
}
