package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

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
	ours := orphan(EnvCampaign+"=c", EnvDir+"="+dir)
	others := orphan(EnvCampaign+"=c", EnvDir+"="+dir+"2")
	if err := KillSurvivors(dir); err != nil {
		t.Fatal(err)
	}
	if testlab.Alive(ours) {
		t.Errorf("survivor %d lives", ours)
	}
	if !testlab.Alive(others) {
		t.Error("a process of another agent was ended")
	}
}
