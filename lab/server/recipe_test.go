package server

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestRecipeOfEveryFlavorIsCompleteAndStaysSo(t *testing.T) {
	for _, c := range []struct {
		name             string
		recipe           lab.Recipe
		binary           string
		flags, notFlags  []string
		packages         []string
		dynamic, removed []string
	}{
		{"nginx", lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.26.3", Modules: []string{"stub_status", "echo", "ssl", "v2", "v3", "stream", "threads", "file-aio", "xslt", "image_filter", "geoip"},
			Dynamic: []string{"xslt", "echo", "stream", "geoip"}, Compiler: "gcc-12", CFlags: "-O3 -march=native", LDFlags: "-Wl,-z,now", Packages: []string{"jq", "make"},
			Added:     []lab.Module{{Name: "headers-more", Dynamic: true}, {Name: "own"}, {Name: "ndk", Dynamic: true}},
			Configure: []string{"--with-pcre-jit"}},
			"objs/nginx",
			[]string{"--with-http_stub_status_module", "--add-dynamic-module=../echo", "--with-http_ssl_module", "--with-http_v2_module", "--with-http_v3_module", "--with-stream=dynamic",
				"--with-threads", "--with-file-aio", "--with-http_xslt_module=dynamic", "--with-http_image_filter_module", "--add-dynamic-module=../module-headers-more",
				"--add-module=../module-own", "--with-cc=gcc-12", "--with-cc-opt=-O3 -march=native", "--with-ld-opt=-Wl,-z,now", "--with-pcre-jit"},
			[]string{"--add-module=../echo", "--with-http_echo_module"},
			[]string{"gcc-12", "libc6-dev", "make", "libpcre2-dev", "zlib1g-dev", "libssl-dev", "libxslt1-dev", "libgd-dev", "libgeoip-dev", "jq"},
			[]string{"modules/ndk_http_module.so", "modules/ngx_stream_module.so", "modules/ngx_http_xslt_filter_module.so", "modules/ngx_http_echo_module.so", "modules/ngx_http_geoip_module.so", "modules/ngx_http_headers_more_filter_module.so"},
			nil},
		{"old nginx from an xz archive and a repository", lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.6.2", Modules: []string{"stub_status"}, Compiler: "clang",
			Sources: []lab.BuildSource{{Path: "/src/nginx-1.6.2.tar.xz"}}, Added: []lab.Module{{Name: "own", Sources: []lab.BuildSource{{Git: "x"}}}}},
			"objs/nginx", []string{"--with-cc=clang"}, nil, []string{"clang", "libc6-dev", "make", "libpcre3-dev", "zlib1g-dev", "xz-utils", "git"}, nil, []string{"libpcre2-dev", "gcc"}},
		{"compiler at a path, OpenSSL of its own", lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.8.1", Compiler: "/opt/gcc/bin/gcc", Modules: []string{"ssl"}, Configure: []string{"--with-openssl=/src/openssl-1.0.2u"}},
			"objs/nginx", nil, nil, []string{"libc6-dev", "make", "libpcre3-dev", "zlib1g-dev", "perl"}, nil, nil},
		{"Tengine 2", lab.Recipe{Flavor: lab.FlavorTengine, Version: "2.1.0"}, "objs/nginx", nil, nil, []string{"gcc", "libc6-dev", "make", "libpcre3-dev", "zlib1g-dev"}, nil, nil},
		{"Tengine 3", lab.Recipe{Flavor: lab.FlavorTengine, Version: "3.1.0"}, "objs/tengine", nil, nil, []string{"gcc", "libc6-dev", "make", "libpcre2-dev", "zlib1g-dev"}, nil, nil},
		{"Tengine of unknown version", lab.Recipe{Flavor: lab.FlavorTengine}, "", nil, nil, []string{"gcc", "libc6-dev", "make", "libpcre2-dev", "zlib1g-dev"}, nil, nil},
		{"package", lab.Recipe{Flavor: lab.FlavorNginx, Package: []string{"nginx", "libnginx-mod-http-lua"}, Modules: []string{"stub_status", "echo"}},
			"usr/sbin/nginx", nil, nil, nil, []string{"usr/lib/nginx/modules/ndk_http_module.so", "usr/lib/nginx/modules/ngx_http_lua_module.so", "usr/lib/nginx/modules/ngx_http_echo_module.so"}, nil},
		{"package of another server", lab.Recipe{Flavor: lab.FlavorCustom, Package: []string{"apache2-bin"}, Binary: "usr/sbin/apache2"}, "usr/sbin/apache2", nil, nil, nil, nil, nil},
		{"installed", lab.Recipe{Flavor: lab.FlavorNginx, Installed: "/usr/sbin/nginx"}, "", nil, nil, nil, nil, nil},
		{"custom", lab.Recipe{Flavor: lab.FlavorCustom, Packages: []string{"golang-go"}, Binary: "server"}, "server", nil, nil, []string{"golang-go"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Recipe(c.recipe)
			if again := Recipe(r); !reflect.DeepEqual(again, r) {
				t.Errorf("a complete recipe changes from %+v to %+v", r, again)
			}
			if r.Binary != c.binary || !slices.Equal(r.Packages, c.packages) || !slices.Equal(DynamicModules(r), c.dynamic) {
				t.Errorf("binary %q, packages %q, to load %q", r.Binary, r.Packages, DynamicModules(r))
			}
			for _, f := range c.flags {
				if !slices.Contains(r.Flags, f) {
					t.Errorf("no flag %q in %q", f, r.Flags)
				}
			}
			for _, f := range c.notFlags {
				if slices.Contains(r.Flags, f) {
					t.Errorf("flag %q", f)
				}
			}
			if f := Faults(r); len(f) > 0 && c.name != "old nginx from an xz archive and a repository" {
				t.Errorf("faults %+v", f)
			}
		})
	}
}

func TestModuleWithAPackageOfItsOwnIsTakenWhenAsked(t *testing.T) {
	r := Recipe(lab.Recipe{Flavor: lab.FlavorNginx, Package: []string{"nginx"}, Modules: []string{"stub_status"}})
	if !slices.Equal(r.Package, []string{"nginx"}) || !Lacks(r, "echo") || Lacks(r, "ssl") {
		t.Errorf("packages %q", r.Package)
	}
	r.Modules = []string{"stub_status", "echo"}
	if r = Recipe(r); !slices.Equal(r.Package, []string{"nginx", "libnginx-mod-http-echo"}) || Lacks(r, "echo") {
		t.Errorf("packages %q", r.Package)
	}
}

func TestBrpcIsMadeWithItsExampleAndCounts(t *testing.T) {
	r := Recipe(lab.Recipe{Flavor: lab.FlavorBrpc, Sources: []lab.BuildSource{{Path: "/src/brpc"}}})
	if r.Binary != "example/http_c++/build/http_server" || r.Command == nil || r.Command.Count == nil || len(r.Make) != 5 || !slices.Contains(r.Packages, "libgflags-dev") {
		t.Errorf("recipe %+v", r)
	}
	own := &lab.ServerCommand{Start: []string{"x"}}
	if r := Recipe(lab.Recipe{Flavor: lab.FlavorBrpc, Command: own}); r.Command != own {
		t.Error("the command of the recipe is replaced")
	}
}

func TestRemediesAreThoseThatAVersionMayNeed(t *testing.T) {
	for _, c := range []struct {
		recipe lab.Recipe
		want   []string
	}{
		{lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.6.2"}, []string{"fall through", "cast-function-type", "current_salt", "MD5"}},
		{lab.Recipe{Flavor: lab.FlavorTengine, Version: "2.1.0"}, []string{"fall through", "cast-function-type", "current_salt", "MD5"}},
		{lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.14.2", Modules: []string{"ssl"}}, []string{"cast-function-type", "current_salt", "ENGINE_by_id"}},
		{lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.18.0"}, nil},
		{lab.Recipe{Flavor: lab.FlavorNginx, Version: "1.18.0", Modules: []string{"ssl"}}, []string{"ENGINE_by_id"}},
		{lab.Recipe{Flavor: lab.FlavorTengine, Version: "3.1.0", Modules: []string{"ssl"}}, nil},
		{lab.Recipe{Flavor: lab.FlavorNginx}, []string{"fall through", "cast-function-type", "current_salt", "MD5"}},
		{lab.Recipe{Flavor: lab.FlavorCustom}, nil},
	} {
		got := Recipe(c.recipe).Remedies
		for i, m := range got {
			if i >= len(c.want) || !strings.Contains(m.Why, c.want[i]) {
				t.Errorf("%s %s: remedy %q, want %q", c.recipe.Flavor, c.recipe.Version, m.Why, c.want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s %s: %d remedies, want %q", c.recipe.Flavor, c.recipe.Version, len(got), c.want)
		}
	}
}

func TestWhatCannotBeBuiltIsToldWithACure(t *testing.T) {
	for _, c := range []struct {
		recipe            lab.Recipe
		key, reason, cure string
	}{
		{lab.Recipe{Version: "1.4.7"}, "version", "nginx 1.4.7 is older than 1.6.0", "1.6.0 or newer"},
		{lab.Recipe{Flavor: lab.FlavorTengine, Version: "1.5.2"}, "version", "Tengine 1.5.2 is older than 2.1.0", "2.1.0"},
		{lab.Recipe{Version: "1.26.3", Modules: []string{"ssl", "stub_statsu"}}, "modules[1]", `invalid option "--with-http_stub_statsu_module"; the nearest known is "stub_status"`, "add_modules"},
		{lab.Recipe{Package: []string{"nginx"}, Modules: []string{"headers_more"}}, "modules[0]", "unknown module", "libnginx-mod-"},
		{lab.Recipe{Modules: []string{"gzip"}}, "modules[0]", "every nginx has the module gzip", "leave it out"},
		{lab.Recipe{Version: "1.24.0", Modules: []string{"v3"}}, "modules[0]", "since 1.25.0", "newer"},
		{lab.Recipe{Version: "1.8.1", Modules: []string{"v2"}}, "modules[0]", "since 1.9.5", "spdy"},
		{lab.Recipe{Version: "1.22.1", Modules: []string{"spdy"}}, "modules[0]", "no module spdy since 1.9.5", "v2"},
		{lab.Recipe{Version: "1.26.3", Modules: []string{"ssl"}, Dynamic: []string{"ssl"}}, "dynamic[0]", "cannot be dynamic", "leave it out"},
		{lab.Recipe{Version: "1.26.3", Dynamic: []string{"echo"}}, "dynamic[0]", "not among the modules", "add it"},
		{lab.Recipe{Version: "1.8.1", Modules: []string{"echo"}, Dynamic: []string{"echo"}}, "dynamic[0]", "since 1.9.11", "newer"},
		{lab.Recipe{Flavor: lab.FlavorTengine, Version: "2.2.3", Added: []lab.Module{{Name: "x", Dynamic: true}}}, "add_modules[0]", "Tengine 2.2.3 (nginx 1.8.1)", "newer"},
		{lab.Recipe{CFlags: "-O3", Configure: []string{"--with-cc-opt=-O2"}}, "cflags", "the same thing", "one of them"},
		{lab.Recipe{Flavor: lab.FlavorTengine, Version: "2.1.0", Modules: []string{"ssl"}}, "modules", "cannot be compiled with OpenSSL 1.1", "--with-openssl=DIR"},
	} {
		faults := Faults(Recipe(c.recipe))
		if len(faults) != 1 || faults[0].Key != c.key || !strings.Contains(faults[0].Reason, c.reason) || !strings.Contains(faults[0].Cure, c.cure) {
			t.Errorf("%+v: faults %+v", c.recipe, faults)
		}
	}
}
