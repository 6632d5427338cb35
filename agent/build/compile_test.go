package build

import (
	"context"
	"io"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// own is a recipe of a server that is not nginx, made by a shell script.
func own(files map[string]string, script string) lab.Recipe {
	return lab.Recipe{
		Name: "own", Flavor: lab.FlavorCustom, Binary: "bin/server", Sources: []lab.BuildSource{{Text: files}},
		Make: [][]string{{"sh", "-c", script}},
	}
}

const makesServer = "mkdir -p bin && printf '#!/bin/sh\\necho own 1.2.3\\n' > bin/server && chmod 755 bin/server"

func TestResultsAreNotTakenThroughLinks(t *testing.T) {
	host := sharedDir(t) // stands for the host's directories of libraries and programs
	write(t, filepath.Join(host, "nginx"), "#!/bin/sh\n")
	write(t, filepath.Join(host, "host.so"), "")
	r := recipe(atPath(t, source(t, "1.0", "cp server nginx", "rm -r objs", "ln -s "+host+" objs", "true || true")))
	_, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard)
	if _, missing := os.Stat(filepath.Join(host, "host.so")); err == nil || missing != nil {
		t.Errorf("error %v; the host's file: %v", err, missing)
	}
	for want, script := range map[string]string{
		"the compiled server bin/server is no program (mode L":  "mkdir bin && ln -s " + host + "/nginx bin/server",
		"the compiled server bin/server is no program (mode -":  "mkdir bin && echo text > bin/server",
		"the compiled server is not at bin/server, relative to": "true",
	} {
		_, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), own(map[string]string{"a": ""}, script), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestLogThatWasReplacedIsNotRead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root compiles as another user")
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Cache{Dir: stateDir(t)}
	_, err := c.Build(t.Context(), own(map[string]string{"a": ""}, "echo said; mv ../out ../old; mkdir ../out; ln -s "+secret+" ../out/build.log; false"), io.Discard)
	if err == nil {
		t.Fatal("no error")
	}
	kept, _ := filepath.Glob(filepath.Join(c.builds(), "failed-*.log"))
	if len(kept) != 1 {
		t.Fatalf("logs: %v", kept)
	}
	if text, err := os.ReadFile(kept[0]); string(text) != "said\n" {
		t.Errorf("log %q, %v", text, err)
	}
}

func TestWhatARecipeKeepsIsKeptOrMissed(t *testing.T) {
	r := own(map[string]string{"data/page": "x"}, makesServer)
	for keep, want := range map[string]string{
		"nothing": "keep nothing: the build has not made it", "build.log": "keep build.log: the build has a build.log already",
		"../x": "keep ../x: it leads out of the source's directory",
	} {
		r.Keep = []string{"data", keep}
		if _, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	r.Keep = []string{"data", "bin"}
	b, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard)
	if err != nil || b.Binary != filepath.Join(b.Dir, "server") {
		t.Fatalf("%+v, %v", b, err)
	}
	if text, err := os.ReadFile(filepath.Join(b.Dir, "data", "page")); string(text) != "x" {
		t.Errorf("kept %q, %v", text, err)
	}
}

func TestVersionOfAServerThatIsNotNginxIsHeldAgainstTheOneAskedFor(t *testing.T) {
	r := own(map[string]string{"a": ""}, makesServer)
	r.Version = "1.2.3"
	b, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard)
	if err != nil || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "whether the server is version 1.2.3 cannot be seen") {
		t.Errorf("%+v, %v", b, err)
	}
	r.Command = &lab.ServerCommand{Version: []string{"{build}/server"}}
	if b, err = (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard); err != nil || len(b.Notes) != 0 || b.Configured != "own 1.2.3" {
		t.Errorf("%+v, %v", b, err)
	}
	r.Version = "1.3.0"
	if _, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "asked for 1.3.0, the server says 1.2.3") {
		t.Errorf("error: %v", err)
	}
}

func TestCommandsThatCannotBeStartedNameTheCure(t *testing.T) {
	files := map[string]string{"build.sh": "#!/bin/sh\n"}
	for want, argv := range map[string][]string{
		"run no-such-tool: not found on this host; install the packages some-package": {"no-such-tool"},
		"run ./build.sh: it may not be executed; run it by sh":                        {"./build.sh"},
	} {
		r := own(files, "")
		r.Make, r.Packages = [][]string{argv}, []string{"some-package"}
		if _, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	r := own(files, "")
	r.Make = [][]string{{"sh", "-c", "printf '%s\\n' '#!/bin/sh' '" + makesServer[:strings.Index(makesServer, "&&")] + "' > made.sh; chmod 755 made.sh"}, {"./made.sh"}, {"sh", "-c", makesServer}}
	if _, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, testLog{t}); err != nil {
		t.Errorf("a script of the source's directory: %v", err)
	}
	path := inFile(t, "a.tar.xz", []byte(magicXz+"rest"))
	t.Setenv("PATH", t.TempDir())
	if _, err := (Cache{}).unpackFile(t.Context(), path, filepath.Join(t.TempDir(), "into")); err == nil || !strings.Contains(err.Error(), "install the package xz-utils") {
		t.Errorf("error: %v", err)
	}
}

func TestCompilerOfARecipeIsTheOneItsCommandsBeginWith(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go"), "#!/bin/sh\n[ $1 = version ] && echo go version go1.2\n")
	write(t, filepath.Join(dir, "cc"), "#!/bin/sh\n[ $1 = --version ] && echo cc 12\n")
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	custom := lab.Recipe{Flavor: lab.FlavorCustom}
	for want, argv := range map[string][]string{"go version go1.2": {"go", "build"}, "cc 12": {"sh", "-c", "x"}} {
		custom.Make = [][]string{argv}
		if got, err := (Cache{}).compiler(t.Context(), custom); err != nil || got != want {
			t.Errorf("%v: %q, %v", argv, got, err)
		}
	}
	for _, r := range []lab.Recipe{{Flavor: lab.FlavorNginx, Compiler: "gcc-99", Packages: []string{"gcc-99", "make"}}, {Flavor: lab.FlavorCustom, Compiler: "gcc-99", Packages: []string{"gcc-99", "make"}}} {
		write(t, filepath.Join(dir, "make"), "#!/bin/sh\n")
		if _, err := (Cache{}).compiler(t.Context(), r); err == nil || err.Error() != "no C compiler (gcc-99) on this host; install the packages gcc-99 make" {
			t.Errorf("error: %v", err)
		}
	}
}

func TestCompilersThatWereKilledAreKnown(t *testing.T) {
	for _, line := range []string{
		"gcc: fatal error: Killed signal terminated program cc1\ncompilation terminated.\n", "collect2: fatal error: ld terminated with signal 9 [Killed]\n",
		"make[1]: *** [objs/Makefile:900: objs/src/core/nginx.o] Killed\n", "make: *** [Makefile:10: build] Error 137\n",
		"cc1: out of memory allocating 65536 bytes\n", "virtual memory exhausted: Cannot allocate memory\n", "clang: error: unable to execute command: Killed\n",
		"go: error obtaining buildID for go tool compile: signal: killed\n",
	} {
		if why := reason(line, "/", io.EOF); !strings.Contains(why, "ended for want of memory: there are ") || !strings.Contains(why, " MiB") {
			t.Errorf("%q: %q", line, why)
		}
	}
	for _, line := range []string{"make: *** [Makefile:10: build] Error 1\n", "src/killed.c: warning: unused\n", ""} {
		if why := reason(line, "/", io.EOF); why != "" {
			t.Errorf("%q: %q", line, why)
		}
	}
}

func TestMemoryIsBoundByTheControlGroupAndThoseAbove(t *testing.T) {
	want := []string{"/sys/fs/cgroup/a/b/memory.max", "/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup/memory.max"}
	if got := memoryBounds("0::/a/b\n"); !slices.Equal(got, want) {
		t.Errorf("version 2: %v", got)
	}
	want = []string{"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}
	if got := memoryBounds("4:cpu,cpuacct:/x\n3:memory:/a\nbroken\n"); !slices.Equal(got, want) {
		t.Errorf("version 1: %v", got)
	}
}

func TestRootCompilesWhereNobodyCannotEnterAndSaysSo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root compiles as another user")
	}
	shut := filepath.Join(stateDir(t), "shut")
	if err := os.Mkdir(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := (Cache{Dir: filepath.Join(shut, "state")}).Build(t.Context(), own(map[string]string{"a": ""}, makesServer), io.Discard)
	if err != nil || b.MadeBy != "root" || len(b.Notes) != 1 || b.Notes[0] != "compiled as root: user nobody cannot enter "+shut {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestRepositoriesOfTheNetAreFetchedByWhoCompiles(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("SKIPPED: no git here")
	}
	repo := filepath.Join(t.TempDir(), "more")
	var commit string
	for _, args := range [][]string{{"init", "-q", repo}, {"-C", repo, "commit", "-q", "--allow-empty", "-m", "x"}, {"-C", repo, "tag", "v0.34"}, {"-C", repo, "rev-parse", "HEAD"}} {
		out, err := exec.Command(git, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		commit = strings.TrimSpace(string(out))
	}
	s := httptest.NewServer(&cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repo), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x"}})
	defer s.Close()
	var ran []string
	c := Cache{Dir: stateDir(t)}
	c.Run = func(ctx context.Context, command lab.Command, out io.Writer) error {
		ran = append(ran, filepath.Base(command.Argv[0])+" as "+command.User)
		return child(ctx, command, out)
	}
	work := filepath.Join(c.Dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	m, _, err := newMaker(work)
	if err != nil {
		t.Fatal(err)
	}
	j := job{maker: m, log: testLog{t}}
	g, err := c.fromGit(t.Context(), j, lab.BuildSource{Git: s.URL + "/more/.git", Commit: commit}, filepath.Join(work, "module-more"))
	if err != nil || g.version != "0.34" || len(g.sums) != 1 {
		t.Errorf("%+v, %v", g, err)
	}
	if os.Geteuid() == 0 && !slices.Equal(slices.Compact(ran), []string{"git as nobody"}) {
		t.Errorf("ran %v", ran)
	}
}
