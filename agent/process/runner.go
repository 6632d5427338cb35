// Package process runs commands on this host: in process groups of their own, with deadlines, with a held common
// start, and so that none outlives the agent.
package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// Runner runs commands. Its zero value with Dir set is ready for use.
type Runner struct {
	Dir  string // state directory; every process gets a fresh directory in Dir/work
	Exe  string // the agent's binary, which waits and then becomes the command; "" = /proc/self/exe
	Nice int    // nice value of the commands; the agent's own may be lower
	// Versions tells the versions of the packages that own files, by path, as far as they are known; nil = nobody knows.
	Versions func(ctx context.Context, paths []string) map[string]string

	mu       sync.Mutex
	children map[*child]bool // started and not yet ended
	armed    map[string]*armedSet
	fired    int // sets armed so far, to name the next
	current  *lab.Server
	versions map[string]string   // of libraries, by the file stamped
	modules  map[string][]string // of the stripped binary asked last, by the file stamped
	hashes   map[string]string   // of bodies, by path: the file stamped when it was hashed
	slot     chan struct{}       // holds one token while a server runs
}

// Now reads CLOCK_MONOTONIC, the clock of every lab.Instant of this host.
func Now() lab.Instant {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // cannot happen on Linux: the clock always exists
	}
	return lab.Instant(t.Nano())
}

// Current returns the running server; false when there is none.
func (r *Runner) Current() (lab.Server, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return lab.Server{}, false
	}
	return *r.current, true
}

// setCurrent makes s what Current returns; nil when the server is gone.
func (r *Runner) setCurrent(s *lab.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = s
}

// occupy waits until no server runs and takes its place; the caller calls free when its server is gone.
func (r *Runner) occupy(ctx context.Context) (free func(), err error) {
	r.mu.Lock()
	if r.slot == nil {
		r.slot = make(chan struct{}, 1)
	}
	slot := r.slot
	r.mu.Unlock()
	select {
	case slot <- struct{}{}:
		return sync.OnceFunc(func() { <-slot }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the server before to end: %w", ctx.Err())
	}
}

// Idle waits until no server runs.
func (r *Runner) Idle(ctx context.Context) error {
	free, err := r.occupy(ctx)
	if err == nil {
		free()
	}
	return err
}

// LoadPIDs returns the pids of the armed and of the running load processes, in no order.
func (r *Runner) LoadPIDs() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pids []int
	for c := range r.children {
		if c.load {
			pids = append(pids, c.pid)
		}
	}
	return pids
}

// KillAll ends every process that the runner started, with its group, and waits up to five seconds until they are gone.
// Directories of processes that a Run, Fire or Serve still waits for are removed by it.
func (r *Runner) KillAll() error {
	r.mu.Lock()
	var all []*child
	for c := range r.children {
		all = append(all, c)
	}
	r.mu.Unlock()
	for _, c := range all {
		c.kill()
	}
	late := time.After(killGrace)
	for _, c := range all {
		select {
		case <-c.done:
		case <-late:
			return fmt.Errorf("kill process %d (%s): still there after %v", c.pid, c.command.Argv[0], killGrace)
		}
	}
	return r.disarm()
}

// fresh makes a new empty directory under Dir/work.
func (r *Runner) fresh(kind string) (string, error) {
	work := filepath.Join(r.Dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", fmt.Errorf("make the work directory: %w", err)
	}
	dir, err := os.MkdirTemp(work, kind+"-")
	if err != nil {
		return "", fmt.Errorf("make a fresh directory: %w", err)
	}
	return dir, os.Chmod(dir, 0o755) // nginx's workers may run as another user
}

func (r *Runner) add(c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = map[*child]bool{}
	}
	r.children[c] = true
}

func (r *Runner) remove(c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, c)
}
