package build

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestSourceThatIsNotUsedIsNotAmongTheSources(t *testing.T) {
	r := recipe(old(t, "1.6.2"), old(t, "1.26.3"))
	r.Version = "1.26.3"
	b, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard)
	if err != nil || len(b.Sources) != 1 || b.Sources[r.Sources[1].Path] == "" || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "not used: another version") {
		t.Errorf("%+v, %v", b, err)
	}
}

// sparse is a tar archive of a few kilobytes with a file of 1 TiB: GNU's sparse format 1.0 within PAX (tar manual, appendix
// D.2), whose map says that no part of the file has data.
func sparse(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	block := func(name string, kind byte, content string) {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000644\x000000000\x000000000\x00"+fmt.Sprintf("%011o\x00", len(content))+"00000000000\x00        "+string(kind))
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, b := range h {
			sum += int(b)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		out.Write(h)
		out.WriteString(content)
		out.Write(make([]byte, (512-len(content)%512)%512))
	}
	pax := ""
	for _, record := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=a/big", "GNU.sparse.realsize=1099511627776"} {
		n := len(record) + 4 // two digits, a space, a line feed
		pax += fmt.Sprintf("%d %s\n", n, record)
	}
	block("a/PaxHeaders/big", tar.TypeXHeader, pax)
	block("a/GNUSparseFile/big", tar.TypeReg, "0\n"+strings.Repeat("\x00", 510))
	out.Write(make([]byte, 1024))
	return out.Bytes()
}

func TestArchiveThatHoldsFarMoreThanItsBytesIsRefused(t *testing.T) {
	u, err := newUnpacking(filepath.Join(t.TempDir(), "into"))
	if err != nil {
		t.Fatal(err)
	}
	defer u.root.Close() //nolint:errcheck // only a directory handle
	u.left = 1 << 20
	archive := tar.NewReader(bytes.NewReader(sparse(t)))
	h, err := archive.Next()
	if err != nil || h.Size != 1<<40 {
		t.Fatalf("the archive is not what the test needs: %+v, %v", h, err)
	}
	if err := u.entry(h, archive); err == nil || !strings.Contains(err.Error(), "the archive holds more than") {
		t.Errorf("error: %v", err)
	}
	u.entries = entriesLimit
	if err := u.entry(&tar.Header{Name: "a/x", Typeflag: tar.TypeReg}, archive); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("error: %v", err)
	}
}

func TestLinksThroughLinksAreRefused(t *testing.T) {
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
	}
	hard := func(name, to string) tar.Header { return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeLink} }
	for want, headers := range map[string][]tar.Header{
		"a/d/up/up2: stands below d/up, which is a link": {link("a/d/up", ".."), link("a/d/up/up2", "../..")},
		"a/l/x: stands below l, which is a link":         {link("a/l", "d"), {Name: "a/l/x", Typeflag: tar.TypeReg}},
		"a/q: link to d/up/../../x may lead out":         {link("a/d/up", ".."), link("a/q", "d/up/../../x")},
		"a/up: link to ../x leads out":                   {link("a/d/up", "../x"), hard("a/up", "a/d/up")},
		"a/l: stands twice in the archive":               {link("a/l", "d"), link("a/l", "d")},
		"a/h: link to /etc/passwd leads out":             {hard("a/h", "/etc/passwd")},
		"a/c: is neither file, directory nor link":       {{Name: "a/c", Typeflag: tar.TypeChar}},
	} {
		dir := t.TempDir()
		content := packed(t, headers, func(tar.Header) string { return "" })
		_, err := Cache{}.unpackFile(t.Context(), inFile(t, "source.tar.gz", content), filepath.Join(dir, "into"))
		if left, _ := os.ReadDir(dir); err == nil || !strings.Contains(err.Error(), "unpack source.tar.gz: "+want) || len(left) > 0 {
			t.Errorf("error %v, want %s; left %v", err, want, left)
		}
	}
}

func TestDamagedArchivesSaySo(t *testing.T) {
	good := source(t, "1.0")
	turned := bytes.Clone(good)
	turned[len(turned)-6] ^= 0xff // of gzip's checksum
	bzip := exec.Command("bzip2", "-c")
	bzip.Stdin = bytes.NewReader(unzipped(t, good))
	var bz []byte
	if _, err := exec.LookPath("bzip2"); err == nil {
		if bz, err = bzip.Output(); err != nil {
			t.Fatal(err)
		}
		if _, err := (Cache{}).unpackFile(t.Context(), inFile(t, "a.tar.bz2", bz), filepath.Join(t.TempDir(), "into")); err != nil {
			t.Error(err)
		}
		bz = bz[:len(bz)/2]
	}
	zip := zipped(t, [2]string{"a/x", strings.Repeat("text ", 1000)})
	for name, content := range map[string][]byte{
		"cut.tar.gz": good[:len(good)-20], "sum.tar.gz": turned, "cut.zip": zip[:len(zip)-9], "none.zip": zipped(t), "empty": nil,
		"page.html": []byte("<html>" + strings.Repeat("not found ", 200)), "cut.tar.bz2": bz,
	} {
		dir := t.TempDir()
		_, err := Cache{}.unpackFile(t.Context(), inFile(t, name, content), filepath.Join(dir, "into"))
		said := err != nil && (strings.Contains(err.Error(), "it is cut off, damaged, or no archive") || strings.Contains(err.Error(), "is empty"))
		if left, _ := os.ReadDir(dir); !said || !strings.Contains(err.Error(), "unpack "+name) || len(left) > 0 {
			t.Errorf("%s: %v; left %v", name, err, left)
		}
	}
}

func TestVersionOfACommitIsThatOfItsTag(t *testing.T) {
	const commit, other = "0123456789012345678901234567890123456789", "9876543210987654321098765432109876543210"
	for remote, want := range map[string]string{
		commit + "\trefs/tags/v0.63\n": "0.63", commit + "\trefs/tags/release-1.26.3\n": "1.26.3",
		other + "\trefs/tags/0.62\n" + commit + "\trefs/tags/0.62^{}\n": "0.62", other + "\trefs/tags/v0.61\n": "", commit + "\trefs/tags/stable\n": "", "": "",
	} {
		if got := tagged(remote, commit); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}

func TestModuleFromARepositoryHasTheVersionOfItsTag(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: no git here")
	}
	repo := t.TempDir()
	write(t, filepath.Join(repo, "config"), "")
	var commit string
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "x"}, {"tag", "-a", "-m", "x", "v0.34"}, {"rev-parse", "HEAD"}} {
		out, err := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		commit = strings.TrimSpace(string(out))
	}
	r := recipe(atPath(t, source(t, "1.0", "test -e ../module-more/config")))
	r.Added = []lab.Module{{Name: "more", Version: "0.34", Sources: []lab.BuildSource{{Git: repo, Commit: commit}}}}
	if b, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, testLog{t}); err != nil || len(b.Notes) != 0 {
		t.Errorf("%+v, %v", b, err)
	}
	r.Added[0].Version = "0.35"
	if _, err := (Cache{Dir: stateDir(t)}).Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "asked for 0.35, the source is 0.34") {
		t.Errorf("error: %v", err)
	}
}

func TestMissingVersionOfASourcePackageNamesThoseThatAreThere(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("SKIPPED: no apt-get here")
	}
	aptDir := repository(t, map[string][]byte{"1.0": source(t, "1.0"), "2.0": source(t, "2.0")})
	c := Cache{Dir: stateDir(t), AptDir: aptDir}
	b, err := c.Build(t.Context(), recipe(lab.BuildSource{Debian: "nginx", Version: "1.0"}), io.Discard)
	if err != nil || b.Version != "1.0" {
		t.Errorf("the older: %+v, %v", b, err)
	}
	_, err = c.Build(t.Context(), recipe(lab.BuildSource{Debian: "nginx", Version: "3.0"}), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "source package nginx: another version: asked for 3.0, there are 2.0-1, 1.0-1") {
		t.Errorf("error: %v", err)
	}
}

func TestEchoComesFromTheSuiteOfTheServerFirst(t *testing.T) {
	r := lab.Recipe{Modules: []string{"echo"}, EchoWants: "0.63", Sources: []lab.BuildSource{{Path: "/x"}, {Debian: "nginx", Suite: "trixie"}}}
	want := []lab.BuildSource{{Debian: echoPackage, Suite: "trixie", Version: "0.63"}, {Debian: echoPackage, Version: "0.63"}}
	same := func(a, b lab.BuildSource) bool {
		return a.Debian == b.Debian && a.Suite == b.Suite && a.Version == b.Version
	}
	if got := echoSources(r); !slices.EqualFunc(got, want, same) {
		t.Errorf("%+v", got)
	}
	if got := echoSources(lab.Recipe{Sources: []lab.BuildSource{{Debian: "nginx"}}}); len(got) != 1 || got[0].Suite != "" {
		t.Errorf("the host's own: %+v", got)
	}
}

func TestPathThatIsALinkIsKnownByWhatItLeadsTo(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for _, content := range []string{"one", "two"} {
		write(t, filepath.Join(dir, "file"), content)
		sum, err := hashPath(link)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	if sums[0] == sums[1] {
		t.Error("changed files have the same sum")
	}
}

func FuzzUnpackFile(f *testing.F) {
	f.Add(zipped(f, [2]string{"a/x", "text"}, [2]string{"a/l ->", "x"}))
	f.Add(zipped(f, [2]string{"a/l ->", "../.."}))
	f.Add(source(f, "1.0"))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		path, into := filepath.Join(dir, "archive"), filepath.Join(dir, "into")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Cache{}.unpackFile(t.Context(), path, into)
		if _, left := os.Stat(into); err != nil && left == nil {
			t.Errorf("left after %v", err)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) > 2 {
			t.Errorf("written outside: %v, %v", all, err)
		}
		links, _ := filepath.Glob(filepath.Join(into, "*"))
		for _, link := range links {
			if to, err := filepath.EvalSymlinks(link); err == nil && to != into && !strings.HasPrefix(to, into+"/") {
				t.Errorf("%s leads out to %s", link, to)
			}
		}
	})
}
