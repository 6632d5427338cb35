package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/standin"
	"ngxlab/lab"
)

// waiting is a server whose compilation says in DIR/made that it began, and waits until DIR/go is there. It counts what
// it serves.
const waiting = `builds:
  own:
    flavor: custom
    source:
      - text:
          main.go: |
            package main

            import (
            	"net/http"
            	"os"
            )

            func main() {
            	_ = http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
            		_, _ = w.Write([]byte("own\n"))
            	}))
            }
          go.mod: "module own\n\ngo 1.19\n"
    make:
      - [sh, -c, 'echo x >> DIR/shared/made; n=0; while [ ! -e DIR/shared/go ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done']
      - [sh, -c, 'GOCACHE="$PWD/.cache" GOTOOLCHAIN=local GOFLAGS= CGO_ENABLED=0 GO build -o server .']
    binary: server
    command: {start: ["{binary}", "{port}"], ready: /}
server: {build: own, port: PORT, site: hello}
steps: [{name: alone}]
`

// waitingStudy writes DIR/own.yaml whose files of waiting are in the folder shared.
func (m *machineTest) waitingStudy(shared string) {
	m.t.Helper()
	m.experiment("own", strings.NewReplacer("DIR/shared", shared, "GO build", compilerOfGo(m.t)+" build").Replace(waiting))
}

// sharedFolder is one that builds, whoever they run as, write to.
func sharedFolder(t *testing.T) string {
	t.Helper()
	dir := testlab.StateDir(t)
	must(t, os.Chmod(dir, 0o777)) //nolint:gosec // the mode is the point
	return dir
}

// begun is how many compilations began.
func begun(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "made"))
	return bytes.Count(text, []byte("x"))
}

// TestKilledBuildNeverLooksFinishedAndIsMadeAgain kills the agent, without a word, while it compiles.
func TestKilledBuildNeverLooksFinishedAndIsMadeAgain(t *testing.T) {
	m := onMachine(t)
	m.ownBuilds()
	shared := sharedFolder(t)
	m.waitingStudy(shared)
	p := m.start("run", "DIR/own.yaml", "--json", "--out", "DIR/report")
	testlab.Eventually(t, "the compilation has begun", func() bool { return begun(shared) == 1 })
	kill(t, m.process("--dir "+m.stateDir))
	if code := p.exit(); code != exitFailed && code != exitUnrestored {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	m.mustLetGo()
	if found, err := filepath.Glob(filepath.Join(m.stateDir, "builds", "[0-9a-f]*", "build.json")); err != nil || len(found) > 0 {
		t.Errorf("what looks finished is %v, %v", found, err)
	}
	must(t, os.WriteFile(filepath.Join(shared, "go"), nil, 0o644))
	m.must(finished, "run", "DIR/own.yaml", "--out", "DIR/report")
	if n := begun(shared); n != 2 {
		t.Errorf("compiled %d times, want 2", n)
	}
	if work, err := filepath.Glob(filepath.Join(m.stateDir, "builds", ".work-*")); err != nil || len(work) > 0 {
		t.Errorf("left is %v, %v", work, err)
	}
	m.mustBeAsBefore()
}

// TestCampaignsThatBuildTheSameWaitForEachOther has two agents, each with a state directory of its own, and one cache.
func TestCampaignsThatBuildTheSameWaitForEachOther(t *testing.T) {
	shared, one, two := sharedFolder(t), onMachine(t), onMachine(t)
	one.ownBuilds()
	must(t, os.Remove(filepath.Join(two.stateDir, "builds")))
	must(t, os.Symlink(filepath.Join(one.stateDir, "builds"), filepath.Join(two.stateDir, "builds")))
	var programs []*program
	for _, m := range []*machineTest{one, two} {
		m.waitingStudy(shared)
		programs = append(programs, m.start("run", "DIR/own.yaml", "--json", "--out", "DIR/report"))
	}
	for _, p := range programs {
		p.until("build", kind(lab.EventBuild))
	}
	testlab.Eventually(t, "a compilation has begun", func() bool { return begun(shared) > 0 })
	must(t, os.WriteFile(filepath.Join(shared, "go"), nil, 0o644))
	for _, p := range programs {
		if code := p.exit(); code != exitDone && code != exitDoubtful {
			t.Errorf("exit code %d: %s", code, p.stderr)
		}
	}
	if n := begun(shared); n != 1 {
		t.Errorf("compiled %d times, want once", n)
	}
	for _, m := range []*machineTest{one, two} {
		m.mustBeAsBefore()
	}
}

// TestDirectiveThatAFreshBuildDoesNotKnowIsFoundBeforeTheFirstRun compiles an nginx without a module of its own: before
// that nobody can know.
func TestDirectiveThatAFreshBuildDoesNotKnowIsFoundBeforeTheFirstRun(t *testing.T) {
	m := onMachine(t)
	m.ownBuilds()
	m.experiment("bad", strings.Replace(`builds:
  nginx: {flavor: nginx, modules: [stub_status], configure: [SMALL], source: [{path: OLD}]}
server: {build: nginx, port: PORT, site: empty-gif}
steps:
  - {name: as it comes}
  - {name: users, nginx: {http.userid: "on"}}
`, "OLD", standin.OldNginx().Archive(t, standin.Nginx(t), "zip"), 1))
	said := m.must([]int{exitDone}, "plan", "DIR/bad.yaml")
	if strings.Contains(said, "Refused") {
		t.Errorf("plan knows already: %s", said)
	}
	for range 2 { // the second time the build is there, and the plan finds it
		code := m.do("run", "DIR/bad.yaml", "--out", "DIR/report", "--db", "DIR/bad.db")
		m.mustBeTold(code, 10, `unknown directive "userid"`, "")
		m.mustHaveMeasuredNothing()
	}
	if code := m.do("plan", "DIR/bad.yaml"); code != exitFailed || !strings.Contains(m.out.String()+m.err.String(), `unknown directive "userid"`) {
		t.Errorf("with the build at hand plan says %d: %s%s", code, m.out, m.err)
	}
	m.mustBeAsBefore()
}

// TestSourcesThatMakeNoServerAreToldAndLeaveNothing gives archives that end early or lead out of their folder, and asks
// for what is not there.
func TestSourcesThatMakeNoServerAreToldAndLeaveNothing(t *testing.T) {
	m := onMachine(t)
	m.ownBuilds()
	whole, err := os.ReadFile(standin.Tengine21().Archive(t, standin.Nginx(t), "tar.gz"))
	must(t, err)
	outside := filepath.Join(m.dir, "outside")
	must(t, os.WriteFile(filepath.Join(m.dir, "whole.tar.gz"), whole, 0o644))
	for name, tc := range map[string]struct {
		content     []byte
		build, said string
	}{
		"truncated archive": {whole[:len(whole)/2], "source: [{path: DIR/bad.tar.gz}]", "bad.tar.gz"},
		"path above the folder": {
			archiveOf(t, tar.Header{Name: "nginx/../../../../../../../../" + outside, Mode: 0o644, Typeflag: tar.TypeReg}), "source: [{path: DIR/bad.tar.gz}]", "bad.tar.gz",
		},
		"link out of the folder": {
			archiveOf(t, tar.Header{Name: "nginx/out", Linkname: m.dir, Typeflag: tar.TypeSymlink}, tar.Header{Name: "nginx/out/outside", Mode: 0o644, Typeflag: tar.TypeReg}),
			"source: [{path: DIR/bad.tar.gz}]", "bad.tar.gz",
		},
		"text":           {[]byte("this is a text and not an archive"), "source: [{path: DIR/bad.tar.gz}]", "bad.tar.gz"},
		"unknown module": {nil, "modules: [stub_status, nosuch], source: [{path: DIR/whole.tar.gz}]", `invalid option "--with-http_nosuch_module"`},
		"other version":  {nil, "version: 1.22.0, source: [{path: DIR/whole.tar.gz}]", "1.22.0"},
		"not installed":  {nil, "installed: /nowhere/nginx", "/nowhere/nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			m.write("bad.tar.gz", string(tc.content))
			m.experiment("bad", "builds:\n  nginx: {flavor: nginx, "+tc.build+"}\nserver: {build: nginx, port: PORT, site: empty-gif}\nsteps: [{name: a}]\n")
			code := m.do("run", "DIR/bad.yaml", "--out", "DIR/report", "--db", "DIR/bad.db")
			m.mustBeTold(code, 6, tc.said, "")
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was written outside")
			}
			m.mustHaveMeasuredNothing()
			if left, err := filepath.Glob(filepath.Join(m.stateDir, "builds", ".work-*", "*")); err != nil || len(left) > 0 {
				t.Errorf("left is %v, %v", left, err)
			}
		})
	}
	m.t = t
	m.mustBeAsBefore()
}

func archiveOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		must(t, w.WriteHeader(&h))
	}
	must(t, w.Close())
	must(t, zipped.Close())
	return out.Bytes()
}

// TestBuildsThatCannotBeAreRefusedByThePlan asks for what no build can have, and for software that may not be installed.
func TestBuildsThatCannotBeAreRefusedByThePlan(t *testing.T) {
	for _, tc := range []struct {
		name, build string
		flags       []string
		said        []string
	}{
		{"archive without checksum", `{flavor: nginx, source: [{url: "http://127.0.0.1:1/nginx.tar.gz"}]}`, nil, []string{"sha256"}},
		{"software that may not be installed", "{flavor: nginx, modules: [stub_status], packages: [no-such-package]}", []string{"--no-install"}, []string{"no-such-package", "--no-install"}},
		{"package and source", "{package: nginx, source: [{debian: nginx}]}", nil, []string{"package", "source"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := onMachine(t)
			m.ownBuilds() // what is built already needs no packages
			m.experiment("bad", "builds:\n  nginx: "+tc.build+"\nserver: {build: nginx, port: PORT, site: empty-gif}\nsteps: [{name: a}]\n")
			for _, command := range []string{"plan", "run"} {
				code := m.do(append([]string{command, "DIR/bad.yaml"}, tc.flags...)...)
				text := m.out.String() + m.err.String()
				for _, want := range append(tc.said, "bad.yaml:"+strconv.Itoa(6)) {
					if (code != exitFailed && code != exitUsage) || !strings.Contains(text, want) {
						t.Errorf("%s: exit code %d, %q is missing: %s", command, code, want, text)
					}
				}
			}
			m.mustBeAsBefore()
		})
	}
}
