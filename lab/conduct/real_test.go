package conduct

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/agent/build"
	"ngxlab/experiments"
	"ngxlab/hosts"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/plan"
)

const agentsStudy = `name: agents
hosts:
  web: {address: 127.0.0.1, roles: [target]}
  gen1: {address: 127.0.0.2, roles: [load]}
  gen2: {address: 127.0.0.3, roles: [load]}
builds: {nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}}
server: {build: nginx, port: %d, site: file, body: 1KiB}
steps: [{name: baseline}]
load: [{tool: wrk, connections: 10, keepalive: true, duration: 1s, warmup: 0s}]
repeat: {min: 1, max: 1, cool_down: 0s, control: false}
`

// takeOver gives a host the nginx of the tests.
func takeOver(t *testing.T, host *hosts.Host) {
	t.Helper()
	b := testlab.Nginx(t)
	cache := build.Cache{Dir: filepath.Dir(filepath.Dir(filepath.Dir(b.Binary)))}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(cache.Export(t.Context(), b, w)) }() // always nil
	if _, err := host.Import(t.Context(), b, r); err != nil {
		t.Fatal(err)
	}
}

// TestAgentsOfSeveralHostsMeasureTogether has a target, which takes over its build, and two load hosts, each with an agent of
// its own, on this machine.
func TestAgentsOfSeveralHostsMeasureTogether(t *testing.T) {
	testlab.Require(t, "wrk")
	e, err := experiments.Decode("agents.yaml", strings.NewReader(fmt.Sprintf(agentsStudy, testlab.FreePort(t))))
	if err != nil {
		t.Fatal(err)
	}
	machines, facts := map[lab.HostName]Machine{}, map[lab.HostName]lab.Facts{}
	for _, h := range e.Hosts {
		host, err := hosts.Local(t.Context(), hosts.Options{Name: h.Name, Dir: testlab.StateDir(t), Agent: testlab.Agent(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = host.Close() })
		if err := host.Claim(t.Context(), "agents", "a test"); err != nil {
			t.Fatal(err)
		}
		if facts[h.Name], err = host.Facts(t.Context(), plan.Query(e, h)); err != nil {
			t.Fatal(err)
		}
		if h.Has(lab.RoleTarget) {
			takeOver(t, host)
		}
		machines[h.Name] = Machine{Tuner: host, Builder: host, Runner: host, Watcher: host}
	}
	p, err := plan.New(e, facts, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Refused = nil // hosts that are one machine: here they have nothing to take from each other but time
	var store fakeStore
	out, err := Run(t.Context(), "agents", p, machines, &store, ignore)
	if err != nil || out.Status != lab.StatusDone || out.Runs == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	run := store.runs[0]
	if run.Problem != "" || run.Figures[lab.Requests] == 0 || run.Window.Overlap < 0.5 {
		t.Errorf("problem %q, figures %v, window %+v", run.Problem, run.Figures, run.Window)
	}
	from, sampled := map[lab.HostName]bool{}, map[lab.HostName]bool{}
	for _, process := range run.Processes {
		from[process.Host] = true
	}
	for _, sample := range run.Samples {
		sampled[sample.Host] = true
	}
	if len(from) != 2 || !from["gen1"] || !from["gen2"] || len(sampled) != 3 {
		t.Errorf("load from %v, samples of %v", from, sampled)
	}
}
