package ngxlab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "ngxlab"

// mayImport is the table of DESIGN §2: what a package may import of ours. A name ending in "/..." stands for the
// packages below it.
var mayImport = map[string][]string{
	"lab": {}, "lab/stats": {}, "lab/server/nginxconf": {}, "hosts/agents": {},

	"lab/outputs": {"lab"}, "lab/tune": {"lab"}, "agent/wire": {"lab"}, "experiments": {"lab"}, "store": {"lab"},
	"templates": {"lab"}, "plots": {"lab"},

	"lab/observe": {"lab", "lab/stats"}, "lab/verdict": {"lab", "lab/stats"}, "lab/capacity": {"lab", "lab/stats"},

	"lab/server": {"lab", "templates", "lab/server/nginxconf"},
	"lab/load":   {"lab", "lab/outputs", "templates"},
	"lab/plan":   {"lab", "lab/tune", "lab/server", "lab/load"},
	"lab/conduct": {"lab", "lab/plan", "lab/tune", "lab/server", "lab/load", "lab/observe", "lab/verdict",
		"lab/capacity"},
	"lab/report": {"lab", "lab/stats", "lab/verdict", "plots", "templates"},
	"lab/web":    {"lab", "lab/report", "templates"},

	"agent":          {"lab", "lab/tune", "lab/outputs", "agent/wire", "agent/..."},
	"agent/process":  {"lab", "lab/tune", "lab/outputs", "agent/wire"},
	"agent/knob":     {"lab", "lab/tune", "lab/outputs", "agent/wire"},
	"agent/build":    {"lab", "lab/tune", "lab/outputs", "agent/wire"},
	"agent/watch":    {"lab", "lab/tune", "lab/outputs", "agent/wire"},
	"agent/hold":     {"lab", "lab/tune", "lab/outputs", "agent/wire"},
	"agent/openloop": {"lab", "lab/tune", "lab/outputs", "agent/wire"},

	"hosts":        {"lab", "agent/wire", "hosts/agents"},
	"hosts/ssh":    {"lab", "agent/wire", "hosts"},
	"hosts/docker": {"lab", "agent/wire", "hosts"},

	"cmd/ngxlab-agent": {"agent"},
	"cmd/ngxlab": {"lab", "lab/...", "agent/wire", "experiments", "hosts", "hosts/...", "store", "plots", "templates",
		"templates/..."},
}

// testsOnly are packages that only tests and they themselves may import; what else they import is free.
var testsOnly = []string{"internal/testlab", "internal/testlab/dockerlab", "internal/testlab/fingerprint", "internal/testlab/fingerprint/inside", "internal/testlab/standin"}

// agentOutside is what the agent may import from outside; what these import in turn is theirs.
var agentOutside = []string{
	"golang.org/x/sys", "github.com/hashicorp/yamux", "github.com/prometheus/procfs", "github.com/mdlayher/netlink",
	"github.com/mdlayher/ethtool", "github.com/HdrHistogram/hdrhistogram-go", "github.com/klauspost/compress",
	"github.com/tsenart/vegeta",
}

// agentNever are parts of import paths that must not be anywhere in the agent, however they come in.
var agentNever = []string{"sqlite", "x/crypto/ssh", "goph", "docker", "yaml"}

// agentMaxBytes bounds the agent's program: 15 MB.
const agentMaxBytes = 15_000_000

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
	Standard   bool
}

func (p listed) ours() (string, bool) { return strings.CutPrefix(p.ImportPath, module+"/") }

// list runs `go list -deps -json` in the environment with env added.
func list(t *testing.T, env []string, patterns ...string) []listed {
	t.Helper()
	noteSources(t)
	args := append([]string{"list", "-deps", "-json=ImportPath,Imports,CgoFiles,Standard"}, patterns...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// noteSources looks into every source directory, so that a cached result of these tests is used only while no source
// has changed: what the go command reads in another process is not noticed otherwise.
func noteSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", "bin", "build", "out", "hosts/agents/built"}, path) {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// violations are the imports that the table does not have, and packages that it does not name.
func violations(packages []listed) []string {
	var found []string
	for _, p := range packages {
		name, ours := p.ours()
		if !ours || slices.Contains(testsOnly, name) {
			continue
		}
		allowed, named := mayImport[name]
		if !named {
			found = append(found, fmt.Sprintf("package %s is not in the table", name))
		}
		for _, imported := range p.Imports {
			if of, ours := strings.CutPrefix(imported, module+"/"); ours && named && !permits(allowed, of) {
				found = append(found, fmt.Sprintf("%s imports %s", name, of))
			}
		}
	}
	return found
}

func permits(allowed []string, name string) bool {
	return slices.ContainsFunc(allowed, func(entry string) bool {
		below, isTree := strings.CutSuffix(entry, "...")
		return entry == name || isTree && strings.HasPrefix(name, below)
	})
}

// strays are imports of the agent from outside that it may not have, and what must never be in it.
func strays(packages []listed) []string {
	var found []string
	for _, p := range packages {
		if len(p.CgoFiles) > 0 && !p.Standard {
			found = append(found, p.ImportPath+" needs cgo")
		}
		for _, never := range agentNever {
			if _, ours := p.ours(); !ours && !p.Standard && strings.Contains(p.ImportPath, never) {
				found = append(found, p.ImportPath+" is in the agent")
			}
		}
		if _, ours := p.ours(); !ours {
			continue
		}
		for _, imported := range p.Imports {
			if outside(imported) && !slices.ContainsFunc(agentOutside, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
				found = append(found, p.ImportPath+" imports "+imported)
			}
		}
	}
	return found
}

// outside reports whether an import is neither ours nor the standard library's, whose first part has no dot.
func outside(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first != module && strings.Contains(first, ".")
}

func TestImportsFollowTheTableOfTheDesign(t *testing.T) {
	for _, v := range violations(list(t, nil, "./...")) {
		t.Error(v)
	}
}

func TestOnlyTestsImportTheTestLab(t *testing.T) {
	for _, p := range list(t, nil, "./...") {
		for _, name := range testsOnly {
			importer, _ := p.ours()
			if slices.Contains(p.Imports, module+"/"+name) && !slices.Contains(testsOnly, importer) {
				t.Errorf("%s imports %s", p.ImportPath, name)
			}
		}
	}
}

const agentPackage = "./cmd/ngxlab-agent"

func requireAgent(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(agentPackage); errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s does not exist yet", agentPackage)
	}
}

func TestAgentTakesFromOutsideOnlyWhatItMay(t *testing.T) {
	requireAgent(t)
	for _, cgo := range []string{"0", "1"} { // with cgo allowed, files that need it would come in
		for _, s := range strays(list(t, []string{"GOOS=linux", "CGO_ENABLED=" + cgo}, agentPackage)) {
			t.Errorf("CGO_ENABLED=%s: %s", cgo, s)
		}
	}
}

func TestAgentBuildsSmallForEveryArchitecture(t *testing.T) {
	requireAgent(t)
	noteSources(t)
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(t.TempDir(), "agent")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", path, agentPackage)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", arch, err, out)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB", arch, float64(info.Size())/1e6)
		if info.Size() > agentMaxBytes {
			t.Errorf("%s: the agent has %d bytes, more than %d", arch, info.Size(), agentMaxBytes)
		}
	}
}

func TestTableNamesOnlyItsOwnPackages(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(mayImport)) {
		for _, allowed := range mayImport[name] {
			if _, named := mayImport[allowed]; !named && !strings.HasSuffix(allowed, "/...") {
				t.Errorf("%s may import %s, which the table does not name", name, allowed)
			}
		}
	}
}

// TestForbiddenImportsAreFound holds that the checks above can fail.
func TestForbiddenImportsAreFound(t *testing.T) {
	ours := func(name string, imports ...string) listed {
		return listed{ImportPath: module + "/" + name, Imports: imports}
	}
	for want, p := range map[string]listed{
		"lab/stats imports lab":               ours("lab/stats", module+"/lab"),
		"agent/knob imports agent/build":      ours("agent/knob", module+"/agent/build"),
		"cmd/ngxlab imports agent":            ours("cmd/ngxlab", module+"/agent"),
		"store imports lab/verdict":           ours("store", module+"/lab/verdict"),
		"package lab/new is not in the table": ours("lab/new"),
		"lab/plan imports internal/testlab":   ours("lab/plan", module+"/internal/testlab"),
	} {
		if got := violations([]listed{p}); !slices.Equal(got, []string{want}) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if got := violations([]listed{ours("agent", module+"/agent/knob"), ours("cmd/ngxlab", module+"/agent/wire", "fmt")}); got != nil {
		t.Errorf("found %q where all is allowed", got)
	}
	for want, p := range map[string]listed{
		module + "/agent imports github.com/spf13/cobra": ours("agent", "github.com/spf13/cobra", "golang.org/x/sys/unix", "net/http"),
		"github.com/mattn/go-sqlite3 is in the agent":    {ImportPath: "github.com/mattn/go-sqlite3"},
		"example.com/c needs cgo":                        {ImportPath: "example.com/c", CgoFiles: []string{"c.go"}},
	} {
		if got := strays([]listed{p}); !slices.Equal(got, []string{want}) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}
