package server

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

// Fault is why a recipe cannot be built, and what would help. Key is the part of the recipe that is at fault, as it stands
// in an experiment file: "modules[1]"; "" is the whole.
type Fault struct{ Key, Reason, Cure string }

// The oldest versions that recipes are made for.
const (
	oldestNginx   = "1.6.0"
	oldestTengine = "2.1.0"
)

// Faults are what is known to be wrong with a recipe before anything is fetched: all at once, none when it can be tried.
func Faults(r lab.Recipe) []Fault {
	if !r.IsNginx() || r.Installed != "" {
		return nil
	}
	faults := ageFaults(r)
	for i, name := range r.Modules {
		if f := moduleFault(r, name); f.Reason != "" {
			f.Key = fmt.Sprintf("modules[%d]", i)
			faults = append(faults, f)
		}
	}
	if !r.Compiled() {
		return faults
	}
	for i, name := range r.Dynamic {
		if f := dynamicFault(r, name); f.Reason != "" {
			f.Key = fmt.Sprintf("dynamic[%d]", i)
			faults = append(faults, f)
		}
	}
	for i, m := range r.Added {
		if f := tooOld(r, "dynamic modules", dynamicSince); m.Dynamic && f.Reason != "" {
			f.Key = fmt.Sprintf("add_modules[%d]", i)
			faults = append(faults, f)
		}
	}
	return append(faults, flagFaults(r)...)
}

// ageFaults are those of a version that no recipe is for.
func ageFaults(r lab.Recipe) []Fault {
	oldest, what := oldestNginx, "nginx"
	if r.Flavor == lab.FlavorTengine {
		oldest, what = oldestTengine, "Tengine"
	}
	if !below(r.Version, oldest) {
		return nil
	}
	return []Fault{{"version", fmt.Sprintf("%s %s is older than %s, the oldest that there is a recipe for", what, r.Version, oldest), "use " + oldest + " or newer"}}
}

func moduleFault(r lab.Recipe, name string) Fault {
	m, known := moduleNamed(name)
	switch {
	case !known && slices.Contains(always, name):
		return Fault{"", fmt.Sprintf("every nginx has the module %s", name), "leave it out of modules"}
	case !known && len(r.Package) > 0:
		return unknownModule(name, "a package of its own goes beside the server's: package: ["+r.Package[0]+", "+packagePrefix+"…]")
	case !known:
		return unknownModule(name, "a module with a source of its own goes into add_modules")
	case below(NginxVersion(r), m.since):
		f := tooOld(r, "the module "+name, m.since)
		if name == "v2" {
			f.Cure += "; until 1.9.4 it had the module spdy"
		}
		return f
	case m.until != "" && NginxVersion(r) != "" && !below(NginxVersion(r), m.until):
		return Fault{"", fmt.Sprintf("nginx has no module %s since %s, and build %q is %s", name, m.until, r.Name, described(r)), "leave it out; v2 is its successor"}
	}
	return Fault{}
}

func unknownModule(name, cure string) Fault {
	reason := fmt.Sprintf("unknown module %q, of which configure would say: invalid option %q", name, moduleFlag(name, false))
	if near, ok := lab.Nearest(name, append(moduleNames(), always...)); ok {
		reason += fmt.Sprintf("; the nearest known is %q", near)
	}
	return Fault{"", reason, cure}
}

// dynamicSince is the first nginx with dynamic modules (CHANGES).
const dynamicSince = "1.9.11"

func dynamicFault(r lab.Recipe, name string) Fault {
	m, known := moduleNamed(name)
	switch {
	case !slices.Contains(r.Modules, name):
		return Fault{"", fmt.Sprintf("%s is to be dynamic and is not among the modules", name), "add it to modules"}
	case known && m.dynamic == "":
		return Fault{"", fmt.Sprintf("nginx always links the module %s in: it cannot be dynamic", name), "leave it out of dynamic"}
	}
	return tooOld(r, "dynamic modules", dynamicSince)
}

// tooOld is the fault of a build that is older than what it shall have; without a reason it is not.
func tooOld(r lab.Recipe, what, since string) Fault {
	if !below(NginxVersion(r), since) {
		return Fault{}
	}
	return Fault{"", fmt.Sprintf("nginx has %s since %s, and build %q is %s", what, since, r.Name, described(r)), "leave it out, or use a newer version"}
}

// described is what a build is, for people.
func described(r lab.Recipe) string {
	version := NginxVersion(r)
	switch {
	case r.Flavor == lab.FlavorTengine && version != "":
		return fmt.Sprintf("Tengine %s (nginx %s)", r.Version, version)
	case r.Flavor == lab.FlavorTengine:
		return strings.TrimSpace("Tengine " + r.Version)
	}
	return "nginx " + version
}

// openssl11 is the first nginx that can be compiled with OpenSSL 1.1 and newer (CHANGES of 1.9.14).
const openssl11 = "1.9.14"

// flagFaults are those of flags that exclude each other or a library.
func flagFaults(r lab.Recipe) []Fault {
	var faults []Fault
	for _, of := range []struct{ key, value, flag string }{
		{"compiler", r.Compiler, "--with-cc="}, {"cflags", r.CFlags, "--with-cc-opt="}, {"ldflags", r.LDFlags, "--with-ld-opt="},
	} {
		if of.value != "" && flagged(r, of.flag) {
			faults = append(faults, Fault{of.key, fmt.Sprintf("%s and %s in configure are the same thing", of.key, of.flag), "write one of them"})
		}
	}
	if encrypts(r) && below(NginxVersion(r), openssl11) {
		faults = append(faults, Fault{"modules", fmt.Sprintf("%s cannot be compiled with OpenSSL 1.1 or newer, which distributions have: nginx can since %s", described(r), openssl11),
			"leave ssl out, or add --with-openssl=DIR to configure, the folder of an OpenSSL 1.0 source on the host"})
	}
	return faults
}
