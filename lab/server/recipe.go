package server

import (
	"slices"
	"strings"

	"ngxlab/lab"
)

// Recipe returns the recipe with what its flavor and its version ask for: the configure command line, the commands that
// make it, the place of the binary, the packages, named as Debian names them, and the remedies of old sources. A recipe
// that is complete stays as it is. What cannot be built is told by Faults.
//
// nginx's own default module set is kept, so that results stand for what people run; modules and flags that the recipe
// asks for are added. The binary is never installed: started with -p, it resolves every path against the fresh directory
// of its server, and it writes its first errors to stderr.
func Recipe(r lab.Recipe) lab.Recipe {
	if r.Flavor == "" {
		r.Flavor = lab.FlavorNginx
	}
	switch {
	case r.Installed != "":
	case len(r.Package) > 0:
		r.Package, r.Binary = Packages(r), packagedBinary(r)
	case r.Flavor == lab.FlavorBrpc:
		r = brpc(r)
	case r.IsNginx():
		r.Flags, r.Binary, r.Remedies = flagsOf(r), compiledBinary(r), remediesOf(r)
		r.Packages = united(toBuild(r), r.Packages)
	default:
		r.Packages = united(r.Packages, toFetch(r))
	}
	return r
}

// packagedBinary is the server in Debian's packages of nginx, and what the recipe says of others.
func packagedBinary(r lab.Recipe) string {
	if r.Binary == "" && r.IsNginx() {
		return "usr/sbin/nginx"
	}
	return r.Binary
}

// compiledBinary is where make leaves the server: Tengine's is named after itself since 3.0. "" when that depends on a
// version that only the source knows.
func compiledBinary(r lab.Recipe) string {
	switch {
	case r.Flavor == lab.FlavorNginx, r.Version != "" && older(r.Version, 3, 0, 0):
		return "objs/nginx"
	case r.Version == "":
		return ""
	}
	return "objs/tengine"
}

// flagsOf is the command line after ./configure. Each is one argument, whatever spaces it has.
func flagsOf(r lab.Recipe) []string {
	flags := []string{"--error-log-path=stderr"}
	for _, name := range r.Modules {
		flags = append(flags, moduleFlag(name, slices.Contains(r.Dynamic, name)))
	}
	for _, m := range r.Added {
		flags = append(flags, addFlag("../module-"+m.Name, m.Dynamic))
	}
	for _, of := range []struct{ flag, value string }{{"--with-cc=", r.Compiler}, {"--with-cc-opt=", r.CFlags}, {"--with-ld-opt=", r.LDFlags}} {
		if of.value != "" {
			flags = append(flags, of.flag+of.value)
		}
	}
	return append(flags, r.Configure...)
}

// moduleFlag is the configure flag of a module. echo is unpacked beside the server's source.
func moduleFlag(name string, dynamic bool) string {
	if name == "echo" {
		return addFlag("../echo", dynamic)
	}
	flag := "--with-http_" + name + "_module"
	if m, known := moduleNamed(name); known && m.flag != "" {
		flag = m.flag
	}
	if dynamic {
		flag += "=dynamic"
	}
	return flag
}

func addFlag(dir string, dynamic bool) string {
	if dynamic {
		return "--add-dynamic-module=" + dir
	}
	return "--add-module=" + dir
}

// toBuild are the packages that compiling nginx needs. nginx uses PCRE2 since 1.21.5. The header crypt.h, which the C
// library has no more since glibc 2.28, comes with libcrypt-dev, which libc6-dev depends on since Debian 11.
func toBuild(r lab.Recipe) []string {
	pcre := "libpcre2-dev"
	if older(NginxVersion(r), 1, 21, 5) {
		pcre = "libpcre3-dev"
	}
	list := []string{"libc6-dev", "make", pcre, "zlib1g-dev"}
	if c := CompilerPackage(r); c != "" {
		list = slices.Insert(list, 0, c)
	}
	if encrypts(r) {
		list = append(list, "libssl-dev")
	}
	if flagged(r, "--with-openssl=") {
		list = append(list, "perl") // OpenSSL's own ./config is a program in it
	}
	for _, name := range r.Modules {
		if m, known := moduleNamed(name); known && m.library != "" {
			list = append(list, m.library)
		}
	}
	if r.Patches {
		list = append(list, "patch", "tar", "xz-utils")
	}
	return united(list, toFetch(r))
}

// CompilerPackage is the package of the compiler that a recipe names: as the command is called, in Debian. "" of one
// that is named by its path.
func CompilerPackage(r lab.Recipe) string {
	switch {
	case r.Compiler == "" || r.Compiler == "cc":
		return "gcc"
	case strings.Contains(r.Compiler, "/"):
		return ""
	}
	return r.Compiler
}

// toFetch are the packages that getting the sources needs.
func toFetch(r lab.Recipe) []string {
	var list []string
	for _, s := range allSources(r) {
		if strings.HasSuffix(s.Path, ".xz") || strings.HasSuffix(s.URL, ".xz") {
			list = append(list, "xz-utils")
		}
		if s.Git != "" {
			list = append(list, "git")
		}
	}
	return united(list, nil)
}

// allSources are those of the server and of its modules.
func allSources(r lab.Recipe) []lab.BuildSource {
	all := slices.Concat(r.Sources, r.Echo)
	for _, m := range r.Added {
		all = append(all, m.Sources...)
	}
	return all
}

// encrypts reports whether the build is linked with the OpenSSL of the distribution.
func encrypts(r lab.Recipe) bool {
	ssl := func(name string) bool { return slices.Contains([]string{"ssl", "v3", "mail_ssl", "stream_ssl"}, name) }
	if flagged(r, "--with-openssl=") {
		return false
	}
	return slices.ContainsFunc(r.Modules, ssl) || slices.ContainsFunc(r.Configure, func(f string) bool {
		return strings.Contains(f, "ssl_module") || strings.Contains(f, "http_v3_module")
	})
}

// flagged reports whether a configure flag of the recipe begins so.
func flagged(r lab.Recipe, begin string) bool {
	return slices.ContainsFunc(r.Configure, func(f string) bool { return strings.HasPrefix(f, begin) })
}

// united is both lists, each name once, in their order.
func united(a, b []string) []string {
	var all []string
	for _, name := range slices.Concat(a, b) {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
