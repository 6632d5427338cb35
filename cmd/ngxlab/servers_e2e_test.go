package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ngxlab/experiments"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// fromLibrary writes DIR/NAME.yaml: a study of the library in which each old text is replaced by the new one, on ports
// of the test's.
func (m *machineTest) fromLibrary(name string, oldnew ...string) {
	m.t.Helper()
	text, err := experiments.Open(name)
	must(m.t, err)
	study := string(text)
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(study, oldnew[i]) {
			m.t.Fatalf("%s has no %q", name, oldnew[i])
		}
		study = strings.ReplaceAll(study, oldnew[i], oldnew[i+1])
	}
	m.write(name+".yaml", strings.ReplaceAll(study, "port: 8081", fmt.Sprint("port: ", m.port)))
}

// once makes a study as short as can be.
const once = "repeat: {min: 1, max: 1, precision: 5%, effect: 5%, cool_down: 10ms, control: false}"

// compilerOfGo is the path of the go command.
func compilerOfGo(t *testing.T) string {
	t.Helper()
	testlab.Require(t, "go")
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	must(t, err)
	return filepath.Join(strings.TrimSpace(string(root)), "bin", "go")
}

// counted holds that the server's own count of requests was read and agrees with the load tool's.
func counted(t *testing.T, run lab.Run) {
	t.Helper()
	for _, f := range run.Findings {
		if f.Code == "count-mismatch" {
			if f.Outcome != lab.Quiet {
				t.Errorf("%s: count-mismatch is %s: %s", run.Cell.State, f.Outcome, f.Evidence)
			}
			return
		}
	}
	t.Errorf("%s: count-mismatch was not looked at", run.Cell.State)
}

// TestDelayStudyShowsTheBoundBesideTheMeasurement runs the library's study of a handler that waits, with echo_sleep and
// with threads that block.
func TestDelayStudyShowsTheBoundBesideTheMeasurement(t *testing.T) {
	m := onMachine(t)
	m.fromLibrary("delay-bound", "connections: [10, 1000]", "connections: [20]", "duration: 40s", "duration: 9s",
		"repeat:\n  min: 3\n  max: 6\n  precision: 5%\n  effect: 5%\n  why: a rate that a fixed delay bounds varies little", once)
	m.must(finished, "run", "DIR/delay-bound.yaml", "--out", "DIR/report")
	r := m.campaign()
	for state, bound := range map[string]float64{"waits 1 s": 20, "waits 2 s": 10, "blocks 1 s": 9} {
		run := runOf(t, r, state)
		if got := run.Figures[lab.Goodput]; got > bound*1.02 || got < bound/2 {
			t.Errorf("%s: %v requests per second, bound %v", state, got, bound)
		}
		counted(t, run)
	}
	report, err := os.ReadFile(filepath.Join(m.dir, "report", "report.md"))
	must(t, err)
	for _, want := range []string{"connections/delay", "20", "10", "9"} {
		if !strings.Contains(string(report), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	m.mustBeAsBefore()
}

// TestApacheAndAGoProgramAreServedAndCounted runs the library's study of other servers. Go is the one that runs the
// tests.
func TestApacheAndAGoProgramAreServedAndCounted(t *testing.T) {
	m := onMachine(t)
	m.fromLibrary("other-servers", "    packages: [golang-go]\n", "", "go build", compilerOfGo(t)+" build", "connections: [10, 100]", "connections: [10]",
		"duration: 10s", "duration: 1s", "warmup: {first: 2s, further: 1s}", "warmup: 0s", "    pin: true\n", "",
		"repeat: {min: 6, max: 20, precision: 2%, effect: 5%}", once)
	before := hostState(t)
	m.must(finished, "run", "DIR/other-servers.yaml", "--out", "DIR/report")
	if after := hostState(t); after != before {
		t.Errorf("the host changed: %s", firstDifference(before, after))
	}
	r := m.campaign()
	bodies := map[string]bool{}
	for _, state := range []string{"nginx", "Apache httpd", "Go program"} {
		run := runOf(t, r, state)
		counted(t, run)
		bodies[run.Server.Probes["/hello"].BodySHA256] = true
	}
	if len(bodies) != 1 {
		t.Errorf("the servers answer differently: %v", bodies)
	}
	if b := builtAs(t, r, "apache"); !strings.Contains(b.Configured+b.Version, "Apache/2.") || len(b.Libraries) == 0 {
		t.Errorf("apache is %+v", b)
	}
	m.mustBeAsBefore()
}

// TestTemplateOfTheUsersIsServedWithItsIncludes has a configuration of the user's beside the experiment.
func TestTemplateOfTheUsersIsServedWithItsIncludes(t *testing.T) {
	m := onMachine(t)
	must(t, os.MkdirAll(filepath.Join(m.dir, "site", "conf.d"), 0o755))
	m.write("site/nginx.conf", m.filledIn(`worker_processes 1;
events { worker_connections 512; }
http {
    include conf.d/*.conf;
}
`))
	m.write("site/conf.d/own.conf", m.filledIn(`server {
    listen 127.0.0.1:PORT;
    location = /mine { return 200 "mine and no one else's\n"; }
}
`))
	m.experiment("own", `builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: PORT, site: template, template: site/nginx.conf}
steps:
  - {name: mine}
  - {name: workers, nginx: {worker_processes: 2}}
`)
	text, err := os.ReadFile(filepath.Join(m.dir, "own.yaml"))
	must(t, err)
	m.write("own.yaml", strings.Replace(string(text), "{tool: wrk,", "{tool: wrk, url: /mine,", 1))
	m.must(finished, "run", "DIR/own.yaml", "--out", "DIR/report")
	r := m.campaign()
	if run := runOf(t, r, "mine"); run.Server.Probes["/mine"].BodyBytes != int64(len("mine and no one else's\n")) || !strings.Contains(run.Server.Effective, "location = /mine") || len(run.Server.Workers) != 1 {
		t.Errorf("probes %v, %d workers, effective configuration:\n%s", run.Server.Probes, len(run.Server.Workers), run.Server.Effective)
	}
	if run := runOf(t, r, "workers"); len(run.Server.Workers) != 2 {
		t.Errorf("%d workers, want 2", len(run.Server.Workers))
	}
	m.mustBeAsBefore()
}

// modern is an nginx with TLS, HTTP/2, HTTP/3, and echo as a dynamic module, which is compiled once for these tests.
const modern = `builds:
  modern: {flavor: nginx, version: 1.26.3, source: [{debian: nginx, suite: trixie}], modules: [stub_status, ssl, v2, v3, echo], dynamic: [echo]}
`

// TestServerSpeaksHTTP2AndHTTP3 asks a server under load with h2load and over QUIC.
func TestServerSpeaksHTTP2AndHTTP3(t *testing.T) {
	testlab.Require(t, "h2load")
	m := onMachine(t)
	m.experiment("h3", modern+`server: {build: modern, port: PORT, site: echo, tls: {key: ecdsa, http2: true, http3: true}}
steps: [{name: quick}]
`)
	text, err := os.ReadFile(filepath.Join(m.dir, "h3.yaml"))
	must(t, err)
	m.write("h3.yaml", strings.Replace(string(text), "duration: 1s", "duration: 20s", 1))
	m.built("modern", "DIR/h3.yaml")
	p := m.start("run", "DIR/h3.yaml", "--json", "--out", "DIR/report")
	p.until("run", kind(lab.EventRun))
	url := fmt.Sprintf("https://127.0.0.1:%d/echo", m.port)
	out, err := exec.CommandContext(t.Context(), "h2load", "-n", "100", "-c", "2", "-m", "5", url).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("Application protocol: h2")) || !bytes.Contains(out, []byte("100 succeeded")) {
		t.Errorf("h2load: %v: %s", err, out)
	}
	if protocol, status, body := overHTTP3(t, url); protocol != "HTTP/3.0" || status != 200 || body != "hello\n" {
		t.Errorf("over QUIC: %s %d %q", protocol, status, body)
	}
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted)
	m.mustBeAsBefore()

	m.write("h3.yaml", strings.Replace(string(text), "tls: {key: ecdsa,", "tls: {key: rsa,", 1))
	m.must(finished, "run", "DIR/h3.yaml", "--out", "DIR/report")
	run := runOf(t, m.campaign(), "quick")
	if s := run.Server; s.TLS == nil || s.TLS.Key != "RSA 2048 bits" || s.TLS.Protocol != "h2" || !strings.HasPrefix(s.TLS.Version, "TLS 1.") || !s.QUIC {
		t.Errorf("TLS is %+v, QUIC %v", s.TLS, s.QUIC)
	}
	if !slices.Contains(run.Server.Modules, "ngx_http_echo_module") || !slices.Contains(run.Server.Modules, "ngx_http_v3_module") {
		t.Errorf("modules are %v", run.Server.Modules)
	}
	m.mustBeAsBefore()
}

// built makes a build of a study beforehand, so that no wait for the study has to last as long.
func (m *machineTest) built(name, file string) lab.Build {
	m.t.Helper()
	x, err := loadExperiment(strings.ReplaceAll(file, "DIR", m.dir))
	must(m.t, err)
	here, err := m.attach(m.t.Context(), "", lab.Host{Name: "local", Local: true})
	must(m.t, err)
	defer func() { must(m.t, here.close()) }()
	must(m.t, here.claim(m.t.Context(), "test"))
	b, err := here.Build(m.t.Context(), server.Recipe(x.Builds[name]), io.Discard)
	must(m.t, err)
	return b
}
