package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// describe fills in what the running server is: its build, modules, libraries and user. The user is held against the one
// that was asked for.
func (sv *serving) describe(ctx context.Context) error {
	s := &sv.server
	s.Build = sv.asked.Build.ID
	first := s.Master
	if len(s.Workers) > 0 && !s.Tree {
		first = s.Workers[0]
	}
	var err error
	if s.User, err = userOf(first); err != nil {
		return err
	}
	if want := sv.asked.User; want != "" && s.User != want {
		return fmt.Errorf("process %d of the server runs as %s, not as %s", first, s.User, want)
	}
	// Of the master, which has all that its workers have: theirs may be another user's, and not be read without
	// CAP_SYS_PTRACE, as in a container. Of a command that is another user's they are then not known.
	mapped, err := mappedObjects(s.Master)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.Modules = sv.modules(ctx, mapped)
	s.Libraries = sv.r.libraries(ctx, mapped)
	return nil
}

// userOf is the name of the user that a process runs as, its number when the user has none.
func userOf(pid int) (string, error) {
	text, err := readProc(pid, "status")
	if err != nil {
		return "", fmt.Errorf("user of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "Uid:")
		f := strings.Fields(rest)
		if !ok || len(f) < 2 {
			continue
		}
		if u, err := user.LookupId(f[1]); err == nil { // the second is the effective one
			return u.Username, nil
		}
		return f[1], nil
	}
	return "", fmt.Errorf("user of process %d: not in its status", pid)
}

// mappedObjects are the shared objects that a process has mapped, by their real paths, sorted.
func mappedObjects(pid int) ([]string, error) {
	text, err := readProc(pid, "maps")
	if err != nil {
		return nil, fmt.Errorf("libraries of process %d: %w", pid, err)
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // address, permissions, offset, device, inode, path
		if len(f) >= 6 && strings.Contains(path.Base(f[5]), ".so") && strings.Contains(f[1], "x") {
			paths = append(paths, f[5])
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// modules are those of the very binary that runs, and the shared objects of modules that it has loaded.
func (sv *serving) modules(ctx context.Context, mapped []string) []string {
	if sv.asked.Command != nil {
		return nil
	}
	names := sv.compiledIn(ctx, procPath(sv.server.Master, "exe"))
	for _, object := range mapped {
		if name, ok := strings.CutSuffix(path.Base(object), ".so"); ok && strings.HasPrefix(name, "ngx_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compiledIn are the modules that the very binary that runs names: in its table or, where it was stripped, by what it was
// configured with, which it is asked once.
func (sv *serving) compiledIn(ctx context.Context, exe string) []string {
	f, err := os.Open(exe)
	if err != nil {
		return slices.Clone(sv.asked.Build.Modules)
	}
	defer f.Close() //nolint:errcheck // only read
	if names, err := lab.NginxModules(f); err == nil {
		return names
	}
	r, file := sv.r, stamped(exe)
	r.mu.Lock()
	names, known := r.modules[file]
	r.mu.Unlock()
	if !known {
		names = sv.configured(ctx, exe)
		r.mu.Lock()
		r.modules = map[string][]string{file: names}
		r.mu.Unlock()
	}
	return slices.Clone(names)
}

// configured asks a binary what it was configured with.
func (sv *serving) configured(ctx context.Context, exe string) []string {
	c := sv.command()
	c.Argv = []string{exe, "-V"}
	p, err := sv.r.Run(ctx, c, nil)
	if err != nil || p.Exit != 0 {
		return sv.asked.Build.Modules
	}
	return lab.ConfiguredModules(string(p.Stderr))
}

// libraries are shared objects with the versions of the packages that own them, which are asked for once.
func (r *Runner) libraries(ctx context.Context, paths []string) []lab.Library {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return strings.HasPrefix(path.Base(p), "ngx_") })
	r.mu.Lock()
	known := r.versions
	r.mu.Unlock()
	if r.Versions != nil && slices.ContainsFunc(paths, func(p string) bool { _, ok := known[stamped(p)]; return !ok }) {
		known = r.askVersions(ctx, paths)
	}
	var all []lab.Library
	for _, p := range paths {
		all = append(all, lab.Library{Name: path.Base(p), Path: p, Version: known[stamped(p)]})
	}
	return all
}

func (r *Runner) askVersions(ctx context.Context, paths []string) map[string]string {
	said := r.Versions(ctx, paths)
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := maps.Clone(r.versions) // somebody may be reading those
	if versions == nil {
		versions = map[string]string{}
	}
	for _, p := range paths {
		versions[stamped(p)] = said[p]
	}
	r.versions = versions
	return versions
}

// stamped is a file with what changes when it does: also the time of its inode's last change, which nobody can set.
func stamped(p string) string {
	var s unix.Stat_t
	if err := unix.Stat(p, &s); err != nil {
		return p
	}
	return fmt.Sprintf("%d %d %d %d %d", s.Dev, s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano())
}
