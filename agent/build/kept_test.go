package build

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ngxlab/lab"
)

// withModule is a recipe whose build has a shared object, and a folder with a link.
func withModule(t *testing.T, version string, commands ...string) lab.Recipe {
	t.Helper()
	commands = append(commands, "echo module > objs/ngx_more.so", "mkdir data", "echo page > data/page", "ln -s page data/link", "chmod 755 data/page")
	r := recipe(atPath(t, source(t, version, commands...)))
	r.Keep = []string{"data"}
	return r
}

func TestKeptBuildThatWasChangedIsMadeAnewAndThatIsSaid(t *testing.T) {
	for name, change := range map[string]func(b lab.Build) error{
		"binary cut short": func(b lab.Build) error { return os.Truncate(b.Binary, 3) },
		"module of the same size": func(b lab.Build) error {
			return os.WriteFile(filepath.Join(b.Dir, "modules/ngx_more.so"), []byte("MODULE\n"), 0o644)
		},
		"file gone":               func(b lab.Build) error { return os.Remove(filepath.Join(b.Dir, "data/page")) },
		"link to another":         func(b lab.Build) error { return relink(filepath.Join(b.Dir, "data/link"), "/etc/passwd") },
		"description cut short":   func(b lab.Build) error { return os.Truncate(filepath.Join(b.Dir, manifest), 20) },
		"list of files cut short": func(b lab.Build) error { return os.Truncate(filepath.Join(b.Dir, filesFile), 20) },
		"binary named elsewhere": func(b lab.Build) error {
			return os.WriteFile(filepath.Join(b.Dir, manifest), []byte(`{"id":"`+b.ID+`","binary":"/bin/sh"}`), 0o644)
		},
		"binary not on the list":   func(b lab.Build) error { return os.WriteFile(filepath.Join(b.Dir, filesFile), []byte(`{}`), 0o644) },
		"directory without a file": func(b lab.Build) error { return os.RemoveAll(filepath.Join(b.Dir, "modules")) },
	} {
		c, r := Cache{Dir: stateDir(t)}, withModule(t, "1.0")
		b, err := c.Build(t.Context(), r, testLog{t})
		if err != nil {
			t.Fatal(err)
		}
		if err := change(b); err != nil {
			t.Fatal(err)
		}
		if found, ok := c.Find(t.Context(), r); ok {
			t.Errorf("%s: found %+v", name, found)
		}
		if err := c.Export(t.Context(), b, io.Discard); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: exported: %v", name, err)
		}
		var told bytes.Buffer
		again, err := c.Build(t.Context(), r, &told)
		if err != nil || again.Cached || again.ID != b.ID || len(again.Notes) != 1 || !strings.Contains(again.Notes[0], "damaged") || !strings.Contains(told.String(), "damaged") {
			t.Errorf("%s: %+v, %v, log %s", name, again, err, &told)
		}
		if third, err := c.Build(t.Context(), r, testLog{t}); err != nil || !third.Cached {
			t.Errorf("%s: the next: %+v, %v", name, third, err)
		}
	}
}

func relink(path, target string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

func TestBuildsMoveWithTheirDirectory(t *testing.T) {
	dir := stateDir(t)
	r := withModule(t, "1.0")
	b, err := Cache{Dir: filepath.Join(dir, "a")}.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "b"), os.DirFS(filepath.Join(dir, "a"))); err != nil { // with other times
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	moved := Cache{Dir: filepath.Join(dir, "b")}
	got, err := moved.Build(t.Context(), r, testLog{t})
	want := filepath.Join(moved.builds(), b.ID)
	if err != nil || !got.Cached || got.Dir != want || got.Binary != filepath.Join(want, binary) || got.Log != filepath.Join(want, buildLog) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCopiedBuildHasItsModulesLinksAndModes(t *testing.T) {
	c, r := Cache{Dir: stateDir(t)}, withModule(t, "1.0")
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := c.Export(t.Context(), b, &stream); err != nil {
		t.Fatal(err)
	}
	got, err := Cache{Dir: stateDir(t)}.Import(t.Context(), b, &stream)
	if err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink(filepath.Join(got.Dir, "data/link"))
	if err != nil || link != "page" || !slices.Equal(got.Dynamic, []string{"modules/ngx_more.so"}) {
		t.Errorf("link %q, %v; %+v", link, err, got)
	}
	for name, mode := range map[string]os.FileMode{"nginx": 0o755, "data/page": 0o755, "modules/ngx_more.so": 0o644} {
		if info, err := os.Stat(filepath.Join(got.Dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestOnlyWhoWillRunABuildUsesIt(t *testing.T) {
	c, r := Cache{Dir: stateDir(t)}, recipe(atPath(t, source(t, "1.0")))
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-100 * time.Hour)
	for _, file := range []string{c.usage(b.ID), filepath.Join(b.Dir, manifest)} {
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	since := func() time.Duration {
		kept, err := c.List(t.Context())
		if err != nil || len(kept) != 1 {
			t.Fatalf("%+v, %v", kept, err)
		}
		return time.Since(kept[0].Used)
	}
	if _, ok := c.Find(t.Context(), r); !ok || since() < 99*time.Hour {
		t.Errorf("found %v, used %v ago", ok, since())
	}
	if _, err := c.Build(t.Context(), r, testLog{t}); err != nil || since() > time.Hour {
		t.Errorf("%v, used %v ago", err, since())
	}
}

func TestListTellsTheLibrariesAsTheyAreNow(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("SKIPPED: no cc here")
	}
	c := Cache{Dir: stateDir(t)}
	r := lab.Recipe{
		Name: "own", Flavor: lab.FlavorCustom, Binary: "server", Make: [][]string{{"cc", "-o", "server", "main.c"}},
		Sources: []lab.BuildSource{{Text: map[string]string{"main.c": "int main(void) { return 0; }\n"}}},
	}
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := c.List(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Flavor != lab.FlavorCustom {
		t.Fatalf("%+v, %v", kept, err)
	}
	for _, libraries := range [][]lab.Library{b.Libraries, kept[0].Libraries} {
		if len(libraries) == 0 || !filepath.IsAbs(libraries[0].Path) || libraries[0].Version == "" {
			t.Errorf("libraries: %+v", libraries)
		}
	}
}

// builderVar names the state directory for TestBuilder, which another test starts as a process of its own.
const builderVar = "NGXLAB_TEST_BUILDER"

func TestBuilder(t *testing.T) {
	dir, path, _ := strings.Cut(os.Getenv(builderVar), "|")
	if dir == "" {
		return // it is only for the others
	}
	run := func(_ context.Context, c lab.Command, out io.Writer) error { // all in one process group, which is killed
		cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, out, out
		return cmd.Run()
	}
	if _, err := (Cache{Dir: dir, Run: run}).Build(t.Context(), recipe(lab.BuildSource{Path: path}), os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// builder is a process that builds a source.
func builder(t *testing.T, c Cache, path string) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, said = exec.Command(exe, "-test.run=^TestBuilder$", "-test.v"), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), builderVar+"="+c.Dir+"|"+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = said, said, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // it may have ended
	return cmd, said
}

// TestBuilderKilledAtAnyMomentLeavesNothingThatLooksFinished kills a process after ever more of the time that a build
// takes.
func TestBuilderKilledAtAnyMomentLeavesNothingThatLooksFinished(t *testing.T) {
	c, path := Cache{Dir: stateDir(t)}, atPath(t, source(t, "1.0", "head -c 3000000 /dev/zero > objs/ngx_big.so")).Path
	began, whole := time.Now(), Cache{Dir: stateDir(t)}
	builder(t, whole, path)
	until(t, "it is built", func() bool { return len(finished(t, whole)) > 0 })
	took := time.Since(began)
	const rounds = 20
	unfinished := 0
	for i := range rounds {
		cmd, _ := builder(t, c, path)
		end := time.NewTimer(took * time.Duration(i+1) / rounds)
		<-end.C
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()                                      // it was killed
		for _, found := range finished(t, c) {
			if b, err := c.open(filepath.Base(filepath.Dir(found))); err != nil || b.Version != "1.0" {
				t.Errorf("killed after %d of %d parts: %+v, %v", i+1, rounds, b, err)
			}
		}
		if len(finished(t, c)) == 0 {
			unfinished++
			continue
		}
		for _, found := range finished(t, c) { // so that the next has something to do
			if err := c.remove(filepath.Base(filepath.Dir(found))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if unfinished == 0 {
		t.Error("no builder was killed before it was done")
	}
	b, err := c.Build(t.Context(), recipe(lab.BuildSource{Path: path}), testLog{t})
	if err != nil || b.Version != "1.0" {
		t.Errorf("afterwards: %+v, %v", b, err)
	}
	if left, _ := filepath.Glob(filepath.Join(c.builds(), workPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestBuildersInTwoProcessesBuildOnceAndTheSecondSaysThatItWaits(t *testing.T) {
	shared := sharedDir(t)
	c, path := Cache{Dir: stateDir(t)}, atPath(t, source(t, "1.0", "echo made >> "+shared+"/made", "until test -e "+shared+"/go; do sleep 0.02; done")).Path
	first, said := builder(t, c, path)
	until(t, "the first begins", func() bool { _, err := os.Stat(filepath.Join(shared, "made")); return err == nil })
	var told waiting
	ended := make(chan error, 1)
	go func() {
		b, err := c.Build(t.Context(), recipe(lab.BuildSource{Path: path}), &told)
		if err == nil && !b.Cached {
			t.Errorf("made again: %+v", b)
		}
		ended <- err
	}()
	until(t, "the second says that it waits", func() bool { return told.said.Load() })
	write(t, filepath.Join(shared, "go"), "")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if made, err := os.ReadFile(filepath.Join(shared, "made")); string(made) != "made\n" {
		t.Errorf("made %q, %v", made, err)
	}
}

func TestNextBuildRemovesWhatKilledOnesLeftAndNotWhatOthersMake(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	for _, name := range []string{"dead", "alive"} {
		if err := os.MkdirAll(filepath.Join(c.builds(), workPrefix+name, "out"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := lock(t.Context(), c.lockOf("alive"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := c.Build(t.Context(), recipe(atPath(t, source(t, "1.0"))), testLog{t}); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(c.builds(), workPrefix+"*"))
	if len(left) != 1 || filepath.Base(left[0]) != workPrefix+"alive" {
		t.Errorf("left: %v", left)
	}
}

// waiting is a log that knows when it was told of waiting.
type waiting struct{ said atomic.Bool }

func (w *waiting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "waiting for") {
		w.said.Store(true)
	}
	return len(p), nil
}

// until polls for at most 20 s.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
