package ssh_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
)

// forced is sshd's line for a program between it and the command, as a start-up file or a login shell is.
func forced(t *testing.T, script string) []string {
	t.Helper()
	return []string{"ForceCommand /bin/sh " + written(t, "forced.sh", script)}
}

func TestEveryLoginShellRunsScripts(t *testing.T) {
	t.Parallel()
	script := `x=$(echo "a  b"); if [ "$x" = "a  b" ]; then read l; echo "$l" "$x" >&2; echo $((2 > 1)) "{a,b}" ~ $$ | wc -w; fi`
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "fish", "tcsh", "csh"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil && shell != "sh" && shell != "bash" {
				testlab.Require(t, shell)
			}
			s := testlab.SSHD(t, testlab.SSHDOptions{Config: forced(t, `exec `+path+` -c "$SSH_ORIGINAL_COMMAND"`)})
			c := dial(t, to(s), only(s))
			p, err := c.Open(t.Context(), script, false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(p, "in\n"); err != nil {
				t.Error(err)
			}
			out, err := io.ReadAll(p)
			if err != nil || string(out) != "4\n" {
				t.Errorf("the script said %q, %v", out, err)
			}
			if err := p.Close(); err != nil || !strings.HasSuffix(p.Explain(), "exit status 0: in a  b") {
				t.Errorf("it ended %q, %v", p.Explain(), err)
			}
		})
	}
}

func TestScriptsThatAShellWouldChangeAreRefused(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	c := dial(t, to(s), only(s))
	for _, script := range []string{`echo 'x'`, `! true`, `echo \n`, "true\ntrue"} {
		if _, err := c.Open(t.Context(), script, false); err == nil {
			t.Errorf("%q was started", script)
		}
	}
}

func TestEndOfAScriptIsExplained(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	c := dial(t, to(s), only(s))
	for script, want := range map[string]string{
		`echo out of luck >&2; exit 3`: "exit status 3: out of luck",
		`kill -9 $$`:                   "killed by SIGKILL",
	} {
		_, err := run(t, c, script, "")
		says(t, err, s.Address, want)
	}
	p, err := c.Open(t.Context(), `read x; i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1`, false)
	if err != nil {
		t.Fatal(err)
	}
	if text := p.Explain(); text != "" {
		t.Errorf("while it runs: %q", text)
	}
	err = p.Close()
	says(t, err, "line 2999")
	if len(err.Error()) > 5000 || strings.Contains(err.Error(), "line 1\n") {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

func TestTerminalPassesEveryByte(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	c := dial(t, to(s), only(s))
	p, err := c.Open(t.Context(), `test -t 0 && test -t 1 || exit 9; echo; exec cat`, true)
	if err != nil && os.Geteuid() != 0 {
		t.Skipf("SKIPPED: sshd may need root for a terminal: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	all = append(bytes.Repeat(all, 8), '\n', '\r', '\n', 3, 4, 26, 0xff, '.')
	go func() { _, _ = p.Write(all) }()
	first := make([]byte, 1)
	if _, err := io.ReadFull(p, first); err != nil || first[0] != '\n' {
		t.Fatalf("the first line is %q, %v: %s", first, err, p.Explain())
	}
	got := make([]byte, len(all))
	if n, err := io.ReadFull(p, got); err != nil || !bytes.Equal(got, all) {
		t.Errorf("%d of %d bytes came back, %v; the same: %v", n, len(all), err, bytes.Equal(got[:n], all[:n]))
	}
	began := time.Now()
	if err := p.Close(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("closed after %v: %v", time.Since(began), err)
	}
	testlab.Eventually(t, "the end is explained", func() bool { return p.Explain() != "" })
}

func TestSeveralScriptsRunOnOneConnection(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	before := runtime.NumGoroutine()
	c := dial(t, to(s), only(s))
	done := make(chan error)
	for i := range 8 {
		go func() {
			out, err := run(t, c, `exec cat`, strings.Repeat(strconv.Itoa(i), 100_000))
			if err == nil && out != strings.Repeat(strconv.Itoa(i), 100_000) {
				err = io.ErrShortWrite
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(s.Logins(t)); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
	_ = c.Close()
	settled(t, before)
}

func TestCutConnectionEndsItsScripts(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	before := runtime.NumGoroutine()
	c := dial(t, to(s), only(s))
	p, err := c.Open(t.Context(), `echo ready; exec cat`, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Read(make([]byte, 1))
		ended <- err
	}()
	s.Cut(t)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the read returned something")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the read did not end within 5 s")
	}
	says(t, p.Close(), s.Address, "the connection to the host is gone")
	if _, err := c.Open(t.Context(), "true", false); err == nil {
		t.Error("a script was started on it")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	settled(t, before)
}

// TestHostThatFallsSilentIsLeft is of a host that stops without closing anything.
func TestHostThatFallsSilentIsLeft(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	before := runtime.NumGoroutine()
	c := dial(t, to(s), only(s))
	p, err := c.Open(t.Context(), `exec cat`, false)
	if err != nil {
		t.Fatal(err)
	}
	s.Signal(t, syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Open(ctx, "true", false); err == nil {
		t.Error("a script was started on it")
	}
	if err := c.Put(ctx, "/nowhere", 0o600, strings.NewReader("")); err == nil {
		t.Error("a file was put on it")
	}
	began := time.Now()
	says(t, p.Close(), "the connection to the host is gone")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("closing took %v", took)
	}
	_ = c.Close()
	settled(t, before)
}

// TestScriptThatDoesNotEndIsGivenUp is of one that goes on after its input is closed. sshd kills it for an ordinary user
// only.
func TestScriptThatDoesNotEndIsGivenUp(t *testing.T) {
	t.Parallel()
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	c := dial(t, to(s), only(s))
	pids := t.TempDir() + "/pid"
	p, err := c.Open(t.Context(), `echo $$ >`+pids+`; exec sleep 600`, false)
	if err != nil {
		t.Fatal(err)
	}
	pid := testlab.PIDIn(t, pids)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	says(t, p.Close(), s.Address, "had not ended")
	if _, err := p.Read(make([]byte, 1)); err == nil {
		t.Error("its output goes on")
	}
}
