package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func TestArmedProcessesAreReleasedTogetherAndNeverEarly(t *testing.T) {
	const processes = 6
	r := runner(t)
	cs := slices.Repeat([]lab.Command{sh("exit 0")}, processes)
	armed, err := r.Arm(t.Context(), cs)
	if err != nil {
		t.Fatal(err)
	}
	pids := r.LoadPIDs()
	slices.Sort(pids)
	if sorted := slices.Sorted(slices.Values(armed.PIDs)); !slices.Equal(pids, sorted) {
		t.Errorf("load pids %v, armed %v", pids, sorted)
	}
	at := Now().Add(100 * time.Millisecond)
	ps, err := r.Fire(t.Context(), armed, at)
	if err != nil {
		t.Fatal(err)
	}
	first, last := ps[0].Released, ps[0].Released
	for i, p := range ps {
		if p.PID != armed.PIDs[i] || p.Asked != at || p.Exit != 0 {
			t.Errorf("process %d: %+v", i, p)
		}
		if p.Released < at || p.Ended < p.Released {
			t.Errorf("process %d released %v early, ended %v after", i, at.Sub(p.Released), p.Ended.Sub(p.Released))
		}
		first, last = min(first, p.Released), max(last, p.Released)
	}
	t.Logf("first %v after the instant, spread %v", first.Sub(at), last.Sub(first))
	if last.Sub(at) > time.Second {
		t.Errorf("last released %v late", last.Sub(at))
	}
	if len(r.LoadPIDs()) > 0 {
		t.Errorf("still load pids %v", r.LoadPIDs())
	}
	if _, err := r.Fire(t.Context(), armed, at); err == nil {
		t.Error("fired twice")
	}
}

func TestFireRefusesAnInstantOfAWrongClock(t *testing.T) {
	r := runner(t)
	armed, err := r.Arm(t.Context(), []lab.Command{sh("true")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Fire(t.Context(), armed, Now().Add(time.Hour)); err == nil {
		t.Error("fired")
	}
	if pids := r.LoadPIDs(); len(pids) > 0 {
		t.Errorf("left waiting: %v", pids)
	}
}

func TestCancelledFireEndsTheWaiting(t *testing.T) {
	r := runner(t)
	armed, err := r.Arm(t.Context(), []lab.Command{sh("true"), sh("true")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Fire(ctx, armed, Now().Add(30*time.Second)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, pid := range armed.PIDs {
		if testlab.Alive(pid) {
			t.Errorf("process %d lives", pid)
		}
	}
}

func TestArmingNothingEndsWhatWaitsAndNothingElse(t *testing.T) {
	r := &Runner{Dir: t.TempDir()}
	running, err := r.Arm(t.Context(), []lab.Command{{Argv: []string{"sleep", "1000"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fired := make(chan error, 1)
	go func() {
		_, err := r.Fire(ctx, running, 0)
		fired <- err
	}()
	waiting, err := r.Arm(t.Context(), []lab.Command{{Argv: []string{"true"}}, {Argv: []string{"true"}}})
	if err != nil {
		t.Fatal(err)
	}
	testlab.Eventually(t, "the first set is fired", func() bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", running.PIDs[0]))
		return err == nil && strings.HasPrefix(string(line), "sleep")
	})
	if _, err := r.Arm(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for _, pid := range waiting.PIDs {
		if testlab.Alive(pid) {
			t.Errorf("process %d still waits", pid)
		}
	}
	if !testlab.Alive(running.PIDs[0]) {
		t.Error("a fired process was ended too")
	}
	if _, err := r.Fire(t.Context(), waiting, 0); err == nil {
		t.Error("a set that was ended was fired")
	}
	cancel()
	if err := <-fired; err == nil {
		t.Error("a cancelled fire is no error")
	}
	if left, err := os.ReadDir(filepath.Join(r.Dir, "work")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
