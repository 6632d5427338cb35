package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/agent/process"
	"ngxlab/agent/wire"
	"ngxlab/hosts/agents"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// local starts a real agent on this machine; the test ends it.
func local(t *testing.T, dir string) *Host {
	t.Helper()
	h, err := Local(t.Context(), Options{Name: "here", Dir: dir, Agent: testlab.Agent(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // again, for those that a test has closed or killed
	return h
}

// busy lets the host run a command with a child that left its process group, and returns the pids of guard, worker and
// of all that the worker started.
func busy(t *testing.T, h *Host) (guard, worker int, started []int) {
	t.Helper()
	if err := h.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "trap '' INT TERM HUP; echo $$ >" + dir + "/child; setsid sh -c 'trap \"\" INT TERM HUP; (sleep 1000; :) & echo $$ >" + dir + "/gone; wait'; sleep 1000"
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sh", "-c", script}}, {Argv: []string{"sleep", "1000"}}})
	if err != nil {
		t.Fatal(err)
	}
	fired := make(chan error, 1)
	go func() {
		_, err := h.Fire(t.Context(), armed, 0)
		fired <- err
	}()
	t.Cleanup(func() {
		if err := <-fired; err == nil {
			t.Error("the fire ended without an error")
		}
	})
	if _, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sleep", "1000"}}}); err != nil { // stays waiting
		t.Fatal(err)
	}
	escaped := testlab.PIDIn(t, dir+"/gone")
	guard = h.conn.pipe.(*localPipe).cmd.Process.Pid
	var all []int
	testlab.Eventually(t, "eight processes below the guard", func() bool {
		all, err = process.Descendants(guard)
		return err == nil && len(all) >= 7
	})
	for _, pid := range all {
		if parent(t, pid) == guard {
			worker = pid
		} else {
			started = append(started, pid)
		}
	}
	if worker == 0 || !contains(started, escaped) || !contains(started, testlab.PIDIn(t, dir+"/child")) {
		t.Fatalf("worker %d, started %v, escaped %d", worker, started, escaped)
	}
	return guard, worker, started
}

func contains(pids []int, pid int) bool {
	for _, p := range pids {
		if p == pid {
			return true
		}
	}
	return false
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// gone waits until none of the processes lives, and the host can be claimed by a new session.
func gone(t *testing.T, dir string, pids ...int) {
	t.Helper()
	began := time.Now()
	for _, pid := range pids {
		testlab.Eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !testlab.Alive(pid) })
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("gone only after %v", took)
	}
	h := local(t, dir)
	if err := errors.Join(h.Claim(t.Context(), "c2", "ben@desk"), h.Close()); err != nil {
		t.Errorf("the host is not free: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "work", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the work directory: %v, %v", left, err)
	}
}

func kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKilledGuardTakesEverythingWithIt(t *testing.T) {
	dir := t.TempDir()
	h := local(t, dir)
	guard, worker, started := busy(t, h)
	kill(t, guard)
	gone(t, dir, append(started, worker)...)
	if _, err := h.Pending(t.Context()); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("a call to the dead agent: %v", err)
	}
}

func TestKilledWorkerTakesEverythingWithIt(t *testing.T) {
	dir := t.TempDir()
	h := local(t, dir)
	guard, worker, started := busy(t, h)
	kill(t, worker)
	gone(t, dir, append(started, guard)...)
	if _, err := h.Pending(t.Context()); err == nil || !strings.Contains(err.Error(), "the worker was ended by signal: killed") {
		t.Errorf("a call to the dead agent: %v", err)
	}
}

func TestClosedPipeEndsEverything(t *testing.T) {
	dir := t.TempDir()
	h := local(t, dir)
	guard, worker, started := busy(t, h)
	if err := h.conn.pipe.(*localPipe).in.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, dir, append(started, guard, worker)...)
}

func TestTerminatedGuardEndsEverything(t *testing.T) {
	dir := t.TempDir()
	guard, worker, started := busy(t, local(t, dir))
	if err := syscall.Kill(guard, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	gone(t, dir, append(started, guard, worker)...)
}

func TestCloseEndsEverythingBeforeItReturns(t *testing.T) {
	dir := t.TempDir()
	h := local(t, dir)
	guard, worker, started := busy(t, h)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range append(started, guard, worker) {
		if testlab.Alive(pid) {
			t.Errorf("process %d lives after Close", pid)
		}
	}
}

func TestWhatSurvivedGuardAndWorkerIsEndedAtTheNextContact(t *testing.T) {
	dir := t.TempDir()
	guard, worker, started := busy(t, local(t, dir))
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil { // so that it cannot act before it is killed
		t.Fatal(err)
	}
	kill(t, worker, guard)
	testlab.Eventually(t, "the agent is gone", func() bool { return !testlab.Alive(guard) && !testlab.Alive(worker) })
	survivors := 0
	for _, pid := range started {
		if testlab.Alive(pid) {
			survivors++
		}
	}
	if survivors == 0 {
		t.Fatal("nothing survived: the test shows nothing")
	}
	gone(t, dir)
	for _, pid := range started {
		if testlab.Alive(pid) {
			t.Errorf("process %d survived the next contact", pid)
		}
	}
}

func TestTwoAgentsOnOneHostShareTheLock(t *testing.T) {
	dir := t.TempDir()
	first, second := local(t, dir), local(t, dir)
	if err := first.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	var sent *wire.Error
	if err := second.Claim(t.Context(), "c2", "ben@desk"); !errors.As(err, &sent) || sent.Kind != wire.KindLocked || sent.Lock.Campaign != "c1" {
		t.Errorf("error %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := second.Claim(t.Context(), "c2", "ben@desk"); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestAgentThatCannotServeSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Local(t.Context(), Options{Name: "here", Dir: filepath.Join(file, "state"), Agent: testlab.Agent(t)})
	if err == nil || !strings.Contains(err.Error(), "not a directory") || !strings.HasPrefix(err.Error(), "here: ") {
		t.Errorf("error %v", err)
	}
	if _, err := Local(t.Context(), Options{Agent: "/no/such/agent"}); err == nil || !strings.HasPrefix(err.Error(), "local: ") {
		t.Errorf("error %v", err)
	}
}

func TestEmbeddedAgentServes(t *testing.T) {
	if _, err := agents.For(runtime.GOARCH); err != nil {
		_, err := Local(t.Context(), Options{Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "make build") {
			t.Errorf("error %v", err)
		}
		return
	}
	h, err := Local(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if h.Name() != "local" {
		t.Errorf("name %q", h.Name())
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
