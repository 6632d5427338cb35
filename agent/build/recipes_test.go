package build

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/lab"
)

// zipped is a zip archive of files; a name that ends with -> target is a link.
func zipped(t testing.TB, files ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		name, link := strings.CutSuffix(f[0], " ->")
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o755)
		if link {
			h.SetMode(os.ModeSymlink | 0o777)
		}
		entry, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(entry, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inFile keeps an archive in a file of that name.
func inFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, string(content))
	return path
}

func TestArchivesOfEveryKindAreUnpacked(t *testing.T) {
	tarred := unzipped(t, source(t, "1.0"))
	xz := exec.Command("xz", "-c")
	xz.Stdin = bytes.NewReader(tarred)
	compressed, err := xz.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"a.tar.gz": source(t, "1.0"), "a.tar": tarred, "a.tar.xz": compressed,
		"a.zip": zipped(t, [2]string{"nginx-1.0/configure", "x"}, [2]string{"nginx-1.0/link ->", "configure"}),
	} {
		into := filepath.Join(t.TempDir(), "into")
		top, err := Cache{}.unpackFile(t.Context(), inFile(t, name, content), into)
		if _, missing := os.Stat(filepath.Join(into, "configure")); err != nil || missing != nil || top != "nginx-1.0" {
			t.Errorf("%s: top %q, %v, %v", name, top, err, missing)
		}
	}
	for name, content := range map[string][]byte{"a.tar.xz": compressed[:len(compressed)-40], "a.tar.gz": source(t, "1.0")[:120], "a.tar": tarred[:520]} {
		into := filepath.Join(t.TempDir(), "into")
		_, err := Cache{}.unpackFile(t.Context(), inFile(t, name, content), into)
		if _, left := os.Stat(into); err == nil || left == nil {
			t.Errorf("%s cut short: %v, left %v", name, err, left == nil)
		}
	}
}

func unzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	r, err := decompress(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestArchivesThatAreNoSourceAreRefusedWithTheirEntry(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
	for want, content := range map[string][]byte{
		"configure: stands outside of a directory": packed(t, []tar.Header{file("configure")}, func(tar.Header) string { return "" }),
		"b/x: stands outside of a:":                packed(t, []tar.Header{file("a/x"), file("b/x")}, func(tar.Header) string { return "" }),
		"a/x: stands twice":                        packed(t, []tar.Header{file("a/x"), file("a/x")}, func(tar.Header) string { return "" }),
		"../x: leads out":                          zipped(t, [2]string{"../x", ""}),
		"a/l: link to /etc leads out":              zipped(t, [2]string{"a/l ->", "/etc"}),
		"a/l: link to ../../x leads out":           zipped(t, [2]string{"a/l ->", "../../x"}),
	} {
		dir := t.TempDir()
		_, err := Cache{}.unpackFile(t.Context(), inFile(t, "source", content), filepath.Join(dir, "into"))
		if left, _ := os.ReadDir(dir); err == nil || !strings.Contains(err.Error(), want) || len(left) > 0 {
			t.Errorf("error %v, want %s; left %v", err, want, left)
		}
	}
}

func TestLinkOfAnArchiveIsNotFollowedOut(t *testing.T) {
	outside := t.TempDir()
	headers := []tar.Header{
		{Name: "a/d/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "a/d/up", Linkname: "..", Typeflag: tar.TypeSymlink},
		{Name: "a/d/up/up2", Linkname: "../..", Typeflag: tar.TypeSymlink}, {Name: "a/up2/x", Typeflag: tar.TypeReg},
	}
	_, err := unpackTop(bytes.NewReader(packed(t, headers, func(tar.Header) string { return "" })), filepath.Join(outside, "deep", "into"))
	if _, written := os.Stat(filepath.Join(outside, "x")); err == nil || written == nil {
		t.Errorf("error %v, written outside %v", err, written == nil)
	}
}

func TestServerOfACommandIsMadeFromATextByAnotherUser(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	r := lab.Recipe{
		Name: "own", Flavor: lab.FlavorCustom, Binary: "server", Keep: []string{"data"}, CFlags: "-DGREETING=7",
		Sources: []lab.BuildSource{{Text: map[string]string{
			"main.c": "#include <stdio.h>\nint main(void) { printf(\"own 1.2.%d\\n\", GREETING); return 0; }\n", "data/page.html": "hello\n",
		}}},
		Make:    [][]string{{"sh", "-c", "id -un; umask; cc $CFLAGS -o server main.c"}},
		Command: &lab.ServerCommand{Start: []string{"{binary}"}, Version: []string{"{binary}"}},
	}
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(b.Log)
	if err != nil || b.Version != "1.2.7" || filepath.Base(b.Binary) != "server" || len(b.Sources) != 2 {
		t.Errorf("%+v, %v", b, err)
	}
	if os.Geteuid() == 0 && (b.MadeBy != "nobody" || !strings.HasPrefix(string(log), "nobody\n")) {
		t.Errorf("made by %q: %s", b.MadeBy, log)
	}
	if page, err := os.ReadFile(filepath.Join(b.Dir, "data", "page.html")); string(page) != "hello\n" {
		t.Errorf("kept: %q, %v", page, err)
	}
	info, err := os.Stat(b.Binary)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("binary: %v, %v", info, err)
	}
	r.Command = nil
	if again, err := c.Build(t.Context(), r, testLog{t}); err != nil || !again.Cached {
		t.Errorf("another command is another build: %+v, %v", again, err)
	}
}

// old is the archive of a source that says a version and needs remedies.
func old(t *testing.T, version string) lab.BuildSource {
	t.Helper()
	return atPath(t, archive(t, map[string]string{
		"nginx/configure":              strings.Replace(configure, "VERSION", version, 1),
		"nginx/make":                   "cp server objs/nginx",
		"nginx/src/core/nginx.h":       "#define NGINX_VERSION      \"" + version + "\"\n",
		"nginx/src/os/unix/ngx_user.c": "before\n    cd.current_salt[0] = ~salt[0];\nafter\n",
		"nginx/server":                 "#!/bin/sh\necho nginx version: nginx/" + version + "\n",
	}))
}

func TestRemediesAreForOldSourcesOnlyAndAreTold(t *testing.T) {
	remedies := []lab.Remedy{
		{Below: "1.15.0", File: "src/os/unix/ngx_user.c", Find: "    cd.current_salt[0] = ~salt[0];\n", Why: "the salt"},
		{Below: "1.15.0", CFlags: "-Wno-error", Why: "the warnings"}, {Below: "1.15.0", File: "src/none.c", Find: "x", Why: "another file"},
	}
	for version, want := range map[string][]string{"1.6.2": {"remedy: the salt", "remedy: the warnings"}, "1.15.0": nil, "1.22.1": nil} {
		c, r := Cache{Dir: stateDir(t)}, recipe(old(t, version))
		r.Remedies, r.Flags = remedies, []string{"--with-cc-opt=-O1"}
		b, err := c.Build(t.Context(), r, testLog{t})
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(b.Log)
		if !slices.Equal(b.Notes, want) || err != nil || strings.Contains(string(log), "--with-cc-opt=-O1 -Wno-error") != (want != nil) {
			t.Errorf("%s: notes %q, log %s, %v", version, b.Notes, log, err)
		}
	}
}

func TestAnotherVersionThanAskedForIsAnErrorBeforeItIsCompiled(t *testing.T) {
	c, r := Cache{Dir: stateDir(t)}, recipe(old(t, "1.6.2"))
	r.Version = "1.26.3"
	if _, err := c.Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "asked for 1.26.3, the source is 1.6.2") {
		t.Errorf("error: %v", err)
	}
	r.Sources = append(r.Sources, old(t, "1.26.3"))
	b, err := c.Build(t.Context(), r, io.Discard)
	if err != nil || b.Version != "1.26.3" || len(b.Notes) != 1 {
		t.Errorf("the next source: %+v, %v", b, err)
	}
	r.Version, r.Sources = "2.0", []lab.BuildSource{atPath(t, source(t, "1.0"))}
	if _, err := c.Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "asked for 2.0, the server says 1.0") {
		t.Errorf("error: %v", err)
	}
}

func TestEndOfABuildIsExplained(t *testing.T) {
	for want, commands := range map[string][]string{
		"the disk is full: ": {"echo 'cc1: error: No space left on device'", "false"},
		"the compiler was ended for want of memory: there are ":                           {"echo 'gcc: fatal error: Killed signal terminated program cc1'", "false"},
		"stopped after 300ms, which is all that it may take; raise timeout: of the build": {"sleep 30"},
	} {
		c, r := Cache{Dir: stateDir(t)}, recipe(atPath(t, source(t, "1.0", commands...)))
		if strings.Contains(want, "timeout") {
			r.Timeout = lab.Duration{Duration: 300 * time.Millisecond}
		}
		_, err := c.Build(t.Context(), r, io.Discard)
		if err == nil || !strings.Contains(strings.SplitN(err.Error(), "\n", 2)[0], want) || len(finished(t, c)) > 0 {
			t.Errorf("want %q: %v", want, err)
		}
	}
	refused := archive(t, map[string]string{"nginx-1/configure": "#!/bin/sh\necho './configure: error: the HTTP rewrite module requires the PCRE library.'; exit 1\n"})
	_, err := Cache{Dir: stateDir(t)}.Build(t.Context(), recipe(atPath(t, refused)), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "build tested: the HTTP rewrite module requires the PCRE library. (configure: ") {
		t.Errorf("error: %v", err)
	}
}

func TestCompilerThatWasKilledIsTriedAloneOnce(t *testing.T) {
	mark := sharedDir(t)
	once := "test -e " + mark + "/x || { touch " + mark + "/x; echo Killed signal terminated program cc1; false; }"
	b, err := Cache{Dir: stateDir(t)}.Build(t.Context(), recipe(atPath(t, source(t, "1.0", once))), testLog{t})
	if err != nil || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "one file at a time") {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestFullDiskIsSaidAndRetried(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can mount")
	}
	dir := stateDir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	c, r := Cache{Dir: dir}, recipe(atPath(t, source(t, "1.0", "head -c 600000 /dev/zero > objs/big")))
	if _, err := c.Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("error: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "builds", ".work-*")); len(left) > 0 || len(finished(t, c)) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m,mode=0755"); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Build(t.Context(), r, io.Discard); err != nil || b.Version != "1.0" {
		t.Errorf("with more space: %+v, %v", b, err)
	}
}

func TestModulesOfARecipeHaveTheVersionsAskedFor(t *testing.T) {
	module := atPath(t, archive(t, map[string]string{"more-0.34/config": ""}))
	r := recipe(atPath(t, source(t, "1.0", "test -e ../module-more/config", "touch objs/ngx_more.so")))
	r.Added = []lab.Module{{Name: "more", Version: "0.34", Sources: []lab.BuildSource{module}, Dynamic: true}}
	b, err := Cache{Dir: stateDir(t)}.Build(t.Context(), r, testLog{t})
	if err != nil || !slices.Equal(b.Dynamic, []string{"modules/ngx_more.so"}) || len(b.Sources) != 2 {
		t.Errorf("%+v, %v", b, err)
	}
	r.Added[0].Version = "0.35"
	if _, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "module more: another version: asked for 0.35, the source is 0.34") {
		t.Errorf("error: %v", err)
	}
}

func TestBuildsAreListedAndRemoved(t *testing.T) {
	c := Cache{Dir: stateDir(t)}
	var ids []string
	for _, version := range []string{"1.0", "1.1"} {
		b, err := c.Build(t.Context(), recipe(atPath(t, source(t, version))), testLog{t})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, b.ID)
	}
	kept, err := c.List(t.Context())
	if err != nil || len(kept) != 2 || kept[0].DiskBytes == 0 || kept[0].Used.IsZero() {
		t.Fatalf("%+v, %v", kept, err)
	}
	if _, err := c.Remove(t.Context(), []string{ids[0], "0123"}); err == nil || !strings.Contains(err.Error(), `no build "0123"; there are `) {
		t.Errorf("error: %v", err)
	}
	left := []string{filepath.Join(c.builds(), ".work-left"), filepath.Join(c.builds(), strings.Repeat("0", 16))}
	for _, dir := range left {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	done, err := c.Remove(t.Context(), []string{ids[0][:8]})
	if err != nil || len(done.Removed) != 1 || done.FreedBytes == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	for _, dir := range left {
		if _, there := os.Stat(dir); there == nil {
			t.Errorf("what an interrupted build left is still there: %s", dir)
		}
	}
	if kept, err := c.List(t.Context()); err != nil || len(kept) != 1 || kept[0].ID != ids[1] {
		t.Errorf("%+v, %v", kept, err)
	}
}
