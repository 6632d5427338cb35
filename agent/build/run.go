package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// run runs a command through Run, or as a plain child when there is none.
func (c Cache) run(ctx context.Context, cmd lab.Command, out io.Writer) error {
	path, err := exec.LookPath(cmd.Argv[0])
	if err != nil {
		return fmt.Errorf("run %s: not found on this host", cmd.Argv[0])
	}
	cmd.Argv = append([]string{path}, cmd.Argv[1:]...)
	cmd.Env = append(environment(), cmd.Env...)
	if c.Run != nil {
		err = c.Run(ctx, cmd, out)
	} else {
		err = child(ctx, cmd, out)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", filepath.Base(path), err)
	}
	return nil
}

// environment is what compilers, apt and git need of ours: a path, a home, and the proxies.
func environment() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "HOME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// child runs a command in a process group of its own, and kills the group when ctx or the deadline ends.
func child(ctx context.Context, c lab.Command, out io.Writer) error {
	if c.Deadline.Duration > 0 {
		bounded, cancel := context.WithTimeout(ctx, c.Deadline.Duration)
		defer cancel()
		ctx = bounded
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// lockPoll is how often a lock held by another builder is tried again.
const lockPoll = 50 * time.Millisecond

// lock takes an exclusive flock(2) on path, waiting as long as ctx allows; processes and goroutines exclude each other.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ticks := time.NewTicker(lockPoll)
	defer ticks.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing frees the lock
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for another build in %s: %w", filepath.Dir(path), ctx.Err())
		case <-ticks.C:
		}
	}
}
