package main

import (
	"strings"
	"syscall"
	"testing"

	"ngxlab/lab"
)

// TestKilledProgramIsSurvived kills ngxlab in its second run: all that it started ends, restore puts the machine back, and
// resume does the missing run.
func TestKilledProgramIsSurvived(t *testing.T) {
	m := onMachine(t)
	p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
	p.until("run", kind(lab.EventRun))
	m.process("wrk -t")
	p.signal(syscall.SIGKILL)
	p.mustEnd(-1)
	m.mustLetGo()
	m.mustBePutBack()
	if said := m.must([]int{exitDone}, "status"); m.tunes() && !strings.Contains(said, ": interrupted, 0 of ") {
		t.Errorf("status says %s", said)
	}
	if got := m.runs(); got != 0 {
		t.Errorf("%d runs in the database, none was finished", got)
	}
	p = m.start("resume", "--json", "--out", "DIR/report")
	p.until("run done", kind(lab.EventRunDone))
	p.until("run", kind(lab.EventRun))
	p.signal(syscall.SIGKILL)
	p.mustEnd(-1)
	m.mustLetGo()
	if got := m.runs(); got != 1 {
		t.Errorf("%d runs in the database, one was finished", got)
	}
	m.must(finished, "resume", "--out", "DIR/report")
	if got := m.runs(); got < 2 || got > 3 || strings.Contains(m.err.String(), "begins: its runs are not compared") {
		t.Errorf("%d runs in the end, want 2 and at most one repetition: %s", got, m.err)
	}
	m.mustBeAsBefore()
}

// TestKilledAgentFailsTheCampaignAndTheMachineIsPutBack kills guard, worker or both in a run with a tuned sysctl.
func TestKilledAgentFailsTheCampaignAndTheMachineIsPutBack(t *testing.T) {
	for _, victims := range [][]string{{" serve --dir"}, {"ngxlab-agent worker"}, {" serve --dir", "ngxlab-agent worker"}} {
		t.Run(strings.Join(victims, " and "), func(t *testing.T) {
			m := onMachine(t)
			p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
			p.until("run", kind(lab.EventRun))
			m.process("wrk -t")
			var pids []int
			for _, v := range victims {
				pids = append(pids, m.process(v))
			}
			kill(t, pids...)
			p.mustEnd(exitFailed, "here: ", "the link to the agent is gone", "here: trying again to put it back", "here: as it was before the campaign", `hint: "ngxlab resume tuned-`)
			m.mustBeAsBefore()
			if said := m.must([]int{exitDone}, "list"); !strings.Contains(said, "failed") {
				t.Errorf("list says %s", said)
			}
		})
	}
}

// TestKilledServerInvalidatesItsRunOnly kills nginx's master while wrk measures.
func TestKilledServerInvalidatesItsRunOnly(t *testing.T) {
	m := onMachine(t)
	m.with("two.yaml", "connections: 10,", "connections: [10, 20],", "min: 1, max: 1,", "min: 2, max: 2,") // a fifth of 8 runs may be repeated
	p := m.start("run", "DIR/two.yaml", "--json", "--out", "DIR/report")
	p.until("run", kind(lab.EventRun))
	m.process("wrk -t")
	kill(t, m.process("nginx: master"))
	hit := p.until("run done", kind(lab.EventRunDone))
	if hit.Validity != lab.Invalid || !strings.Contains(strings.Join(hit.Findings, " "), "server-restarted") {
		t.Errorf("the run without a server is %s: %v", hit.Validity, hit.Findings)
	}
	fresh := false
	p.until("next run", func(e lab.Event) bool {
		fresh = fresh || e.Kind == lab.EventServer
		return e.Kind == lab.EventRun
	})
	if !fresh {
		t.Error("the next cell has no fresh server")
	}
	p.until("repetition", func(e lab.Event) bool {
		return e.Kind == lab.EventRetry && *e.Cell == *hit.Cell && e.Round == hit.Round
	})
	again := p.until("run done", kind(lab.EventRunDone))
	if strings.Contains(strings.Join(again.Findings, " "), "server-restarted") || len(again.Figures) == 0 {
		t.Errorf("the repetition is %s: %v", again.Validity, again.Findings)
	}
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted)
	m.mustBeAsBefore()
}

// TestSecondProgramIsToldWhoHasTheMachine runs a second campaign, and a restore, while a first one measures.
func TestSecondProgramIsToldWhoHasTheMachine(t *testing.T) {
	m := onMachine(t)
	p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
	e := p.until("run", kind(lab.EventRun))
	for _, line := range [][]string{{"run", "DIR/real.yaml", "--db", "DIR/second.db"}, {"restore"}} {
		code := m.do(line...)
		for _, want := range []string{"in use by ", "@", string(e.Campaign), "since 2", "hint: wait until that campaign has ended, or end it"} {
			if (code != exitFailed && code != exitUnrestored) || !strings.Contains(m.err.String(), want) {
				t.Errorf("%v: exit code %d, %q is missing: %s", line, code, want, m.err)
			}
		}
	}
	if m.knob() != m.tuned {
		t.Error("the first campaign was disturbed")
	}
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted)
	m.mustBeAsBefore()
}
