package watch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of reading everything below /proc/sys: a host with 1,000 interfaces has some 60,000 sysctls, read at about
// 10 µs each.
const (
	maxSysctls    = 100_000
	maxSysctl     = 4096 // bytes of one value; the kernel's own are a page at most
	sysctlTimeout = 5 * time.Second
)

// sysctls are all readable sysctls, by name with dots as sysctl(8) writes them, without the final newline. Those that
// can only be written are left out, and fs.binfmt_misc, whose reading makes systemd mount it.
func (w *Watcher) sysctls(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, sysctlTimeout)
	defer cancel()
	r := sysctlReader{ctx: ctx, all: map[string]string{}, text: make([]byte, maxSysctl)}
	if root, err := os.Open(w.proc("sys")); err == nil {
		r.walk(root, "")
	}
	return r.all
}

// sysctlReader reads below /proc/sys. It opens each name relative to its directory: the kernel looks up every part of a
// path anew, which for sysctls takes most of the time.
type sysctlReader struct {
	ctx  context.Context
	all  map[string]string
	text []byte
}

// walk reads a directory, whose path below /proc/sys ends with a slash unless it is "", and closes it.
func (r *sysctlReader) walk(dir *os.File, path string) {
	defer dir.Close()             //nolint:errcheck // opened for reading
	entries, _ := dir.ReadDir(-1) // some may be gone, as an interface can be, or not for us
	for _, e := range entries {
		switch {
		case r.ctx.Err() != nil || len(r.all) == maxSysctls:
			return
		case e.IsDir() && path+e.Name() != "fs/binfmt_misc":
			if fd, err := openIn(dir, e.Name()); err == nil {
				r.walk(os.NewFile(uintptr(fd), e.Name()), path+e.Name()+"/")
			}
		case e.Type().IsRegular():
			if text, ok := r.read(dir, e.Name()); ok {
				r.all[dotted(path+e.Name())] = text
			}
		}
	}
}

func (r *sysctlReader) read(dir *os.File, name string) (string, bool) {
	fd, err := openIn(dir, name)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading
	n, err := unix.Read(fd, r.text)
	if err != nil {
		return "", false
	}
	return strings.TrimSuffix(string(r.text[:n]), "\n"), true
}

// openIn opens what is in a directory, for reading. The kernel refuses it, also to root, for a sysctl that can only be
// written.
func openIn(dir *os.File, name string) (int, error) {
	return unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
}

// dotted is the name of a path below /proc/sys: dots separate, and a dot within a name is written as a slash.
func dotted(path string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '/':
			return '.'
		case '.':
			return '/'
		}
		return r
	}, path)
}

// writable says of each name whether the agent may write it: it runs as root, the file's mode allows it, and
// /proc/sys is not mounted read-only. A name that does not exist is not writable.
func (w *Watcher) writable(names []string, root bool) map[string]bool {
	m := map[string]bool{}
	for _, name := range names {
		path := name
		if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '.' {
			path = dotted(name)
		}
		info, err := os.Stat(w.proc("sys/" + path))
		m[name] = root && err == nil && filepath.IsLocal(path) && info.Mode().Perm()&0o222 != 0 &&
			unix.Access(w.proc("sys/"+path), unix.W_OK) == nil
	}
	return m
}
