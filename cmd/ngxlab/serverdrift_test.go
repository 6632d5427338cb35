package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/store"
)

// TestServerThatSomeoneChangesInvalidatesItsRunOnly changes what the server runs under in its first run, with a real
// agent and nginx: the run is invalid, the next has a fresh server and is not.
func TestServerThatSomeoneChangesInvalidatesItsRunOnly(t *testing.T) {
	for what, c := range map[string]struct {
		says   string
		change func(m *machineTest)
	}{
		"configuration": {"configuration file should be SHA-256 ", func(m *machineTest) {
			files, err := filepath.Glob(filepath.Join(m.stateDir, "work", "*", "nginx.conf"))
			must(m.t, err)
			if len(files) != 1 {
				m.t.Fatalf("configuration files %v", files)
			}
			text, err := os.ReadFile(files[0])
			must(m.t, err)
			must(m.t, os.WriteFile(files[0], append(text, "# somebody's\n"...), 0o600))
		}},
		"limit of a worker": {"open-file limit should be 1000, was 900,1000", func(m *machineTest) { limited(m.t, m.process("nginx: worker")) }},
	} {
		t.Run(what, func(t *testing.T) {
			m := onMachine(t)
			m.with("two.yaml", "connections: 10,", "connections: [10, 20],", "min: 1, max: 1,", "min: 2, max: 2,", "site: file,", "site: file, nginx: {worker_processes: 2}, nofile: 1000,")
			p := m.start("run", "DIR/two.yaml", "--json", "--out", "DIR/report")
			p.until("run", kind(lab.EventRun))
			m.process("wrk -t")
			c.change(m)
			hit := p.until("run done", kind(lab.EventRunDone))
			if hit.Validity != lab.Invalid || !strings.Contains(strings.Join(hit.Findings, " "), "knob-drift") {
				t.Errorf("the run is %s: %v", hit.Validity, hit.Findings)
			}
			fresh := false
			p.until("next run", func(e lab.Event) bool {
				fresh = fresh || e.Kind == lab.EventServer
				return e.Kind == lab.EventRun
			})
			if !fresh {
				t.Error("the next cell has no fresh server")
			}
			next := p.until("run done", kind(lab.EventRunDone))
			for next.Cell.State == hit.Cell.State { // until one of another server
				next = clean(p, next)
			}
			clean(p, next)
			p.signal(syscall.SIGINT)
			p.mustEnd(exitInterrupted)
			m.mustBeAsBefore()
			found := slices.DeleteFunc(m.findings("knob-drift"), func(f lab.Finding) bool { return f.Outcome != lab.Fired })
			if len(found) != 1 || !strings.HasPrefix(found[0].Evidence, "here: the server's "+c.says) {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// TestServersThatNobodyChangesDoNotDrift holds what a real nginx runs under against what it should, for the settings that
// decide it.
func TestServersThatNobodyChangesDoNotDrift(t *testing.T) {
	m := onMachine(t)
	m.with("many.yaml", "  - {name: kernel, sysctl: {net.ipv4.tcp_keepalive_intvl: "+m.tuned+"}}\n", `  - {name: sockets, nginx: {worker_processes: 2, listen.reuseport: true, listen.backlog: 100}, nofile: 3000}
  - {name: processor, nginx: {worker_cpu_affinity: "01"}}
  - {name: limits, nginx: {worker_rlimit_nofile: 2000}, nproc: 5000}
`)
	m.must(finished, "run", "DIR/many.yaml", "--out", "DIR/report")
	found := m.findings("knob-drift")
	if len(found) < 4 {
		t.Errorf("%d runs were judged", len(found))
	}
	for _, f := range found {
		if f.Outcome != lab.Quiet {
			t.Errorf("%s: %s", f.Outcome, f.Evidence)
		}
	}
	m.mustBeAsBefore()
}

// clean holds that a run was measured without drift, and returns the next.
func clean(p *program, e lab.Event) lab.Event {
	p.t.Helper()
	if strings.Contains(strings.Join(e.Findings, " "), "knob-drift") || len(e.Figures) == 0 {
		p.t.Fatalf("the run on a fresh server is %s: %v", e.Validity, e.Findings)
	}
	return p.until("run done", kind(lab.EventRunDone))
}

// findings are those of a rule in the latest campaign, one for each run that it was applied to.
func (m *machineTest) findings(code string) []lab.Finding {
	m.t.Helper()
	s, err := store.OpenReadOnly(m.t.Context(), filepath.Join(m.dir, "lab.db"))
	must(m.t, err)
	defer func() { must(m.t, s.Close()) }()
	c, err := s.Latest(m.t.Context())
	must(m.t, err)
	r, err := s.Results(m.t.Context(), c.ID, store.Options{})
	must(m.t, err)
	var all []lab.Finding
	for _, run := range r.Runs {
		all = append(all, slices.DeleteFunc(run.Findings, func(f lab.Finding) bool { return f.Code != code })...)
	}
	return all
}

// limited lowers the open-file limit of a process as its own user, who needs no capability for it.
func limited(t *testing.T, pid int) {
	t.Helper()
	testlab.Require(t, "prlimit")
	of, err := os.Stat("/proc/" + strconv.Itoa(pid))
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "prlimit", "--nofile=900:900", "--pid", strconv.Itoa(pid))
	if owner := of.Sys().(*syscall.Stat_t); os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("prlimit: %v: %s", err, out)
	}
}
