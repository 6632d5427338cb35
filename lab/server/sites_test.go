package server

import (
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// proxied is a proxy at port 8081 with an upstream at 8181.
func proxied(t *testing.T, keepalive int, settings ...lab.Setting) Input {
	t.Helper()
	behind := input("sleep")
	behind.Spec.Port, behind.Target = 8181, lab.Host{Name: "back", Address: "10.0.0.7"}
	up := mustServe(t, behind)
	in := input(siteProxy, settings...)
	in.Spec.Upstream = &lab.Upstream{Host: "back", KeepAlive: keepalive}
	in.Upstream, in.Via = &up, "10.0.0.7"
	return in
}

func TestProxyPassesToItsUpstreamAndKeepsConnectionsWhenAsked(t *testing.T) {
	s := mustServe(t, proxied(t, 8, of("one", "proxy_buffering", "off")))
	for _, want := range []string{"server 10.0.0.7:8181;\n        keepalive 8;", "proxy_pass http://backend;", "proxy_http_version 1.1;", `proxy_set_header Connection "";`, "\n    proxy_buffering off;"} {
		if !strings.Contains(s.Config, want) {
			t.Errorf("no %q in\n%s", want, s.Config)
		}
	}
	if s.Upstream == nil || s.Upstream.Port != 8181 || s.URLs[0] != "/sleep" || s.DelayS != 0.25 {
		t.Errorf("upstream %+v, URLs %v, delay %v", s.Upstream, s.URLs, s.DelayS)
	}
	if s := mustServe(t, proxied(t, 0)); strings.Contains(s.Config, "keepalive ") || !strings.Contains(s.Config, "proxy_http_version 1.0;") {
		t.Errorf("connections are kept:\n%s", s.Config)
	}
}

func TestTLSIsWrittenAsTheVersionKnowsIt(t *testing.T) {
	for version, want := range map[string]string{"1.22.1": "listen 127.0.0.1:8081 ssl http2;", "1.26.3": "http2 on;", "": "listen 127.0.0.1:8081 ssl http2;", "1.25.0": "ssl http2;", "1.25.1": "http2 on;"} {
		in := input("hello")
		in.Spec.TLS = &lab.TLS{Key: lab.KeyRSA, HTTP2: true}
		in.Recipe = lab.Recipe{Name: "a", Flavor: lab.FlavorNginx, Version: version, Modules: []string{"stub_status", "ssl", "v2"}}
		s := mustServe(t, in)
		if !strings.Contains(s.Config, want) || !strings.Contains(s.Config, `ssl_certificate "{prefix}/tls/cert.pem";`) || s.TLS == nil || s.TLS.Key != lab.KeyRSA {
			t.Errorf("%s: TLS %+v, configuration\n%s", version, s.TLS, s.Config)
		}
	}
	in := input("hello", of("one", "listen.backlog", "64"))
	in.Spec.TLS = &lab.TLS{HTTP3: true}
	in.Recipe = lab.Recipe{Name: "a", Flavor: lab.FlavorNginx, Version: "1.26.3", Modules: []string{"stub_status", "ssl", "v3"}}
	conf := mustServe(t, in).Config
	for _, want := range []string{"listen 127.0.0.1:8081 ssl backlog=64;", "listen 127.0.0.1:8081 quic reuseport;", `add_header Alt-Svc 'h3=":8081"; ma=86400';`} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %q in\n%s", want, conf)
		}
	}
	for name, module := range map[string]lab.TLS{"ssl": {}, "v2": {HTTP2: true}, "v3": {HTTP3: true}} {
		in := input("hello")
		in.Spec.TLS = &module
		in.Recipe.Modules = []string{"stub_status"}
		if name != "ssl" {
			in.Recipe.Modules = append(in.Recipe.Modules, "ssl")
		}
		if _, err := Serving(in); err == nil || !strings.Contains(err.Error(), "add "+name+" to its modules") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestModulesOfTheBuildAreLoadedBeforeAllElse(t *testing.T) {
	in := input("echo")
	in.Recipe = lab.Recipe{Name: "a", Flavor: lab.FlavorNginx, Modules: []string{"stub_status", "echo"}, Dynamic: []string{"echo"}}
	const line = `load_module "{build}/modules/ngx_http_echo_module.so";`
	conf := mustServe(t, in).Config
	if at := strings.Index(conf, line); at < 0 || at > strings.Index(conf, "worker_processes") {
		t.Errorf("%s is not the first in\n%s", line, conf)
	}
	in.Spec.Site, in.Spec.Template = siteTemplate, map[string]string{"nginx.conf": "events {}\nhttp { server { listen {port}; location / {} } }\n"}
	if conf := mustTemplate(t, in).Config; !strings.HasPrefix(conf, "load_module {build}/modules/ngx_http_echo_module.so;\n") {
		t.Errorf("the template begins otherwise:\n%s", conf)
	}
}

func TestBodiesHaveTheirOwnSizes(t *testing.T) {
	in := input("file")
	in.Spec.Bodies, in.URLs = map[string]int64{"/0": 0, "/big/": 10 << 20, "/a": 7}, []string{"/a", "/other"}
	s := mustServe(t, in)
	for name, size := range map[string]int64{"html/0": 0, "html/big/index.html": 10 << 20, "html/a": 7, "html/other": 1024, "html/file": 1024} {
		if body, there := s.Bodies[name]; !there || body.Bytes != size || len(body.SHA256) != 64 {
			t.Errorf("%s is %+v, want %d bytes", name, body, size)
		}
	}
}

func TestDelayIsTheOneInForceInTheState(t *testing.T) {
	for _, tc := range []struct {
		site     string
		settings []lab.Setting
		want     float64
	}{
		{"sleep", nil, 0.25}, {"sleep", []lab.Setting{of("one", "location.echo_sleep", "2")}, 2}, {"sleep", []lab.Setting{absent("location.echo_sleep")}, 0},
		{"sleep", []lab.Setting{of("one", "location.echo_sleep", "$x")}, 0}, {"hello", nil, 0},
	} {
		if s := mustServe(t, input(tc.site, tc.settings...)); s.DelayS != tc.want {
			t.Errorf("%s with %v waits %v s, want %v", tc.site, tc.settings, s.DelayS, tc.want)
		}
	}
}

func TestUserOfTheSectionHoldsUnlessAStepSaysOtherwise(t *testing.T) {
	in := input("hello")
	in.Spec.User = "www-data"
	if s := mustServe(t, in); s.User != "www-data" || !strings.Contains(s.Config, "\nuser www-data;\n") {
		t.Errorf("user %q in\n%s", s.User, s.Config)
	}
	in.Spec.User = "nobody"
	if s := mustServe(t, in); s.User != "nobody" || !strings.Contains(s.Config, "\nuser nobody nogroup;\n") {
		t.Errorf("user %q in\n%s", s.User, s.Config)
	}
	in.State.Settings["here"] = []lab.Setting{of("one", "user", "nobody nogroup")}
	if s := mustServe(t, in); s.User != "nobody" || strings.Contains(s.Config, "www-data") {
		t.Errorf("user %q in\n%s", s.User, s.Config)
	}
}

func TestCommandIsServedWithoutNginx(t *testing.T) {
	in := input("hello", of("one", "worker_processes", "4"), lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: "4000"})
	in.Recipe = lab.Recipe{Name: "own", Flavor: lab.FlavorCustom}
	in.Spec.User, in.Spec.Count, in.URLs = "nobody", &lab.Count{Log: "served.log"}, []string{"/any"}
	in.Command = &lab.ServerCommand{
		Start: []string{"{binary}", "{port}", "{status_port}"}, Delay: lab.Seconds(1), AtOnce: 9, Within: lab.Seconds(30), Files: map[string]string{"a.conf": "{status_port}"},
	}
	s := mustServe(t, in)
	switch {
	case s.Config != "" || s.StatusPort != 0 || s.Command == nil || len(s.Files) > 0:
		t.Errorf("it is served as nginx: %+v", s)
	case s.Command.Start[2] != "8082" || s.Command.Start[1] != "{port}" || s.Command.Files["a.conf"] != "8082" || in.Command.Start[2] != "{status_port}":
		t.Errorf("command %+v", s.Command)
	case s.DelayS != 1 || s.AtOnce != 9 || s.Count.Log != "served.log" || s.User != "nobody" || s.Deadline.Duration != 30*time.Second:
		t.Errorf("delay %v of %d at once, count %v, user %q, deadline %v", s.DelayS, s.AtOnce, s.Count, s.User, s.Deadline)
	case len(s.Expect) != 1 || s.Expect[0].Knob.Kind != lab.KnobNofile || s.Expect[0].Value != "4000":
		t.Errorf("expected in force %+v", s.Expect)
	}
	if held, err := CapacityServing(in, lab.HoldIdle, nil); err != nil || held.URLs[0] != "/any" {
		t.Errorf("held idle: %v, %v", held.URLs, err)
	}
	if _, err := CapacityServing(in, lab.HoldActive, nil); err == nil || !strings.Contains(err.Error(), "needs nginx") {
		t.Errorf("held active: %v", err)
	}
	in.Command, in.URLs = nil, nil
	if _, err := Serving(in); err == nil || !strings.Contains(err.Error(), "build own is not nginx") {
		t.Errorf("without a command: %v", err)
	}
}

func TestSomethingElseMayCountWhereStubStatusIsNot(t *testing.T) {
	in := input("hello")
	in.Recipe.Modules, in.Spec.Count = nil, &lab.Count{Log: "logs/access.log"}
	if s := mustServe(t, in); s.StatusPort != 0 || s.Count == nil || strings.Contains(s.Config, "stub_status") {
		t.Errorf("status port %d, count %v in\n%s", s.StatusPort, s.Count, s.Config)
	}
	in = input("hello")
	in.Spec.Count = &lab.Count{Log: "logs/access.log"}
	if s := mustServe(t, in); s.StatusPort != 8082 || s.Count != nil {
		t.Errorf("with stub_status: status port %d, count %v", s.StatusPort, s.Count)
	}
	for _, r := range []lab.Recipe{{Name: "a", Flavor: lab.FlavorNginx, Installed: "/usr/sbin/nginx"}, {Name: "a", Flavor: lab.FlavorNginx, Package: []string{"nginx"}}} {
		in := input("hello")
		in.Recipe = r
		if s := mustServe(t, in); s.StatusPort != 8082 {
			t.Errorf("%+v: status port %d", r, s.StatusPort)
		}
	}
}
