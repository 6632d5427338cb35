package build

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestInstalledServerStaysWhereItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nginx")
	write(t, path, "#!/bin/sh\necho nginx version: nginx/1.2.3\necho configure arguments: --with-http_ssl_module --modules-path="+filepath.Dir(path)+"\n")
	write(t, filepath.Join(filepath.Dir(path), "ngx_http_echo_module.so"), "")
	c, r := Cache{Dir: stateDir(t)}, lab.Recipe{Name: "here", Flavor: lab.FlavorNginx, Installed: path, Modules: []string{"ssl", "echo"}}
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil || b.Binary != path || b.Dir != "" || b.Version != "1.2.3" || !slices.Equal(b.Dynamic, []string{filepath.Join(filepath.Dir(path), "ngx_http_echo_module.so")}) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := c.Export(t.Context(), b, io.Discard); err == nil || !strings.Contains(err.Error(), "installed on its host") {
		t.Errorf("export: %v", err)
	}
	r.Modules = []string{"geoip"}
	if _, err := c.Build(t.Context(), r, io.Discard); err == nil || !strings.Contains(err.Error(), "has no module geoip") {
		t.Errorf("error: %v", err)
	}
	write(t, path, "#!/bin/sh\necho nginx version: nginx/1.2.4\n")
	r.Modules = nil
	if other, err := c.Build(t.Context(), r, io.Discard); err != nil || other.ID == b.ID {
		t.Errorf("another binary: %+v, %v", other, err)
	}
}

// TestModulesOfAnInstalledServerAreCompiledInOrFoundOrMissing asks a server that is configured as Debian's is.
func TestModulesOfAnInstalledServerAreCompiledInOrFoundOrMissing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ngx_http_geoip_module", "ngx_http_headers_more_filter_module", "ngx_stream_module", "ndk_http_module", "ngx_http_echo_module"} {
		write(t, filepath.Join(dir, name+".so"), "")
	}
	b := lab.Build{Binary: "/usr/sbin/nginx", Configured: "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=" + dir +
		" --with-pcre-jit --with-threads --with-http_ssl_module --with-http_v2_module --add-dynamic-module=/b/http-geoip2 --with-http_geoip_module=dynamic" +
		" --with-stream=dynamic --with-http_xslt_module=dynamic --add-module=/b/nginx-lua-0.1"}
	b.Modules = lab.ConfiguredModules(b.Configured)
	for name, want := range map[string]string{
		"ssl": "", "v2": "", "threads": "", "pcre-jit": "", "lua": "", "geoip": "ngx_http_geoip_module.so", "stream": "ngx_stream_module.so",
		"headers-more": "ngx_http_headers_more_filter_module.so", "ndk": "ndk_http_module.so", "echo": "ngx_http_echo_module.so",
	} {
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got, err := installedModule(b, name); err != nil || got != want {
			t.Errorf("%s is at %q, want %q: %v", name, got, want, err)
		}
	}
	for _, name := range []string{"geoip2", "xslt", "http", "v3"} {
		if got, err := installedModule(b, name); err == nil {
			t.Errorf("%s is at %q, and is not there", name, got)
		}
	}
	order := loadOrder([]string{"/m/ngx_http_lua_module.so", "/m/ngx_stream_module.so", "/m/ndk_http_module.so"})
	if want := []string{"/m/ndk_http_module.so", "/m/ngx_stream_module.so", "/m/ngx_http_lua_module.so"}; !slices.Equal(order, want) {
		t.Errorf("loaded in the order %v, want %v", order, want)
	}
}

func TestInstalledServerThatIsNotNginxSaysItsVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server")
	write(t, path, "#!/bin/sh\necho \"server $1 4.5.6\"\n")
	r := lab.Recipe{Name: "own", Flavor: lab.FlavorCustom, Installed: path, Command: &lab.ServerCommand{Start: []string{path}, Version: []string{"{binary}", "says"}}}
	b, err := Cache{Dir: stateDir(t)}.Build(t.Context(), r, testLog{t})
	if err != nil || b.Version != "4.5.6" || b.Configured != "server says 4.5.6" || b.Binary != path || b.Dir != "" {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestInstalledServerThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "no such file", dir: "is no program", plain: "is no program", "usr/sbin/nginx": "no absolute path"} {
		_, err := Cache{Dir: stateDir(t)}.Build(t.Context(), lab.Recipe{Name: "here", Flavor: lab.FlavorNginx, Installed: path}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
