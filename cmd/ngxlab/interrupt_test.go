package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// TestInterruptInAnyPhaseLeavesTheMachineAsItWas interrupts one campaign of the real program in phase after phase; each
// resume goes on where the one before was interrupted.
func TestInterruptInAnyPhaseLeavesTheMachineAsItWas(t *testing.T) {
	m := onMachine(t)
	m.with("phases.yaml", "{first: 0s,", "{first: 1s,", "min: 1, max: 1,", "min: 2, max: 2,", "control: false}", "control: false}\ncapacity: {connections: [0, 200, 400], ramps: 1}")
	line := []string{"run", "DIR/phases.yaml", "--seed", kernelFirst}
	done, stop := 0, false // runs done; no more rounds
	afterRounds := func(k lab.EventKind) func(lab.Event) bool {
		return func(e lab.Event) bool {
			stop = stop || e.Kind == lab.EventStop
			return stop && e.Kind == k
		}
	}
	for _, phase := range []struct {
		name   string
		reach  func(lab.Event) bool
		signal syscall.Signal
	}{
		{"rehearsal", kind(lab.EventServer), syscall.SIGINT},
		{"state", kind(lab.EventState), syscall.SIGINT},
		{"change", kind(lab.EventChange), syscall.SIGTERM},
		{"warm-up", kind(lab.EventWarmup), syscall.SIGINT},
		{"run", kind(lab.EventRun), syscall.SIGHUP},
		{"between runs", kind(lab.EventRunDone), syscall.SIGINT},
		{"between rounds", kind(lab.EventRound), syscall.SIGINT},
		{"server of the capacity part", afterRounds(lab.EventServer), syscall.SIGINT},
		{"held connections", afterRounds(lab.EventCapacity), syscall.SIGINT},
	} {
		if phase.name == "change" && !m.tunes() {
			continue
		}
		stop = false
		p := m.start(append(line, "--json")...)
		e := p.until(phase.name, func(e lab.Event) bool {
			done = max(done, e.Done)
			return phase.reach(e)
		})
		p.signal(phase.signal)
		p.mustEnd(exitInterrupted, "here: as it was before the campaign", "was interrupted after ", `hint: "ngxlab resume `+string(e.Campaign))
		m.mustBeAsBefore()
		if got := m.runs(); got < done || got > done+1 { // one may end in this moment
			t.Errorf("%s: %d runs in the database, %d were done", phase.name, got, done)
		}
		line = []string{"resume", string(e.Campaign)}
		if t.Failed() {
			t.Fatalf("interrupted in phase %q", phase.name)
		}
	}
	if got := m.runs(); got != done || got < 4 || got > 5 { // a fifth may be repeated
		t.Errorf("%d runs in the end, want those 4 of the plan, once", got)
	}
	m.must([]int{exitDone}, "verify", line[1])
	m.must([]int{exitDone}, "report", line[1], "--out", "DIR/report")
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	m := onMachine(t)
	m.ownBuilds()
	must(t, os.Mkdir(filepath.Join(m.dir, "slow"), 0o755))
	m.write("slow/configure", "echo configuring\nsleep 1000\n")
	m.with("slow.yaml", "[stub_status, echo]", "[stub_status]", "{debian: nginx}", "{path: "+filepath.Join(m.dir, "slow")+"}")
	p := m.start("run", "DIR/slow.yaml", "--json")
	p.until("configuring", func(e lab.Event) bool { return e.Kind == lab.EventBuild && e.Text == "configuring" })
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted, "was interrupted after 0 runs")
	m.mustBeAsBefore()
	left, err := filepath.Glob(filepath.Join(m.stateDir, "builds", "*"))
	must(t, err)
	for _, path := range left {
		if !strings.HasPrefix(filepath.Base(path), ".lock-") {
			t.Errorf("left of the build: %s", path)
		}
	}
}

// ownBuilds gives the test builds of its own instead of those that all share.
func (m *machineTest) ownBuilds() {
	m.t.Helper()
	must(m.t, os.Remove(filepath.Join(m.stateDir, "builds")))
	must(m.t, os.Mkdir(filepath.Join(m.stateDir, "builds"), 0o755))
}

// TestInterruptedReportIsNotHalfWritten interrupts when all is measured: the machine is as it was, and the report is
// left to another command.
func TestInterruptedReportIsNotHalfWritten(t *testing.T) {
	m := onMachine(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.app.out = &trigger{word: `"kind":"end"`, n: 1, do: cancel}
	code := m.execute(ctx, m.flags("run", "DIR/tuned.yaml", "--json", "--out", "DIR/reports/one"))
	m.app.out = m.out
	if code != exitInterrupted || !strings.Contains(m.err.String(), "done, but not written up") || !strings.Contains(m.err.String(), `hint: "ngxlab report tuned-`) {
		t.Errorf("exit code %d: %s", code, m.err)
	}
	if left, err := filepath.Glob(filepath.Join(m.dir, "reports", "*")); err != nil || len(left) > 0 {
		t.Errorf("written: %v, %v", left, err)
	}
	m.mustBeAsBefore()
	m.must([]int{exitDone}, "report", "--out", "DIR/reports/one")
	files, err := os.ReadDir(filepath.Join(m.dir, "reports"))
	if err != nil || len(files) != 1 || files[0].Name() != "one" {
		t.Errorf("beside the report: %v, %v", files, err)
	}
}

// TestSecondInterruptLeavesAtOnceAndSaysHowToPutTheMachineBack stops nginx's master, so that the machine cannot be put back
// before the second interrupt.
func TestSecondInterruptLeavesAtOnceAndSaysHowToPutTheMachineBack(t *testing.T) {
	m := onMachine(t)
	p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
	p.until("run", kind(lab.EventRun))
	must(t, syscall.Kill(m.process("nginx: master"), syscall.SIGSTOP))
	p.signal(syscall.SIGINT)
	p.mustSay("interrupt again to leave at once")
	p.signal(syscall.SIGINT)
	p.mustEnd(exitUnrestored, "left before the hosts were put back", `hint: run "ngxlab restore --state-dir `+m.stateDir+`"`)
	m.mustLetGo()
	m.mustBePutBack()
}

// mustBePutBack holds that the knob is tuned, that this is told, and that restore puts it back.
func (m *machineTest) mustBePutBack() {
	m.t.Helper()
	if !m.tunes() {
		m.must([]int{exitDone}, "restore") // it ends what still runs
		m.mustBeAsBefore()
		return
	}
	if got := m.knob(); got != m.tuned {
		m.t.Errorf("%s is %s, want the tuned %s", knobFile, got, m.tuned)
	}
	said := m.must([]int{exitUnrestored}, "restore", "--check")
	if want := regexp.MustCompile(`local +sysctl net.ipv4.tcp_keepalive_intvl +` + m.original + ` +` + m.tuned + ` +tuned-.* ago`); !want.MatchString(said) {
		m.t.Errorf("restore --check says %s", said)
	}
	if said := m.must([]int{exitDone}, "status"); !strings.Contains(said, "1 knob left changed by campaign tuned-") {
		m.t.Errorf("status says %s", said)
	}
	if said := m.must([]int{exitDone}, "restore"); !strings.Contains(said, "put back from "+m.tuned+" to "+m.original) {
		m.t.Errorf("restore says %s", said)
	}
	m.mustBeAsBefore()
}

// TestInterruptWhilePlanningChangesNothing interrupts as soon as the machine is claimed: its facts are being read.
func TestInterruptWhilePlanningChangesNothing(t *testing.T) {
	m := onMachine(t)
	p := m.start("run", "DIR/tuned.yaml", "--json")
	testlab.Eventually(t, "the machine is claimed", func() bool {
		text, err := os.ReadFile(filepath.Join(m.stateDir, "lock"))
		return err == nil && strings.Contains(string(text), "tuned-")
	})
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted)
	m.mustBeAsBefore()
}
