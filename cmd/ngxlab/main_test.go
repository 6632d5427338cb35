package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"ngxlab/experiments"
	"ngxlab/hosts/ssh"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
	"ngxlab/lab/load"
	"ngxlab/lab/plan"
	"ngxlab/lab/verdict"
	"ngxlab/store"
)

var update = flag.Bool("update", false, "write the golden files again")

// at is the time at which the tests' campaigns begin.
var at = time.Date(2026, 11, 30, 17, 15, 2, 0, time.UTC)

// command is an app in a directory of its own, with its streams.
type command struct {
	*app
	t        *testing.T
	dir      string
	out, err *bytes.Buffer
}

// newCommand returns an app that reaches only fake hosts.
func newCommand(t *testing.T) *command {
	t.Helper()
	c := &command{t: t, dir: t.TempDir(), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	c.app = newApp(strings.NewReader(""), c.out, c.err)
	c.version = "v0.0-test"
	c.now = func() time.Time { return at }
	c.attach = fakeAttach(&fakeHost{
		facts: testFacts(), holder: lab.Holder{Owner: "ana@desk, process 7", Campaign: "other-1", Since: at},
		cleaned: lab.Cleaned{Removed: []string{"/var/lib/ngxlab/builds/abc"}, FreedBytes: 12 << 20},
	})
	return c
}

// run executes a command line; DIR in it is the app's own directory. It returns the exit code.
func (c *command) run(line ...string) int {
	c.t.Helper()
	c.out.Reset()
	c.err.Reset()
	args := []string{"--db", filepath.Join(c.dir, "lab.db")}
	for _, word := range line {
		args = append(args, strings.ReplaceAll(word, "DIR", c.dir))
	}
	return c.execute(context.Background(), args)
}

// golden holds both streams and the exit code against testdata/NAME.golden.
func (c *command) golden(name string, code int) {
	c.t.Helper()
	text := "exit " + string(rune('0'+code)) + "\n--- stdout\n" + c.out.String() + "--- stderr\n" + c.err.String()
	text = strings.ReplaceAll(text, c.dir, "DIR")
	text = regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+Z`).ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC`).ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`TIME  \d s `).ReplaceAllString(text, "TIME  0 s ") // the test may be slow
	text = regexp.MustCompile(`go1\.\d+(\.\d+)?`).ReplaceAllString(text, "goVERSION")
	text = strings.ReplaceAll(text, "goVERSION, "+runtime.GOARCH, "goVERSION, ARCH")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must(c.t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(c.t, err)
	if text != string(want) {
		c.t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, text, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write puts a file into the app's directory and returns its path.
func (c *command) write(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	must(c.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// fakeHost is a host that answers questions; every other call fails the campaign.
type fakeHost struct {
	conduct.Tuner
	conduct.Builder
	facts      lab.Facts
	pending    []lab.Pending
	standing   []lab.Standing
	restored   []lab.Restored
	restoreErr error
	claimErr   error
	holder     lab.Holder
	cleaned    lab.Cleaned
	cleanErr   error
	tries      func(lab.Trial) (lab.Tried, error) // nil: nothing is built yet
	claimed    []lab.CampaignID
	closed     int
}

func (h *fakeHost) Restore(context.Context) ([]lab.Restored, error) {
	if h.restoreErr == nil {
		h.pending = nil
	}
	return h.restored, h.restoreErr
}

// Install fails: the fake has no package manager.
func (h *fakeHost) Install(context.Context, []string, io.Writer) error { return errNoTools }

// Build fails: the fake has no compiler.
func (h *fakeHost) Build(context.Context, lab.Recipe, io.Writer) (lab.Build, error) {
	return lab.Build{}, errNoTools
}

func (h *fakeHost) try(_ context.Context, t lab.Trial) (lab.Tried, error) {
	if h.tries == nil {
		return lab.Tried{}, nil
	}
	return h.tries(t)
}

var errNoTools = errors.New("there is no compiler")

// fakeAttach reaches this machine as h, and no other host.
func fakeAttach(h *fakeHost) func(context.Context, string, lab.Host) (*machine, error) {
	return func(_ context.Context, _ string, x lab.Host) (*machine, error) {
		if !x.Local {
			return nil, fmt.Errorf("%s: %w", x.Name, &ssh.UnknownKeyError{Host: x.Address, Address: x.Address + ":22", Type: "ssh-ed25519", SHA256: "SHA256:abc"})
		}
		return &machine{
			Machine:  conduct.Machine{Tuner: h, Builder: h},
			facts:    func(context.Context, lab.FactsQuery) (lab.Facts, error) { f := h.facts; f.Host = x.Name; return f, nil },
			claim:    func(_ context.Context, id lab.CampaignID) error { h.claimed = append(h.claimed, id); return h.claimErr },
			pending:  func(context.Context) ([]lab.Pending, error) { return h.pending, nil },
			standing: func(context.Context) ([]lab.Standing, error) { return h.standing, nil },
			holder:   func(context.Context) (lab.Holder, error) { return h.holder, nil },
			clean:    func(context.Context) (lab.Cleaned, error) { return h.cleaned, h.cleanErr },
			try:      h.try,
			close:    func() error { h.closed++; return nil },
		}, nil
	}
}

// testFacts are those of a small machine on which the commands run as an ordinary user.
func testFacts() lab.Facts {
	return lab.Facts{
		Host: "here", Hostname: "desk", CPUModel: "Test CPU", Cores: 2, CPUs: []int{0, 1}, NUMANodes: 1, MemoryBytes: 8 << 30, AvailableBytes: 6 << 30,
		Kernel: "6.1.0", BootID: "b1", Distribution: "debian 12", Architecture: "amd64", Cgroup: 2, NofileSoft: 1024, NofileHard: 1 << 20, NrOpen: 1 << 20,
		CanInstall: true, Compiler: "cc 12", StateDir: "/var/lib/ngxlab", LogBytesFree: 9 << 30,
		Sysctls: map[string]string{
			"net.core.somaxconn": "4096", "net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.tcp_mem": "1 2 900000", "fs.file-max": "9000000",
			"net.ipv4.ip_unprivileged_port_start": "1024",
		},
		SysctlWritable: map[string]bool{},
		Commands:       map[string]string{"wrk": "/usr/bin/wrk", "cc": "/usr/bin/cc", "make": "/usr/bin/make"},
		Packages:       map[string]string{"wrk": "4.1.0"},
		ToolVersions:   map[string]string{"wrk": "wrk 4.1.0"},
	}
}

// study is a small experiment; its kernel step needs root.
const study = `name: small
title: Does switching the access log off help?
hosts:
  here: {local: true, roles: [target, load]}
builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: 8081, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - {name: log off, why: every request saves a write, nginx: {access_log: "off"}}
  - name: kernel
    unsupported: skip
    sysctl: {net.core.somaxconn: 8192}
load:
  - {tool: wrk, connections: 10, keepalive: true, duration: 2s}
repeat: {min: 6, max: 6, precision: 5%, effect: 5%}
claims:
  - {name: worth it, of: rps, state: log off, over: default, at_least: 1.05}
`

// planned is the plan of the study on the test machine.
func planned(t *testing.T, text string) lab.Plan { return plannedAt(t, text, "") }

// plannedAt is the plan when the link finds the host web at an address.
func plannedAt(t *testing.T, text, address string) lab.Plan {
	t.Helper()
	web := testFacts()
	web.Address, web.BootID = address, "b2"
	x, err := experiments.Decode("small.yaml", strings.NewReader(text))
	must(t, err)
	pl, err := plan.New(x, map[lab.HostName]lab.Facts{"here": testFacts(), "web": web}, 7)
	must(t, err)
	return pl
}

// filled makes the database of one finished campaign in which the step helps by gain, with real output of wrk.
func (c *command) filled(id lab.CampaignID, gain float64) {
	c.t.Helper()
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(c.dir, "lab.db"))
	must(c.t, err)
	defer func() { must(c.t, s.Close()) }()
	s.Version = c.version
	pl := planned(c.t, study)
	_, err = s.Begin(ctx, id, pl)
	must(c.t, err)
	must(c.t, s.Event(ctx, id, lab.Event{At: at, Kind: lab.EventBegin, Campaign: id, Text: pl.Experiment.Title}))
	must(c.t, s.Commit(ctx, id, lab.Record{Build: &lab.Build{ID: "abc", Recipe: "nginx", Version: "nginx/1.22.1", Compiler: "cc 12"}}))
	for i, cells := range pl.Rounds {
		for _, cell := range cells {
			r := measured(c.t, cell, i+1, gain)
			must(c.t, s.Commit(ctx, id, lab.Record{Run: &r}))
		}
	}
	must(c.t, s.Commit(ctx, id, lab.Record{Outcome: &lab.Outcome{Campaign: id, Status: lab.StatusDone, Reason: lab.ReasonMax}}))
	r, err := s.Results(ctx, id, store.Options{})
	must(c.t, err)
	must(c.t, s.SaveVerdicts(ctx, id, verdict.All(r)))
}

// measured is one run; rounds differ by a few per cent, as they do.
func measured(t *testing.T, cell lab.CellID, round int, gain float64) lab.Run {
	t.Helper()
	factor := 1 + 0.04*float64(round%3) + 0.001*float64(len(cell.State)*round%5)
	if cell.State == "log off" {
		factor *= gain
	}
	r := lab.Run{
		Cell: cell, Round: round, Attempt: 1, Part: 1, Began: at.Add(time.Duration(round) * time.Minute), Window: lab.Window{DurationS: 2, Overlap: 1},
		Processes: []lab.Process{parsed(t, int(60_000*factor))}, Server: lab.Server{Serving: cell.State}, Grade: lab.GradeB, LoopModel: lab.ClosedLoop,
		Findings: []lab.Finding{{Code: "client-cpu", Outcome: lab.Quiet}, {Code: "server-cpu", Outcome: lab.Fired, Consequence: lab.Limit, Evidence: "0.99 of 1 core"}, {Code: "server-fds", Outcome: lab.NotEvaluated}},
		Validity: lab.Clean, Limit: "server CPU",
	}
	r.Figures = load.Merge(r.Processes, load.MergeInput{Point: planned(t, study).Loads[0]}).Figures
	r.Figures[lab.CPUPerRequest] = 30e-6 / factor
	return r
}

// parsed is a process of wrk with real output, but for the number of requests in it.
func parsed(t *testing.T, requests int) lab.Process {
	t.Helper()
	out, err := os.ReadFile(filepath.Join("testdata", "wrk.out"))
	must(t, err)
	text := strings.NewReplacer("131259 requests", fmt.Sprint(requests, " requests"), "43736.60", fmt.Sprintf("%.2f", float64(requests)/3)).Replace(string(out))
	return load.Parse(lab.Process{
		Host: "here", PID: 7, Command: lab.Command{Tool: "wrk", Argv: []string{"wrk", "-t2", "-c10", "-d3s", "--latency", "http://127.0.0.1:8081/file"}},
		Stdout: []byte(text),
	})
}
