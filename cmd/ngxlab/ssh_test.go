package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// sshTest runs commands on this machine over a real OpenSSH server, as both roles of one host named web.
type sshTest struct {
	*machineTest
	server *testlab.SSHServer
}

// overSSH prepares the tuned study for a host over SSH; the program finds the known hosts in a home of the test's own.
func overSSH(t *testing.T) *sshTest {
	t.Helper()
	m := &sshTest{machineTest: onMachine(t), server: testlab.SSHD(t, testlab.SSHDOptions{})}
	m.study = strings.Replace(m.study, "here: {local: true,", "web: {"+m.access()+",", 1)
	m.write("tuned.yaml", m.study)
	must(t, os.MkdirAll(filepath.Join(m.dir, "home", ".ssh"), 0o700))
	m.know(string(m.read(m.server.KnownHosts)))
	t.Setenv("HOME", filepath.Join(m.dir, "home"))
	t.Setenv("SSH_AUTH_SOCK", "")
	return m
}

// access is how the study reaches the server.
func (m *sshTest) access() string {
	return fmt.Sprintf("address: %s, port: %d, user: %s, key: %s", m.server.Address, m.server.Port, m.server.User, m.server.Key)
}

// destination is the server as the command line takes it.
func (m *sshTest) destination() string {
	return fmt.Sprintf("%s@%s:%d", m.server.User, m.server.Address, m.server.Port)
}

func (m *sshTest) read(path string) []byte {
	m.t.Helper()
	text, err := os.ReadFile(path)
	must(m.t, err)
	return text
}

// know makes the text the known hosts.
func (m *sshTest) know(text string) { m.write("home/.ssh/known_hosts", text) }

// cut ends every connection of the server's.
func (m *sshTest) cut() { kill(m.t, m.server.Logins(m.t)...) }

func TestStudyOverSSHIsPlannedRunAndPutBack(t *testing.T) {
	m := overSSH(t)
	plan := m.must([]int{exitDone}, "plan", "DIR/tuned.yaml")
	for _, want := range []string{"web (target and load; " + m.destination(), "http://127.0.0.1:" + strconv.Itoa(m.port)} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	m.must(finished, "run", "DIR/tuned.yaml", "--seed", kernelFirst, "--out", "DIR/report")
	if said := m.err.String(); !strings.Contains(said, "web: as it was before the campaign") {
		t.Errorf("run says %s", said)
	}
	if got := m.runs(); got < 2 {
		t.Errorf("%d runs, want 2", got)
	}
	if said := m.must([]int{exitDone}, "restore", "DIR/tuned.yaml"); !strings.Contains(said, "web: nothing to put back") {
		t.Errorf("restore says %s", said)
	}
	m.mustBeAsBefore()
}

func TestInterruptOverSSHLeavesTheHostAsItWas(t *testing.T) {
	m := overSSH(t)
	p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
	p.until("run", kind(lab.EventRun))
	if m.knob() != m.tuned {
		t.Fatal("the host is not tuned")
	}
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted, "web: as it was before the campaign", "was interrupted after ")
	m.mustBeAsBefore()
}

// TestLostLinkIsMadeAnewAndTheHostPutBack cuts the connection while load runs on a tuned host.
func TestLostLinkIsMadeAnewAndTheHostPutBack(t *testing.T) {
	m := overSSH(t)
	p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
	p.until("run", kind(lab.EventRun))
	m.cut()
	p.mustEnd(exitFailed, "the link to the agent is gone", "web: trying again to put it back", "web: as it was before the campaign", `hint: "ngxlab resume tuned-`)
	m.mustBeAsBefore()
}

// TestHostThatStaysAwayIsNamedWithTheCommandThatPutsItBack cuts the connection while load runs on a tuned host, and lets nobody
// in any more.
func TestHostThatStaysAwayIsNamedWithTheCommandThatPutsItBack(t *testing.T) {
	m := overSSH(t)
	if !m.tunes() {
		t.Skip("SKIPPED: no sysctl can be changed here")
	}
	p := m.start("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--json")
	p.until("run", kind(lab.EventRun))
	must(t, os.Remove(filepath.Join(m.server.Dir, "authorized_keys")))
	m.cut()
	p.mustEnd(exitUnrestored, "web: NOT as it was before the campaign", fmt.Sprintf("hint: run %q", "ngxlab restore --state-dir "+m.stateDir+" "+filepath.Join(m.dir, "tuned.yaml")))
	m.mustLetGo()
	if code := m.do("restore"); code != exitDone || !strings.Contains(m.out.String(), "put back from "+m.tuned+" to "+m.original) {
		t.Errorf("restore by another way: exit code %d: %s%s", code, m.out, m.err)
	}
	m.mustBeAsBefore()
}

func TestSecondProgramOverSSHIsToldWhoHasTheHost(t *testing.T) {
	m := overSSH(t)
	m.with("slow.yaml", "duration: 1s", "duration: 10s")
	p := m.start("run", "DIR/slow.yaml", "--seed", kernelFirst, "--json")
	e := p.until("run", kind(lab.EventRun))
	for _, line := range [][]string{{"run", "DIR/tuned.yaml", "--db", "DIR/second.db"}, {"restore", "--key", m.server.Key, m.destination()}} {
		code := m.do(line...)
		for _, want := range []string{"in use by ", "@", string(e.Campaign), "since 2", "hint: wait until that campaign has ended, or end it"} {
			if code != exitFailed || !strings.Contains(m.err.String(), want) {
				t.Errorf("%v: exit code %d, %q is missing: %s", line, code, want, m.err)
			}
		}
	}
	if said := m.must([]int{exitDone}, "hosts", "list", "DIR/tuned.yaml"); !strings.Contains(said, string(e.Campaign)) || m.tunes() && !strings.Contains(said, "tcp_keepalive_intvl") {
		t.Errorf("hosts list says %s", said)
	}
	if m.knob() != m.tuned {
		t.Error("the first campaign was disturbed")
	}
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted)
	m.mustBeAsBefore()
}

func TestHostIsTrustedOnceThePersonAgrees(t *testing.T) {
	m := overSSH(t)
	m.know("")
	code := m.do("hosts", "list", "DIR/tuned.yaml")
	for _, want := range []string{"tuned.yaml:4:3: web: ", "is not known", "SHA256:", `hint: run "ngxlab hosts trust ` + filepath.Join(m.dir, "tuned.yaml")} {
		if code != exitFailed || !strings.Contains(m.err.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s", code, want, m.err)
		}
	}
	if code := m.do("hosts", "trust", "DIR/tuned.yaml"); code != exitUsage || !strings.Contains(m.err.String(), "--fingerprint") {
		t.Errorf("without a terminal: exit code %d: %s", code, m.err)
	}
	m.asks = true
	for answer, want := range map[string]int{"n\n": exitFailed, "": exitFailed} {
		m.answers = bufio.NewReader(strings.NewReader(answer))
		if code := m.do("hosts", "trust", "DIR/tuned.yaml"); code != want || !strings.Contains(m.err.String(), "not trusted") {
			t.Errorf("answer %q: exit code %d: %s", answer, code, m.err)
		}
	}
	m.answers = bufio.NewReader(strings.NewReader("y\n"))
	if said := m.must([]int{exitDone}, "hosts", "trust", "DIR/tuned.yaml"); !strings.Contains(said, "ssh-ed25519 SHA256:") {
		t.Errorf("hosts trust says %s", said)
	}
	if said := m.must([]int{exitDone}, "hosts", "trust", "--json", "DIR/tuned.yaml"); !strings.Contains(said, `"known": true`) {
		t.Errorf("again: hosts trust says %s", said)
	}
	if said := m.must([]int{exitDone}, "hosts", "list", "DIR/tuned.yaml"); !strings.Contains(said, hostAnswers) {
		t.Errorf("hosts list says %s", said)
	}
}

func TestFingerprintGivenIsTheOnlyOneTrusted(t *testing.T) {
	m := overSSH(t)
	m.know("")
	if code := m.do("hosts", "trust", "--fingerprint", "SHA256:abc", m.destination()); code != exitFailed || !strings.Contains(m.err.String(), "none of its keys has the fingerprint SHA256:abc") {
		t.Errorf("exit code %d: %s", code, m.err)
	}
	_, found, _ := strings.Cut(m.out.String(), "SHA256:")
	found, _, _ = strings.Cut(found, "\n")
	m.must([]int{exitDone}, "hosts", "trust", "--fingerprint", "SHA256:"+found, m.destination())
	m.must([]int{exitDone}, "hosts", "facts", "--key", m.server.Key, m.destination())
}

func TestChangedKeyIsRefusedWithBothFingerprintsAndNeverReplaced(t *testing.T) {
	m := overSSH(t)
	other := testlab.SSHD(t, testlab.SSHDOptions{})
	swapped := strings.ReplaceAll(string(m.read(other.KnownHosts)), strconv.Itoa(other.Port), strconv.Itoa(m.server.Port))
	m.know(swapped)
	for _, line := range [][]string{{"hosts", "facts", "DIR/tuned.yaml"}, {"hosts", "trust", "--yes", "DIR/tuned.yaml"}} {
		code := m.do(line...)
		if code != exitFailed || strings.Count(m.err.String(), "SHA256:") != 2 || !strings.Contains(m.err.String(), `"ssh-keygen -R [127.0.0.1]:`) {
			t.Errorf("%v: exit code %d: %s", line, code, m.err)
		}
	}
	if code := m.do("hosts", "trust", "--yes", "--json", "DIR/tuned.yaml"); code != exitFailed || !strings.Contains(m.out.String(), `"host": "web",`) || !strings.Contains(m.out.String(), `"error": "web: the host key of `) {
		t.Errorf("exit code %d: %s", code, m.out)
	}
	if got := string(m.read(filepath.Join(m.dir, "home", ".ssh", "known_hosts"))); got != swapped {
		t.Errorf("the known hosts are %s", got)
	}
}
