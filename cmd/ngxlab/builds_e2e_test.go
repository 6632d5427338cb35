package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab/standin"
	"ngxlab/lab"
	"ngxlab/store"
)

// shortly is the end of a study that only wants to have run.
const shortly = `
load: [{tool: wrk, connections: 4, keepalive: true, duration: 1s, warmup: 0s}]
repeat: {min: 1, max: 1, precision: 5%, effect: 5%, cool_down: 10ms, control: false}
`

// small are configure flags that leave out of nginx what these tests do not serve, for a shorter compilation.
const small = "--without-http_rewrite_module, --without-http_gzip_module, --without-http_ssi_module, --without-http_userid_module, " +
	"--without-http_fastcgi_module, --without-http_uwsgi_module, --without-http_scgi_module, --without-http_grpc_module, --without-http_memcached_module"

// experiment writes DIR/NAME.yaml: a short study on this machine. PORT, DIR and SMALL are replaced.
func (m *machineTest) experiment(name, text string) {
	m.t.Helper()
	head := "name: " + name + "\ntitle: Does it run?\nhosts:\n  here: {local: true, roles: [target, load]}\n"
	m.write(name+".yaml", m.filledIn(head+text+shortly))
}

func (m *machineTest) filledIn(text string) string {
	return strings.NewReplacer("PORT", strconv.Itoa(m.port), "DIR", m.dir, "SMALL", small).Replace(text)
}

// campaign reads the latest campaign back, with its samples.
func (m *machineTest) campaign() lab.Results {
	m.t.Helper()
	s, err := store.OpenReadOnly(m.t.Context(), filepath.Join(m.dir, "lab.db"))
	must(m.t, err)
	defer func() { must(m.t, s.Close()) }()
	c, err := s.Latest(m.t.Context())
	must(m.t, err)
	r, err := s.Results(m.t.Context(), c.ID, store.Options{Samples: true})
	must(m.t, err)
	return r
}

// builtAs is the build of a name in a campaign.
func builtAs(t *testing.T, r lab.Results, name string) lab.Build {
	t.Helper()
	for _, b := range r.Builds {
		if b.Recipe == name {
			return b
		}
	}
	t.Fatalf("no build %s is stored among %d", name, len(r.Builds))
	return lab.Build{}
}

// runOf is the run of a state that has figures.
func runOf(t *testing.T, r lab.Results, state string) lab.Run {
	t.Helper()
	var failed []string
	for _, run := range r.Runs {
		switch {
		case run.Cell.State != state:
		case len(run.Figures) > 0:
			return run
		default:
			failed = append(failed, run.Problem+fmt.Sprintf("%+v", run.Processes))
		}
	}
	t.Fatalf("state %q has no run with figures: %q", state, failed)
	return lab.Run{}
}

// listeners is how many listening sockets the server had at the port.
func listeners(run lab.Run, port int) int {
	n := 0
	for _, s := range run.Samples {
		here := 0
		for _, l := range s.Listeners {
			if l.Port == port {
				here++
			}
		}
		n = max(n, here)
	}
	return n
}

// standIns are three builds of others' servers, each from another kind of archive.
func (m *machineTest) standIns() string {
	m.t.Helper()
	nginx := standin.Nginx(m.t)
	return strings.NewReplacer(
		"OLD", standin.OldNginx().Archive(m.t, nginx, "zip"),
		"TWO", standin.Tengine21().Archive(m.t, nginx, "tar.gz"),
		"THREE", standin.Tengine31().Archive(m.t, nginx, "tar.xz"),
	).Replace(`builds:
  nginx-1.6: {flavor: nginx, version: 1.6.2, modules: [stub_status], configure: [SMALL], source: [{path: OLD}]}
  tengine-2.1: {flavor: tengine, version: 2.1.0, modules: [stub_status], configure: [SMALL], source: [{path: TWO}]}
  tengine-3.1: {flavor: tengine, version: 3.1.0, modules: [stub_status], configure: [SMALL], source: [{path: THREE}]}
`)
}

// TestTenginesAndAnOldNginxAreBuiltServedAndMeasured has stand-ins for the real ones, and asks afterwards what the build
// of nginx makes of Tengine's directive.
func TestTenginesAndAnOldNginxAreBuiltServedAndMeasured(t *testing.T) {
	m := onMachine(t)
	study := m.standIns() + `server: {build: nginx-1.6, port: PORT, site: empty-gif, nginx: {worker_processes: 2}}
ladder: isolated
steps:
  - {name: mutex, nginx: {events.accept_mutex: "on"}}
  - {name: reuse_port, build: tengine-2.1, nginx: {events.accept_mutex: "off", events.reuse_port: "on"}}
  - {name: reuseport, build: tengine-3.1, nginx: {events.accept_mutex: "off", listen.reuseport: true}}
`
	m.experiment("tengines", study)
	m.must(finished, "run", "DIR/tengines.yaml", "--out", "DIR/report")
	r := m.campaign()
	for _, tc := range []struct {
		state, build, version, module string
		listeners                     int
	}{
		{"mutex", "nginx-1.6", "1.6.2", "ngx_http_empty_gif_module", 1},
		{"reuse_port", "tengine-2.1", "2.1.0", "ngx_http_empty_gif_module", 2},
		{"reuseport", "tengine-3.1", "3.1.0", "ngx_http_empty_gif_module", 2},
	} {
		b, run := builtAs(t, r, tc.build), runOf(t, r, tc.state)
		if b.Version != tc.version && !strings.HasSuffix(b.Version, "/"+tc.version) {
			t.Errorf("%s is version %s, want %s", tc.build, b.Version, tc.version)
		}
		if run.Server.Build != b.ID || !slices.Contains(run.Server.Modules, tc.module) {
			t.Errorf("%s ran build %q with modules %v, want %s", tc.state, run.Server.Build, run.Server.Modules, b.ID)
		}
		if got := listeners(run, m.port); got != tc.listeners {
			t.Errorf("%s has %d listening sockets, want %d", tc.state, got, tc.listeners)
		}
		if run.Server.Effective == "" || run.Server.EffectiveSHA == "" {
			t.Errorf("%s has no effective configuration", tc.state)
		}
	}
	if notes := strings.Join(builtAs(t, r, "nginx-1.6").Notes, "\n"); !strings.Contains(notes, "current_salt") && !strings.Contains(notes, "crypt") || !strings.Contains(notes, "fall") {
		t.Errorf("of the remedies it is said %q", notes)
	}
	m.mustBeAsBefore()

	m.experiment("bad", strings.Replace(study, "build: tengine-2.1, ", "build: nginx-1.6, ", 1))
	if said := m.must([]int{exitFailed}, "plan", "DIR/bad.yaml"); !strings.Contains(said, "reuse_port") || !strings.Contains(said, "Tengine") {
		t.Errorf("of a directive of Tengine for nginx the plan says %s", said)
	}
}

// TestPackageAndInstalledServerAreUsedAndTheHostStaysAsItWas serves the distribution's package without installing it, and
// a server at a path.
func TestPackageAndInstalledServerAreUsedAndTheHostStaysAsItWas(t *testing.T) {
	m := onMachine(t)
	installed, err := os.ReadFile(runningBinary(m))
	must(t, err)
	m.write("my-nginx", string(installed))
	must(t, os.Chmod(filepath.Join(m.dir, "my-nginx"), 0o755))
	m.experiment("dist", `builds:
  dist: {package: nginx, modules: [echo]}
  here: {installed: DIR/my-nginx}
server: {build: dist, port: PORT, site: empty-gif, user: nobody}
ladder: isolated
steps:
  - {name: package}
  - {name: installed, build: here}
`)
	before := hostState(t)
	m.must(finished, "run", "DIR/dist.yaml", "--out", "DIR/report")
	if after := hostState(t); after != before {
		t.Errorf("the host changed: %s", firstDifference(before, after))
	}
	for _, state := range []string{"package", "installed"} {
		if user := runOf(t, m.campaign(), state).Server.User; user != "nobody" && os.Geteuid() == 0 {
			t.Errorf("the workers of state %s run as %q", state, user)
		}
	}
	r := m.campaign()
	dist, here := builtAs(t, r, "dist"), builtAs(t, r, "here")
	if run := runOf(t, r, "package"); run.Server.Build != dist.ID || !strings.HasPrefix(dist.Binary, dist.Dir+"/") || !slices.Contains(run.Server.Modules, "ngx_http_echo_module") {
		t.Errorf("the package is %+v with modules %v", dist, run.Server.Modules)
	}
	if run := runOf(t, r, "installed"); run.Server.Build != here.ID || here.Dir != "" || here.Binary != filepath.Join(m.dir, "my-nginx") {
		t.Errorf("the installed server is %+v", here)
	}
	m.mustBeAsBefore()
}

// runningBinary is the nginx that all tests share.
func runningBinary(m *machineTest) string {
	m.t.Helper()
	found, err := filepath.Glob(filepath.Join(m.stateDir, "builds", "*", "nginx"))
	must(m.t, err)
	for _, path := range found {
		if out, err := exec.CommandContext(m.t.Context(), path, "-V").CombinedOutput(); err == nil && strings.Contains(string(out), "stub_status") {
			return path
		}
	}
	m.t.Fatal("there is no nginx in the cache")
	return ""
}

// hostState is the packages of the host, every file in /etc with size and time, and the web servers that run.
func hostState(t *testing.T) string {
	t.Helper()
	packages, err := exec.CommandContext(t.Context(), "dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n").CombinedOutput()
	if err != nil {
		t.Skipf("SKIPPED: the host has no dpkg: %v", err)
	}
	out := &strings.Builder{}
	out.Write(packages)
	must(t, filepath.WalkDir("/etc", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			_, _ = fmt.Fprintln(out, path, info.Size(), info.ModTime().Format(time.RFC3339Nano), info.Mode())
		}
		return err
	}))
	return out.String()
}

func firstDifference(a, b string) string {
	old := map[string]bool{}
	for line := range strings.Lines(a) {
		old[line] = true
	}
	for line := range strings.Lines(b) {
		if !old[line] {
			return "new is " + line
		}
		delete(old, line)
	}
	return strings.Join(slices.Collect(maps.Keys(old)), "") + " is gone"
}
