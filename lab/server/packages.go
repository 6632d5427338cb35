package server

import (
	"slices"

	"ngxlab/lab"
)

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

// Lacks reports whether a build of nginx is known to lack a module: one that neither its modules nor its configure flags
// name, of a package one that has a package of its own, and of an installed server none, which only its host knows.
func Lacks(r lab.Recipe, module string) bool {
	m, known := moduleNamed(module)
	asked := known && m.flag != "" && slices.Contains(r.Configure, m.flag)
	return r.IsNginx() && !asked && !has(r, module)
}
