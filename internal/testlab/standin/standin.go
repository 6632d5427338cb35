// Package standin makes sources that behave as others do: Tengine 2.1 and 3.1 and an old nginx, out of the nginx that the
// distribution has. They have the version text, the name of the binary, the directives and the faults of the real ones,
// so that recipes for these can be tried where the real archives cannot be had; they prove nothing about the real ones.
// Only _test files may import it.
package standin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Source is a stand-in.
type Source struct {
	Dir     string // name of the folder in the archive
	Binary  string // relative to that folder, once it is made
	Version string // as its -V says
	edits   []edit
}

// edit replaces a text of a file, which must be there: another nginx that lacks it makes no stand-in.
type edit struct{ file, old, new string }

// Tengine21 stands for Tengine 2.1.0 of 2014: nginx 1.6.2 with reuse_port in the events block, which gives each worker
// listening sockets of its own. As the real one it knows neither listen's reuseport nor -T.
func Tengine21() Source {
	return Source{Dir: "tengine-2.1.0", Binary: "objs/nginx", Version: "2.1.0", edits: join(tengine("2.1.0", "1.6.2", tengine2Banner), reusePort, before19)}
}

// Tengine31 stands for Tengine 3.1.0, whose binary has another name.
func Tengine31() Source {
	return Source{Dir: "tengine-3.1.0", Binary: "objs/tengine", Version: "3.1.0", edits: join(tengine("3.1.0", "1.24.0", tengine3Banner), renamed)}
}

// OldNginx stands for nginx 1.6.2, which a compiler and a C library of today refuse: see faults. As the real one it
// knows neither listen's reuseport nor -T.
func OldNginx() Source {
	return Source{Dir: "nginx-1.6.2", Binary: "objs/nginx", Version: "1.6.2", edits: join([]edit{version("1.6.2")}, faults, before19)}
}

func join(lists ...[]edit) []edit {
	var all []edit
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// Make copies the unpacked source of nginx into the folder s.Dir of the directory into, edits it there, and returns the
// folder's path.
func (s Source) Make(nginx, into string) (string, error) {
	dir := filepath.Join(into, s.Dir)
	if err := os.CopyFS(dir, os.DirFS(nginx)); err != nil {
		return "", fmt.Errorf("copy nginx's source: %w", err)
	}
	if err := os.Chmod(filepath.Join(dir, "configure"), 0o755); err != nil { //nolint:gosec // a script
		return "", err
	}
	for _, e := range s.edits {
		if err := e.apply(dir); err != nil {
			return "", fmt.Errorf("make a stand-in of %s: %w", s.Dir, err)
		}
	}
	return dir, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, at, at))
	})
}

// at is the time of every file: equal stand-ins are equal archives, and one build.
var at = time.Date(2014, 12, 1, 0, 0, 0, 0, time.UTC)

func (e edit) apply(dir string) error {
	path := filepath.Join(dir, e.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), e.old) {
		return fmt.Errorf("%s has no %q", e.file, e.old)
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), e.old, e.new)), 0o644)
}
