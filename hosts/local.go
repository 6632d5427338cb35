package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"ngxlab/agent/wire"
)

// Local attaches this machine, as any other host.
func Local(ctx context.Context, o Options) (*Host, error) {
	return Enter(ctx, localDoor{env: os.Environ()}, o)
}

// localDoor is the way into this machine.
type localDoor struct{ env []string }

// Put writes a file on this machine.
func (localDoor) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	return put(ctx, path, mode, r)
}

func (localDoor) Close() error { return nil }

// put writes a file under a temporary name and renames it. Nothing is started meanwhile: a process that inherits the open
// file for a moment would keep an agent from being run ("text file busy").
func put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) (err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.CreateTemp(filepath.Dir(path), wire.TemporaryPrefix)
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

// Open starts a script on this machine. It has no terminals to give: nothing here needs one.
func (d localDoor) Open(_ context.Context, script string, _ bool) (Pipe, error) {
	return startProcess([]string{"/bin/sh", "-c", script}, d.env)
}

func startProcess(argv, env []string) (*localPipe, error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), in.Close())
	}
	p := &localPipe{in: in, out: out, exited: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // it outlives the call, and is ended by Close
	p.cmd.Env, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = env, stdin, stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the program, which then restores through the agent
	p.cmd.WaitDelay = time.Second
	err = p.cmd.Start()
	err = errors.Join(err, stdin.Close(), stdout.Close())
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // its ProcessState is asked instead
	}()
	return p, nil
}

// closeGrace is how long an agent may take to end what it runs: it kills for up to four seconds, its guard for as long.
const closeGrace = 10 * time.Second

// localPipe is a process on this machine.
type localPipe struct {
	cmd    *exec.Cmd
	in     *os.File // to the process
	out    *os.File // from the process
	stderr Tail
	exited chan struct{}

	once   sync.Once
	closed error
}

func (p *localPipe) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *localPipe) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close closes the agent's standard input, at which it ends what it runs and itself, and waits for that.
func (p *localPipe) Close() error {
	p.once.Do(func() { p.closed = p.close() })
	return p.closed
}

func (p *localPipe) close() error {
	err := p.in.Close()
	select {
	case <-p.exited:
	case <-time.After(closeGrace):
		err = errors.Join(err, fmt.Errorf("the agent had not ended after %v: killed", closeGrace), p.cmd.Process.Kill())
		<-p.exited
	}
	if !p.cmd.ProcessState.Success() {
		err = errors.Join(err, errors.New(p.Explain()))
	}
	return errors.Join(err, p.out.Close())
}

// Explain tells how the agent ended and what it printed on standard error, once it has ended.
func (p *localPipe) Explain() string {
	select {
	case <-p.exited:
	case <-time.After(100 * time.Millisecond): // its pipe may close a moment before it ends
		return ""
	}
	text := "the agent ended: " + p.cmd.ProcessState.String()
	if words := p.stderr.Brief(); words != "" {
		text += ": " + words
	}
	return text
}
