package plan_test

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

// passing is a proxy on one host, its upstream on another and load from a third.
func passing() (lab.Experiment, map[lab.HostName]lab.Facts) {
	e := quick()
	e.Capacity, e.Repeat.Control = nil, false
	e.Hosts = []lab.Host{
		{Name: "edge", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget}}, {Name: "back", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleUpstream}},
		{Name: "gen", Address: "10.0.0.3", Roles: []lab.Role{lab.RoleLoad}},
	}
	e.Server = lab.ServerSpec{Build: "nginx", Port: 8081, StatusPort: 8082, Site: "proxy", Upstream: &lab.Upstream{
		Host: "back", KeepAlive: 4, Server: lab.ServerSpec{Build: "nginx", Port: 8181, StatusPort: 8182, Site: "file", BodyBytes: 100, Nginx: map[string]string{"sendfile": "off"}},
	}}
	e.Steps = []lab.Step{{Name: "default"}, {Name: "unbuffered", Nginx: map[string]string{"proxy_buffering": "off", "location.sendfile": "off"}}}
	e.Load = e.Load[:1]
	e.Load[0].Pin = false
	return e, facts(machine("edge"), machine("back"), machine("gen"))
}

func planned(t *testing.T, e lab.Experiment, f map[lab.HostName]lab.Facts) lab.Plan {
	t.Helper()
	p, err := plan.New(e, f, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fatal is what forbids a plan, in one text.
func fatal(p lab.Plan) string {
	var all []string
	for _, r := range p.Fatal() {
		all = append(all, string(r.Host)+" "+r.Path+": "+r.Reason)
	}
	return strings.Join(all, "\n")
}

func TestProxyHasAServingForItsUpstream(t *testing.T) {
	e, f := passing()
	p := planned(t, e, f)
	if got := fatal(p); got != "" || len(p.Servings) != 2 {
		t.Fatalf("%d servings, refused: %s", len(p.Servings), got)
	}
	for _, s := range p.Servings {
		up := s.Upstream
		if up == nil || up.Target != "back" || up.Port != 8181 || up.Bodies["html/file"].Bytes != 100 || up.State != s.State {
			t.Fatalf("state %q passes to %+v", s.State, up)
		}
		if !strings.Contains(s.Config, "server 10.0.0.2:8181;") || !strings.Contains(up.Config, "sendfile off;") || strings.Contains(up.Config, "proxy_") {
			t.Errorf("state %q:\n%s\npasses to\n%s", s.State, s.Config, up.Config)
		}
	}
	if unbuffered := p.Servings[1].Config; !strings.Contains(unbuffered, "proxy_buffering off;") {
		t.Errorf("the step is not in\n%s", unbuffered)
	}
}

func TestProxyNeedsTwoConnectionsForEachOfAClient(t *testing.T) {
	e, f := passing()
	e.Load[0].Connections = []int{600}
	got := fatal(planned(t, e, f))
	if !strings.Contains(got, "600 connections, and as many to the upstream, are more than 1 workers with 1024 worker_connections") {
		t.Errorf("refused: %s", got)
	}
	e.Load[0].Connections = []int{1500}
	e.Server.Nginx = map[string]string{"events.worker_connections": "8192"}
	if got := fatal(planned(t, e, f)); !strings.Contains(got, "back load[0].connections: ") || !strings.Contains(got, "(the upstream)") || strings.Contains(got, "edge") {
		t.Errorf("refused: %s", got)
	}
}

func TestPortsOfAllServersAreHeldAgainstTheirHosts(t *testing.T) {
	e, f := passing()
	back, edge := f["back"], ordinary(f["edge"])
	back.PortsInUse = []int{8181}
	f["back"], e.Server.Port = back, 443
	edge.CanInstall = true
	f["edge"] = edge
	got := fatal(planned(t, e, f))
	for _, want := range []string{"back server.upstream.server.port: port 8181 on back is in use", "edge server.port: port 443 on edge is below net.ipv4.ip_unprivileged_port_start = 1024"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestUpstreamMustBeReachedByItsTarget(t *testing.T) {
	e, f := passing()
	e.Hosts[1] = lab.Host{Name: "back", Local: true, Roles: []lab.Role{lab.RoleUpstream}}
	if got := fatal(planned(t, e, f)); !strings.Contains(got, "proxied load on back comes from edge") {
		t.Errorf("refused: %s", got)
	}
	e.Hosts[1].LoadAt = "10.0.0.9"
	p := planned(t, e, f)
	if got := fatal(p); got != "" || !strings.Contains(p.Servings[0].Upstream.Config, "listen 10.0.0.9:8181;") {
		t.Errorf("refused: %s", got)
	}
	e.Hosts = []lab.Host{{Name: "edge", Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad, lab.RoleUpstream}}}
	e.Server.Upstream.Host = "edge"
	p = planned(t, e, f)
	if got := fatal(p); !strings.Contains(got, "edge is a target, and a host runs one server at a time") {
		t.Errorf("on one host: %s", got)
	}
}

func TestCommandIsPlannedBesideNginx(t *testing.T) {
	e, _ := passing()
	e.Hosts = []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}}
	e.Builds["own"] = lab.Recipe{Name: "own", Flavor: lab.FlavorCustom, Sources: []lab.BuildSource{{Text: map[string]string{"a.c": ""}}}, Binary: "own",
		Command: &lab.ServerCommand{Start: []string{"{binary}"}, Delay: lab.Seconds(1)}}
	e.Server = lab.ServerSpec{Build: "nginx", Port: 8081, StatusPort: 8082, Site: "sleep", SleepS: 1, Nginx: map[string]string{"events.worker_connections": "4096"}}
	e.Steps = []lab.Step{{Name: "default"}, {Name: "slower", Nginx: map[string]string{"location.echo_sleep": "2"}}, {Name: "own", Build: "own"}}
	e.Ladder.Kind, e.Load[0].URL, e.Load[0].Connections = lab.Isolated, "/sleep", []int{3000}
	p := planned(t, e, facts(machine("here")))
	if got := fatal(p); got != "" {
		t.Fatalf("refused: %s", got)
	}
	for i, want := range []float64{1, 2, 1} {
		if s := p.Servings[i]; s.DelayS != want || (s.Command != nil) != (i == 2) || (s.Config == "") != (i == 2) {
			t.Errorf("state %q waits %v s, command %v", s.State, s.DelayS, s.Command)
		}
	}
	if slices.ContainsFunc(p.Warnings, func(w lab.Warning) bool {
		return strings.Contains(w.Text, `"own"`) && strings.Contains(w.Text, "worker")
	}) {
		t.Errorf("what is not nginx is warned of as nginx: %v", p.Warnings)
	}
}

func TestTemplateGivesItsOwnBounds(t *testing.T) {
	e, _ := passing()
	e.Hosts = []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}}
	e.Server = lab.ServerSpec{Build: "nginx", Port: 8081, StatusPort: 8082, Site: "template", Template: map[string]string{
		lab.TemplateRoot: "events { worker_connections 64; }\nhttp { server { listen 127.0.0.1:{port}; location /a { return 200 a; } } }\n",
	}}
	e.Steps = []lab.Step{{Name: "default"}, {Name: "sendfile", Nginx: map[string]string{"location.sendfile": "on"}}}
	e.Load[0].URL, e.Load[0].Connections = "/a/b", []int{100}
	if got := fatal(planned(t, e, facts(machine("here")))); !strings.Contains(got, "1 workers with 64 worker_connections") {
		t.Errorf("refused: %s", got)
	}
	e.Load[0].Connections = []int{10}
	p := planned(t, e, facts(machine("here")))
	if got := fatal(p); got != "" || !strings.Contains(p.Servings[1].Config, "{ return 200 a;  sendfile on; }") {
		t.Errorf("refused: %s, configuration\n%s", got, p.Servings[1].Config)
	}
}
