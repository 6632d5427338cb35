package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
)

// The sites that are not of this package's making alone.
const (
	siteProxy    = "proxy"    // passes requests to an upstream
	siteTemplate = "template" // is the user's
)

// sites are the paths of the sites; those of file, proxy and template serve any path.
var sites = map[string]string{
	"empty-gif": "/empty.gif", "hello": "/hello", "echo": "/echo", "sleep": "/sleep", "file": "/file", siteProxy: "/", siteTemplate: "/",
}

// DefaultURL is the path that a site serves: "/hello" of hello and so on, "/file" of file, "" of an unknown site. A
// proxy has those of its upstream, a template its own: of them it is "/".
func DefaultURL(site string) string { return sites[site] }

// check refuses what the server could not do.
func check(in Input, hold bool) error {
	if DefaultURL(in.Spec.Site) == "" && in.Command == nil {
		return fmt.Errorf("there is no site %q; known are %s", in.Spec.Site, strings.Join(slices.Sorted(maps.Keys(sites)), ", "))
	}
	for _, url := range in.URLs {
		if err := served(in, url, hold); err != nil {
			return err
		}
	}
	if in.Command == nil {
		if err := able(in, hold); err != nil {
			return err
		}
	}
	for _, cpu := range in.CPUs {
		if len(in.Facts.CPUs) > 0 && !slices.Contains(in.Facts.CPUs, cpu) {
			return fmt.Errorf("CPU %d is not one of those that the host may use: %v", cpu, in.Facts.CPUs)
		}
	}
	return nil
}

// able refuses what nginx cannot do as it is built.
func able(in Input, hold bool) error {
	name := in.Recipe.Name
	switch {
	case !in.Recipe.IsNginx() && in.Recipe.Flavor != "":
		return fmt.Errorf("build %s is not nginx: say how it is started, command: {start: [...]}", name)
	case !has(in.Recipe, "stub_status") && in.Spec.Count == nil:
		return fmt.Errorf("build %s lacks the module stub_status, which counts the requests", name)
	case (hold || in.Spec.Site == "echo" || in.Spec.Site == "sleep") && !has(in.Recipe, "echo"):
		return fmt.Errorf("build %s lacks the module echo, which the site needs", name)
	case in.Spec.Site == siteProxy && in.Upstream == nil:
		return fmt.Errorf("site proxy has no upstream")
	}
	return secured(in)
}

// served says whether the site answers the path.
func served(in Input, url string, hold bool) error {
	name, _, _ := strings.Cut(url, "?")
	switch {
	case !strings.HasPrefix(name, "/"):
		return fmt.Errorf("url %q does not begin with /", url)
	case in.Command != nil, hold && name == HoldURL, name == DefaultURL(in.Spec.Site):
		return nil
	case slices.Contains([]string{"file", siteProxy, siteTemplate}, in.Spec.Site):
		return nil
	}
	return fmt.Errorf("site %s serves %s, not %s", in.Spec.Site, DefaultURL(in.Spec.Site), url)
}

// has reports whether a build has a module: of a compiled one the recipe tells, of the distribution's all but those with
// packages of their own are taken to be there, of an installed one all: its own check of the configuration finds out.
func has(r lab.Recipe, module string) bool {
	own := modulePackages[module]
	switch {
	case r.Installed != "":
		return true
	case len(r.Package) > 0:
		return own == "" || slices.Contains(Packages(r), packagePrefix+own)
	}
	return sure(r, module)
}

// sure reports whether the recipe says that the build has a module.
func sure(r lab.Recipe, module string) bool {
	added := func(m lab.Module) bool { return m.Name == module || m.Name == module+"-nginx-module" }
	return slices.Contains(r.Modules, module) || slices.ContainsFunc(r.Added, added) || len(r.Package) > 0 && module == "stub_status" ||
		slices.ContainsFunc(r.Configure, func(flag string) bool {
			return strings.HasPrefix(flag, "--with-") && strings.Contains(flag, "_"+module+"_module") ||
				strings.HasPrefix(flag, "--add-") && strings.Contains(flag, "/"+module)
		})
}
