package process

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"

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
	mapped, err := mappedObjects(first)
	if err != nil {
		return err
	}
	s.Modules = sv.modules(mapped)
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
func (sv *serving) modules(mapped []string) []string {
	if sv.asked.Command != nil {
		return nil
	}
	names := sv.r.compiledIn("/proc/"+strconv.Itoa(sv.server.Master)+"/exe", sv.asked.Build)
	for _, object := range mapped {
		if name, ok := strings.CutSuffix(path.Base(object), ".so"); ok && strings.HasPrefix(name, "ngx_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compiledIn are the modules that a binary names itself; what its build says where it was stripped.
func (r *Runner) compiledIn(path string, b lab.Build) []string {
	f, err := os.Open(path)
	if err != nil {
		return slices.Clone(b.Modules)
	}
	defer f.Close() //nolint:errcheck // only read
	names, err := lab.NginxModules(f)
	if err != nil {
		return slices.Clone(b.Modules)
	}
	return names
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
	versions := map[string]string{}
	for _, p := range paths {
		versions[stamped(p)] = said[p]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = versions
	return versions
}

// stamped is a file with what changes when it does.
func stamped(p string) string {
	info, err := os.Stat(p)
	if err != nil {
		return p
	}
	return fmt.Sprintf("%s %d %d", p, info.Size(), info.ModTime().UnixNano())
}
