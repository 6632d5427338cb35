package build_test

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"ngxlab/agent/build"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// TestRealNginxIsPatchedAndCompiledByAnotherUser makes a small nginx of the distribution's source: Debian's patches, a module
// of its own as a shared object, flags for the compiler.
func TestRealNginxIsPatchedAndCompiledByAnotherUser(t *testing.T) {
	testlab.Require(t, "cc", "make", "patch", "apt-get", "xz")
	r := server.Recipe(lab.Recipe{
		Name: "real", Flavor: lab.FlavorNginx, Patches: true, CFlags: "-O0", Modules: []string{"stub_status", "echo"}, Dynamic: []string{"echo"},
		Configure: []string{"--without-http_gzip_module", "--without-http_rewrite_module", "--without-http_proxy_module", "--without-http_fastcgi_module"},
		Sources:   []lab.BuildSource{{Debian: "nginx"}},
	})
	b, err := build.Cache{Dir: testlab.StateDir(t)}.Build(t.Context(), r, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.Configured, "nginx version: nginx/"+b.Version) || !strings.Contains(b.Configured, "-O0") || len(b.Sources) < 3 {
		t.Errorf("version %q of %s, sources %v", b.Version, b.Configured, b.Sources)
	}
	if !slices.Contains(b.Modules, "ngx_http_stub_status_module") || slices.Contains(b.Modules, "ngx_http_proxy_module") || !slices.IsSorted(b.Modules) {
		t.Errorf("modules of the binary: %v", b.Modules)
	}
	if !slices.Equal(b.Dynamic, []string{"modules/ngx_http_echo_module.so"}) {
		t.Errorf("shared objects: %v", b.Dynamic)
	}
	if os.Geteuid() == 0 && b.MadeBy != "nobody" {
		t.Errorf("made by %s, notes %q", b.MadeBy, b.Notes)
	}
	log, err := os.ReadFile(b.Log)
	if err != nil || !strings.Contains(string(log), "checking for OS") {
		t.Errorf("log of %d bytes, %v", len(log), err)
	}
}
