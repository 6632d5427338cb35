package hosts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/hosts/agents"
)

// Local attaches this machine: it starts an agent and speaks to it over pipes, as over any other link.
func Local(ctx context.Context, o Options) (*Host, error) {
	if o.Name == "" {
		o.Name = "local"
	}
	path, hash, err := localAgent(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	link, err := startLocal(path, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	return attach(ctx, link, o.Name, []string{hash})
}

// localAgent returns the path and the hash of the agent to start.
func localAgent(ctx context.Context, o Options) (path, hash string, err error) {
	if o.Agent == "" {
		content, err := agents.For(runtime.GOARCH)
		if err != nil {
			return "", "", err
		}
		path, err = cache(ctx, cacheDirs(), content)
		return path, hashOf(content), err
	}
	content, err := os.ReadFile(o.Agent)
	if err != nil {
		return "", "", fmt.Errorf("read the agent: %w", err)
	}
	return o.Agent, hashOf(content), nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// cacheDirs are the places for an agent, the best first. Those that others may write to get a directory per user.
func cacheDirs() []string {
	var dirs []string
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".cache", "ngxlab"))
	}
	own := fmt.Sprintf("ngxlab-%d", os.Geteuid())
	return append(dirs, filepath.Join("/var/tmp", own), filepath.Join("/dev/shm", own))
}

// cache writes the agent to the first directory that is this user's alone to write and allows programs. The name
// carries the hash; a file of that name is used only if it is what it says.
func cache(ctx context.Context, dirs []string, content []byte) (string, error) {
	name := "ngxlab-agent-" + hashOf(content)[:16]
	var errs []error
	for _, dir := range dirs {
		if err := usable(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		path := filepath.Join(dir, name)
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			return path, nil
		}
		err := put(ctx, path, 0o755, bytes.NewReader(content))
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no directory for the agent: %w", errors.Join(errs...))
}

// usable makes dir when missing and tells why no program of this user should be kept there.
func usable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only this user may write to", dir)
	}
	var mount unix.Statfs_t
	if err := unix.Statfs(dir, &mount); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if mount.Flags&unix.ST_NOEXEC != 0 {
		return fmt.Errorf("%s is mounted noexec", dir)
	}
	return nil
}

// put writes a file under a temporary name and renames it.
func put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".ngxlab-put-")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	err = errors.Join(err, file.Chmod(mode), file.Close(), ctx.Err())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// closeGrace is how long an agent may take to end what it runs: it kills for up to four seconds, its guard for as long.
const closeGrace = 10 * time.Second

// localLink is an agent on this machine, over pipes.
type localLink struct {
	cmd    *exec.Cmd
	in     *os.File // to the agent
	out    *os.File // from the agent
	stderr tail
	exited chan struct{}
}

func startLocal(path, dir string) (*localLink, error) {
	args := []string{"ngxlab-agent", "serve"}
	if dir != "" {
		args = append(args, "--dir", dir)
	}
	agentIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, agentOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, agentIn.Close(), in.Close())
	}
	l := &localLink{in: in, out: out, exited: make(chan struct{})}
	l.cmd = &exec.Cmd{
		Path: path, Args: args, Env: os.Environ(), Stdin: agentIn, Stdout: agentOut, Stderr: &l.stderr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // Ctrl-C is for the program, which then restores through the agent
		WaitDelay:   time.Second,
	}
	err = l.cmd.Start()
	err = errors.Join(err, agentIn.Close(), agentOut.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the agent: %w", err), in.Close(), out.Close())
	}
	go func() {
		defer close(l.exited)
		_ = l.cmd.Wait() // its ProcessState is asked instead
	}()
	return l, nil
}

func (l *localLink) Read(p []byte) (int, error)  { return l.out.Read(p) }
func (l *localLink) Write(p []byte) (int, error) { return l.in.Write(p) }

// Put writes a file on this machine.
func (l *localLink) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	return put(ctx, path, mode, r)
}

// Close closes the agent's standard input, at which it ends what it runs and itself, and waits for that.
func (l *localLink) Close() error {
	err := l.in.Close()
	select {
	case <-l.exited:
	case <-time.After(closeGrace):
		err = errors.Join(err, fmt.Errorf("the agent had not ended after %v: killed", closeGrace), l.cmd.Process.Kill())
		<-l.exited
	}
	if !l.cmd.ProcessState.Success() {
		err = errors.Join(err, errors.New(l.Explain()))
	}
	return errors.Join(err, l.out.Close())
}

// Explain tells how the agent ended and what it printed on standard error, once it has ended.
func (l *localLink) Explain() string {
	select {
	case <-l.exited:
	case <-time.After(100 * time.Millisecond): // its pipe may close a moment before it ends
		return ""
	}
	text := "the agent ended: " + l.cmd.ProcessState.String()
	if words := l.stderr.String(); words != "" {
		text += ": " + words
	}
	return text
}

// tail keeps the last 4 KiB written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if cut := len(t.text) - 4<<10; cut > 0 {
		t.text = append(t.text[:0], t.text[cut:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
