package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Subreaper makes this process the parent of descendants whose own parent ends, so that none gets out of sight.
func Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	return nil
}

// Descendants returns the pids of all living processes below root, by the chains of parents in /proc; zombies do not
// count, their descendants do.
func Descendants(root int) ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	return all.below(root), nil
}

// KillDescendants kills all descendants of this process, also those that left their process group, and looks again
// until there are none or the time is over.
func KillDescendants(limit time.Duration) error {
	return killUntilNone(limit, func() ([]int, error) {
		if childless() {
			return nil, nil
		}
		return Descendants(os.Getpid())
	})
}

// childless reports that this process has no child, dead or alive, and so no descendant. It is much quicker than to read
// the process table.
func childless() bool {
	return errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD)
}

// KillSurvivors kills the processes that an earlier agent of the same state directory left behind: those marked with
// it in their environment, those that run a binary of its builds from a directory of its work, because nginx overwrites
// its environment with its title, those noted in its directory of work, because nginx's workers are another user's, and
// the groups of them all. Processes in a container are those of another host, whose state directory may have the same
// name. Only who holds the lock of dir may call it.
func KillSurvivors(dir string) error {
	o := origin{dir: dir}
	var err error
	if o.work, err = resolved(dir, "work"); err != nil {
		return err
	}
	if o.builds, err = resolved(dir, "builds"); err != nil {
		return err
	}
	return killUntilNone(killGrace, o.survivors)
}

// origin is a state directory as the processes show it that were started for it.
type origin struct {
	dir          string // as the agent was given it
	work, builds string // as /proc tells paths
}

// resolved is a directory below dir without symbolic links: builds, for one, may lie on another disk.
func resolved(dir, name string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("look for survivors: %w", err)
	}
	path, err := filepath.EvalSymlinks(filepath.Join(real, name))
	if errors.Is(err, fs.ErrNotExist) { // its processes may run all the same
		return filepath.Join(real, name), nil
	}
	return path, err
}

func killUntilNone(limit time.Duration, find func() ([]int, error)) error {
	pause := time.Millisecond
	for end := time.Now().Add(limit); ; pause = min(2*pause, 50*time.Millisecond) {
		pids, err := find()
		if err != nil || len(pids) == 0 {
			return err
		}
		var errs []error
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				errs = append(errs, fmt.Errorf("kill process %d: %w", pid, err)) // e.g. run as root by sudo
			}
		}
		if time.Now().After(end) {
			return errors.Join(append(errs, fmt.Errorf("kill processes %v: still there after %v", pids, limit))...)
		}
		<-time.After(pause) // the end of an orphan is announced to nobody here
	}
}

// survivors are the processes that are marked or noted, with their groups: one of another user shows no mark.
func (o origin) survivors() ([]int, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	own := append(all.below(os.Getpid()), os.Getpid(), os.Getppid())
	table := all.living()
	notes := noted(o.work)
	groups := map[int]bool{}
	for pid, p := range table {
		known := func(s started) bool { return s.of(p, table) }
		if !slices.Contains(own, pid) && (o.marked(pid) || slices.ContainsFunc(notes, known)) {
			groups[p.group] = true
		}
	}
	delete(groups, syscall.Getpgrp())
	var found []int
	for pid, p := range table {
		if groups[p.group] && !slices.Contains(own, pid) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// marked reports whether a process was started by an agent of the state directory; false for processes of other users,
// which cannot be read without CAP_SYS_PTRACE.
func (o origin) marked(pid int) bool {
	return (o.inEnvironment(pid) || o.inWork(pid)) && sameNamespace(pid)
}

func (o origin) inEnvironment(pid int) bool {
	text, err := readProc(pid, "environ")
	if err != nil {
		return false
	}
	env := strings.Split(string(text), "\x00")
	return slices.Contains(env, EnvDir+"="+o.dir) &&
		slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, EnvCampaign+"=") })
}

// inWork reports whether a process runs a binary of the builds in a directory of work.
func (o origin) inWork(pid int) bool {
	exe, err := os.Readlink(procPath(pid, "exe"))
	if err != nil || !within(exe, o.builds) {
		return false
	}
	cwd, err := os.Readlink(procPath(pid, "cwd"))
	return err == nil && within(cwd, o.work)
}

// sameNamespace reports whether a process is numbered as this one is, and so not one of a container on this host.
func sameNamespace(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return true // a kernel without them
	}
	its, err := os.Readlink(procPath(pid, "ns/pid"))
	return err == nil && its == own
}

func within(path, dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }
