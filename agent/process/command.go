package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

const (
	defaultGrace = 10 * time.Second      // of a command server, from its signal to SIGKILL
	stopPoll     = 5 * time.Millisecond  // between two looks whether all of a server is gone
	readyPoll    = 20 * time.Millisecond // between two requests whether it is ready
	envServer    = "NGXLAB_SERVER"       // marks every process of a command server with its directory
)

// started is a command of the server section: as the server's user, with its environment.
func (sv *serving) started(c lab.Command, argv []string) lab.Command {
	c.Argv, c.User = sv.placed(argv), sv.asked.User
	for _, name := range slices.Sorted(maps.Keys(sv.asked.Command.Env)) {
		c.Env = append(c.Env, name+"="+sv.place(sv.asked.Command.Env[name]))
	}
	c.Env = append(c.Env, envServer+"="+sv.prefix)
	return c
}

// described is what a server that is not nginx runs under: its command and its files.
func (sv *serving) described() string {
	var text strings.Builder
	fmt.Fprintf(&text, "# command: %s\n", strings.Join(sv.asked.Command.Start, " "))
	for _, name := range slices.Sorted(maps.Keys(sv.asked.Command.Env)) {
		fmt.Fprintf(&text, "# environment: %s=%s\n", name, sv.asked.Command.Env[name])
	}
	files := sv.files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "%s%s:\n%s\n", fileHeading, name, files[name])
	}
	return text.String()
}

// settled waits until a server that goes into the background stands in its pid file.
func (sv *serving) settled(ctx context.Context) error {
	if sv.asked.Command == nil || sv.asked.Command.PIDFile == "" {
		return nil
	}
	file := sv.place(sv.asked.Command.PIDFile)
	var found int
	err := sv.until(ctx, serverPoll, func() (err error) {
		if found, err = sv.pidIn(file); err == nil {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if found == sv.master.pid { // it stays in the foreground all the same
		sv.gone = sv.master.done
		return nil
	}
	if sv.first, err = readStarted(found); err != nil {
		return err
	}
	if err := note(sv.prefix, found); err != nil { // it has left the group that is noted
		return err
	}
	sv.pid, sv.gone = found, make(chan struct{})
	return watchEnd(found, sv.gone)
}

// leaving reports whether the first process may have ended well, for it leaves another behind that is not known yet.
func (sv *serving) leaving() bool {
	if sv.asked.Command == nil || sv.asked.Command.PIDFile == "" || sv.pid != sv.master.pid {
		return false
	}
	select {
	case <-sv.master.done:
		return sv.master.process.Exit == 0
	default:
		return false
	}
}

// pidIn reads a pid file. The process must live and be of this server: a file that was left behind, or that another
// server wrote, is told.
func (sv *serving) pidIn(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("pid file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("pid file %s: %q is no process number", file, strings.TrimSpace(string(text)))
	}
	all, err := processes()
	if err != nil {
		return 0, err
	}
	switch p, lives := all[pid]; {
	case !lives || p.dead:
		return 0, fmt.Errorf("pid file %s is stale: there is no process %d", file, pid)
	case !sv.ours(pid, all):
		return 0, fmt.Errorf("pid file %s names process %d, which is none of this server: remove the file, or stop that process", file, pid)
	}
	return pid, nil
}

// ours reports whether a process is one of the server. One whose environment may not be read must at least have come from
// this agent.
func (sv *serving) ours(pid int, all processTable) bool {
	if _, err := readProc(pid, "environ"); errors.Is(err, fs.ErrPermission) {
		return slices.Contains(all.below(os.Getpid()), pid)
	}
	return sv.master.birth.of(all[pid], all) || slices.Contains(all.below(sv.master.pid), pid) || sv.marks(pid)
}

// watchEnd closes gone when a process has ended, and reaps it when it has become a child of this one.
func watchEnd(pid int, gone chan struct{}) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	go func() {
		defer close(gone)
		defer unix.Close(fd) //nolint:errcheck // nothing was written
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // ECHILD: not a child of ours
	}()
	return nil
}

// answering waits until a command server answers the path by which it is known to be ready.
func (sv *serving) answering(ctx context.Context) error {
	if sv.asked.Command == nil {
		return nil
	}
	url := sv.asked.Command.Ready
	if url == "" {
		url = sv.asked.URLs[0]
	}
	last := error(nil)
	return sv.until(ctx, readyPoll, func() error {
		p, err := probe(ctx, sv.site(), url)
		switch {
		case err == nil && p.Status < 400:
			return nil
		case err == nil:
			last = fmt.Errorf("%s: status %d", url, p.Status)
		case last == nil || ctx.Err() == nil: // else it only says that the time was over
			last = fmt.Errorf("%s: %w", url, err)
		}
		return last
	})
}

// stopCommand asks the server to end, by its own command or a signal to its first process, and ends what is left of it
// after its time.
func (sv *serving) stopCommand() error {
	grace := sv.asked.Command.Grace.Duration
	if grace <= 0 {
		grace = defaultGrace
	}
	bounded, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := sv.ask(bounded)
	if left := sv.waitGone(bounded); left > 0 {
		err = errors.Join(err, killUntilNone(killGrace, sv.processes))
	}
	select {
	case <-sv.master.done:
	default: // not seen, when the process table could not be read
		sv.master.kill()
		<-sv.master.done
	}
	sv.reapSeen()
	return err
}

// reapSeen lets go of processes of the server that became children of this one when their own parent ended.
func (sv *serving) reapSeen() {
	for end := time.Now().Add(pipeGrace); len(sv.seen) > 0 && time.Now().Before(end); <-time.After(time.Millisecond) {
		for pid := range sv.seen {
			got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // ECHILD: no child of ours, or let go before
			if got == pid || errors.Is(err, syscall.ECHILD) {
				delete(sv.seen, pid)
			}
		}
	}
}

// ask asks the server to end; one that cannot be asked is killed later.
func (sv *serving) ask(ctx context.Context) error {
	if argv := sv.asked.Command.Stop; len(argv) > 0 {
		c := sv.started(lab.Command{Dir: sv.prefix, Campaign: sv.asked.Campaign, Env: sv.placed(sv.asked.Build.Env)}, argv)
		p, err := sv.r.Run(ctx, c, nil)
		if err == nil && p.Exit != 0 {
			err = fmt.Errorf("exit %d: %.500s", p.Exit, strings.TrimSpace(sv.placeless(p.Stderr)))
		}
		if err != nil {
			return fmt.Errorf("stop the server by %s: %w", argv[0], err)
		}
		return nil
	}
	pids, err := sv.processes()
	if slices.Contains(pids, sv.pid) { // the others end with it
		pids = []int{sv.pid}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, signalNamed(sv.asked.Command.Signal)) // ESRCH: gone meanwhile
	}
	return err
}

// signalNamed is the signal of a name with or without SIG; TERM of "" and of a name that there is not.
func signalNamed(name string) syscall.Signal {
	if s := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")); s != 0 {
		return s
	}
	return syscall.SIGTERM
}

// waitGone waits until all of the server is gone and returns how many processes are left when ctx ends.
func (sv *serving) waitGone(ctx context.Context) int {
	ticks := time.NewTicker(stopPoll)
	defer ticks.Stop()
	for {
		left, err := sv.processes()
		if err == nil && len(left) == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
			return max(1, len(left))
		case <-ticks.C:
		}
	}
}

// processes are all that live of a command server: its first process with all below it, the group that it was started
// in, and whatever has its mark in the environment.
func (sv *serving) processes() ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var tree []int // none when the number of the first process has gone to another
	if first, there := all[sv.pid]; there && first.start == sv.first.start {
		tree = append(all.below(sv.pid), sv.pid)
	}
	var pids []int
	for pid, p := range all {
		if !p.dead && (slices.Contains(tree, pid) || sv.master.birth.of(p, all) || sv.marks(pid)) {
			pids = append(pids, pid)
			sv.seen[pid] = true
		}
	}
	delete(sv.seen, sv.master.pid) // reaped by its own
	slices.Sort(pids)
	return pids, nil
}

// marks reports whether a process was started for this server, as its environment says.
func (sv *serving) marks(pid int) bool {
	text, err := readProc(pid, "environ")
	return err == nil && slices.Contains(strings.Split(string(text), "\x00"), envServer+"="+sv.prefix)
}

// readCommand is readBack of a server that is not nginx.
func (sv *serving) readCommand(context.Context) error {
	s := &sv.server
	s.Tree = true
	pids, err := sv.processes()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if pid != sv.pid && pid != sv.master.pid { // which is ending, when it is not the server
			s.Workers = append(s.Workers, pid)
		}
	}
	if err := sv.limits(append([]int{sv.pid}, s.Workers...)); err != nil {
		return err
	}
	if s.Backlog, err = backlog(sv.asked.Port); err != nil {
		return err
	}
	s.ReadBack, err = compare(sv.asked, *s, nil)
	return err
}

// vanished reports whether a process ended while it was read.
func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
