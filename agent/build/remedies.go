package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// Where nginx and Tengine say their versions.
var (
	nginxMacro   = regexp.MustCompile(`(?m)^#define\s+NGINX_VERSION\s+"([^"]+)"`)
	tengineMacro = regexp.MustCompile(`(?m)^#define\s+TENGINE_VERSION\s+"([^"]+)"`)
)

// macro is what a header of src/core defines, "" when none does.
func macro(dir string, re *regexp.Regexp) string {
	for _, name := range []string{"tengine.h", "nginx.h"} {
		text, err := os.ReadFile(filepath.Join(dir, "src", "core", name))
		if err != nil {
			continue
		}
		if found := re.FindSubmatch(text); found != nil {
			return string(found[1])
		}
	}
	return ""
}

// sourceVersion is the version of an unpacked source of nginx or Tengine, "" of another.
func sourceVersion(dir string) string {
	if version := macro(dir, tengineMacro); version != "" {
		return version
	}
	return macro(dir, nginxMacro)
}

// remedied applies the remedies that an unpacked source needs, notes them, and returns the configure flags with what they
// add.
func remedied(r lab.Recipe, dir string, b *lab.Build) ([]string, error) {
	flags, version := slices.Clone(r.Flags), macro(dir, nginxMacro)
	for _, remedy := range r.Remedies {
		if version == "" || !below(version, remedy.Below) {
			continue
		}
		used, err := edited(dir, remedy)
		if err != nil {
			return nil, fmt.Errorf("remedy for %s: %w", remedy.File, err)
		}
		if remedy.CFlags != "" {
			flags, used = withCFlags(flags, remedy.CFlags), true
		}
		if used {
			b.Notes = append(b.Notes, "remedy: "+remedy.Why)
		}
	}
	return flags, nil
}

// edited replaces the text of a remedy in its file, where it stands there.
func edited(dir string, r lab.Remedy) (bool, error) {
	if r.File == "" {
		return false, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close() //nolint:errcheck // only a directory handle
	text, err := root.ReadFile(r.File)
	if os.IsNotExist(err) || err == nil && !bytes.Contains(text, []byte(r.Find)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, root.WriteFile(r.File, bytes.ReplaceAll(text, []byte(r.Find), []byte(r.Replace)), 0o644)
}

// ccOpt is the configure flag with flags for the compiler; of several, configure takes the last.
const ccOpt = "--with-cc-opt="

func withCFlags(flags []string, add string) []string {
	for i := len(flags) - 1; i >= 0; i-- {
		have, ok := strings.CutPrefix(flags[i], ccOpt)
		switch {
		case ok && slices.Contains(strings.Fields(have), add):
			return flags
		case ok:
			flags[i] = strings.TrimSpace(flags[i] + " " + add)
			return flags
		}
	}
	return append(flags, ccOpt+add)
}

// below compares versions of numbers and dots; parts that are none count as 0.
func below(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		p, q := numberAt(x, i), numberAt(y, i)
		if p != q {
			return p < q
		}
	}
	return false
}

func numberAt(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(parts[i])
	return n
}
