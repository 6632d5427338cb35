package build

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ngxlab/lab"
)

// exported is a finished build of a host, and the stream that it gives for another.
func exported(t *testing.T) (lab.Recipe, lab.Build, []byte) {
	t.Helper()
	c, r := Cache{Dir: t.TempDir()}, recipe(lab.BuildSource{URL: "http://127.0.0.1:1/x", SHA256: strings.Repeat("c", 64)})
	content := source(t, "1.0")
	sum := sha256.Sum256(content)
	r.Sources[0].SHA256 = hex.EncodeToString(sum[:])
	if err := os.MkdirAll(c.fetched(), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.fetched(), r.Sources[0].SHA256), string(content)) // downloaded before
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := c.Export(t.Context(), b, &stream); err != nil {
		t.Fatal(err)
	}
	return r, b, stream.Bytes()
}

func TestBuildOfOneHostIsUsedOnAnotherThatHasNoCompiler(t *testing.T) {
	r, b, stream := exported(t)
	t.Setenv("PATH", t.TempDir())
	c := Cache{Dir: t.TempDir()}
	if _, err := c.Build(t.Context(), r, testLog{t}); err == nil {
		t.Fatal("built without a compiler")
	}
	b.From = "web1"
	got, err := c.Import(t.Context(), b, bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	if got.Cached || got.ID != b.ID || got.From != "web1" || got.Binary == b.Binary || filepath.Dir(got.Binary) != filepath.Dir(got.Log) {
		t.Errorf("imported %+v", got)
	}
	again, err := c.Build(t.Context(), r, testLog{t})
	if err != nil || !again.Cached || again.ID != b.ID || again.Compiler != b.Compiler || again.Compiler == "" || again.Binary != got.Binary {
		t.Errorf("found %+v, %v", again, err)
	}
	for _, path := range []string{got.Binary, got.Log} {
		theirs, errTheirs := os.ReadFile(filepath.Join(filepath.Dir(b.Binary), filepath.Base(path)))
		ours, errOurs := os.ReadFile(path)
		if err := errors.Join(errTheirs, errOurs); err != nil || !bytes.Equal(theirs, ours) {
			t.Errorf("%s differs, %v", path, err)
		}
	}
	if out, err := exec.Command(got.Binary, "-V").Output(); err != nil || !strings.Contains(string(out), "nginx/1.0") {
		t.Errorf("it says %q, %v", out, err)
	}
	r.Flags = append(r.Flags, "--more")
	if _, err := c.Build(t.Context(), r, testLog{t}); err == nil {
		t.Error("the import was taken for another recipe")
	}
}

func TestImportOfABuildThatIsHereTakesNothing(t *testing.T) {
	_, b, stream := exported(t)
	c := Cache{Dir: t.TempDir()}
	if _, err := c.Import(t.Context(), b, strings.NewReader("")); err == nil {
		t.Error("imported nothing")
	}
	if _, err := c.Import(t.Context(), b, bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	again, err := c.Import(t.Context(), b, strings.NewReader(""))
	if err != nil || !again.Cached || again.ID != b.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestOwnBuildIsFoundBeforeAnImportedOne(t *testing.T) {
	r, b, stream := exported(t)
	c := Cache{Dir: t.TempDir()}
	b.ID = strings.Repeat("0", 16) // as of another compiler
	if _, err := c.Import(t.Context(), b, bytes.NewReader(stream)); err == nil {
		t.Error("a build was imported under another name")
	}
	b.ID = hash("x")
	stream = repacked(t, b, stream)
	if _, err := c.Import(t.Context(), b, bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Build(t.Context(), r, testLog{t}); err != nil || got.ID != b.ID {
		t.Errorf("no own build: %+v, %v", got, err)
	}
	own := c.resolution(hash(identity(r), conditions{Compiler: b.Compiler, Distribution: b.Distribution, Architecture: b.Architecture, Paths: map[string]string{}}))
	write(t, own, "fedcba9876543210")
	if err := os.CopyFS(filepath.Join(c.builds(), "fedcba9876543210"), os.DirFS(filepath.Join(c.builds(), b.ID))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.builds(), "fedcba9876543210", manifest), `{"id":"fedcba9876543210","binary":"nginx"}`)
	if got, err := c.Build(t.Context(), r, testLog{t}); err != nil || got.ID != "fedcba9876543210" {
		t.Errorf("own build: %+v, %v", got, err)
	}
}

// unzip and zip are the tar archive inside a stream.
func unzip(t *testing.T, stream []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	archive, err := r.DecodeAll(stream, nil)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func zipStream(t *testing.T, archive []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(archive, nil)
}

// repacked is the stream with the manifest of another build, and sums that fit.
func repacked(t *testing.T, b lab.Build, stream []byte) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), b.ID)
	if _, err := unpackTar(bytes.NewReader(unzip(t, stream)), dir); err != nil {
		t.Fatal(err)
	}
	b.Dir, b.Binary, b.Log = "", binary, buildLog
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, manifest), string(text))
	if err := os.Remove(filepath.Join(dir, sumsFile)); err != nil {
		t.Fatal(err)
	}
	sums, err := sumsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pack(t.Context(), tar.NewWriter(&out), dir, sums); err != nil {
		t.Fatal(err)
	}
	return zipStream(t, out.Bytes())
}

func TestStreamThatIsNotWholeLeavesNothing(t *testing.T) {
	_, b, stream := exported(t)
	with := func(h tar.Header) []byte {
		archive := unzip(t, stream)
		var more bytes.Buffer
		w := tar.NewWriter(&more)
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			t.Fatal(err)
		}
		return zipStream(t, append(archive[:len(archive)-1024], more.Bytes()...)) // without the two blocks that end it
	}
	damaged := bytes.Replace(unzip(t, stream), []byte("echo nginx"), []byte("echo other"), 1)
	cases := map[string]io.Reader{
		"empty":           bytes.NewReader(nil),
		"half":            bytes.NewReader(stream[:len(stream)/2]),
		"all but a byte":  bytes.NewReader(stream[:len(stream)-1]),
		"no archive":      strings.NewReader("this is no archive at all"),
		"broken off":      io.MultiReader(bytes.NewReader(stream), failing{}),
		"a file changed":  bytes.NewReader(zipStream(t, damaged)),
		"a file more":     bytes.NewReader(with(tar.Header{Name: b.ID + "/more", Typeflag: tar.TypeReg})),
		"a link":          bytes.NewReader(with(tar.Header{Name: b.ID + "/more", Linkname: "nginx", Typeflag: tar.TypeSymlink})),
		"a link to /etc":  bytes.NewReader(with(tar.Header{Name: b.ID + "/more", Linkname: "/etc", Typeflag: tar.TypeSymlink})),
		"a path that out": bytes.NewReader(with(tar.Header{Name: "../../more", Typeflag: tar.TypeReg})),
	}
	for name, r := range cases {
		c := Cache{Dir: t.TempDir()}
		_, err := c.Import(t.Context(), b, r)
		if err == nil || !strings.Contains(err.Error(), "take over build tested: the copy is not whole") {
			t.Errorf("%s: error %v", name, err)
		}
		left, err := filepath.Glob(filepath.Join(c.Dir, "builds", "*"))
		if err != nil || len(left) != 1 || left[0] != filepath.Join(c.builds(), ".lock-"+b.ID) {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBuildOfAnotherDistributionOrArchitectureIsRefused(t *testing.T) {
	_, b, stream := exported(t)
	other := b
	other.Distribution = "plan9 4"
	if _, err := (Cache{Dir: t.TempDir()}).Import(t.Context(), other, bytes.NewReader(stream)); err == nil || !strings.Contains(err.Error(), "it was made on plan9 4, "+b.Architecture+"; this host is "+b.Distribution) {
		t.Errorf("distribution: %v", err)
	}
	other = b
	other.Architecture = "riscv64"
	if _, err := (Cache{Dir: t.TempDir()}).Import(t.Context(), other, bytes.NewReader(stream)); err == nil || !strings.Contains(err.Error(), "riscv64; this host is") {
		t.Errorf("architecture: %v", err)
	}
	for _, id := range []string{"", "../../../etc", strings.Repeat("g", 16)} {
		other = b
		other.ID = id
		if _, err := (Cache{Dir: t.TempDir()}).Import(t.Context(), other, bytes.NewReader(stream)); err == nil {
			t.Errorf("id %q was taken", id)
		}
		if err := (Cache{Dir: t.TempDir()}).Export(t.Context(), other, io.Discard); err == nil {
			t.Errorf("id %q was given", id)
		}
	}
}

func TestLibrariesThatAreMissingAreNamed(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("SKIPPED: no cc here")
	}
	libraries := t.TempDir()
	compile := "echo 'int gone(void){return 0;}' > l.c && cc -shared -fPIC -o " + libraries + "/libgone.so.7 l.c && " +
		`echo '#include <stdio.h>` + "\\n" + `int gone(void); int main(void){puts("nginx version: nginx/1.0"); return gone();}' > m.c && ` +
		"printf '%b\\n' \"$$(cat m.c)\" > n.c && cc -o server n.c " + libraries + "/libgone.so.7 -Wl,-rpath," + libraries
	here, r := Cache{Dir: t.TempDir()}, recipe(atPath(t, source(t, "1.0", compile)))
	b, err := here.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := here.Export(t.Context(), b, &stream); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(libraries); err != nil {
		t.Fatal(err)
	}
	_, err = Cache{Dir: t.TempDir()}.Import(t.Context(), b, &stream)
	if err == nil || !strings.Contains(err.Error(), "libgone.so.7") || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("error %v", err)
	}
	if got := libraryPackages([]string{"libcrypto.so.3", "libpcre2-8.so.0", "libssl.so.3", "libx.so"}); strings.Join(got, ",") != "libpcre2-8-0,libssl3,the one with libx.so" {
		t.Errorf("packages %v", got)
	}
}

func TestBuildThatNamesDirectoriesOfItsHostIsNotCopied(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	r := recipe(atPath(t, source(t, "1.0", "echo echo configured --prefix="+c.Dir+"/x >> server")))
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Export(t.Context(), b, io.Discard); err == nil || !strings.Contains(err.Error(), "runs nowhere else") {
		t.Errorf("error %v", err)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		dir := t.TempDir()
		_ = receive(bytes.NewReader(stream), filepath.Join(dir, "into"))
		if all, err := os.ReadDir(dir); err != nil || len(all) > 1 {
			t.Errorf("written outside: %v, %v", all, err)
		}
	})
}
