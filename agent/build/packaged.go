package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// packaged takes a server out of the distribution's packages, with the libraries that the host lacks: they are fetched and
// unpacked into the build and never installed, so that nothing of the host's changes and nothing is started.
func (c Cache) packaged(ctx context.Context, j job, work string, b *lab.Build) error {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("packages can be taken apart only where there is %s; install the server yourself and name it with installed", tool)
		}
	}
	debs, err := c.fetchPackages(ctx, j, work)
	if err != nil {
		return fmt.Errorf("packages %s: %w", strings.Join(j.recipe.Package, " "), err)
	}
	out := filepath.Join(work, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, deb := range debs {
		if err := c.unpackDeb(ctx, j, deb, out, b); err != nil {
			return err
		}
	}
	if err := errors.Join(tidied(out), published(out)); err != nil {
		return err
	}
	b.ID = hash(identity(j.recipe), j.where.fixed(), b.Sources)
	return c.found(ctx, j, out, b)
}

// fetchPackages downloads what is asked for and what of its dependencies the host lacks; apt verifies all against its
// signed lists.
func (c Cache) fetchPackages(ctx context.Context, j job, work string) ([]string, error) {
	a := apt{cache: c, job: j, dir: filepath.Join(work, "apt")}
	if err := a.prepare("deb", j.recipe.Suite); err != nil {
		return nil, err
	}
	if err := a.download(ctx, j.recipe.Package); err != nil {
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "cache", "archives", "*.deb"))
	if err != nil {
		return nil, err
	}
	if len(debs) == 0 {
		return nil, errors.New("apt has nothing to fetch; if the server is installed, name it with installed")
	}
	for _, deb := range debs {
		if name, version := debName(deb); name == "libc6" {
			return nil, fmt.Errorf("they need another C library (%s) than the host has; compile the server from its source package instead: source {debian: …, suite: %s}", version, j.recipe.Suite)
		}
	}
	return debs, nil
}

// debName are package and version in the name of a file NAME_VERSION_ARCHITECTURE.deb, where a colon is %3a.
func debName(file string) (name, version string) {
	parts := strings.Split(filepath.Base(file), "_")
	if len(parts) != 3 {
		return parts[0], ""
	}
	return parts[0], strings.ReplaceAll(parts[1], "%3a", ":")
}

// unpackDeb unpacks one package beside the others, and notes the modules that it brings, when it was asked for, and the
// libraries.
func (c Cache) unpackDeb(ctx context.Context, j job, deb, out string, b *lab.Build) error {
	sum, err := hashFile(deb)
	if err != nil {
		return err
	}
	b.Sources[filepath.Base(deb)] = sum
	modules, libraries := sharedIn(out, moduleFiles), sharedIn(out, libraryFiles...)
	cmd := lab.Command{Argv: []string{"dpkg-deb", "-x", deb, out}, Deadline: lab.Duration{Duration: 5 * time.Minute}}
	if err := c.run(ctx, cmd, j.log); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
	}
	name, version := debName(deb)
	for _, file := range sharedIn(out, moduleFiles) {
		if slices.Contains(j.recipe.Package, name) && !slices.Contains(modules, file) {
			b.Dynamic = append(b.Dynamic, file)
		}
	}
	for _, file := range sharedIn(out, libraryFiles...) {
		if !slices.Contains(libraries, file) {
			b.Libraries = append(b.Libraries, lab.Library{Name: filepath.Base(file), Path: file, Version: version})
		}
	}
	return nil
}

// Where Debian's packages have shared objects.
const moduleFiles = "usr/lib/nginx/modules/*.so"

var libraryFiles = []string{"usr/lib/*-linux-*/*.so*", "lib/*-linux-*/*.so*", "usr/lib/*.so*"}

// sharedIn are the files of patterns below out, relative to it.
func sharedIn(out string, patterns ...string) []string {
	var files []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(out, pattern)) // the patterns are well formed
		for _, path := range found {
			files = append(files, strings.TrimPrefix(path, out+"/"))
		}
	}
	return files
}

// neededFirst are modules of nginx that others need, in the order of loading.
var neededFirst = []string{"ndk_http_module.so", "ngx_stream_module.so", "ngx_mail_module.so"}

// loadOrder puts the modules that others need first; the others stay in their order.
func loadOrder(files []string) []string {
	rank := func(file string) int {
		if at := slices.Index(neededFirst, filepath.Base(file)); at >= 0 {
			return at
		}
		return len(neededFirst)
	}
	slices.SortStableFunc(files, func(a, b string) int { return rank(a) - rank(b) })
	return files
}

// unneeded of packages that are not installed: their configuration, documentation, and what they would start.
var unneeded = []string{"etc", "var", "lib/systemd", "usr/lib/systemd", "usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/bug"}

// tidied leaves of unpacked packages what a server needs, without links that lead out, so that it can be copied.
func tidied(out string) error {
	for _, name := range unneeded {
		if err := os.RemoveAll(filepath.Join(out, name)); err != nil {
			return err
		}
	}
	return filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		from, err := filepath.Rel(out, filepath.Dir(path))
		if err == nil && (filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(from, target))) {
			err = os.Remove(path)
		}
		return err
	})
}

// found looks for the server among what was unpacked, and for the libraries that came with it.
func (c Cache) found(ctx context.Context, j job, out string, b *lab.Build) error {
	b.Binary = j.recipe.Binary
	if _, err := os.Stat(filepath.Join(out, b.Binary)); b.Binary == "" || err != nil {
		return fmt.Errorf("packages %s hold no server %q; they hold %s", strings.Join(j.recipe.Package, " "), b.Binary, strings.Join(programs(out), ", "))
	}
	b.Env, b.Dynamic = libraryEnv(out), loadOrder(b.Dynamic)
	if missing := c.missingLibraries(ctx, *b, out); len(missing) > 0 {
		return fmt.Errorf("the server needs libraries that are neither on this host nor in its packages: %s", strings.Join(missing, ", "))
	}
	if err := c.examined(ctx, j, out, b); err != nil {
		return err
	}
	if b.Version == "" {
		b.Version = debVersion(b.Sources, j.recipe.Package[0])
	}
	return nil
}

// programs are the files in the directories of programs.
func programs(out string) []string {
	var names []string
	for _, dir := range []string{"usr/sbin", "usr/bin", "sbin", "bin"} {
		files, _ := os.ReadDir(filepath.Join(out, dir)) // none is none
		for _, f := range files {
			names = append(names, dir+"/"+f.Name())
		}
	}
	if len(names) == 0 {
		return []string{"no programs"}
	}
	return names
}

// libraryEnv lets the loader find the libraries that were unpacked, nil when there are none.
func libraryEnv(out string) []string {
	var dirs []string
	for _, file := range sharedIn(out, libraryFiles...) {
		dirs = append(dirs, "{build}/"+filepath.Dir(file))
	}
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) == 0 {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + strings.Join(dirs, ":")}
}

// debVersion is the upstream version of a package among files.
func debVersion(files map[string]string, name string) string {
	for file := range files {
		if of, version := debName(file); of == name {
			return sourcePackage{version: version}.upstream()
		}
	}
	return ""
}
