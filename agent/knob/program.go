package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outputGrace is how long the output of a program is still read after its end, when something that it started holds it.
const outputGrace = 500 * time.Millisecond

// ended is how a program ended by itself.
type ended struct {
	argv   []string
	code   int
	output string // the end of both its outputs
}

// failure is the error of an exit code other than 0, with the last lines of the output.
func (e ended) failure() error {
	if e.code == 0 {
		return nil
	}
	return fmt.Errorf("%s: exit %d%s", e.argv[0], e.code, lastLines(e.output))
}

// runProgram runs a program to its end, in a process group of its own, with nothing to read. When it takes longer than
// the limit, when ctx ends, or when this process is killed, it is killed, in the first two cases with all of its group:
// what has left the group is not found. What it leaves running after its end stays, and should write nowhere.
func runProgram(ctx context.Context, limit time.Duration, argv []string) (ended, error) {
	end := ended{argv: argv}
	program, err := findProgram(argv[0])
	if err != nil {
		return end, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()
	runtime.LockOSThread() // a death signal is sent when the thread ends that started the process (prctl(2))
	defer runtime.UnlockOSThread()
	var output tail
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Env, cmd.Dir = argv, ownEnvironment(), "/"
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = outputGrace
	err = cmd.Run()
	end.output = output.String()
	if cmd.ProcessState == nil {
		return end, err
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && ctx.Err() != nil:
		return end, fmt.Errorf("%s: killed: %w%s", argv[0], context.Cause(ctx), lastLines(end.output))
	case status.Signaled():
		return end, fmt.Errorf("%s: ended by signal %d%s", argv[0], status.Signal(), lastLines(end.output))
	}
	end.code = status.ExitStatus()
	return end, nil
}

// tailBytes is how much of a program's output is kept.
const tailBytes = 16 << 10

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[max(0, len(p)-tailBytes):]...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.text), "?") }

// lastLines is the end of an output for an error, on lines of its own; "" when there is none.
func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	text := strings.Join(lines[max(0, len(lines)-5):], "\n")
	if text = text[max(0, len(text)-1000):]; text == "" {
		return ""
	}
	return ":\n" + strings.ToValidUTF8(text, "")
}

// ownEnvironment is what programs get: numbers and messages the C way whatever the host's language, and no pager.
func ownEnvironment() []string {
	home := os.Getenv("HOME")
	if home == "" {
		home = "/"
	}
	return []string{"PATH=" + programPath(), "LANG=C", "LC_ALL=C", "HOME=" + home, "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"}
}

// programPath is the agent's search path with the system directories that a session may lack.
func programPath() string {
	path := os.Getenv("PATH")
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		if !strings.Contains(":"+path+":", ":"+dir+":") {
			path += ":" + dir
		}
	}
	return strings.TrimPrefix(path, ":")
}

// findProgram is the file of a program.
func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("program %s: not an absolute path", name)
		}
		return name, executable(name)
	}
	for _, dir := range filepath.SplitList(programPath()) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s: %w", name, exec.ErrNotFound)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = errors.New("a directory")
	}
	if err == nil {
		err = unix.Access(path, unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("program %s: %w", path, err)
	}
	return nil
}
