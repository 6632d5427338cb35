package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// asProgram makes the test binary the program itself: signals and the exit are then main's.
const asProgram = "NGXLAB_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	alone()
	m.Run() // the exit code is taken from it
}

// alone waits until no other run of these tests changes this machine's sysctls; the lock ends with the process.
func alone() {
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "ngxlab-test-machine.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return // another user's: that user's tests have no right to change them, or these have not
	}
	_ = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
}

// program is ngxlab in a process of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan lab.Event // of --json, closed at the end
	stderr *words
	ended  chan struct{} // closed when the process has ended
}

// words are what a process printed, to be read while it runs.
type words struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// start starts the program with a command line, whose standard output is events.
func (m *machineTest) start(line ...string) *program {
	m.t.Helper()
	self, err := os.Executable()
	must(m.t, err)
	p := &program{t: m.t, events: make(chan lab.Event, 10_000), stderr: &words{}, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(m.t.Context(), self, m.flags(line...)...)
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	must(m.t, err)
	must(m.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		defer close(p.events)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e lab.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				p.events <- e
			}
		}
		_ = p.cmd.Wait() // its ProcessState is asked
	}()
	m.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// patience bounds every wait for the program.
const patience = 90 * time.Second

// until returns the next event that is one.
func (p *program) until(what string, is func(lab.Event) bool) lab.Event {
	p.t.Helper()
	late := time.After(patience)
	for {
		select {
		case e, ok := <-p.events:
			if !ok {
				p.t.Fatalf("the program ended before the event %q: %s", what, p.stderr)
			}
			if is(e) {
				return e
			}
		case <-late:
			p.t.Fatalf("no event %q: %s", what, p.stderr)
		}
	}
}

// kind is an event of a kind.
func kind(k lab.EventKind) func(lab.Event) bool {
	return func(e lab.Event) bool { return e.Kind == k }
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v: %s", s, err, p.stderr)
	}
}

// exit waits for the end and returns the exit code, -1 after a signal.
func (p *program) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("the program does not end: %s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

// mustEnd holds that the program ends with the exit code and has printed all of the texts to standard error.
func (p *program) mustEnd(code int, texts ...string) {
	p.t.Helper()
	if got := p.exit(); got != code {
		p.t.Errorf("exit code %d, want %d: %s", got, code, p.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(p.stderr.String(), text) {
			p.t.Errorf("%q is missing: %s", text, p.stderr)
		}
	}
}

// mustSay waits until the program has printed the text to standard error.
func (p *program) mustSay(text string) {
	p.t.Helper()
	testlab.Eventually(p.t, "the program says "+text, func() bool { return strings.Contains(p.stderr.String(), text) })
}

// kill ends processes without a word.
func kill(t *testing.T, pids ...int) {
	t.Helper()
	var errs []error
	for _, pid := range pids {
		errs = append(errs, syscall.Kill(pid, syscall.SIGKILL))
	}
	must(t, errors.Join(errs...))
}
