package experiments

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// Patterns of what builds are made of. Packages are named as Debian names them (policy 5.6.1); compilers are commands or
// absolute paths.
const (
	packagePattern  = `^[a-z0-9][a-z0-9+.-]+$`
	modulePattern   = `^[a-z][a-z0-9_-]*$`
	versionPattern  = `^[0-9][0-9A-Za-z.+~-]*$`
	compilerPattern = `^[A-Za-z0-9/][A-Za-z0-9+./_-]*$`
)

var (
	packageName = matching("a package by its Debian name", packagePattern)
	moduleName  = matching("the name of a module, such as ssl", modulePattern)
	absolute    = matching("an absolute path", `^/.`)
)

// versionText is a version as it is written: 0.60 has a nought at its end.
var versionText = value[string]{schema{"type": []string{"string", "number"}, "pattern": versionPattern}, matching("a version such as 1.26.3", versionPattern).read}

// recipe is how a server is had; what is left out is filled in by filledRecipe, once the kind of build is known.
var recipe = object(func() lab.Recipe { return lab.Recipe{} },
	has("flavor", "nginx (default), tengine, brpc (the HTTP server among its examples) or custom: any other server", oneOf(lab.FlavorNginx, lab.FlavorTengine, lab.FlavorBrpc, lab.FlavorCustom),
		func(r *lab.Recipe) *string { return &r.Flavor }),
	has("version", "default: the one that the source has; of Tengine it tells where the binary is", versionText, func(r *lab.Recipe) *string { return &r.Version }),
	has("source", "where the source comes from, tried in order; default of nginx {debian: nginx}", list(source), func(r *lab.Recipe) *[]lab.BuildSource { return &r.Sources }),
	has("package", "instead of source: packages of the distribution, the first with the server; they are unpacked beside each other, and not installed",
		list(packageName), func(r *lab.Recipe) *[]string { return &r.Package }),
	has("suite", "of package, default the host's own", nameText, func(r *lab.Recipe) *string { return &r.Suite }),
	has("installed", "instead of source: the absolute path of a server that the host has", absolute, func(r *lab.Recipe) *string { return &r.Installed }),
	has("modules", "nginx's own as in --with-http_NAME_module (stub_status, ssl, v2, v3 …), stream, mail, threads, file-aio, and echo; default stub_status and echo, of a package stub_status",
		list(moduleName), func(r *lab.Recipe) *[]string { return &r.Modules }),
	has("dynamic", "of the modules: those built as shared objects, and loaded", list(moduleName), func(r *lab.Recipe) *[]string { return &r.Dynamic }),
	has("add_modules", "further modules with sources of their own", listOnly(addedModule), func(r *lab.Recipe) *[]lab.Module { return &r.Added }),
	has("echo_version", "of the echo module, default the one that its source has", versionText, func(r *lab.Recipe) *string { return &r.EchoWants }),
	has("echo_source", "where the echo module's source comes from; default the distribution's", list(source), func(r *lab.Recipe) *[]lab.BuildSource { return &r.Echo }),
	has("configure", "further flags of ./configure", list(text), func(r *lab.Recipe) *[]string { return &r.Configure }),
	has("compiler", "a command such as gcc-12 or clang, or an absolute path; default the host's cc", matching("a command or an absolute path", compilerPattern),
		func(r *lab.Recipe) *string { return &r.Compiler }),
	has("cflags", "for the compiler, beside nginx's own", text, func(r *lab.Recipe) *string { return &r.CFlags }),
	has("ldflags", "for the linker, beside nginx's own", text, func(r *lab.Recipe) *string { return &r.LDFlags }),
	has("patches", "true: apply the Debian patches", boolean, func(r *lab.Recipe) *bool { return &r.Patches }),
	has("timeout", "of each command that builds, default 1h", buildTime, func(r *lab.Recipe) *lab.Duration { return &r.Timeout }),
	has("packages", "further packages that building needs, by their Debian names", list(packageName), func(r *lab.Recipe) *[]string { return &r.Packages }),
	has("make", "of a custom build: the commands that make it, run in the folder of its source", listOnly(argv), func(r *lab.Recipe) *[][]string { return &r.Make }),
	has("keep", "of a custom build: files and folders of its source that the server needs beside it", list(text), func(r *lab.Recipe) *[]string { return &r.Keep }),
	has("binary", "of a custom build: the finished server, relative to the folder of its source, or to the root of its packages", text, func(r *lab.Recipe) *string { return &r.Binary }),
	has("command", "how the server is started; default as nginx is, or as server.command says", pointer(serverCommand), func(r *lab.Recipe) **lab.ServerCommand { return &r.Command }),
)

var addedModule = object(func() lab.Module { return lab.Module{} },
	has("name", "its source is unpacked into module-NAME, beside the server's", nameText, func(m *lab.Module) *string { return &m.Name }).must(),
	has("version", "that the source must have", versionText, func(m *lab.Module) *string { return &m.Version }),
	has("source", "where it comes from, tried in order", list(source), func(m *lab.Module) *[]lab.BuildSource { return &m.Sources }).must(),
	has("dynamic", "true: build a shared object, and load it", boolean, func(m *lab.Module) *bool { return &m.Dynamic }),
)

var source = object(func() lab.BuildSource { return lab.BuildSource{} },
	has("url", "an archive, with sha256", matching("an http or https URL", `^https?://[^\s/]+/[^\s]+$`), func(s *lab.BuildSource) *string { return &s.URL }),
	has("sha256", "of the archive, 64 hex digits", matching("64 hex digits", sha256Pattern), func(s *lab.BuildSource) *string { return &s.SHA256 }),
	has("path", "an archive (tar.gz, tar.xz, tar.bz2, tar, zip) or directory on the host, absolute", absolute, func(s *lab.BuildSource) *string { return &s.Path }),
	has("git", "a repository, with commit", text, func(s *lab.BuildSource) *string { return &s.Git }),
	has("commit", "of the repository, 40 hex digits", matching("40 hex digits", commitPattern), func(s *lab.BuildSource) *string { return &s.Commit }),
	has("debian", "a Debian source package", nameText, func(s *lab.BuildSource) *string { return &s.Debian }),
	has("suite", "of the source package, default the host's own", nameText, func(s *lab.BuildSource) *string { return &s.Suite }),
	has("version", "upstream version of the source package, default the newest", versionText, func(s *lab.BuildSource) *string { return &s.Version }),
	has("text", "of a custom build: the source itself, as texts by their path", relativeFiles, func(s *lab.BuildSource) *map[string]string { return &s.Text }),
)

// The bounds of the time-out of one command that builds.
const (
	shortestBuild = 10 * time.Second
	longestBuild  = 24 * time.Hour
)

var buildTime = value[lab.Duration]{duration.schema, func(d *decoding, path string, n ast.Node) (lab.Duration, bool) {
	t, ok := duration.read(d, path, n)
	if ok && (t.Duration < shortestBuild || t.Duration > longestBuild) {
		d.wrong(n, "a duration from 10s to 24h", "nginx takes about a minute on two cores")
		return lab.Duration{}, false
	}
	return t, ok
}}

// filledRecipe has the defaults of its kind of build.
func filledRecipe(r lab.Recipe) lab.Recipe {
	if r.Flavor == "" {
		r.Flavor = lab.FlavorNginx
	}
	plain := newRecipe()
	switch {
	case !r.IsNginx() || r.Installed != "":
		return r
	case len(r.Package) > 0:
		plain.Modules = []string{"stub_status"}
	case len(r.Sources) == 0 && r.Flavor == lab.FlavorNginx:
		r.Sources = plain.Sources
	}
	if len(r.Modules) == 0 {
		r.Modules = plain.Modules
	}
	return r
}
