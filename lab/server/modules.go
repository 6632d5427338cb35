package server

import (
	"path"
	"slices"
	"strings"

	"ngxlab/lab"
)

// DynamicModules are the modules that the configuration of a server of this recipe loads, relative to the directory of the
// build, in the order of loading. None of an installed server: only its host knows where they are.
func DynamicModules(r lab.Recipe) []string {
	switch {
	case !r.IsNginx() || r.Installed != "":
		return nil
	case len(r.Package) > 0:
		return packagedModules(r)
	}
	return compiledModules(r)
}

// module is one of nginx's own that a recipe may ask for (auto/options and auto/modules of nginx 1.26; CHANGES).
type module struct {
	name    string
	flag    string // "" = --with-http_NAME_module
	since   string // "" = 1.6.0 has it
	until   string // the first version without it; "" = there is none
	dynamic string // name of the shared object; "" = always linked in
	library string // package that it is compiled with
}

var modules = []module{
	{name: "stub_status"}, {name: "ssl"}, {name: "v2", since: "1.9.5"}, {name: "v3", since: "1.25.0"}, {name: "spdy", until: "1.9.5"},
	{name: "realip"}, {name: "addition"}, {name: "sub"}, {name: "dav"}, {name: "flv"}, {name: "mp4"}, {name: "gunzip"}, {name: "gzip_static"},
	{name: "auth_request"}, {name: "random_index"}, {name: "secure_link"}, {name: "degradation"}, {name: "slice", since: "1.9.8"},
	{name: "xslt", dynamic: "ngx_http_xslt_filter_module", library: "libxslt1-dev"},
	{name: "image_filter", dynamic: "ngx_http_image_filter_module", library: "libgd-dev"},
	{name: "geoip", dynamic: "ngx_http_geoip_module", library: "libgeoip-dev"},
	{name: "perl", dynamic: "ngx_http_perl_module", library: "libperl-dev"},
	{name: "stream", flag: "--with-stream", since: "1.9.0", dynamic: "ngx_stream_module"},
	{name: "stream_ssl", flag: "--with-stream_ssl_module", since: "1.9.0"},
	{name: "stream_realip", flag: "--with-stream_realip_module", since: "1.11.4"},
	{name: "stream_ssl_preread", flag: "--with-stream_ssl_preread_module", since: "1.11.5"},
	{name: "stream_geoip", flag: "--with-stream_geoip_module", since: "1.11.3", dynamic: "ngx_stream_geoip_module", library: "libgeoip-dev"},
	{name: "mail", flag: "--with-mail", dynamic: "ngx_mail_module"}, {name: "mail_ssl", flag: "--with-mail_ssl_module"},
	{name: "threads", flag: "--with-threads", since: "1.7.11"}, {name: "file-aio", flag: "--with-file-aio"},
	{name: "pcre-jit", flag: "--with-pcre-jit"}, {name: "compat", flag: "--with-compat", since: "1.11.5"}, {name: "debug", flag: "--with-debug"},
	{name: "echo", flag: "--add-module=../echo", dynamic: "ngx_http_echo_module"},
}

// always are modules that every nginx has unless a configure flag takes it out (auto/options).
var always = []string{
	"access", "auth_basic", "autoindex", "browser", "charset", "core", "empty_gif", "fastcgi", "geo", "grpc", "gzip", "headers", "index", "limit_conn",
	"limit_req", "log", "map", "memcached", "mirror", "proxy", "referer", "rewrite", "scgi", "split_clients", "ssi", "static", "upstream", "userid", "uwsgi",
}

func moduleNamed(name string) (module, bool) {
	for _, m := range modules {
		if m.name == name {
			return m, true
		}
	}
	return module{}, false
}

// moduleNames are those that a recipe may ask for.
func moduleNames() []string {
	var names []string
	for _, m := range modules {
		names = append(names, m.name)
	}
	return names
}

func compiledModules(r lab.Recipe) []string {
	var files []string
	for _, name := range r.Dynamic {
		if m, known := moduleNamed(name); known && m.dynamic != "" {
			files = append(files, path.Join("modules", m.dynamic+".so"))
		}
	}
	for _, m := range r.Added {
		if m.Dynamic {
			files = append(files, path.Join("modules", addedFile(m.Name)+".so"))
		}
	}
	return loadOrder(files)
}

// addedFiles are the names of the shared objects of modules that people add (ngx_addon_name or ngx_module_name in the
// config file of their sources), of those whose name is not ngx_http_NAME_module.
var addedFiles = map[string]string{
	"headers-more": "ngx_http_headers_more_filter_module", "headers-more-nginx-module": "ngx_http_headers_more_filter_module",
	"ndk": "ndk_http_module", "ngx_devel_kit": "ndk_http_module", "brotli": "ngx_http_brotli_filter_module", "ngx_brotli": "ngx_http_brotli_filter_module",
}

func addedFile(name string) string {
	if file := addedFiles[name]; file != "" {
		return file
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "-module"), "-nginx")
	name = strings.TrimPrefix(strings.TrimPrefix(strings.ReplaceAll(name, "-", "_"), "ngx_"), "http_")
	return "ngx_http_" + strings.TrimSuffix(name, "_module") + "_module"
}

// packagePrefix begins the names of Debian's packages of modules of nginx.
const packagePrefix = "libnginx-mod-"

// packagedModules are in Debian's packages, each under its package's name (debian/libnginx-mod.abisubstvars and
// debian/*.install of nginx 1.22; the development kit alone has another).
func packagedModules(r lab.Recipe) []string {
	var files []string
	for _, name := range Packages(r) {
		module, is := strings.CutPrefix(name, packagePrefix)
		file := "ngx_" + strings.ReplaceAll(module, "-", "_") + "_module"
		if module == "http-ndk" {
			file = "ndk_http_module"
		}
		if is {
			files = append(files, path.Join("usr/lib/nginx/modules", file+".so"))
		}
	}
	return loadOrder(files)
}

// first are modules that others need, before all others.
var first = []string{"ndk_http_module.so", "ngx_stream_module.so", "ngx_mail_module.so"}

// loadOrder puts the modules that others need first; the others stay in their order.
func loadOrder(files []string) []string {
	slices.SortStableFunc(files, func(a, b string) int { return rank(a) - rank(b) })
	return files
}

func rank(file string) int {
	if at := slices.Index(first, path.Base(file)); at >= 0 {
		return at
	}
	return len(first)
}
