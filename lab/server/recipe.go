package server

import (
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// Recipe returns the recipe with Flags and Packages filled in: the configure command line, and the packages, named
// as Debian names them, that compiling needs. nginx's own default module set is kept, so that results stand for what
// people run; modules and flags that the recipe asks for are added. The binary is never installed: started with -p,
// it resolves every path against the fresh directory of its server, and it writes its first errors to stderr.
func Recipe(r lab.Recipe) lab.Recipe {
	flags := []string{"--error-log-path=stderr"}
	for _, m := range r.Modules {
		flags = append(flags, moduleFlag(m))
	}
	r.Flags = append(flags, r.Configure...)
	r.Packages = packages(r)
	return r
}

// moduleFlag is the configure flag of a module: stub_status and other modules of nginx's own as
// --with-http_…_module; echo is unpacked beside the server's source.
func moduleFlag(name string) string {
	if name == "echo" {
		return "--add-module=../echo"
	}
	return "--with-http_" + name + "_module"
}

// packages needed to compile. nginx uses PCRE2 since 1.21.5.
func packages(r lab.Recipe) []string {
	pcre := "libpcre2-dev"
	if older(r.Version, 1, 21, 5) {
		pcre = "libpcre3-dev"
	}
	list := []string{"gcc", "libc6-dev", "make", pcre, "zlib1g-dev"}
	if slices.ContainsFunc(r.Flags, func(f string) bool { return strings.Contains(f, "ssl_module") || strings.Contains(f, "openssl") }) {
		list = append(list, "libssl-dev")
	}
	if r.Patches {
		list = append(list, "patch", "tar", "xz-utils")
	}
	if slices.ContainsFunc(append(slices.Clone(r.Sources), r.Echo...), func(s lab.BuildSource) bool { return s.Git != "" }) {
		list = append(list, "git")
	}
	return list
}

// older reports whether a version such as "1.16.1" is known and below the numbers given.
func older(version string, than ...int) bool {
	for i, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || i >= len(than) {
			return false
		}
		if n != than[i] {
			return n < than[i]
		}
	}
	return false
}
