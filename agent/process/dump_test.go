package process

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

// sizeOf is the least text that gives the statements.
func sizeOf(list []statement) int {
	size := 0
	for _, s := range list {
		size += len(s.words) + len(s.lua) + sizeOf(s.inner) // a semicolon, and a space between two words
		for _, w := range s.words {
			size += len(w)
		}
	}
	return size
}

func FuzzDump(f *testing.F) {
	f.Add("worker_processes 1; http { server { listen 1 backlog=2; } log_format a '{;' \"x\"; map ${a}b { c d; } }")
	f.Add("'")
	f.Add("a {prefix}/b;{build} c{prefix}; d {}")
	f.Add("a\\")
	f.Add("a_by_lua_block{--[[ }]] [=[}]=] '}' }")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDump(text)
		if err != nil {
			return
		}
		if size := sizeOf(d); !strings.Contains(text, "include") && size > len(text) {
			t.Errorf("%d bytes of statements from %d bytes of text", size, len(text))
		}
	})
}

const dumped = `# configuration file {prefix}/nginx.conf:
worker_processes 2; # one; {
http {
    include conf.d/*.conf;
    add_header X-A "1; {2}";
    server { listen 1 backlog=7 reuseport; location = /x { if ($a = "}") { return 403; } content_by_lua_block { say("}", [=[}]=]) -- }
        } default_type text/plain; } }
    server { listen 2; gzip on; }
    client_body_temp_path {prefix}/b 1; log_format x="{build}" y={prefix}/{build}/z;
}
# configuration file {prefix}/conf.d/b.conf:
add_header 'X-B' $uri always;
# configuration file {prefix}/conf.d/a.conf:
map $uri $x { default "a\tb"; }
map $uri $y { default 1; }
`

func TestDumpIsHeldAgainstWhatWasAsked(t *testing.T) {
	d, err := parseDump(dumped)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, value string
		absent      bool
		found       string
		same        bool
	}{
		{"main.worker_processes", "2", false, "2", true},
		{"worker_processes", "'2'", false, "2", true},
		{"http.add_header", `X-B $uri always; "X-A" '1; {2}'`, false, `X-B $uri always; X-A "1; {2}"`, true},
		{"http.add_header", `X-A "1; {2}"; X-B $uri always`, false, `X-B $uri always; X-A "1; {2}"`, false},
		{"http.add_header", `X-B $uri always`, false, `X-B $uri always; X-A "1; {2}"`, false},
		{"http.map", "$uri $x { default 'a\tb'; }", false, `$uri $x { default "a	b"; }`, true},
		{"http.map", "$uri $y { default 1; } $uri $x {default \"a\\tb\";}", false, `$uri $x { default "a	b"; }; $uri $y { default 1; }`, true},
		{"http.map", "$uri $y { default 2; }", false, `$uri $y { default 1; }`, false},
		{"http.map", "$uri $z { default 1; }", false, `$uri $x { default "a	b"; }; $uri $y { default 1; }`, false},
		{"location.if", `($a = '}') { return 403; }`, false, `($a = "}" ) { return 403; }`, true},
		{"location.content_by_lua_block", "{ say(\"}\", [=[}]=]) -- }\n }", false, "{ say(\"}\", [=[}]=]) -- }\n         }", true},
		{"http.gzip", "", true, "", true},
		{"server.gzip", "on", false, "", false},
		{"http.map", "", true, `$uri $x { default "a	b"; }; $uri $y { default 1; }`, false},
		{"http.default_type", "", true, "", true},
		{"http.client_body_temp_path", "{prefix}/b 1", false, `"{prefix}/b" 1`, true},
		{"http.log_format", "'x=\"{build}\"' y={prefix}/{build}/z", false, `"x=\"{build}\"" "y={prefix}/{build}/z"`, true},
	} {
		e := lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "other"}, At: c.name, Value: c.value, Absent: c.absent}
		found, same := d.directive(e)
		if found.Text != c.found || found.Absent != (c.found == "") || same != c.same {
			t.Errorf("%s %q: found %q, %v; want %q, %v", c.name, c.value, found.Text, same, c.found, c.same)
		}
	}
	if d.parameter("backlog").Text != "7" || d.parameter("reuseport").Text != "on" || !d.parameter("deferred").Absent || d.workers() != 2 {
		t.Errorf("backlog %v, reuseport %v, deferred %v, workers %d", d.parameter("backlog"), d.parameter("reuseport"), d.parameter("deferred"), d.workers())
	}
}
