package experiments

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"ngxlab/lab"
)

func (d *decoding) checkBuilds(e lab.Experiment) {
	for _, name := range slices.Sorted(maps.Keys(e.Builds)) {
		d.checkRecipe("builds."+name, e.Builds[name])
		d.checkStart("builds."+name, e.Builds[name], e)
	}
	if e.Server.Build == "" {
		d.problem("server", "server: {build: NAME}", "there are %d builds: say which one the server is", len(e.Builds))
		return
	}
	d.checkBuild("server.build", e.Server.Build, e.Builds)
}

func (d *decoding) checkBuild(path, name string, builds map[string]lab.Recipe) {
	if _, ok := builds[name]; !ok {
		d.problem(path, suggestion(name, slices.Sorted(maps.Keys(builds))), "there is no build %q", name)
	}
}

// checkRecipe holds the keys of one build against each other.
func (d *decoding) checkRecipe(path string, r lab.Recipe) {
	if n := isSet(len(r.Sources) > 0) + isSet(len(r.Package) > 0) + isSet(r.Installed != ""); n != 1 {
		d.problem(path, "source is compiled, package is unpacked, installed is used where it is", "build %q needs exactly one of source, package and installed", r.Name)
		return
	}
	d.checkForeign(path, r)
	d.checkVersion(path, r)
	d.checkSources(path+".source", r.Sources, r.Flavor == lab.FlavorCustom)
	d.checkSources(path+".echo_source", r.Echo, false)
	d.checkModules(path, r)
	switch {
	case r.Suite != "" && len(r.Package) == 0:
		d.problem(path+".suite", "source: [{debian: nginx, suite: "+r.Suite+"}]", "suite belongs to package; that of a source package stands in its source")
	case r.Flavor == lab.FlavorBrpc && !r.Compiled():
		d.problem(path, "source: [{path: /src/brpc}]", "flavor brpc needs a source")
	case r.Flavor == lab.FlavorCustom:
		d.checkCustom(path, r)
	}
	for i, f := range r.Configure {
		if !strings.HasPrefix(f, "--") || strings.HasPrefix(f, "--builddir") || f == "--help" {
			d.problem(fmt.Sprintf("%s.configure[%d]", path, i), "give the flags of ./configure, each in an element of its own", "%q is no flag that the build could have", f)
		}
	}
}

// The keys that only some builds have.
var (
	nginxKeys    = []string{"modules", "dynamic", "add_modules", "echo_version", "echo_source", "configure", "compiler", "cflags", "ldflags", "patches"}
	customKeys   = []string{"make", "keep", "binary"}
	compiledKeys = []string{"dynamic", "add_modules", "echo_version", "echo_source", "configure", "compiler", "cflags", "ldflags", "patches", "timeout", "packages", "make", "keep"}
)

// checkForeign refuses the keys of other kinds of builds.
func (d *decoding) checkForeign(path string, r lab.Recipe) {
	refuse := func(keys []string, whose string) {
		for _, k := range keys {
			if d.given(path + "." + k) {
				d.problem(path+"."+k, "leave it out", "%s belongs to %s, and build %q is not", k, whose, r.Name)
			}
		}
	}
	switch {
	case !r.IsNginx():
		refuse(nginxKeys, "builds of nginx and Tengine")
	case r.Compiled():
		refuse(customKeys, "builds of flavor custom")
	}
	switch {
	case r.Compiled():
	case r.IsNginx():
		refuse(compiledKeys, "builds from a source")
	default:
		refuse([]string{"timeout", "packages", "make", "keep"}, "builds from a source")
	}
	if r.Installed != "" && d.given(path+".binary") {
		d.problem(path+".binary", "leave it out", "installed is the server itself, beside which binary says nothing")
	}
}

var numbersRE = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

func (d *decoding) checkVersion(path string, r lab.Recipe) {
	if r.IsNginx() && r.Version != "" && !numbersRE.MatchString(r.Version) {
		d.problem(path+".version", "write all three numbers: 1.26.3", "%q is no version of %s", r.Version, r.Flavor)
	}
}

// checkModules holds what a build says of modules against itself; which there are, the plan knows.
func (d *decoding) checkModules(path string, r lab.Recipe) {
	d.checkRepeated(path+".modules", r.Modules)
	d.checkRepeated(path+".dynamic", r.Dynamic)
	for i, name := range r.Dynamic {
		if !slices.Contains(r.Modules, name) {
			d.problem(fmt.Sprintf("%s.dynamic[%d]", path, i), "add it to modules; a module of add_modules says dynamic: true itself", "%s is to be dynamic and is not among the modules", name)
		}
	}
	var names []string
	for i, m := range r.Added {
		names = append(names, m.Name)
		d.checkSources(fmt.Sprintf("%s.add_modules[%d].source", path, i), m.Sources, false)
	}
	d.checkRepeated(path+".add_modules", names)
	for _, k := range []string{"echo_version", "echo_source"} {
		if d.given(path+"."+k) && r.IsNginx() && !slices.Contains(r.Modules, "echo") {
			d.problem(path+"."+k, "add echo to modules", "%s is of the module echo, which build %q does not have", k, r.Name)
		}
	}
}

// checkRepeated refuses a name that a list has twice.
func (d *decoding) checkRepeated(path string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			d.problem(fmt.Sprintf("%s[%d]", path, i), "leave one of them out", "%s stands here a second time", name)
		}
	}
}

// checkCustom holds that a server which is not nginx can be made and found.
func (d *decoding) checkCustom(path string, r lab.Recipe) {
	texts := func(s lab.BuildSource) bool { return s.Text == nil }
	if r.Compiled() && len(r.Make) == 0 && slices.ContainsFunc(r.Sources, texts) {
		d.problem(path, "make: [[make, -j2]]", "build %q needs make: the commands that make the server", r.Name)
	}
	if r.Installed == "" && r.Binary == "" {
		d.problem(path, "binary: server, relative to the folder of the source or to the root of the packages", "build %q needs binary: where the finished server is", r.Name)
	}
	for i, name := range append([]string{r.Binary}, r.Keep...) {
		at := path + ".binary"
		if i > 0 {
			at = fmt.Sprintf("%s.keep[%d]", path, i-1)
		}
		if message, hint := refuseRelative(name); name != "" && message != "" {
			d.problem(at, hint, "%s", message)
		}
	}
}

// checkStart holds that something says how a server that is not nginx is started. brpc's is known.
func (d *decoding) checkStart(path string, r lab.Recipe, e lab.Experiment) {
	behind := e.Server.Upstream != nil && e.Server.Upstream.Server.Build == r.Name && e.Server.Upstream.Server.Command != nil
	if r.Flavor == lab.FlavorCustom && e.CommandOf(r) == nil && !behind {
		d.problem(path, `command: {start: ["{binary}", "{port}"]}`, "build %q is not nginx: nothing says how its server is started", r.Name)
	}
}

func (d *decoding) checkSources(path string, sources []lab.BuildSource, texts bool) {
	for i, s := range sources {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !d.given(at) {
			at = path // one source without a list around it
		}
		kinds := isSet(s.URL != "") + isSet(s.Path != "") + isSet(s.Git != "") + isSet(s.Debian != "") + isSet(s.Text != nil)
		switch {
		case kinds != 1:
			d.problem(at, "", "a source is exactly one of url, path, git, debian and text")
		case s.URL == "" && s.SHA256 != "":
			d.problem(at, "leave sha256 out: what is at a path is hashed anyway", "sha256 belongs to url")
		case (s.URL == "") != (s.SHA256 == ""):
			d.problem(at, "sha256sum FILE prints it", "url and sha256 belong together")
		case (s.Git == "") != (s.Commit == ""):
			d.problem(at, "a branch can move; a commit cannot", "git and commit belong together")
		case s.Suite != "" && s.Debian == "":
			d.problem(at, "", "suite belongs to debian")
		case s.Version != "" && s.Debian == "":
			d.problem(at, "the version of the build stands beside source", "version belongs to debian")
		case s.Text != nil && !texts:
			d.problem(at, "flavor: custom", "text is the source of a custom build")
		case s.Text != nil && len(s.Text) == 0:
			d.problem(at, "text: {main.go: |…}", "text has no files")
		}
	}
}
