package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/server"
)

// software finds the builds that the servers use, what forbids them, and the packages that hosts lack for building and for
// load.
func (p *planner) software() error {
	missing := map[lab.HostName][]string{}
	for _, name := range p.buildNames() {
		recipe := p.recipe(name)
		p.plan.Builds = append(p.plan.Builds, recipe)
		p.refuseFaults(recipe)
		for _, host := range p.hostsWith(name) {
			p.refuseMissing(host, recipe)
			if recipe.Compiled() {
				p.install(missing, host, p.lacking(host, recipe), "builds."+name, "to build "+name)
			}
		}
	}
	for i, spec := range p.e.Load {
		for _, host := range p.hostsOf(i) {
			p.install(missing, host, p.lackingTool(host, spec.Tool), fmt.Sprintf("load[%d].tool", i), "for load with "+spec.Tool)
		}
	}
	for host := range missing {
		missing[host] = sorted(missing[host])
	}
	if len(missing) > 0 {
		p.plan.Packages = missing
	}
	p.users()
	p.upstreamKnobs()
	p.upstreamApart()
	return nil
}

// hostsOf are the load hosts of an entry of `load:`, in the order of the file.
func (p *planner) hostsOf(spec int) []lab.HostName {
	var hosts []lab.HostName
	for _, l := range p.plan.Loads {
		for _, host := range l.Hosts {
			if l.Spec == spec && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// tools are the commands that packages are needed for, where these have another name than the package or may come from
// elsewhere; "cc" is any C compiler.
var tools = map[string]string{
	"gcc": "cc", "make": "make", "cmake": "cmake", "g++": "g++", "git": "git", "patch": "patch", "tar": "tar", "perl": "perl", "xz-utils": "xz",
	"golang-go": "go", "protobuf-compiler": "protoc",
}

// toolOf is the command that a package of a recipe is needed for; "" when it is a library. The package of a compiler is
// called as the command.
func toolOf(r lab.Recipe, name string) string {
	if name != "gcc" && name == server.CompilerPackage(r) {
		return name
	}
	return tools[name]
}

// lacking are the packages of a recipe that a host does not have; a compiler or a tool found otherwise will do.
func (p *planner) lacking(host lab.HostName, r lab.Recipe) []string {
	f := p.facts[host]
	var missing []string
	for _, name := range r.Packages {
		_, installed := f.Packages[name]
		tool := toolOf(r, name)
		found := tool != "" && f.Commands[tool] != "" || tool == "cc" && f.Compiler != ""
		if !installed && !found {
			missing = append(missing, name)
		}
	}
	return missing
}

// lackingTool is the package of a tool that a host does not have. Where nothing can be installed, and of a tool that
// is not known, lab/load says so.
func (p *planner) lackingTool(host lab.HostName, name string) []string {
	tool, known := load.Named(name)
	if f := p.facts[host]; !known || f.Commands[tool.Command] != "" || !f.CanInstall && !f.NoInstall {
		return nil
	}
	return []string{tool.Package}
}

// install notes packages to be installed, or refuses when the host, or who asks, does not allow it.
func (p *planner) install(missing map[lab.HostName][]string, host lab.HostName, packages []string, path, purpose string) {
	f, list := p.facts[host], strings.Join(packages, " ")
	switch {
	case len(packages) == 0:
		return
	case f.CanInstall:
		missing[host] = append(missing[host], packages...)
		return
	}
	why, cure := "neither root nor sudo without a password", "have an administrator run: apt-get install "+list
	switch {
	case f.NoInstall:
		why, cure = "--no-install forbids it", "leave --no-install out, or install before: apt-get install "+list
	case f.Root:
		why, cure = "no apt-get, dnf or yum", "install what corresponds to these Debian packages by hand"
	}
	p.refuse(lab.Refusal{
		Host: host, Path: path, Fatal: true, Cure: cure,
		Reason: fmt.Sprintf("%s lacks %s (%s), and nothing can be installed: %s", host, list, purpose, why),
	})
}
