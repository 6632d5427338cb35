package build

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// conditions are what a build depends on besides its recipe.
type conditions struct {
	Compiler     string
	Distribution string
	Architecture string
	Paths        map[string]string // path source → hash of what is there now, "" when nothing
}

// fixed is the conditions without the paths, whose sums stand in the build's sources.
func (w conditions) fixed() conditions {
	w.Paths = nil
	return w
}

// place is the conditions but for the compiler.
func place(r lab.Recipe) (conditions, error) {
	w := conditions{Distribution: distribution(), Architecture: runtime.GOARCH, Paths: map[string]string{}}
	all := slices.Concat(r.Sources, r.Echo)
	for _, m := range r.Added {
		all = append(all, m.Sources...)
	}
	for _, s := range all {
		if s.Path == "" {
			continue
		}
		sum, err := hashPath(s.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return conditions{}, err
		}
		w.Paths[s.Path] = sum
	}
	return w, nil
}

// compiler returns the first line of the compiler's --version: that of the recipe's, or of the host's cc. A missing compiler
// or make is an error that names the packages. A server that is not nginx is made by whatever its commands say.
func (c Cache) compiler(ctx context.Context, r lab.Recipe) (string, error) {
	packages, names := r.Packages, []string{"cc", "gcc", "clang"}
	if r.Compiler != "" {
		names = []string{r.Compiler}
	} else if !r.IsNginx() {
		return c.firstVersion(ctx, names), nil
	}
	need := strings.Join(packages, " ")
	if need == "" {
		need = "gcc make"
	}
	if _, err := exec.LookPath("make"); err != nil {
		return "", fmt.Errorf("no make on this host; install the packages %s", need)
	}
	var failed error
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		var out bytes.Buffer
		err := c.run(ctx, lab.Command{Argv: []string{name, "--version"}, Deadline: lab.Duration{Duration: time.Minute}}, &out)
		if err == nil {
			line, _, _ := strings.Cut(out.String(), "\n")
			return line, nil
		}
		failed = cmp.Or(failed, err)
	}
	if failed != nil { // it is there: something else is wrong, such as a full disk
		return "", fmt.Errorf("ask the compiler for its version: %w", failed)
	}
	return "", fmt.Errorf("no C compiler (%s) on this host; install the packages %s", orOf(names), need)
}

// firstVersion is the version of the first compiler that is there, "" when none is.
func (c Cache) firstVersion(ctx context.Context, names []string) string {
	for _, name := range names {
		var out bytes.Buffer
		if c.run(ctx, lab.Command{Argv: []string{name, "--version"}, Deadline: brief}, &out) == nil {
			line, _, _ := strings.Cut(out.String(), "\n")
			return line
		}
	}
	return ""
}

// distribution is ID and VERSION_ID of os-release(5).
func distribution() string {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return "unknown"
	}
	defer f.Close() //nolint:errcheck // only read
	fields := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		fields[key] = strings.Trim(value, `"'`)
	}
	return strings.TrimSpace(fields["ID"] + " " + fields["VERSION_ID"])
}

// hashPath returns the SHA-256 of a file, or of the names and contents of all files below a directory.
func hashPath(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return hashFile(path)
	}
	sum := sha256.New()
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		one, err := hashFile(name)
		if err == nil {
			_, err = fmt.Fprintf(sum, "%s %s\n", one, strings.TrimPrefix(name, path))
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// hashFile returns the SHA-256 of a file, hex.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// orOf joins names for a sentence: "a, b or c".
func orOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
