package process

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

const (
	killGrace       = 5 * time.Second  // from SIGINT to SIGKILL, and for a killed process to be gone
	pipeGrace       = time.Second      // for output after the end, when something else still holds the pipe
	defaultDeadline = 10 * time.Minute // of a command that names none: nothing runs for ever
)

// child is one process from its waiting to its end.
type child struct {
	runner  *Runner
	command lab.Command // with {work} replaced
	asked   lab.Command // as given
	as      identity    // who it becomes
	load    bool        // one of an armed set
	hard    bool        // its open-file limit is the hard one as well
	leaves  string      // of one that ends itself and leaves a server behind, which lives on: the file for its stderr, as a pipe would end with it
	work    string      // its fresh directory
	pid     int         // also its process group
	birth   started     // by which its group is known
	cmd     *exec.Cmd
	out     capture
	errs    capture
	instant *os.File // write end; nil once used
	told    *os.File // read end

	process lab.Process   // complete, but for outputs, when done is closed
	own     time.Duration // CPU time of the waiting, not of the command
	done    chan struct{} // closed when the process has ended and been reaped
}

// reap waits for the end, notes its instant, ends what is left of the group while the leader's pid is still taken, and
// only then lets the pid go.
func (c *child) reap() {
	defer close(c.done)
	defer c.runner.remove(c)
	for unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	ended := Now()
	if c.leaves == "" {
		c.kill()
	}
	_ = c.cmd.Wait() // how it ended is in ProcessState; an error of Wait's says the same, or that a pipe was held open
	if c.leaves == "" {
		c.reapGroup()
	}
	c.process.Ended = ended
	c.process.PID = c.pid
	c.process.Command = c.asked
	state := c.cmd.ProcessState
	if state == nil {
		c.process.Exit = -1
		return
	}
	c.process.Exit = state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		c.process.Signal = status.Signal().String()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		c.process.CPUS = time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
		// Kilobytes on Linux (getrusage(2)). It is kept over exec: never less than the waiting process's own 8 to 12 MB.
		c.process.MaxRSSBytes = usage.Maxrss << 10
	}
}

// reapGroup waits for the killed rest of the group, which a subreaper inherits; others have no such children. When it
// returns their ports are free.
func (c *child) reapGroup() {
	for {
		_, err := syscall.Wait4(-c.pid, nil, 0, nil)
		if err != nil && err != syscall.EINTR {
			return // ECHILD: none left
		}
	}
}

// signal sends s to the whole group; a group that is gone is no error.
func (c *child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.pid, s) // ESRCH: gone already; EPERM cannot be for a group of our own
}

// kill ends the whole group at once.
func (c *child) kill() { c.signal(syscall.SIGKILL) }

// end sends s to the group and kills it after five seconds more; it returns when the process is reaped.
func (c *child) end(s syscall.Signal) {
	c.signal(s)
	select {
	case <-c.done:
	case <-time.After(killGrace):
		c.kill()
		<-c.done
	}
}

// abandon kills the group, waits for its end and removes its directory.
func (c *child) abandon() error {
	c.kill()
	<-c.done
	return c.clean()
}

// clean closes the pipes and removes the directory of a process that has ended.
func (c *child) clean() error {
	if c.told != nil {
		_ = c.told.Close() // read end: nothing can be lost
	}
	if c.instant != nil {
		_ = c.instant.Close() // nothing was written
	}
	return os.RemoveAll(c.work)
}
