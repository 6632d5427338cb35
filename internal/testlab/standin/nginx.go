package standin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/build"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// kept is the archive of nginx's source in the build that keeps it.
const kept = "source.tar"

// recipe builds nothing: it keeps the source of the distribution's nginx, as all builds are kept, fetched once for all
// tests. The binary is one that every build must have.
func recipe() lab.Recipe {
	return server.Recipe(lab.Recipe{
		Name: "nginx-source", Flavor: lab.FlavorCustom, Sources: []lab.BuildSource{{Debian: "nginx"}},
		Make:   [][]string{{"sh", "-c", "tar cf ../" + kept + " . && mv ../" + kept + " . && cp -L /bin/true server"}},
		Binary: "server", Keep: []string{kept},
	})
}

// Nginx returns the folder of the unpacked source of the distribution's nginx, a folder of the test's own.
func Nginx(t testing.TB) string {
	t.Helper()
	testlab.Require(t, "cc", "tar")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	b, err := build.Cache{Dir: testlab.CacheDir(t)}.Build(ctx, recipe(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "nginx")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "tar", "xf", filepath.Join(b.Dir, kept), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpack nginx's source: %v: %s", err, out)
	}
	return dir
}

// Archive makes the stand-in in the format of the extension (tar.gz, tar.xz, zip) and returns the archive's path, which
// is the same for all tests, so that they share its builds too. With the extension "" it is a folder of the test's own.
func (s Source) Archive(t testing.TB, nginx, extension string) string {
	t.Helper()
	dir, err := s.Make(nginx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if extension == "" {
		return dir
	}
	made := strings.Join([]string{dir, extension}, ".")
	if err := Pack(t.Context(), dir, made); err != nil {
		t.Fatal(err)
	}
	return keep(t, made)
}

// keep copies a file into the cache of the tests, whole or not at all, and returns its path there.
func keep(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shelf := filepath.Join(testlab.CacheDir(t), "standin")
	if err := os.MkdirAll(shelf, 0o755); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(shelf, filepath.Base(path))
	if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, content) {
		return to
	}
	file, err := os.CreateTemp(shelf, ".new-*")
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Chmod(0o644), file.Close(), os.Rename(file.Name(), to)); err != nil {
		t.Fatal(err)
	}
	return to
}
