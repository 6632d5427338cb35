package standin

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStandInsCompileAndSayTheirVersions configures each with no modules at all.
func TestStandInsCompileAndSayTheirVersions(t *testing.T) {
	nginx := Nginx(t)
	for _, tc := range []struct {
		source Source
		flags  []string
		said   []string
	}{
		{Tengine21(), nil, []string{"Tengine version: Tengine/2.1.0 (nginx/1.6.2)\n", "loaded modules:\n    ngx_core_module (static)\n"}},
		{Tengine31(), nil, []string{"Tengine version: Tengine/3.1.0\nnginx version: nginx/1.24.0\n"}},
	} {
		t.Run(tc.source.Dir, func(t *testing.T) {
			dir := tc.source.Archive(t, nginx, "")
			run(t, dir, "sh", "configure", "--without-http", "--without-pcre")
			run(t, dir, "make", "-j2")
			said := run(t, dir, "./"+tc.source.Binary, "-V")
			for _, want := range tc.said {
				if !strings.Contains(said, want) {
					t.Errorf("-V lacks %q: %s", want, said)
				}
			}
		})
	}
}

func TestOldNginxIsRefusedByTheCompilerOfToday(t *testing.T) {
	dir := OldNginx().Archive(t, Nginx(t), "")
	run(t, dir, "sh", "configure", "--without-http_rewrite_module", "--without-http_gzip_module")
	for file, want := range map[string]string{"src/core/ngx_murmurhash.o": "implicit-fallthrough", "src/os/unix/ngx_user.o": "current_salt"} {
		out, err := command(t, dir, "make", "-f", "objs/Makefile", "objs/"+file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q: %s", file, err, want, out)
		}
	}
}

func TestArchivesHoldTheFolder(t *testing.T) {
	nginx, into := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"configure": "#!/bin/sh\n", "make": "x"} {
		if err := os.WriteFile(filepath.Join(nginx, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := Source{Dir: "nginx-1.0", edits: []edit{{"make", "x", "y"}}}
	for _, extension := range []string{"tar.gz", "tar.xz"} {
		run(t, into, "tar", "xf", s.Archive(t, nginx, extension))
		if text, err := os.ReadFile(filepath.Join(into, "nginx-1.0", "make")); err != nil || string(text) != "y" {
			t.Errorf("%s: %q, %v", extension, text, err)
		}
	}
	z, err := zip.OpenReader(s.Archive(t, nginx, "zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close() //nolint:errcheck // only read
	if _, err := z.Open("nginx-1.0/make"); err != nil {
		t.Error(err)
	}
	first, err := os.ReadFile(s.Archive(t, nginx, "zip"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(s.Archive(t, nginx, "zip")); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same stand-in is another archive, %v", err)
	}
	s.edits[0].old = "nowhere"
	if _, err := s.Make(nginx, t.TempDir()); err == nil || !strings.Contains(err.Error(), `make has no "nowhere"`) {
		t.Errorf("error %v", err)
	}
}

func command(t *testing.T, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	return cmd
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(t, dir, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %.3000s", name, args, err, out)
	}
	return string(out)
}
