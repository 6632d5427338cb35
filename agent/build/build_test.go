package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ngxlab/lab"
)

// configure is a source's configure script: its Makefile does what the file make says.
const configure = `#!/bin/sh
echo configured with "$@"
mkdir -p objs
printf 'all:\n\techo "compiling VERSION"\n\t%s\n' "$(cat make)" > Makefile
`

// source is an archive whose make runs the commands and then makes a server that answers -V.
func source(t testing.TB, version string, commands ...string) []byte {
	t.Helper()
	return archive(t, map[string]string{
		"nginx-" + version + "/configure": strings.Replace(configure, "VERSION", version, 1),
		"nginx-" + version + "/make":      strings.Join(append(commands, "cp server objs/nginx"), " && "),
		"nginx-" + version + "/server":    "#!/bin/sh\necho nginx version: nginx/" + version + "\n",
	})
}

func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var headers []tar.Header
	for name := range files {
		headers = append(headers, tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name])), Typeflag: tar.TypeReg})
	}
	return packed(t, headers, func(h tar.Header) string { return files[h.Name] })
}

func packed(t testing.TB, headers []tar.Header, content func(tar.Header) string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content(h)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func recipe(sources ...lab.BuildSource) lab.Recipe {
	return lab.Recipe{Name: "tested", Flavor: "nginx", Sources: sources, Flags: []string{"--with-this"}, Packages: []string{"gcc", "libpcre2-dev"}}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// atPath keeps an archive in a file.
func atPath(t *testing.T, content []byte) lab.BuildSource {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.tar.gz")
	write(t, path, string(content))
	return lab.BuildSource{Path: path}
}

// testLog shows the log of a build with the test's.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) { l.t.Logf("%s", p); return len(p), nil }

// finished lists what looks like a finished build.
func finished(t *testing.T, c Cache) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.Dir, "builds", "[0-9a-f]*", manifest))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestBuildIsMadeOnceAndFoundAgain(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	r := recipe(atPath(t, source(t, "1.0")))
	first, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	if first.Version != "1.0" || first.Cached || first.Compiler == "" || !strings.Contains(first.Configured, "nginx/1.0") || len(first.Sources) != 1 {
		t.Errorf("first: %+v", first)
	}
	log, err := os.ReadFile(first.Log)
	if err != nil || !strings.Contains(string(log), "configured with --with-this") || !strings.Contains(string(log), "compiling 1.0") {
		t.Errorf("log %q, %v", log, err)
	}
	r.Name, r.Packages = "other name", nil
	again, err := c.Build(t.Context(), r, testLog{t})
	if err != nil || !again.Cached || again.ID != first.ID || again.Recipe != "other name" || again.TookS > 1 {
		t.Errorf("again: %+v, %v", again, err)
	}
	r.Flags = append(r.Flags, "--more")
	other, err := c.Build(t.Context(), r, testLog{t})
	if err != nil || other.Cached || other.ID == first.ID {
		t.Errorf("other flags: %+v, %v", other, err)
	}
}

func TestChangedSourceAtAPathIsAnotherBuild(t *testing.T) {
	c, dir := Cache{Dir: stateDir(t)}, t.TempDir()
	archive := atPath(t, source(t, "1.0"))
	if _, err := c.unpackFile(t.Context(), archive.Path, dir); err != nil {
		t.Fatal(err)
	}
	r := recipe(lab.BuildSource{Path: "/nowhere"}, lab.BuildSource{Path: dir})
	first, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Notes) != 1 || !strings.Contains(first.Notes[0], "not used: source: stat /nowhere") {
		t.Errorf("notes: %v", first.Notes)
	}
	write(t, filepath.Join(dir, "more"), "x")
	second, err := c.Build(t.Context(), r, testLog{t})
	if err != nil || second.Cached || second.ID == first.ID {
		t.Errorf("second: %+v, %v", second, err)
	}
}

func TestTwoBuildersOfOneRecipeBuildOnce(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	counted := filepath.Join(sharedDir(t), "count")
	r := recipe(atPath(t, source(t, "1.0", "echo made >> "+counted)))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := c.Build(t.Context(), r, io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if text, err := os.ReadFile(counted); string(text) != "made\n" {
		t.Errorf("compiled %q, %v; want once", text, err)
	}
}

func serveArchive(t *testing.T, content []byte) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		if r.URL.Path != "/nginx.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/nginx.tar.gz", asked
}

func TestChecksumThatDiffersNamesBothAndLeavesNothing(t *testing.T) {
	content := source(t, "1.0")
	url, _ := serveArchive(t, content)
	sum := sha256.Sum256(content)
	got, want := hex.EncodeToString(sum[:]), strings.Repeat("a", 64)
	c := Cache{Dir: stateDir(t)}
	_, err := c.Build(t.Context(), recipe(lab.BuildSource{URL: url, SHA256: want}, atPath(t, content)), testLog{t})
	if err == nil || !strings.Contains(err.Error(), "asked for sha256 "+want+", got "+got) || !strings.Contains(err.Error(), url) {
		t.Errorf("error: %v", err)
	}
	left, globErr := filepath.Glob(filepath.Join(c.Dir, "sources", "*"))
	hidden, _ := filepath.Glob(filepath.Join(c.Dir, "*", ".[nw]*"))
	if globErr != nil || len(left)+len(hidden) > 0 || len(finished(t, c)) > 0 {
		t.Errorf("left: %v, %v, builds %v", left, hidden, finished(t, c))
	}
}

func TestURLIsFetchedOnceAndFailuresPassOnToTheNextSource(t *testing.T) {
	content := source(t, "1.0")
	url, asked := serveArchive(t, content)
	sum := sha256.Sum256(content)
	c := Cache{Dir: stateDir(t)}
	r := recipe(lab.BuildSource{URL: url + "/gone", SHA256: strings.Repeat("b", 64)}, lab.BuildSource{URL: url, SHA256: hex.EncodeToString(sum[:])})
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil || b.Sources[url] != hex.EncodeToString(sum[:]) || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "404") {
		t.Fatalf("%+v, %v", b, err)
	}
	r.Flags, r.Sources = append(r.Flags, "--more"), r.Sources[1:]
	if _, err := c.Build(t.Context(), r, testLog{t}); err != nil || *asked != 2 {
		t.Errorf("asked %d times in all, want 2: %v", *asked, err)
	}
	_, err = c.Build(t.Context(), recipe(lab.BuildSource{URL: url}), testLog{t})
	if err == nil || !strings.Contains(err.Error(), "sha256 is compulsory") {
		t.Errorf("without a sum: %v", err)
	}
}

func TestCommitOfARepositoryIsBuilt(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: no git here")
	}
	repo := t.TempDir()
	if _, err := (Cache{}).unpackFile(t.Context(), atPath(t, source(t, "1.0")).Path, repo); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "-m", "x")
	commit := git("rev-parse", "HEAD")
	c := Cache{Dir: stateDir(t)}
	b, err := c.Build(t.Context(), recipe(lab.BuildSource{Git: repo, Commit: commit}), testLog{t})
	if err != nil || b.Sources[repo+"@"+commit] != commit {
		t.Errorf("%+v, %v", b, err)
	}
	_, err = c.Build(t.Context(), recipe(lab.BuildSource{Git: repo, Commit: strings.Repeat("0", 40)}), testLog{t})
	if err == nil || !strings.Contains(err.Error(), "at 0000") {
		t.Errorf("unknown commit: %v", err)
	}
}

func TestFailedBuildShowsTheEndOfItsLogAndKeepsIt(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	_, err := c.Build(t.Context(), recipe(atPath(t, source(t, "1.0", "seq 1 50", "echo the reason", "false"))), io.Discard)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"build tested: compile: run make: ", "the log is " + c.Dir, "the reason", "\n40\n"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n20\n") {
		t.Errorf("more than the last %d lines: %v", logLines, err)
	}
	kept, _ := filepath.Glob(filepath.Join(c.Dir, "builds", "failed-*.log"))
	if len(kept) != 1 || len(finished(t, c)) > 0 {
		t.Errorf("logs %v, builds %v", kept, finished(t, c))
	}
}

func TestInterruptedBuildLeavesNothingThatLooksFinished(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	begun := filepath.Join(sharedDir(t), "begun")
	again := filepath.Join(sharedDir(t), "again")
	r := recipe(atPath(t, source(t, "1.0", "test -e "+again+" || { touch "+begun+"; sleep 600; }")))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := c.Build(ctx, r, io.Discard); ended <- err }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("make did not begin within 20 s")
		}
	}
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("error: %v", err)
	}
	if f := finished(t, c); len(f) > 0 {
		t.Errorf("finished: %v", f)
	}
	write(t, again, "")
	if b, err := c.Build(t.Context(), r, io.Discard); err != nil || b.Cached {
		t.Errorf("the next: %+v, %v", b, err)
	}
}

func TestMissingCompilerNamesThePackages(t *testing.T) {
	r := recipe(atPath(t, source(t, "1.0")))
	t.Setenv("PATH", t.TempDir())
	c := Cache{Dir: stateDir(t)}
	_, err := c.Build(t.Context(), r, testLog{t})
	if err == nil || !strings.Contains(err.Error(), "no make on this host; install the packages gcc libpcre2-dev") {
		t.Errorf("error: %v", err)
	}
	write(t, filepath.Join(os.Getenv("PATH"), "make"), "#!/bin/sh\n")
	_, err = c.Build(t.Context(), r, testLog{t})
	if err == nil || !strings.Contains(err.Error(), "no C compiler (cc, gcc or clang) on this host; install the packages gcc libpcre2-dev") {
		t.Errorf("error: %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "builds")); err == nil {
		t.Error("something was written")
	}
}

func TestArchivesThatLeadOutAreRefused(t *testing.T) {
	tests := map[string]tar.Header{
		"../x: leads out":                {Name: "../x", Typeflag: tar.TypeReg},
		"a/../../x: leads out":           {Name: "a/../../x", Typeflag: tar.TypeReg},
		"/x: leads out":                  {Name: "/x", Typeflag: tar.TypeReg},
		"a/l: link to /etc leads out":    {Name: "a/l", Linkname: "/etc", Typeflag: tar.TypeSymlink},
		"a/l: link to ../../x leads out": {Name: "a/l", Linkname: "../../x", Typeflag: tar.TypeSymlink},
		"a/l: link to ../x leads out":    {Name: "a/l", Linkname: "../x", Typeflag: tar.TypeLink},
		"a/f: is neither file":           {Name: "a/f", Typeflag: tar.TypeFifo},
	}
	for want, header := range tests {
		into := filepath.Join(t.TempDir(), "into")
		content := packed(t, []tar.Header{{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, header}, func(tar.Header) string { return "" })
		if _, err := unpackTop(bytes.NewReader(content), into); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, broken := range [][]byte{nil, []byte("not an archive, but long enough"), source(t, "1.0")[:50], packed(t, nil, nil)} {
		if _, err := unpackTop(bytes.NewReader(broken), filepath.Join(t.TempDir(), "into")); err == nil {
			t.Errorf("%d bytes: no error", len(broken))
		}
	}
}

func TestLinksInsideAreKept(t *testing.T) {
	into := filepath.Join(t.TempDir(), "into")
	content := packed(t, []tar.Header{
		{Name: "a/b/f", Typeflag: tar.TypeReg, Size: 1, Mode: 0o755}, {Name: "a/soft", Linkname: "b/f", Typeflag: tar.TypeSymlink},
		{Name: "a/hard", Linkname: "a/b/f", Typeflag: tar.TypeLink},
	}, func(h tar.Header) string { return strings.Repeat("x", int(h.Size)) })
	if _, err := unpackTop(bytes.NewReader(content), into); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b/f", "soft", "hard"} {
		if text, err := os.ReadFile(filepath.Join(into, name)); string(text) != "x" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(source(f, "1.0"))
	f.Add([]byte("BZh"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		_, _ = unpackTop(bytes.NewReader(content), filepath.Join(dir, "into"))
		if all, err := os.ReadDir(dir); err != nil || len(all) > 1 {
			t.Errorf("written outside: %v, %v", all, err)
		}
	})
}

// stateDir is a directory that other users can enter, as the state directory of root's agent is.
func stateDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // the mode is the point
			t.Fatal(err)
		}
	}
	return dir
}

// sharedDir is a directory where whoever compiles can write.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir := stateDir(t)
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the mode is the point
		t.Fatal(err)
	}
	return dir
}
