package watch

import (
	"context"
	"io/fs"
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
	m := map[string]string{}
	root := w.proc("sys")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil || len(m) == maxSysctls {
			return fs.SkipAll
		}
		if err != nil {
			return nil // gone, as an interface can be, or not for us
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() && name == "fs/binfmt_misc" {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			if text, ok := readSysctl(path); ok {
				m[dotted(name)] = text
			}
		}
		return nil
	})
	return m
}

func readSysctl(path string) (string, bool) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&0o444 == 0 {
		return "", false
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading
	text := make([]byte, maxSysctl)
	n, err := unix.Read(fd, text)
	if err != nil {
		return "", false
	}
	return strings.TrimSuffix(string(text[:n]), "\n"), true
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
