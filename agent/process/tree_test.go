package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
)

func TestDescendantsAreFoundThroughSessionsOfTheirOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	r := runner(t)
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(t.Context(), sh("setsid sh -c 'echo $$ >"+file+"; exec sleep 1000' & wait"), nil)
		ended <- err
	}()
	pid := testlab.PIDIn(t, file)
	found, err := Descendants(os.Getpid())
	if err != nil || !slices.Contains(found, pid) {
		t.Errorf("%d not in %v, %v", pid, found, err)
	}
	if err := KillDescendants(5 * time.Second); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if testlab.Alive(pid) {
		t.Errorf("process %d lives", pid)
	}
}

func TestSurvivorsOfAnEarlierAgentAreEndedAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	orphan := func(env ...string) int {
		file := filepath.Join(t.TempDir(), "pid")
		cmd := exec.Command("sh", "-c", "setsid sh -c 'echo $$ >"+file+"; exec sleep 1000' >/dev/null 2>&1 &")
		cmd.Env = append(os.Environ(), env...)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		pid := testlab.PIDIn(t, file)
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		return pid
	}
	// nginx overwrites its environment; and builds may be a link to another disk.
	builds := t.TempDir()
	work := filepath.Join(dir, "work", "server-1")
	if err := errors.Join(os.MkdirAll(work, 0o755), os.Symlink(builds, filepath.Join(dir, "builds"))); err != nil {
		t.Fatal(err)
	}
	untold := built(t, filepath.Join(builds, "server"), work)
	ours := orphan(EnvCampaign+"=c", EnvDir+"="+dir)
	others := orphan(EnvCampaign+"=c", EnvDir+"="+dir+"2")
	if err := KillSurvivors(dir); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{ours, untold} {
		if testlab.Alive(pid) {
			t.Errorf("survivor %d lives", pid)
		}
	}
	if !testlab.Alive(others) {
		t.Error("a process of another agent was ended")
	}
}

// TestProcessesOfContainersAreNotOurs is about a throwaway host on the machine of an agent: both have their state directory
// at the same path.
func TestProcessesOfContainersAreNotOurs(t *testing.T) {
	testlab.Require(t, "unshare")
	testlab.RequireCapability(t, unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "echo >"+file+"; exec sleep 1000")
	cmd.Env = append(os.Environ(), EnvCampaign+"=c", EnvDir+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	var inside []int
	testlab.Eventually(t, "it runs", func() bool {
		_, err := os.Stat(file)
		inside, _ = Descendants(cmd.Process.Pid)
		return err == nil && len(inside) == 1
	})
	if marked := (origin{dir: dir}).marked; marked(inside[0]) || !marked(cmd.Process.Pid) {
		t.Errorf("marked: the process in the container %v, that outside %v", marked(inside[0]), marked(cmd.Process.Pid))
	}
}

// orphan starts a shell in a session of its own, without a word of the lab in its environment and as a child of init, and
// returns its pid.
func orphan(t *testing.T, script string) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("sh", "-c", "setsid sh -c 'echo $$ >"+file+"; "+script+"' >/dev/null 2>&1 &")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid := testlab.PIDIn(t, file)
	t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	return pid
}

// TestSurvivorsAreKnownByWhatAnyoneMayRead is about processes that show no mark, as those of another user do not without
// CAP_SYS_PTRACE.
func TestSurvivorsAreKnownByWhatAnyoneMayRead(t *testing.T) {
	dir := t.TempDir()
	member := filepath.Join(t.TempDir(), "pid")
	whole, leaderless := orphan(t, "exec sleep 1000"), orphan(t, "sleep 1000 & echo $! >"+member+"; wait")
	reused, earlier, unknown := orphan(t, "exec sleep 1000"), orphan(t, "exec sleep 1000"), orphan(t, "exec sleep 1000")
	for _, pid := range []int{whole, leaderless, reused, earlier} {
		work := filepath.Join(dir, "work", strconv.Itoa(pid))
		if err := errors.Join(os.MkdirAll(work, 0o755), note(work, pid)); err != nil {
			t.Fatal(err)
		}
	}
	rewrite := func(pid int, change func(fields []string)) {
		file := filepath.Join(dir, "work", strconv.Itoa(pid), startedFile)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text))
		change(fields)
		if err := os.WriteFile(file, []byte(strings.Join(fields, " ")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(reused, func(fields []string) { fields[2] = "1" })
	rewrite(earlier, func(fields []string) { fields[3] = "another-boot" })
	rest := testlab.PIDIn(t, member)
	if err := syscall.Kill(leaderless, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testlab.Eventually(t, "the leader is gone", func() bool { return !testlab.Alive(leaderless) })
	if !testlab.Alive(rest) {
		t.Fatal("its group ended with it: the test shows nothing")
	}
	if err := KillSurvivors(dir); err != nil {
		t.Fatal(err)
	}
	if testlab.Alive(whole) || testlab.Alive(rest) {
		t.Errorf("a noted process lives: %v, one of a noted group: %v", testlab.Alive(whole), testlab.Alive(rest))
	}
	for what, pid := range map[string]int{"with the number of an ended one": reused, "noted before the boot": earlier, "of someone else": unknown} {
		if !testlab.Alive(pid) {
			t.Errorf("a process %s was ended", what)
		}
	}
}

func TestEveryCommandIsNotedWhileItRuns(t *testing.T) {
	r := runner(t)
	p, err := r.Run(t.Context(), sh("cat .started; cut -d\" \" -f6,22 /proc/$$/stat"), nil)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(p.Stdout))
	if len(fields) != 6 || fields[0] != strconv.Itoa(p.PID) || fields[1] != fields[4] || fields[2] != fields[5] || fields[3] != bootID() {
		t.Errorf("noted, then session and start: %q; pid %d", fields, p.PID)
	}
	if left := noted(filepath.Join(r.Dir, "work")); len(left) > 0 {
		t.Errorf("still noted: %+v", left)
	}
}

// built starts a copy of sleep(1) at a path, in a directory, without a word of the lab in its environment, and as a child
// of init: its own children are not what a runner looks for.
func built(t *testing.T, path, dir string) int {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("sh", "-c", "setsid sh -c 'echo $$ >"+file+"; exec "+path+" 1000' >/dev/null 2>&1 &")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	pid := testlab.PIDIn(t, file)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	testlab.Eventually(t, "it runs the copy", func() bool {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err == nil && exe == path
	})
	return pid
}
