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

// compiledFiles are the names of the shared objects that nginx's own modules become (auto/modules, 1.26), of those whose
// name is not ngx_http_NAME_module.
var compiledFiles = map[string]string{
	"xslt": "ngx_http_xslt_filter_module", "image_filter": "ngx_http_image_filter_module", "stream": "ngx_stream_module", "mail": "ngx_mail_module",
}

func compiledModules(r lab.Recipe) []string {
	var files []string
	for _, name := range r.Dynamic {
		file := compiledFiles[name]
		if file == "" {
			file = "ngx_http_" + name + "_module"
		}
		files = append(files, path.Join("modules", file+".so"))
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

// Packages are those of the distribution that a packaged build is taken out of: of modules that have packages of their
// own, these too, each once.
func Packages(r lab.Recipe) []string {
	list := slices.Clone(r.Package)
	add := func(name string) {
		if !slices.Contains(list, packagePrefix+name) {
			list = append(list, packagePrefix+name)
		}
	}
	if len(list) == 0 || !r.IsNginx() {
		return list
	}
	for _, module := range r.Modules {
		if name := modulePackages[module]; name != "" {
			add(name)
		}
	}
	if slices.Contains(list, packagePrefix+"http-lua") || slices.Contains(list, packagePrefix+"http-set-misc") {
		add("http-ndk")
	}
	return list
}

// modulePackages are the ends of the names of the packages that Debian has modules in which are compiled into nginx
// elsewhere.
var modulePackages = map[string]string{
	"echo": "http-echo", "xslt": "http-xslt-filter", "image_filter": "http-image-filter", "geoip": "http-geoip", "perl": "http-perl",
	"stream": "stream", "mail": "mail",
}
