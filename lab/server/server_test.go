package server

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/server/nginxconf"
)

func input(site string, settings ...lab.Setting) Input {
	return Input{
		Spec:   lab.ServerSpec{Port: 8081, Site: site, BodyBytes: 1024, SleepS: 0.25},
		State:  lab.State{Name: "baseline", Steps: []string{"baseline", "one", "two"}, Settings: map[lab.HostName][]lab.Setting{"here": settings}},
		Target: lab.Host{Name: "here", Local: true},
		Recipe: lab.Recipe{Name: "nginx", Modules: []string{"stub_status", "echo"}},
	}
}

func of(step, name, value string) lab.Setting {
	s := directive(name, value)
	s.Step = step
	return s
}

func absent(name string) lab.Setting {
	s := directive(name, "")
	s.Absent = true
	return s
}

func mustServe(t *testing.T, in Input) lab.Serving {
	t.Helper()
	s, err := Serving(in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nginxconf.Parse([]byte(s.Config)); err != nil {
		t.Fatalf("%v in\n%s", err, s.Config)
	}
	return s
}

func TestEverySiteServesItsDefaultURL(t *testing.T) {
	for site, want := range map[string]string{
		"empty-gif": "location = /empty.gif {\n            empty_gif;", "hello": `return 200 "hello\n";`, "echo": "echo hello;",
		"sleep": "echo_sleep 0.25;", "file": "root html;",
	} {
		s := mustServe(t, input(site))
		if !strings.Contains(s.Config, want) || !slices.Equal(s.URLs, []string{DefaultURL(site)}) || s.StatusPort != 8082 {
			t.Errorf("%s: URLs %v, status port %d, configuration\n%s", site, s.URLs, s.StatusPort, s.Config)
		}
	}
	in := input("file")
	in.URLs = []string{"/1k.bin?x=1", "/sub/", "/../up"}
	s := mustServe(t, in)
	for _, name := range []string{"html/file", "html/1k.bin", "html/sub/index.html", "html/up"} {
		if s.Bodies[name].Bytes != 1024 {
			t.Errorf("no body %s of 1024 bytes in %v", name, s.Bodies)
		}
	}
}

func TestOnlyLoopbackIsOpenedOnThisMachine(t *testing.T) {
	in := input("hello")
	if s := mustServe(t, in); !strings.Contains(s.Config, "listen 127.0.0.1:8081;") || !strings.Contains(s.Config, "listen 127.0.0.1:8082;") {
		t.Errorf("configuration\n%s", s.Config)
	}
	in.Target = lab.Host{Name: "here", Address: "10.0.0.1"}
	in.Spec.StatusPort = 9000
	if s := mustServe(t, in); !strings.Contains(s.Config, "listen 8081;") || !strings.Contains(s.Config, "listen 127.0.0.1:9000;") {
		t.Errorf("configuration\n%s", s.Config)
	}
}

func TestDirectivesGoWhereNginxAllowsThem(t *testing.T) {
	in := input("hello", of("baseline", "access_log", "off"), of("one", "listen.backlog", "4096"), of("one", "listen.reuseport", "on"),
		of("one", "events.worker_connections", "65535"), of("two", "open_file_cache", "max=10"), of("two", "location.keepalive_timeout", "0"))
	in.Spec.Nginx = map[string]string{"worker_processes": "auto", "worker_rlimit_nofile": "1000"}
	conf := mustServe(t, in).Config
	for _, want := range []string{
		"\nworker_processes auto;\n", "\nworker_rlimit_nofile 1000;\n", "    worker_connections 65535;\n}", "    access_log off;\n",
		"listen 127.0.0.1:8081 backlog=4096 reuseport;", "\n    open_file_cache max=10;\n}\n", "            keepalive_timeout 0;\n        }\n", "keepalive_timeout 65;",
	} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %q in\n%s", want, conf)
		}
	}
}

func TestLaterStepWinsByWhateverNameADirectiveGoes(t *testing.T) {
	in := input("hello", of("two", "access_log", "off"), of("one", "http.access_log", "logs/one.log"), of("", "http.access_log", "logs/server.log"))
	in.Spec.Nginx = map[string]string{"access_log": "logs/server.log"}
	s := mustServe(t, in)
	if strings.Contains(s.Config, "logs/one.log") || strings.Contains(s.Config, "logs/server.log") || !strings.Contains(s.Config, "\n    access_log off;") {
		t.Errorf("configuration\n%s", s.Config)
	}
	want := of("two", "access_log", "off")
	want.At = "http.access_log"
	if len(s.Expect) != 1 || s.Expect[0] != want {
		t.Errorf("expected in force: %+v", s.Expect)
	}
}

func TestPinnedServerHasAWorkerPerCPU(t *testing.T) {
	in := input("hello", of("one", "worker_processes", "auto"))
	in.CPUs, in.Facts.CPUs = []int{0, 1, 2}, []int{0, 1, 2, 3}
	s := mustServe(t, in)
	if !strings.Contains(s.Config, "worker_processes 3;") || s.Expect[0].Value != "3" {
		t.Errorf("expected in force %+v, configuration\n%s", s.Expect, s.Config)
	}
}

func TestBlocksSeveralValuesAndRemovalsAreEditedIn(t *testing.T) {
	in := input("hello", of("one", "http.map", "$http_host $x { default 0; }"), of("one", "add_header", `X-A "1; 2"; X-B 2`), absent("http.types"),
		of("one", "location.if", "($x) { return 403; }"), absent("http.keepalive_timeout"), absent("default_type"), absent("listen.reuseport"))
	in.Spec.Nginx = map[string]string{"listen.reuseport": "on"}
	s := mustServe(t, in)
	for _, want := range []string{
		"\n    map $http_host $x { default 0; }\n", "\n    add_header X-A \"1; 2\";\n    add_header X-B 2;\n",
		"\n            if ($x) { return 403; }\n        }\n", "listen 127.0.0.1:8081;", "            default_type text/plain;\n",
	} {
		if !strings.Contains(s.Config, want) {
			t.Errorf("no %q in\n%s", want, s.Config)
		}
	}
	for _, gone := range []string{"types {", "keepalive_timeout", "\n    default_type", "reuseport"} {
		if strings.Contains(s.Config, gone) {
			t.Errorf("%q is still in\n%s", gone, s.Config)
		}
	}
	if i := slices.IndexFunc(s.Expect, func(e lab.Setting) bool { return e.Knob.Name == "default_type" }); i < 0 || !s.Expect[i].Absent || s.Expect[i].At != "http.default_type" {
		t.Errorf("expected in force: %+v", s.Expect)
	}
	if _, err := CapacityServing(input("hello", absent("http.map")), lab.HoldActive, nil); err == nil || !strings.Contains(err.Error(), "http.map cannot be removed") {
		t.Errorf("its own map: %v", err)
	}
}

func TestValuesBeforeAnyStepAreKnown(t *testing.T) {
	in := input("hello", of("one", "worker_processes", "8"))
	in.Spec.Nginx = map[string]string{"listen.backlog": "100", "listen.reuseport": "true", "add_header": "X-A  1; X-B 2"}
	for name, want := range map[string]string{
		"worker_processes": "1", "events.worker_connections": "1024", "http.sendfile": "on", "sendfile": "on", "server.server_name": "localhost",
		"listen.backlog": "100", "listen.reuseport": "on", "add_header": "X-A  1; X-B 2", "location.return": `200 "hello\n"`, "accept_mutex": "", "listen.deferred": "",
		"location.sendfile": "", "wrong": "",
	} {
		if got, present := Present(in, name); got != want || present != (want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, present, want)
		}
	}
	if types, present := Present(in, "types"); !present || !strings.HasPrefix(types, "{\n") || !strings.HasSuffix(types, "}") {
		t.Errorf("types: %q", types)
	}
	for _, c := range []struct {
		directive, a, b string
		want            bool
	}{
		{"add_header", "X-A  1; X-B 2", `"X-A" '1';X-B 2`, true}, {"add_header", "X-A 1; X-B 2", "X-B 2; X-A 1", false}, {"sendfile", "on", "off", false},
		{"http.map", "$a $b { default 0; }", "$a $b {\n # none\n default '0';\n}", true}, {"http.map", "$a $b { default 0; }", "$a $b { default 1; }", false},
		{"listen.reuseport", "true", "on", true}, {"listen.backlog", "1", "2", false}, {"sendfile", "'", "'", false},
		{"location.content_by_lua_block", "{ a() }", "{ a()  }", false},
	} {
		if got := Same(c.directive, c.a, c.b); got != c.want {
			t.Errorf("%s: %q and %q: %v", c.directive, c.a, c.b, got)
		}
	}
}

func TestOpenFileLimitIsExpectedInForce(t *testing.T) {
	in := input("hello", lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: "20000"})
	in.Spec.Nofile = 1000
	if s := mustServe(t, in); s.Nofile != 20000 || len(s.Expect) != 1 || s.Expect[0].Value != "20000" {
		t.Errorf("limit %d, expected %+v", s.Nofile, s.Expect)
	}
	in.State.Settings, in.Spec.Nproc = nil, 500
	if s := mustServe(t, in); s.Nofile != 1000 || s.Nproc != 500 || len(s.Expect) != 2 || s.Expect[1].Knob.Kind != lab.KnobNproc || s.Expect[1].Value != "500" {
		t.Errorf("limits %d and %d, want those of the server section; expected %+v", s.Nofile, s.Nproc, s.Expect)
	}
}

// TestLimitOfWorkersWinsOverThatOfTheServer: nginx's own, by whichever name and of whichever section.
func TestLimitOfWorkersWinsOverThatOfTheServer(t *testing.T) {
	nofile := lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: "20000"}
	expected := func(in Input) string {
		var names []string
		for _, e := range mustServe(t, in).Expect {
			names = append(names, strings.TrimSpace(e.Knob.String()+" "+e.Value))
		}
		return strings.Join(names, ", ")
	}
	in := input("hello", nofile, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "main.worker_rlimit_nofile"}, Value: "3000"})
	if got := expected(in); got != "nginx main.worker_rlimit_nofile 3000" {
		t.Errorf("of the step: %s", got)
	}
	in = input("hello", nofile)
	in.Spec.Nginx = map[string]string{"worker_rlimit_nofile": "3000"}
	if got := expected(in); got != "nginx worker_rlimit_nofile 3000" {
		t.Errorf("of the server section: %s", got)
	}
	in.State.Settings["here"] = append(in.State.Settings["here"], absent("worker_rlimit_nofile"))
	if got := expected(in); got != "nofile 20000, nginx worker_rlimit_nofile" {
		t.Errorf("removed: %s", got)
	}
}

func TestWhatCannotBeServedIsRefused(t *testing.T) {
	tests := map[string]struct {
		change func(*Input)
		want   string
	}{
		"site":        {func(in *Input) { in.Spec.Site = "hallo" }, `there is no site "hallo"; known are echo, empty-gif, file, hello, proxy, sleep, template`},
		"path":        {func(in *Input) { in.URLs = []string{"/hell"} }, "site hello serves /hello, not /hell"},
		"relative":    {func(in *Input) { in.URLs = []string{"hello"} }, `url "hello" does not begin with /`},
		"stub_status": {func(in *Input) { in.Recipe.Modules = []string{"echo"} }, "build nginx lacks the module stub_status"},
		"echo":        {func(in *Input) { in.Spec.Site, in.Recipe.Modules = "sleep", []string{"stub_status"} }, "build nginx lacks the module echo"},
		"CPU":         {func(in *Input) { in.CPUs, in.Facts.CPUs = []int{7}, []int{0, 1} }, "CPU 7 is not one of those that the host may use: [0 1]"},
		"directive":   {func(in *Input) { in.Spec.Nginx = map[string]string{"worker_proceses": "1"} }, `unknown directive "worker_proceses"; the nearest known is "worker_processes"`},
		"value":       {func(in *Input) { in.Spec.Nginx = map[string]string{"access_log": "off } daemon on"} }, "directive access_log: "},
		"no block":    {func(in *Input) { in.Spec.Nginx = map[string]string{"http.map": "$a $b"} }, `directive http.map: "$a $b" is no block`},
		"a block":     {func(in *Input) { in.Spec.Nginx = map[string]string{"sendfile": "on { a 1; }"} }, `directive sendfile: "on { a 1; }" has a block, which sendfile does not take`},
		"http":        {func(in *Input) { in.Spec.Nginx = map[string]string{"main.http": "{ }"} }, "directive main.http is the lab's own"},
		"the site":    {func(in *Input) { in.State.Settings["here"] = []lab.Setting{absent("server.location")} }, "the site's own location cannot be removed"},
		"the pid":     {func(in *Input) { in.State.Settings["here"] = []lab.Setting{absent("pid")} }, "directive pid is the lab's own"},
		"parameter":   {func(in *Input) { in.Spec.Nginx = map[string]string{"listen.backlog": "1 2"} }, "directive listen.backlog: "},
	}
	for name, test := range tests {
		in := input("hello")
		test.change(&in)
		_, err := Serving(in)
		if err == nil || !strings.HasPrefix(err.Error(), `server of here in state "baseline": `) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", name, err, test.want)
		}
	}
}

func TestCapacityServerKeepsConnections(t *testing.T) {
	in := input("hello", of("one", "keepalive_timeout", "0"), of("one", "access_log", "logs/a.log"))
	over := map[string]string{"worker_processes": "2", "events.worker_connections": "15000"}
	for kind, url := range map[lab.HoldKind]string{lab.HoldIdle: "/hello", lab.HoldActive: HoldURL} {
		s, err := CapacityServing(in, kind, over)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"keepalive_timeout 3600s;", "keepalive_requests 10000000;", "access_log off;", "worker_processes 2;", "worker_connections 15000;"} {
			if !strings.Contains(s.Config, want) {
				t.Errorf("%s: no %q in\n%s", kind, want, s.Config)
			}
		}
		if s.URLs[0] != url || strings.Contains(s.Config, "location = /hold") != (kind == lab.HoldActive) {
			t.Errorf("%s: URLs %v, configuration\n%s", kind, s.URLs, s.Config)
		}
	}
	if _, err := CapacityServing(in, "sleeping", nil); err == nil || !strings.Contains(err.Error(), `unknown kind "sleeping"`) {
		t.Errorf("unknown kind: %v", err)
	}
	in.Recipe.Modules = []string{"stub_status"}
	if _, err := CapacityServing(in, lab.HoldActive, nil); err == nil || !strings.Contains(err.Error(), "lacks the module echo") {
		t.Errorf("without echo: %v", err)
	}
}

func TestKnownNamesTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"worker_processes": "", "main.worker_processes": "", "events.accept_mutex": "", "listen.backlog": "", "http.access_log": "",
		"location.echo_sleep": "", "http.brotli": "", // a module's
		"accept_mutx":          `unknown directive "accept_mutx"; the nearest known is "accept_mutex"`,
		"events.worker_conns":  "", // like no known one: left to nginx -t
		"events.accept_mutexx": `unknown directive "events.accept_mutexx"; the nearest known is "events.accept_mutex"`,
		"http.accept_mutex":    "directive accept_mutex cannot stand in http, only in events",
		"htp.sendfile":         `unknown context "htp"; the nearest known is "http"`,
		"listen.baklog":        `unknown parameter of listen "listen.baklog"; the nearest known is "listen.backlog"`,
		"http.map":             "", "upstream": "", "server.location": "", "location.if": "", "main.stream": "", "location.limit_except": "",
		"events.map":    "directive map cannot stand in events, only in http",
		"http.upstrem":  `unknown directive "http.upstrem"; the nearest known is "http.upstream"`,
		"http.server":   "directive http.server is the lab's own and cannot be set",
		"daemon":        "directive daemon is the lab's own and cannot be set",
		"server.listen": "directive server.listen is the lab's own and cannot be set",
	} {
		err := Known(name)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestRecipeSaysFlagsAndPackages(t *testing.T) {
	r := Recipe(lab.Recipe{Version: "1.26.3", Modules: []string{"stub_status", "echo", "ssl"}, Configure: []string{"--with-threads"}, Patches: true, Sources: []lab.BuildSource{{Git: "x"}}})
	if got, want := strings.Join(r.Flags, " "), "--error-log-path=stderr --with-http_stub_status_module --add-module=../echo --with-http_ssl_module --with-threads"; got != want {
		t.Errorf("flags %s, want %s", got, want)
	}
	if got, want := strings.Join(r.Packages, " "), "gcc libc6-dev make libpcre2-dev zlib1g-dev libssl-dev patch tar xz-utils git"; got != want {
		t.Errorf("packages %s, want %s", got, want)
	}
	for version, pcre := range map[string]string{"": "libpcre2-dev", "1.16.1": "libpcre3-dev", "1.21.4": "libpcre3-dev", "1.21.5": "libpcre2-dev", "2.0": "libpcre2-dev", "release": "libpcre2-dev"} {
		if p := Recipe(lab.Recipe{Version: version}).Packages; !slices.Contains(p, pcre) {
			t.Errorf("version %q: packages %v, want %s", version, p, pcre)
		}
	}
}

func TestWorkersAreThoseThatTheServerHasCPUsFor(t *testing.T) {
	four := lab.Facts{Cores: 8, CPUs: []int{0, 1, 2, 3}}
	quota := four
	quota.CgroupCPUs = 1.5
	for _, c := range []struct {
		cpus  []int
		facts lab.Facts
		want  int
	}{
		{nil, lab.Facts{Cores: 4, CPUs: []int{0, 1, 2, 3}}, 0}, {nil, lab.Facts{}, 0}, {nil, four, 4}, {nil, quota, 2},
		{[]int{0}, lab.Facts{}, 1}, {[]int{0, 1, 2}, four, 3}, {[]int{0, 1, 2}, quota, 2}, {[]int{0}, quota, 1},
	} {
		if got := Workers(c.cpus, c.facts); got != c.want {
			t.Errorf("on %v of %+v: %d, want %d", c.cpus, c.facts, got, c.want)
		}
	}
}
