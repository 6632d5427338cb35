package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ngxlab/lab"
)

// prepare starts the waiting process of c; out, when not nil, gets both of its outputs as they come.
func (r *Runner) prepare(c lab.Command, out io.Writer) (*child, error) {
	ch, err := r.newChild(c)
	if err != nil {
		return nil, err
	}
	if out != nil {
		shared := &oneAtATime{w: out}
		ch.out.tee, ch.errs.tee = shared, shared
	}
	return ch, ch.spawned()
}

// newChild makes ready what a command needs before it is a process.
func (r *Runner) newChild(c lab.Command) (*child, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("start a command: it has no arguments")
	}
	as, err := identityOf(c.User)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	work, err := r.fresh("run")
	if err != nil {
		return nil, err
	}
	ch := &child{runner: r, asked: c, command: placed(c, work), as: as, work: work, done: make(chan struct{})}
	if err := errors.Join(writeFiles(work, c.Files), as.own(work)); err != nil {
		return nil, errors.Join(err, ch.clean())
	}
	if _, err := os.Stat(ch.command.Dir); err != nil { // exec would blame the program
		return nil, errors.Join(fmt.Errorf("start %s: its directory: %w", c.Argv[0], err), ch.clean())
	}
	return ch, nil
}

// spawned is spawn, after which nothing of a child that could not be started is left.
func (c *child) spawned() error {
	if err := c.spawn(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", c.asked.Argv[0], err), c.clean())
	}
	return nil
}

// start is prepare and an immediate release: when it returns, the command itself runs.
func (r *Runner) start(ctx context.Context, c lab.Command, out io.Writer) (*child, error) {
	ch, err := r.prepare(c, out)
	if err != nil {
		return nil, err
	}
	return ch, ch.letGo(ctx)
}

// letGo releases a waiting process at once and sees it become the command; on an error nothing of it is left.
func (c *child) letGo(ctx context.Context) error {
	err := c.ready(ctx)
	if err == nil {
		if err = c.release(0); err == nil {
			err = c.begun(ctx)
		}
	}
	if err != nil {
		return errors.Join(err, c.abandon())
	}
	return nil
}

// placed returns c with {work} replaced by the directory, which is also the default of Dir.
func placed(c lab.Command, work string) lab.Command {
	replace := func(in []string) []string {
		out := make([]string, len(in))
		for i, s := range in {
			out[i] = strings.ReplaceAll(s, "{work}", work)
		}
		return out
	}
	c.Argv, c.Env = replace(c.Argv), replace(c.Env)
	c.Dir = strings.ReplaceAll(c.Dir, "{work}", work)
	if c.Dir == "" {
		c.Dir = work
	}
	return c
}

func (c *child) spawn() error {
	instantR, instantW, err := os.Pipe()
	if err != nil {
		return err
	}
	toldR, toldW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, instantR.Close(), instantW.Close())
	}
	c.instant, c.told = instantW, toldR
	c.cmd = c.waiting(instantR, toldW)
	err = c.run()
	err = errors.Join(err, instantR.Close(), toldW.Close())
	if c.cmd.Process == nil {
		return errors.Join(err, instantW.Close(), toldR.Close())
	}
	c.pid = c.cmd.Process.Pid
	c.runner.add(c)
	birth, unknown := readStarted(c.pid) // before it can be reaped
	c.birth = birth
	err = errors.Join(err, unknown, note(c.work, c.pid))
	go c.reap()
	return err
}

// run starts the process. The outputs of a command that leaves a server behind go where they outlive it; stdout nowhere.
func (c *child) run() error {
	if c.leaves == "" {
		return c.cmd.Start()
	}
	said, err := os.OpenFile(c.leaves, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	c.cmd.Stdout, c.cmd.Stderr = nil, said
	return errors.Join(c.cmd.Start(), said.Close())
}

func (c *child) waiting(instant, tell *os.File) *exec.Cmd {
	exe := c.runner.Exe
	if exe == "" {
		exe = "/proc/self/exe"
	}
	cpus := make([]string, len(c.command.CPUs))
	for i, cpu := range c.command.CPUs {
		cpus[i] = strconv.Itoa(cpu)
	}
	nice, nofile := strconv.Itoa(c.runner.Nice+c.command.Nice), strconv.Itoa(c.command.Nofile)
	if c.hard {
		nofile += hardToo
	}
	args := []string{exe, WaitCommand, nice, nofile, strconv.Itoa(c.command.Nproc), strings.Join(cpus, ","), c.as.text()}
	return &exec.Cmd{
		Path: exe, Args: append(args, c.command.Argv...),
		Env: environment(c.command, c.runner.Dir, c.as), Dir: c.command.Dir,
		Stdout: &c.out, Stderr: &c.errs,
		ExtraFiles:  []*os.File{instant, tell},
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   pipeGrace,
	}
}

// ready waits until the waiting process stands in its limits and has found the command.
func (c *child) ready(ctx context.Context) error {
	return c.hear(ctx, func(told io.Reader) error {
		letter := []byte{0}
		if _, err := io.ReadFull(told, letter); err != nil {
			return c.ended(err)
		}
		if letter[0] != tellReady {
			return c.failed(told)
		}
		return nil
	})
}

// release lets the command go at the instant; 0 is at once.
func (c *child) release(at lab.Instant) error {
	c.process.Asked = at
	err := binary.Write(c.instant, binary.NativeEndian, at)
	err = errors.Join(err, c.instant.Close())
	c.instant = nil
	if err != nil {
		return fmt.Errorf("release %s: %w", c.asked.Argv[0], err)
	}
	return nil
}

// begun waits until the command itself runs, and notes when it was let go.
func (c *child) begun(ctx context.Context) error {
	return c.hear(ctx, func(told io.Reader) error {
		letter := []byte{0}
		if _, err := io.ReadFull(told, letter); err != nil {
			return c.ended(err)
		}
		if letter[0] != tellReleased {
			return c.failed(told)
		}
		var numbers [2]int64
		if err := binary.Read(told, binary.NativeEndian, &numbers); err != nil {
			return fmt.Errorf("start %s: read its release: %w", c.asked.Argv[0], err)
		}
		c.process.Released, c.own = lab.Instant(numbers[0]), time.Duration(numbers[1])
		if n, _ := told.Read([]byte{0}); n > 0 { // exec closes the pipe; a letter is its failure
			return c.failed(told)
		}
		return nil
	})
}

// hear runs listen on the pipe from the waiting process, until ctx ends.
func (c *child) hear(ctx context.Context, listen func(io.Reader) error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.told.SetReadDeadline(time.Unix(1, 0)) }) // a closed pipe hears nothing anyway
	defer stop()
	if err := listen(c.told); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("start %s: %w", c.asked.Argv[0], ctx.Err())
		}
		return err
	}
	return nil
}

func (c *child) failed(told io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(told, 4096))
	return errors.Join(errors.New(string(text)), err)
}

// ended explains why nothing was told: the waiting process is gone, with what it printed, or the wait was given up.
func (c *child) ended(err error) error {
	if errors.Is(err, io.EOF) {
		select {
		case <-c.done:
			text, _ := c.errs.bytes("stderr")
			err = fmt.Errorf("its waiting process ended, exit %d: %.500s", c.process.Exit, bytes.TrimSpace(text))
		case <-time.After(killGrace):
		}
	}
	return fmt.Errorf("start %s: %w", c.asked.Argv[0], err)
}
