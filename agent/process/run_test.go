package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func sh(script string) lab.Command {
	return lab.Command{Argv: []string{"/bin/sh", "-c", script}, Deadline: lab.Seconds(20), Campaign: "test"}
}

func runner(t *testing.T) *Runner {
	t.Helper()
	r := &Runner{Dir: t.TempDir()}
	t.Cleanup(func() {
		if err := r.KillAll(); err != nil {
			t.Error(err)
		}
		left, err := filepath.Glob(filepath.Join(r.Dir, "work", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left in the work directory: %v, %v", left, err)
		}
	})
	return r
}

func TestRunReportsOutputsExitAndUsage(t *testing.T) {
	var out bytes.Buffer
	c := sh("echo to out; echo to err >&2; cat in/put; pwd; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 3")
	c.Files = map[string]string{"in/put": "given\n"}
	r := runner(t)
	began := Now()
	p, err := r.Run(t.Context(), c, &out)
	if err != nil {
		t.Fatal(err)
	}
	if p.Exit != 3 || p.Signal != "" || p.TimedOut {
		t.Errorf("exit %d signal %q timed out %v", p.Exit, p.Signal, p.TimedOut)
	}
	if want := "to out\ngiven\n" + filepath.Join(r.Dir, "work"); !strings.HasPrefix(string(p.Stdout), want) {
		t.Errorf("stdout %q, want it to begin with %q", p.Stdout, want)
	}
	if string(p.Stderr) != "to err\n" {
		t.Errorf("stderr %q", p.Stderr)
	}
	if !strings.Contains(out.String(), "to err\n") || !strings.Contains(out.String(), "given\n") {
		t.Errorf("streamed %q", out.String())
	}
	if p.Released < began || p.Ended <= p.Released || p.PID == 0 {
		t.Errorf("released %d ended %d pid %d", p.Released, p.Ended, p.PID)
	}
	if wall := p.Ended.Sub(p.Released).Seconds(); p.CPUS <= 0.005 || p.CPUS > wall+0.02 {
		t.Errorf("CPU %g s in %g s", p.CPUS, wall)
	}
	if p.MaxRSSBytes < 100<<10 {
		t.Errorf("max RSS %d", p.MaxRSSBytes)
	}
}

func TestEnvironmentIsMinimalAndMarked(t *testing.T) {
	t.Setenv("NGXLAB_TEST_SECRET", "x")
	c := lab.Command{Argv: []string{"env"}, Env: []string{"MINE={work}"}, Campaign: "c1"}
	r := runner(t)
	p, err := r.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(string(p.Stdout), "\n")
	for _, want := range []string{"NGXLAB_CAMPAIGN=c1", "NGXLAB_DIR=" + r.Dir, "LC_ALL=C"} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %v", want, env)
		}
	}
	if !strings.Contains(string(p.Stdout), "MINE="+r.Dir+"/work/run-") {
		t.Errorf("{work} is not replaced: %s", p.Stdout)
	}
	if strings.Contains(string(p.Stdout), "NGXLAB_TEST_SECRET") {
		t.Errorf("the agent's environment is inherited: %s", p.Stdout)
	}
}

func TestCommandStandsInItsLimitsAndOnItsCPUs(t *testing.T) {
	c := sh("ulimit -Sn; grep Cpus_allowed_list /proc/self/status; cat /proc/self/stat")
	c.Nofile, c.CPUs = 777, []int{0}
	p, err := runner(t).Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(p.Stdout), "\n")
	if lines[0] != "777" || lines[1] != "Cpus_allowed_list:\t0" {
		t.Errorf("limit and CPUs %q", lines[:2])
	}
	if fields := strings.Fields(lines[2]); fields[4] != strconv.Itoa(p.PID) {
		t.Errorf("process group %s, want %d", fields[4], p.PID)
	}
}

func TestMissingCommandIsAnErrorBeforeTheStart(t *testing.T) {
	for _, c := range []lab.Command{
		{Argv: []string{"no-such-tool-anywhere"}},
		{},
		{Argv: []string{"true"}, CPUs: []int{1000}},
		{Argv: []string{"true"}, Dir: "/no/such/directory"},
		{Argv: []string{"true"}, Files: map[string]string{"../outside": ""}},
	} {
		r := runner(t)
		if _, err := r.Arm(t.Context(), []lab.Command{sh("true"), c}); err == nil {
			t.Errorf("armed %+v", c)
		} else {
			t.Log(err)
		}
		if pids := r.LoadPIDs(); len(pids) > 0 {
			t.Errorf("left waiting: %v", pids)
		}
	}
}

func TestDeadlineInterruptsThenKillsTheGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	for _, test := range []struct {
		name, script, signal string
		exit                 int
	}{
		{"ends on SIGINT", `trap 'exit 7' INT; while :; do sleep 0.05; done`, "", 7},
		{"ignores SIGINT", `trap '' INT; (trap '' INT; exec sleep 1000) & echo $! >` + file + `; wait`, "killed", -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := sh(test.script)
			c.Deadline = lab.Seconds(0.3)
			p, err := runner(t).Run(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !p.TimedOut || p.Exit != test.exit || p.Signal != test.signal {
				t.Errorf("timed out %v exit %d signal %q", p.TimedOut, p.Exit, p.Signal)
			}
		})
	}
	pid := testlab.PIDIn(t, file) // killed with the group, it may die after the command itself is reaped
	testlab.Eventually(t, "the group's member dies", func() bool { return !testlab.Alive(pid) })
}

func TestSIGINTIsNotInheritedAsIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGINT)
	defer signal.Reset(syscall.SIGINT)
	c := lab.Command{Argv: []string{"sleep", "1000"}, Deadline: lab.Seconds(0.2)}
	p, err := runner(t).Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Signal != "interrupt" {
		t.Errorf("ended by %q, exit %d", p.Signal, p.Exit)
	}
}

func TestWhatACommandLeavesInItsGroupIsEnded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	if _, err := runner(t).Run(t.Context(), sh("sleep 1000 & echo $! >"+file), nil); err != nil {
		t.Fatal(err)
	}
	pid := testlab.PIDIn(t, file)
	testlab.Eventually(t, "the background process is gone", func() bool { return !testlab.Alive(pid) })
}

func TestCancelKillsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := runner(t)
	file := filepath.Join(t.TempDir(), "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, sh("trap '' INT TERM; echo $$ >"+file+"; sleep 1000"), nil)
		ended <- err
	}()
	pid := testlab.PIDIn(t, file)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if testlab.Alive(pid) {
		t.Errorf("process %d lives", pid)
	}
}

func TestOutputBeyondTheLimitIsCutAndSaid(t *testing.T) {
	c := sh(fmt.Sprintf("head -c %d /dev/zero", outputLimit+5))
	p, err := runner(t).Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Stdout) != outputLimit {
		t.Errorf("%d bytes kept", len(p.Stdout))
	}
	if want := fmt.Sprintf("ngxlab: stdout was cut: %d of %d bytes kept\n", outputLimit, outputLimit+5); string(p.Stderr) != want {
		t.Errorf("stderr %q, want %q", p.Stderr, want)
	}
}

func TestFilesAreCollectedRawAndReduced(t *testing.T) {
	c := sh(`printf 'kept' >raw.txt; cat given >q.csv`)
	c.Files = map[string]string{"given": "Percentage served,Time in ms\n0,0.1\n50,1.5\n99,4.5\n100,9.5\n"}
	c.Collect = map[string]string{"raw.txt": "raw", "q.csv": "ab-quantiles", "absent.txt": "raw", "../../x": "raw", "given": "no-such-reduction"}
	p, err := runner(t).Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(p.Files["raw.txt"]) != "kept" || len(p.Files) != 1 {
		t.Errorf("files %q", p.Files)
	}
	if got := p.Reductions["q.csv"].Figures[lab.P50S]; got != 0.0015 {
		t.Errorf("p50 %g s of %+v", got, p.Reductions)
	}
	for _, want := range []string{"collect absent.txt: ", "collect ../../x: ", "collect given: "} {
		if !strings.Contains(string(p.Stderr), want) {
			t.Errorf("stderr does not say %q: %s", want, p.Stderr)
		}
	}
}
