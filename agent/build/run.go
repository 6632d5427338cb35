package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// errNotFound marks a command that this host has not.
var errNotFound = errors.New("not found on this host")

// run runs a command through Run, or as a plain child when there is none.
func (c Cache) run(ctx context.Context, cmd lab.Command, out io.Writer) error {
	name := cmd.Argv[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(cmd.Dir, name)
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("run %s: it may not be executed; run it by sh, or make it executable: %w", cmd.Argv[0], err)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", cmd.Argv[0], errNotFound)
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
	if c.User != "" {
		as, err := credential(c.User)
		if err != nil {
			return err
		}
		cmd.SysProcAttr.Credential = as
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// credential is a user as the kernel knows it.
func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, bad := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, bad)
}

// lockPoll is how often a lock held by another builder is tried again.
const lockPoll = 50 * time.Millisecond

// lockSaying is lock, and says when somebody else has it.
func lockSaying(ctx context.Context, path string, log io.Writer) (unlock func(), err error) {
	short, cancel := context.WithTimeout(ctx, 2*lockPoll)
	unlock, err = lock(short, path)
	cancel()
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return unlock, err
	}
	fmt.Fprintln(log, "waiting for another campaign that makes the same build") //nolint:errcheck // only said
	return lock(ctx, path)
}

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
