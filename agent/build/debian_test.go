package build

import (
	"bytes"
	"crypto/md5" //nolint:gosec // a field of the index that apt wants
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestHostsOwnEntriesBecomeSourceEntries(t *testing.T) {
	got, err := aptSources("testdata/apt", "deb-src", "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"deb-src http://deb.example.org/debian bookworm main contrib",
		"deb-src [signed-by=/usr/share/keyrings/a.gpg] http://deb.example.org/debian bookworm-updates main",
		"deb-src [trusted=yes] file:/srv/repo ./",
		"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.example.org/debian bookworm main",
		"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.example.org/debian bookworm-security main",
		"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example.org/debian bookworm main",
		"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example.org/debian bookworm-security main",
		"deb-src http://key.example.org/debian stable main",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNamedSuiteReplacesTheHosts(t *testing.T) {
	got, err := aptSources("testdata/apt", "deb-src", "trixie")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(got, "\n")
	for _, want := range []string{"/debian trixie main contrib", "/debian trixie-updates main", "/debian trixie-security main", "file:/srv/repo ./"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "bookworm") {
		t.Errorf("the host's suite is left in\n%s", all)
	}
	if _, err := aptSources(t.TempDir(), "deb-src", ""); err == nil {
		t.Error("no error without any entry")
	}
}

func TestVersionsAreOrderedAsDebianDoes(t *testing.T) {
	ascending := []string{"0.9~rc1", "0.9", "0.9-1", "0.9-1+b1", "0.9a", "0.10~~", "0.10", "1.22.1-9", "1.22.1-9+deb12u1", "1.22.1-9+deb12u2",
		"1.22.1-9+deb12u10", "1.22.1-10", "1.22.1.1-1", "1:0.1"}
	for i := range ascending[1:] {
		a, b := ascending[i], ascending[i+1]
		if compareVersions(a, b) >= 0 || compareVersions(b, a) <= 0 || compareVersions(a, a) != 0 {
			t.Errorf("%s is not older than %s", a, b)
		}
		if _, err := exec.LookPath("dpkg"); err != nil {
			continue
		}
		if err := exec.Command("dpkg", "--compare-versions", a, "lt", b).Run(); err != nil {
			t.Errorf("dpkg: %s is not older than %s", a, b)
		}
	}
}

// repository is a flat archive in a directory: a source package in several versions, of which only some files exist.
func repository(t *testing.T, versions map[string][]byte) (aptDir string) {
	t.Helper()
	dir, index := t.TempDir(), ""
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for version, archive := range versions {
		name := "nginx_" + version + ".orig.tar.gz"
		sum := sha256.Sum256(archive)
		index += fmt.Sprintf("Package: nginx\nVersion: %s-1\nDirectory: .\nFormat: 3.0 (quilt)\nFiles:\n %x %d %s\n"+
			"Checksums-Sha256:\n %s %d %s\n\n", version, md5.Sum(archive), len(archive), name, hex.EncodeToString(sum[:]), len(archive), name)
		if !bytes.Contains(archive, []byte("gone")) {
			write(t, filepath.Join(dir, name), string(archive))
		}
	}
	write(t, filepath.Join(dir, "Sources"), index)
	aptDir = t.TempDir()
	write(t, filepath.Join(aptDir, "sources.list"), "deb [trusted=yes] file:"+dir+" ./\n")
	return aptDir
}

func TestOlderVersionIsTakenWhenTheNewestIsGoneAndTheHostIsLeftAlone(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("SKIPPED: no apt-get here")
	}
	before := hostApt(t)
	c := Cache{Dir: t.TempDir(), AptDir: repository(t, map[string][]byte{"1.0": source(t, "1.0"), "2.0": []byte("gone"), "1.5": []byte("gone too")})}
	b, err := c.Build(t.Context(), recipe(lab.BuildSource{Debian: "nginx"}), testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(b.Notes, "\n")
	if b.Version != "1.0" || b.Sources["nginx_1.0.orig.tar.gz"] == "" {
		t.Errorf("version %s, sources %v", b.Version, b.Sources)
	}
	for _, want := range []string{"not used: nginx 2.0-1", "not used: nginx 1.5-1", "source package nginx 1.0-1"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in the notes:\n%s", want, notes)
		}
	}
	if after := hostApt(t); after != before {
		t.Errorf("the host's apt directories changed:\n%s\nbefore:\n%s", after, before)
	}
}

// hostApt lists what the host keeps for apt, with sizes and times.
func hostApt(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"/etc/apt", "/var/lib/apt", "/var/cache/apt"} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // not readable for this user, and so not writable
			}
			if info, err := d.Info(); err == nil && !d.IsDir() {
				fmt.Fprintln(&all, path, info.Size(), info.ModTime())
			}
			return nil
		})
	}
	return all.String()
}

func TestSourcePackageThatIsNowhereIsAnError(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("SKIPPED: no apt-get here")
	}
	c := Cache{Dir: t.TempDir(), AptDir: repository(t, map[string][]byte{"1.0": source(t, "1.0")})}
	_, err := c.Build(t.Context(), recipe(lab.BuildSource{Debian: "nothing"}), testLog{t})
	if err == nil || !strings.Contains(err.Error(), "source package nothing: not in the indexes of the host's apt sources") {
		t.Errorf("error: %v", err)
	}
}

func TestPatchesAreAppliedInTheOrderOfTheirSeries(t *testing.T) {
	into, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(into, "a"), "one\n")
	write(t, filepath.Join(dir, "series"), "# comment\nfirst.patch\nsecond.patch -p1\n")
	write(t, filepath.Join(dir, "first.patch"), "--- x/a\n+++ y/a\n@@ -1 +1 @@\n-one\n+two\n")
	write(t, filepath.Join(dir, "second.patch"), "--- x/a\n+++ y/a\n@@ -1 +1 @@\n-two\n+three\n")
	a := apt{job: job{log: testLog{t}}}
	if err := a.series(t.Context(), dir, into); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(into, "a")); string(text) != "three\n" {
		t.Errorf("after the patches: %q, %v", text, err)
	}
	if err := a.series(t.Context(), dir, into); err == nil || !strings.Contains(err.Error(), "patch first.patch") {
		t.Errorf("a patch that does not apply: %v", err)
	}
	if err := a.series(t.Context(), t.TempDir(), into); err != nil {
		t.Errorf("a package without patches: %v", err)
	}
}

func FuzzAptSources(f *testing.F) {
	for _, file := range []string{"testdata/apt/sources.list", "testdata/apt/sources.list.d/a.sources"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "trixie")
	}
	f.Fuzz(func(t *testing.T, text, suite string) {
		for _, e := range append(parseOneLine(text), parseDeb822(text)...) {
			for _, line := range e.lines("deb-src", "") {
				if !strings.HasPrefix(line, "deb-src ") || strings.ContainsAny(line, "\n") {
					t.Errorf("not one deb-src line: %q", line)
				}
			}
			e.lines("deb-src", suite)
		}
		for _, p := range parseSources(text, "nginx") {
			if p.version == "" || len(p.files) == 0 {
				t.Errorf("incomplete: %+v", p)
			}
		}
	})
}
