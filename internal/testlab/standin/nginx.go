package standin

import (
	"context"
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

// Archive makes the stand-in in the format of the extension (tar.gz, tar.xz, zip) in a folder of the test's own, and
// returns the archive's path; with the extension "" it is the folder itself.
func (s Source) Archive(t testing.TB, nginx, extension string) string {
	t.Helper()
	dir, err := s.Make(nginx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if extension == "" {
		return dir
	}
	to := strings.Join([]string{dir, extension}, ".")
	if err := Pack(t.Context(), dir, to); err != nil {
		t.Fatal(err)
	}
	return to
}
