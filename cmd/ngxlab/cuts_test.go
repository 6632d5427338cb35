package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// A host is lost in three ways: its login ends, its network is gone, its processes stand still. The first lets it be
// reached again at once, the others only when they are undone.
type loss struct {
	how  func(l *farLab, host string)
	undo func(l *farLab, host string) // nil = it can be reached all the time
}

var losses = map[string]loss{
	"login": {how: func(l *farLab, host string) { l.inside(host, "pkill -KILL -f '^sshd: (root|bench)'") }},
	"network": {
		how:  func(l *farLab, host string) { l.docker("network", "disconnect", "ngxlab-"+l.name, l.container(host)) },
		undo: func(l *farLab, host string) { l.docker("network", "connect", "ngxlab-"+l.name, l.container(host)) },
	},
	"pause": {
		how:  func(l *farLab, host string) { l.docker("pause", l.container(host)) },
		undo: func(l *farLab, host string) { l.docker("unpause", l.container(host)) },
	},
}

// cut is a host that is lost in a phase of a campaign.
type cut struct {
	phase string
	reach func(p *program) lab.Event
	host  string
	loss  string
	says  []string // by the campaign's events, beside the host
	back  bool     // the host can be reached again while the program tries to
	moves bool     // the host gets another address before it is put back
}

// atOnce says that the program itself can put the host back.
func (c cut) atOnce() bool { return c.back || losses[c.loss].undo == nil }

// next reaches the next event of a kind.
func next(k lab.EventKind) func(*program) lab.Event {
	return func(p *program) lab.Event { p.t.Helper(); return p.until(string(k), kind(k)) }
}

// afterRounds reaches the next event of a kind in the capacity part.
func afterRounds(k lab.EventKind) func(*program) lab.Event {
	return func(p *program) lab.Event {
		p.t.Helper()
		p.until("stop", kind(lab.EventStop))
		return p.until(string(k), kind(k))
	}
}

// TestHostLostInAnyPhaseIsNamedLeftCleanAndPutBack loses a host in phase after phase of a campaign, which each resume takes
// up again. No process and no lock is left there, and the host is as it was when it can be reached again.
func TestHostLostInAnyPhaseIsNamedLeftCleanAndPutBack(t *testing.T) {
	sharedHome(t)
	t.Run("logins", func(t *testing.T) {
		t.Parallel()
		l := overSSHInLab(t)
		l.slowBuild()
		l.losing("slow.yaml", cut{phase: "build", reach: func(p *program) lab.Event {
			return p.until("configuring", func(e lab.Event) bool { return e.Kind == lab.EventBuild && e.Text == "configuring" })
		}, host: "web", loss: "login", says: []string{"build nginx"}})
		l.losing("far.yaml",
			cut{phase: "rehearsal", reach: next(lab.EventServer), host: "web", loss: "login"},
			cut{phase: "change", reach: next(lab.EventChange), host: "web", loss: "login"},
			cut{phase: "run", reach: l.measuring, host: "gen2", loss: "login", says: []string{"measure kernel, wrk 9 keep-alive, round 1"}},
			cut{phase: "held connections", reach: afterRounds(lab.EventCapacity), host: "gen1", loss: "login", says: []string{"capacity idle"}},
		)
		l.finish()
		l.slowInstall("gen1")
		l.losing("far.yaml", cut{phase: "install", reach: next(lab.EventInstall), host: "gen1", loss: "login", says: []string{"install packages"}})
		if l.inside("gen1", "cat /root/installed") != "whole\n" {
			t.Error("the package manager was interrupted")
		}
	})
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		l := overSSHInLab(t)
		l.with("warm.yaml", "{first: 1s,", "{first: 4s,") // longer than it takes to lose a network
		l.losing("warm.yaml",
			cut{phase: "warm-up", reach: next(lab.EventWarmup), host: "gen3", loss: "network", says: []string{"warm up for kernel"}, back: true},
			cut{phase: "restore", reach: l.restoring, host: "web", loss: "network", says: []string{"restore"}},
			cut{phase: "between runs", reach: next(lab.EventRunDone), host: "web", loss: "network", moves: true},
		)
	})
	t.Run("pause", func(t *testing.T) {
		t.Parallel()
		l := overSSHInLab(t)
		l.with("lab.yaml", l.asSSH(), "  web: {docker: {}, roles: [target]}\n  gen: {docker: {}, roles: [load], count: 3}\n")
		l.losing("lab.yaml",
			cut{phase: "state", reach: next(lab.EventChange), host: "web", loss: "pause", back: true},
			cut{phase: "second run", reach: l.secondRun, host: "web", loss: "pause"},
		)
		before := l.address("web")
		l.move("web")
		l.finish()
		if said := l.err.String(); !strings.Contains(said, "web has another address: "+before+" → "+l.address("web")) {
			t.Errorf("resume says %s", said)
		}
	})
}

// losing runs a study and loses a host in each of the phases.
func (l *farLab) losing(file string, cuts ...cut) {
	l.t.Helper()
	before := l.sysctls()
	line := []string{"run", "DIR/" + file, "--seed", kernelFirst, "--json", "--out", "DIR/report"}
	for _, c := range cuts {
		p := l.start(line...)
		e := c.reach(p)
		l.lose(p, c)
		l.putBack(file, c, before)
		if l.t.Failed() {
			l.t.Fatalf("%s of %s lost in phase %q: %s", c.loss, c.host, c.phase, p.stderr)
		}
		line = []string{"resume", string(e.Campaign), "--json", "--out", "DIR/report"}
	}
}

// What a lost host may take: to be told of, and for everything on it to be gone. The second is the promise of five
// seconds and the time to look.
const (
	toldWithin = 10 * time.Second
	goneWithin = 6 * time.Second
)

// lose loses a host and holds how the program takes it.
func (l *farLab) lose(p *program, c cut) {
	l.t.Helper()
	ours := l.running(c.host)
	if len(ours) < 2 { // guard and worker
		l.t.Fatalf("on %s run %v", c.host, ours)
	}
	how, began := losses[c.loss], time.Now()
	how.how(l, c.host)
	if c.loss != "pause" {
		l.mustBeGone(c, ours)
	}
	var said strings.Builder
	end := p.until("end", func(e lab.Event) bool {
		if e.Kind == lab.EventProblem || e.Kind == lab.EventEnd {
			said.WriteString(string(e.Host) + ": " + e.Text + "\n")
		}
		return e.Kind == lab.EventEnd
	})
	if took := end.At.Sub(began); took > toldWithin {
		l.t.Errorf("told after %v", took)
	}
	for _, want := range append(c.says, c.host+": ") {
		if !strings.Contains(said.String(), want) {
			l.t.Errorf("%q is missing in %q", want, said.String())
		}
	}
	name := c.host + ": "
	if c.back {
		how.undo(l, c.host)
	}
	if c.atOnce() {
		p.mustEnd(exitFailed, name+"trying again to put it back", name+"as it was before the campaign", `hint: "ngxlab resume `)
	} else {
		p.mustEnd(exitUnrestored, name+"NOT as it was before the campaign", "not put back as it was: "+c.host, `hint: run "ngxlab restore `)
		how.undo(l, c.host)
	}
	for _, h := range farHosts {
		if string(h) != c.host && !strings.Contains(p.stderr.String(), string(h)+": as it was before the campaign") {
			l.t.Errorf("%s is not told of: %s", h, p.stderr)
		}
	}
	if c.loss == "pause" {
		l.mustBeGone(c, ours)
	}
}

// mustBeGone holds that all these processes end in time; a package manager comes to its own end.
func (l *farLab) mustBeGone(c cut, ours map[string]string) {
	l.t.Helper()
	if c.phase == "install" {
		return
	}
	began := time.Now()
	testlab.Eventually(l.t, "all is gone on "+c.host, func() bool {
		now := l.running(c.host)
		for pid, what := range ours {
			if now[pid] == what {
				return false
			}
		}
		return true
	})
	if took := time.Since(began); took > goneWithin {
		l.t.Errorf("gone after %v: %v", took, ours)
	}
}

// putBack holds that a host that can be reached again is free and can be put back wholly.
func (l *farLab) putBack(file string, c cut, before map[string]string) {
	l.t.Helper()
	if c.moves {
		l.move(c.host)
		old := l.host(c.host).Address
		moved := l.host(c.host)
		moved.Address = l.address(c.host)
		l.know(moved)
		file = "moved-" + file
		l.with(file, old+",", moved.Address+",")
	}
	l.inside(c.host, "flock -n /run/lock/ngxlab.lock true")
	if !c.atOnce() {
		l.must([]int{exitDone}, "restore", "DIR/"+file, c.host)
	}
	l.mustBeAs(before)
	if said := l.must([]int{exitDone}, "restore", "--check", "DIR/"+file); strings.Count(said, "nothing to put back") != 4 {
		l.t.Errorf("restore --check says %s", said)
	}
	l.mustBeIdle()
}

// finish resumes the campaign to its end.
func (l *farLab) finish() {
	l.t.Helper()
	l.must(finished, "resume", "--out", "DIR/report")
	l.runs()
}

// measuring reaches the load of a run, after its warm-up.
func (l *farLab) measuring(p *program) lab.Event {
	l.t.Helper()
	e := p.until("run", kind(lab.EventRun))
	testlab.Eventually(l.t, "gen2 loads the target", func() bool {
		for _, what := range l.running("gen2") {
			if strings.HasPrefix(what, "wrk ") && strings.Contains(what, " -d2s ") {
				return true
			}
		}
		return false
	})
	return e
}

// secondRun reaches a run after one that is done.
func (l *farLab) secondRun(p *program) lab.Event {
	l.t.Helper()
	p.until("run done", kind(lab.EventRunDone))
	return p.until("run", kind(lab.EventRun))
}

// restoring interrupts a run whose server does not end at once, so that the hosts are not put back yet.
func (l *farLab) restoring(p *program) lab.Event {
	l.t.Helper()
	e := p.until("run", kind(lab.EventRun))
	l.inside("web", "pkill -STOP -f '[n]ginx: master'")
	p.signal(syscall.SIGINT)
	p.mustSay("interrupt again to leave at once")
	return e
}

// address is where a host is now.
func (l *farLab) address(host string) string {
	l.t.Helper()
	return strings.TrimSpace(l.docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", l.container(host)))
}

// move gives a host another address: another container takes its own meanwhile.
func (l *farLab) move(host string) {
	l.t.Helper()
	network, before := "ngxlab-"+l.name, l.address(host)
	l.docker("network", "disconnect", network, l.container(host))
	image := strings.TrimSpace(l.docker("inspect", "-f", "{{.Config.Image}}", l.container(host)))
	guest := l.name + "-guest"
	l.docker("run", "-d", "--rm", "--name", guest, "--network", network, image, "sleep", "600")
	l.t.Cleanup(func() { l.docker("rm", "-f", guest) })
	l.docker("network", "connect", network, l.container(host))
	if l.address(host) == before {
		l.t.Fatalf("%s is still at %s", host, before)
	}
}

// slowBuild writes slow.yaml, whose build stands still in its configuration.
func (l *farLab) slowBuild() {
	l.t.Helper()
	l.inside("web", `mkdir /root/slow && printf 'echo configuring\nsleep 1000\n' >/root/slow/configure`)
	l.with("slow.yaml", "[stub_status, echo]", "[stub_status]", "{debian: nginx}", "{path: /root/slow}")
}

// slowInstall takes wrk from a host; the package manager that brings it back takes some seconds.
func (l *farLab) slowInstall(host string) {
	l.t.Helper()
	l.inside(host, `mkdir /root/kept && cp /usr/bin/wrk /root/kept/ && dpkg -r wrk >/dev/null &&
printf '#!/bin/sh\ncase $* in *install*) sleep 6; cp /root/kept/wrk /usr/bin/wrk; echo whole >/root/installed;; esac\n' >/usr/local/sbin/apt-get &&
chmod 755 /usr/local/sbin/apt-get`)
	if slices.Contains(strings.Fields(l.inside(host, "command -v wrk || true")), "/usr/bin/wrk") {
		l.t.Fatalf("%s still has wrk", host)
	}
}
