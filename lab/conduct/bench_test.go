package conduct

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/hosts"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/plan"
	"ngxlab/lab/stats"
)

const benchStudy = `name: bench
hosts: {here: {local: true, roles: [target, load]}}
builds: {nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}}
server: {build: nginx, port: %d, site: file, body: 1KiB, cpus: auto, nginx: {access_log: logs/access.log}}
steps: [{name: baseline}]
load: [{tool: wrk, connections: 100, keepalive: true, duration: 2s, warmup: 1s, pin: true}]
`

// pairs is how often lab and hand are measured (DESIGN §14).
const pairs = 40

// BenchmarkLabAgainstByHand runs one wrk command through the lab, with all its monitors, and the same command by hand,
// in alternated pairs on one server. ratio is lab ÷ hand of wrk's own requests per second, with its 95 % interval.
func BenchmarkLabAgainstByHand(b *testing.B) {
	testlab.Require(b, "wrk", "taskset")
	c, f, d := benchCampaign(b)
	hook := filepath.Join(b.TempDir(), "hook.lua")
	if err := os.WriteFile(hook, []byte(d.Measured["here"][0].Files["hook.lua"]), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var logs []float64
		for i := range pairs {
			first, second := throughLab, byHand
			if i%2 == 1 {
				first, second = second, first
			}
			rates := map[bool]float64{}
			for k, measure := range []func(*testing.B, *campaign, *running, lab.Driving, string) float64{first, second} {
				rates[(k == 0) == (i%2 == 0)] = measure(b, c, f, d, hook)
			}
			logs = append(logs, math.Log(rates[true]/rates[false]))
		}
		p, ok := stats.PairedT(logs, stats.Plain)
		if !ok {
			b.Fatal("no interval")
		}
		b.ReportMetric(math.Exp(p.Mean), "ratio")
		b.ReportMetric(math.Exp(p.Low), "ratio-low")
		b.ReportMetric(math.Exp(p.High), "ratio-high")
	}
}

// benchCampaign is a campaign on this machine with its server running.
func benchCampaign(b *testing.B) (*campaign, *running, lab.Driving) {
	e, err := experiments.Decode("bench.yaml", strings.NewReader(fmt.Sprintf(benchStudy, testlab.FreePort(b))))
	if err != nil {
		b.Fatal(err)
	}
	host, err := hosts.Local(b.Context(), hosts.Options{Name: "here", Dir: testlab.StateDir(b), Agent: testlab.Agent(b)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = host.Close() })
	if err := host.Claim(b.Context(), "bench", "make bench"); err != nil {
		b.Fatal(err)
	}
	facts, err := host.Facts(b.Context(), plan.Query(e, e.Hosts[0]))
	if err != nil {
		b.Fatal(err)
	}
	p, err := plan.New(e, map[lab.HostName]lab.Facts{"here": facts}, 1)
	if err != nil {
		b.Fatal(err)
	}
	machine := Machine{Tuner: host, Builder: host, Runner: host, Watcher: host}
	c, err := begin(b.Context(), &campaign{id: "bench", plan: p, hosts: map[lab.HostName]Machine{"here": machine}, rec: &fakeStore{}, emit: ignore})
	if err != nil {
		b.Fatal(err)
	}
	c.builds["nginx"] = map[lab.HostName]lab.Build{"here": testlab.Nginx(b)}
	server, stop, err := c.serve(b.Context(), p.Servings[0])
	b.Cleanup(stop)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.clock(b.Context(), 0); err != nil {
		b.Fatal(err)
	}
	return c, &running{serving: p.Servings[0], server: server, stop: stop, inForce: map[lab.HostName]map[string]string{}}, p.Drivings[0]
}

// throughLab is one measured run of the engine.
func throughLab(b *testing.B, c *campaign, r *running, d lab.Driving, _ string) float64 {
	seen, err := c.shoot(b.Context(), r, c.plan.Loads[0], d)
	if err != nil {
		b.Fatal(err)
	}
	return requestRate(b, seen.processes[0])
}

// byHand is the same command from a shell's point of view.
func byHand(b *testing.B, _ *campaign, _ *running, d lab.Driving, hook string) float64 {
	command := d.Measured["here"][0]
	cpus := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(command.CPUs)), ","), "[]")
	argv := []string{"-c", cpus}
	for _, word := range command.Argv {
		argv = append(argv, strings.ReplaceAll(word, "{work}/hook.lua", hook))
	}
	out, err := exec.CommandContext(b.Context(), "taskset", argv...).Output()
	if err != nil {
		b.Fatal(err)
	}
	return requestRate(b, lab.Process{Command: command, Stdout: out})
}

func requestRate(b *testing.B, p lab.Process) float64 {
	p = load.Parse(p)
	if p.Problem != "" {
		b.Fatal(p.Problem)
	}
	return p.Report.Figures[lab.Requests] / p.Report.Figures[lab.DurationS]
}
