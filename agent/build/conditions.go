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
// or make is an error that names the packages. A server that is not nginx is made by whatever its commands say: by that
// compiler, where they begin with one.
func (c Cache) compiler(ctx context.Context, r lab.Recipe) (string, error) {
	names := []string{"cc", "gcc", "clang"}
	switch {
	case r.Compiler != "":
		names = []string{r.Compiler}
	case !r.IsNginx():
		version, err := c.firstVersion(ctx, append(toolsOf(r), names...))
		if ctx.Err() != nil {
			return "", err
		}
		return version, nil
	}
	need := cmp.Or(strings.Join(r.Packages, " "), "gcc make")
	if _, err := exec.LookPath("make"); err != nil && r.IsNginx() {
		return "", fmt.Errorf("no make on this host; install the packages %s", need)
	}
	version, err := c.firstVersion(ctx, names)
	if err != nil { // it is there: something else is wrong, such as a full disk
		return "", fmt.Errorf("ask the compiler for its version: %w", err)
	}
	if version == "" {
		return "", fmt.Errorf("no C compiler (%s) on this host; install the packages %s", orOf(names), need)
	}
	return version, nil
}

// compilers are the commands that are known as such, with how they tell their version where not by --version.
var compilers = map[string]string{
	"cc": "", "gcc": "", "g++": "", "c++": "", "clang": "", "clang++": "", "cargo": "", "rustc": "", "javac": "", "ghc": "", "go": "version",
}

// toolsOf are the compilers that the commands of a recipe begin with.
func toolsOf(r lab.Recipe) []string {
	var tools []string
	for _, argv := range r.Make {
		if len(argv) == 0 {
			continue
		}
		if _, known := compilers[filepath.Base(argv[0])]; known {
			tools = append(tools, argv[0])
		}
	}
	return tools
}

// firstVersion is what the first of the commands that is there says of its version; "" when none is there.
func (c Cache) firstVersion(ctx context.Context, names []string) (string, error) {
	var failed error
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		ask := cmp.Or(compilers[filepath.Base(name)], "--version")
		var out bytes.Buffer
		err := c.run(ctx, lab.Command{Argv: []string{name, ask}, Deadline: brief}, &out)
		if err == nil {
			line, _, _ := strings.Cut(out.String(), "\n")
			return line, nil
		}
		failed = cmp.Or(failed, err)
	}
	return "", failed
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

// hashPath returns the SHA-256 of a file, or of the names and contents of all files, and the targets of all links, below a
// directory.
func hashPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path) // of a link to a directory, all below is meant
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return hashFile(path)
	}
	sum := sha256.New()
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var one string
		switch d.Type() {
		case 0:
			one, err = hashFile(name)
		case fs.ModeSymlink:
			one, err = os.Readlink(name)
		default:
			return nil
		}
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
