package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/store"
)

// tuned is a study that changes a sysctl, with real nginx and wrk. PORT and TUNED are replaced.
const tuned = `name: tuned
title: Is everything put back?
hosts:
  here: {local: true, roles: [target, load]}
builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: PORT, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - {name: kernel, sysctl: {net.ipv4.tcp_keepalive_intvl: TUNED}}
load:
  - {tool: wrk, connections: 10, keepalive: true, duration: 1s, warmup: {first: 0s, further: 0s}}
repeat: {min: 1, max: 1, precision: 5%, effect: 5%, cool_down: 10ms, control: false}
`

// kernelFirst is a seed with which the tuned study begins with the step kernel.
const kernelFirst = "3"

// knobFile is the sysctl that the tuned study changes. No other test changes it.
const knobFile = "/proc/sys/net/ipv4/tcp_keepalive_intvl"

// machineTest runs commands on this machine through a real agent, and knows how the machine was before.
type machineTest struct {
	*command
	port            int
	original, tuned string // of knobFile; equal where it cannot be written
	study           string // the tuned study's text
}

// onMachine prepares a folder with tuned.yaml and a state directory. Where the sysctl cannot be written, as an ordinary
// user or in a container, the study asks for the value that it has, and nothing has to be put back.
func onMachine(t *testing.T) *machineTest {
	t.Helper()
	m := &machineTest{command: newCommand(t), port: testlab.FreePort(t)}
	m.onThisMachine()
	m.original = m.knob()
	n, err := strconv.Atoi(m.original)
	must(t, err)
	m.tuned = strconv.Itoa(n - 1)
	knob, err := os.OpenFile(knobFile, os.O_WRONLY, 0)
	if err != nil {
		t.Logf("SKIPPED the change of a sysctl: %v", err)
		m.tuned = m.original
	} else {
		must(t, knob.Close())
	}
	m.study = strings.NewReplacer("PORT", strconv.Itoa(m.port), "TUNED", m.tuned).Replace(tuned)
	m.write("tuned.yaml", m.study)
	t.Cleanup(func() { // what a failed test left
		for pid := range m.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if m.tunes() {
			must(t, os.WriteFile(knobFile, []byte(m.original), 0o644))
		}
	})
	return m
}

// tunes reports whether the tuned study changes the sysctl.
func (m *machineTest) tunes() bool { return m.tuned != m.original }

// with writes the tuned study under a name, with old replaced by new in it.
func (m *machineTest) with(name string, oldnew ...string) {
	m.t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(m.study, oldnew[i]) {
			m.t.Fatalf("the study has no %q", oldnew[i])
		}
	}
	m.write(name, strings.NewReplacer(oldnew...).Replace(m.study))
}

// flags are those that lead every command to the test's own folders; DIR in a line is the test's folder.
func (m *machineTest) flags(line ...string) []string {
	args := []string{"--db", filepath.Join(m.dir, "lab.db"), "--state-dir", m.stateDir, "--agent", m.agent}
	for _, word := range line {
		args = append(args, strings.ReplaceAll(word, "DIR", m.dir))
	}
	return args
}

// do executes a command line in this process and returns its exit code; m.out and m.err have what it printed.
func (m *machineTest) do(line ...string) int {
	m.t.Helper()
	m.out.Reset()
	m.err.Reset()
	return m.execute(m.t.Context(), m.flags(line...))
}

// must executes a command line that ends with one of the exit codes, and returns its standard output.
func (m *machineTest) must(codes []int, line ...string) string {
	m.t.Helper()
	got := m.do(line...)
	for _, code := range codes {
		if got == code {
			return m.out.String()
		}
	}
	m.t.Fatalf("%v: exit code %d, want %v:\n%s%s", line, got, codes, m.out, m.err)
	return ""
}

// finished are the exit codes of a campaign that reached its end: all runs are invalid when other programs take the CPU.
var finished = []int{exitDone, exitDoubtful}

func (m *machineTest) knob() string {
	m.t.Helper()
	text, err := os.ReadFile(knobFile)
	must(m.t, err)
	return strings.TrimSpace(string(text))
}

// mustBeAsBefore holds that nothing of ngxlab is left on the machine: neither a value, nor a journal, a process, a port,
// a file of work or the lock.
func (m *machineTest) mustBeAsBefore() {
	m.t.Helper()
	if got := m.knob(); got != m.original {
		m.t.Errorf("%s is %s, was %s", knobFile, got, m.original)
	}
	if left := m.left(); left != "" {
		m.t.Errorf("left on the machine: %s", left)
	}
	if code := m.do("restore", "--check"); code != exitDone || !strings.Contains(m.out.String(), "nothing to put back") {
		m.t.Errorf("restore --check: exit code %d: %s%s", code, m.out, m.err)
	}
}

// left says what still runs, listens, lies in the folder of work or holds the lock; "" when nothing does.
func (m *machineTest) left() string {
	var all []string
	for pid, what := range m.processes() {
		all = append(all, fmt.Sprintf("process %d (%s)", pid, what))
	}
	for _, port := range []int{m.port, m.port + 1} {
		l, err := new(net.ListenConfig).Listen(m.t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		must(m.t, l.Close())
	}
	files, err := filepath.Glob(filepath.Join(m.stateDir, "work", "*"))
	must(m.t, err)
	all = append(all, files...)
	if lock, err := os.Open(filepath.Join(m.stateDir, "lock")); err == nil {
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			all = append(all, "the lock")
		}
		must(m.t, lock.Close())
	}
	return strings.Join(all, ", ")
}

// mustLetGo waits until nothing runs any more, at most the five seconds in which all ends that has lost its program.
func (m *machineTest) mustLetGo() {
	m.t.Helper()
	began := time.Now()
	testlab.Eventually(m.t, "everything has ended", func() bool { return len(m.processes()) == 0 })
	if took := time.Since(began); took > 5*time.Second {
		m.t.Errorf("everything had ended only after %v", took)
	}
}

// processes are those of the agent on the test's state directory and of all that it started, with their command lines.
func (m *machineTest) processes() map[int]string {
	all := map[int]string{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(m.t, err)
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(line) == 0 { // ended, or a zombie
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		agent := bytes.Contains(line, []byte("--dir\x00"+m.stateDir))
		started := bytes.Contains(environment, []byte("NGXLAB_DIR="+m.stateDir+"\x00"))
		if agent || started || strings.HasPrefix(cwd, filepath.Join(m.stateDir, "work")) {
			pid, err := strconv.Atoi(filepath.Base(dir))
			must(m.t, err)
			all[pid] = strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// process waits for a process of the agent's whose command line has the words, and returns its pid.
func (m *machineTest) process(words string) int {
	m.t.Helper()
	found := 0
	testlab.Eventually(m.t, "a process "+words, func() bool {
		for pid, line := range m.processes() {
			if strings.Contains(line, words) {
				found = pid
			}
		}
		return found != 0
	})
	return found
}

// runs counts the latest campaign's runs in the database, and checks that none is there twice or half.
func (m *machineTest) runs() int {
	m.t.Helper()
	s, err := store.OpenReadOnly(m.t.Context(), filepath.Join(m.dir, "lab.db"))
	must(m.t, err)
	defer func() { must(m.t, s.Close()) }()
	c, err := s.Latest(m.t.Context())
	must(m.t, err)
	broken, err := s.Check(m.t.Context(), c.ID)
	must(m.t, err)
	r, err := s.Results(context.WithoutCancel(m.t.Context()), c.ID, store.Options{})
	must(m.t, err)
	seen := map[string]bool{}
	for _, run := range r.Runs {
		seen[fmt.Sprint(run.Cell, run.Round, run.Attempt)] = true
	}
	if len(broken) > 0 || len(seen) != len(r.Runs) || len(r.Runs) != c.Runs {
		m.t.Errorf("%d runs, %d of them different, listed as %d; broken: %v", len(r.Runs), len(seen), c.Runs, broken)
	}
	return c.Runs
}
