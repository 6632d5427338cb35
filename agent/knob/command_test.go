package knob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

var commandKnob = lab.KnobID{Kind: lab.KnobCommand, Name: "a flag"}

// flag is a command knob whose effect is a file.
func flag(t *testing.T) (value lab.CommandValue, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "flag")
	return lab.CommandValue{
		Apply: []string{"touch", path}, Verify: []string{"test", "-e", path}, Revert: []string{"/bin/sh", "-c", `rm "$0"`, path},
		Timeout: lab.Seconds(20), Applied: true,
	}, path
}

func text(c lab.CommandValue) lab.Value { return lab.Value{Text: c.String()} }

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestCommandIsAppliedVerifiedAndReverted(t *testing.T) {
	on, path := flag(t)
	off := on
	off.Applied = false
	for _, to := range []lab.CommandValue{on, off, on} {
		if err := (commands{}).write(t.Context(), commandKnob, text(to)); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(path)
		got, readErr := commands{}.read(t.Context(), commandKnob, text(on))
		if (err == nil) != to.Applied || readErr != nil || got != text(to) {
			t.Errorf("wrote %v: file there: %v, read %v, %v", to.Applied, err == nil, got, readErr)
		}
	}
}

func TestCommandIsNotReadWithoutItsDefinition(t *testing.T) {
	for _, like := range []lab.Value{{}, {Absent: true}, {Text: "{}"}, {Text: `{"apply":["true"],"verify":["true"],"revert":[]}`}} {
		if v, err := (commands{}).read(t.Context(), commandKnob, like); err == nil {
			t.Errorf("%+v reads %+v", like, v)
		}
	}
}

func TestVerifyThatSaysNeitherIsAnErrorWithItsOutput(t *testing.T) {
	value, _ := flag(t)
	for _, c := range []struct{ script, want string }{
		{"seq 1 100000; echo last words >&2; exit 2", "exit 2:\n99997\n99998\n99999\n100000\nlast words"},
		{"kill -TERM $$", "signal 15"},
	} {
		value.Verify = shell(c.script)
		if _, err := (commands{}).read(t.Context(), commandKnob, text(value)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.script, err)
		}
	}
}

func TestFailingCommandIsAnErrorWithItsLastLines(t *testing.T) {
	value, _ := flag(t)
	value.Apply = shell("yes | head -c 3000000; echo cannot do it; exit 7")
	err := commands{}.write(t.Context(), commandKnob, text(value))
	if err == nil || !strings.Contains(err.Error(), "apply: /bin/sh: exit 7:") || !strings.HasSuffix(err.Error(), "cannot do it") || len(err.Error()) > 1200 {
		t.Errorf("error %v", err)
	}
}

// started waits for the process ids that a script writes to a file.
func started(t *testing.T, path string, n int) []int {
	t.Helper()
	var pids []int
	testlab.Eventually(t, "the script's processes", func() bool {
		content, _ := os.ReadFile(path)
		pids = nil
		for _, field := range strings.Fields(string(content)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return false
			}
			pids = append(pids, pid)
		}
		return len(pids) == n
	})
	return pids
}

// gone reports whether a process is no more, or a zombie that nobody waits for.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestCommandThatHangsIsKilledWithItsChildren(t *testing.T) {
	for name, script := range map[string]string{
		"past its time": `sleep 300 & echo $! $$ > PIDS; exec sleep 300`,
		"deaf":          `trap "" TERM INT HUP; sleep 300 & echo $! $$ > PIDS; while :; do sleep 300; done`,
	} {
		value, path := flag(t)
		value.Timeout = lab.Seconds(0.5)
		value.Apply = shell(strings.ReplaceAll(script, "PIDS", path+".pids"))
		err := commands{}.write(t.Context(), commandKnob, text(value))
		if err == nil || !strings.Contains(err.Error(), "not done after 500ms") {
			t.Errorf("%s: error %v", name, err)
		}
		for _, pid := range started(t, path+".pids", 2) {
			testlab.Eventually(t, name+": process "+strconv.Itoa(pid)+" is gone", func() bool { return gone(pid) })
		}
	}
}

func TestCommandEndsWithItsContext(t *testing.T) {
	value, path := flag(t)
	value.Apply = shell("echo $$ > " + path + ".pids; exec sleep 300")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- commands{}.write(ctx, commandKnob, text(value)) }()
	pids := started(t, path+".pids", 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !gone(pids[0]) {
		t.Errorf("error %v, process gone: %v", err, gone(pids[0]))
	}
}

func TestWhatACommandLeavesRunningIsNotWaitedFor(t *testing.T) {
	value, path := flag(t)
	value.Apply = shell("sleep 300 & echo $! > " + path + ".pids; touch " + path)
	begun := time.Now()
	if err := (commands{}).write(t.Context(), commandKnob, text(value)); err != nil {
		t.Error(err)
	}
	pid := started(t, path+".pids", 1)[0]
	if gone(pid) {
		t.Error("what was left running is gone")
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestCommandGetsASmallEnvironmentAndNothingToRead(t *testing.T) {
	t.Setenv("SECRET", "x")
	value, path := flag(t)
	value.Apply = shell("cat; env > " + path)
	if err := (commands{}).write(t.Context(), commandKnob, text(value)); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(env), "SECRET") || !strings.Contains(string(env), "LC_ALL=C\n") || !strings.Contains(string(env), "/usr/sbin") {
		t.Errorf("environment %s, %v", env, err)
	}
}

func TestProbeOfACommand(t *testing.T) {
	value, path := flag(t)
	fact := probed(t, commands{}, lab.Setting{Knob: commandKnob, Value: value.String()})
	off := value
	off.Applied = false
	if fact.Reason != "" || fact.Now != text(off) || fact.To != text(value) {
		t.Errorf("%+v", fact)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if fact := probed(t, commands{}, lab.Setting{Knob: commandKnob, Value: value.String()}); fact.Now != fact.To {
		t.Errorf("applied already: %+v", fact)
	}
	for want, spoil := range map[string]func(c *lab.CommandValue){
		"program nosuchprogram":    func(c *lab.CommandValue) { c.Verify = []string{"nosuchprogram"} },
		"program /no/such/program": func(c *lab.CommandValue) { c.Revert = []string{"/no/such/program"} },
		"without apply":            func(c *lab.CommandValue) { c.Apply = nil },
		"exit 3":                   func(c *lab.CommandValue) { c.Verify = shell("exit 3") },
	} {
		bad := value
		spoil(&bad)
		if fact := probed(t, commands{}, lab.Setting{Knob: commandKnob, Value: bad.String()}); !strings.Contains(fact.Reason, want) || fact.Cure == "" {
			t.Errorf("want %q: %+v", want, fact)
		}
	}
	if fact := probed(t, commands{}, lab.Setting{Knob: commandKnob, Absent: true}); fact.Reason == "" {
		t.Errorf("%+v", fact)
	}
}
