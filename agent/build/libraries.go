package build

import (
	"bytes"
	"context"
	"debug/elf"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ngxlab/lab"
)

// loaded is what the dynamic loader says that the binary of a build in dir, and the modules that it loads, are loaded with,
// one "name => path (address)" a line: glibc's does so instead of starting it when LD_TRACE_LOADED_OBJECTS is set (ldd(1)).
// "" of a binary that is linked statically.
func (c Cache) loaded(ctx context.Context, b lab.Build, dir string) string {
	path := b.Binary
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if !dynamic(path) { // one without the loader would really start
		return ""
	}
	env := append(placedEnv(b.Env, dir), "LD_TRACE_LOADED_OBJECTS=1")
	if objects := objectsOf(b, dir); len(objects) > 0 {
		env = append(env, "LD_PRELOAD="+strings.Join(objects, ":"))
	}
	var out strings.Builder
	_ = c.run(ctx, lab.Command{Argv: []string{path, "-V"}, Env: env, Deadline: brief}, &out) // what it printed counts
	return out.String()
}

// objectsOf are the paths of the modules that a build loads.
func objectsOf(b lab.Build, dir string) []string {
	var paths []string
	for _, object := range b.Dynamic {
		if !filepath.IsAbs(object) {
			object = filepath.Join(dir, object)
		}
		paths = append(paths, object)
	}
	return paths
}

// foundAt is a line of a library that is there.
var foundAt = regexp.MustCompile(`(?m)^\s*(\S+) => (/\S+) \(0x`)

// libraries are those that the binary of a build and its modules are linked with, with the versions that the host has now,
// or that the build came with.
func (c Cache) libraries(ctx context.Context, b lab.Build) []lab.Library {
	var all []lab.Library
	var paths []string
	for _, found := range foundAt.FindAllStringSubmatch(c.loaded(ctx, b, b.Dir), -1) {
		path, err := filepath.EvalSymlinks(found[2])
		if err != nil {
			path = found[2]
		}
		all, paths = append(all, lab.Library{Name: found[1], Path: path}), append(paths, path)
	}
	versions := c.Versions(ctx, paths)
	if versions == nil {
		versions = map[string]string{}
	}
	if dir, err := filepath.EvalSymlinks(b.Dir); err == nil {
		for _, l := range b.Libraries {
			versions[filepath.Join(dir, l.Path)] = l.Version
		}
	}
	for i := range all {
		all[i].Version = versions[all[i].Path]
	}
	slices.SortFunc(all, func(x, y lab.Library) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Versions are the versions of the packages that own files, by path, as far as the package manager knows them.
func (c Cache) Versions(ctx context.Context, paths []string) map[string]string {
	if len(paths) == 0 {
		return nil
	}
	if _, err := exec.LookPath("dpkg-query"); err == nil {
		return c.debianVersions(ctx, paths)
	}
	return c.rpmVersions(ctx, paths)
}

// debianVersions asks dpkg-query(1). Packages may name a file of /usr/lib as one of /lib, which is a link to it.
func (c Cache) debianVersions(ctx context.Context, paths []string) map[string]string {
	argv := []string{"dpkg-query", "-S"}
	for _, path := range paths {
		argv = append(argv, path, strings.TrimPrefix(path, "/usr"))
	}
	var out bytes.Buffer
	_ = c.run(ctx, lab.Command{Argv: argv, Deadline: brief}, &out) // an error says that one is not known; the others are printed
	owners := map[string]string{}
	var packages []string
	for line := range strings.Lines(out.String()) {
		owner, path, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && strings.HasPrefix(path, "/") && !strings.Contains(owner, " ") {
			owners[path], packages = owner, append(packages, owner)
		}
	}
	versions := c.packageVersions(ctx, packages)
	known := map[string]string{}
	for _, path := range paths {
		for _, name := range []string{path, strings.TrimPrefix(path, "/usr")} {
			if version := versions[owners[name]]; version != "" {
				known[path] = version
			}
		}
	}
	return known
}

// packageVersions are the versions of installed packages by "name:architecture".
func (c Cache) packageVersions(ctx context.Context, packages []string) map[string]string {
	versions := map[string]string{}
	if len(packages) == 0 {
		return versions
	}
	var out bytes.Buffer
	_ = c.run(ctx, lab.Command{Argv: append([]string{"dpkg-query", "-W", "-f=${binary:Package} ${Version}\n"}, packages...), Deadline: brief}, &out) // as above
	for line := range strings.Lines(out.String()) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			versions[name] = version
		}
	}
	return versions
}

// rpmVersions asks rpm(8), file by file: its answers name no file.
func (c Cache) rpmVersions(ctx context.Context, paths []string) map[string]string {
	known := map[string]string{}
	for _, path := range paths {
		var out bytes.Buffer
		if c.run(ctx, lab.Command{Argv: []string{"rpm", "-qf", "--qf", "%{VERSION}-%{RELEASE}", path}, Deadline: brief}, io.Writer(&out)) == nil {
			known[path] = out.String()
		}
	}
	return known
}

// dynamic reports whether a file is a program that a dynamic loader starts which lists instead when it is asked to: glibc's
// does, musl's would start it.
func dynamic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return err == nil && !strings.Contains(string(loader), "musl")
		}
	}
	return false
}
