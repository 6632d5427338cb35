package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/server"
)

// software finds the builds that the states use, and the packages that hosts lack for building and for load.
func (p *planner) software() error {
	missing := map[lab.HostName][]string{}
	for _, name := range p.buildNames() {
		recipe := p.recipe(name)
		p.plan.Builds = append(p.plan.Builds, recipe)
		for _, target := range p.targets {
			lacks := p.lacking(target.Name, recipe.Packages)
			p.install(missing, target.Name, lacks, "builds."+name, "to build "+name)
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
	return nil
}

// recipe is a build of the experiment, complete, under its name there.
func (p *planner) recipe(name string) lab.Recipe {
	recipe := p.e.Builds[name]
	recipe.Name = name
	return server.Recipe(recipe)
}

// buildNames are the builds of all states on all targets, sorted.
func (p *planner) buildNames() []string {
	var names []string
	for _, s := range p.plan.States {
		for _, target := range p.targets {
			if name := value(s, target.Name, lab.KnobBuild, ""); name != "" {
				names = append(names, name)
			}
		}
	}
	return slices.DeleteFunc(sorted(names), func(name string) bool { _, known := p.e.Builds[name]; return !known })
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

// lacking are the packages that a host does not have; a compiler or make found otherwise will do.
func (p *planner) lacking(host lab.HostName, packages []string) []string {
	f := p.facts[host]
	var missing []string
	for _, name := range packages {
		_, installed := f.Packages[name]
		found := name == "gcc" && f.Compiler != "" || name == "make" && f.Commands["make"] != ""
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
	if f := p.facts[host]; !known || f.Commands[tool.Command] != "" || !f.CanInstall {
		return nil
	}
	return []string{tool.Package}
}

// install notes packages to be installed, or refuses when the host does not allow it.
func (p *planner) install(missing map[lab.HostName][]string, host lab.HostName, packages []string, path, purpose string) {
	switch {
	case len(packages) == 0:
	case p.facts[host].CanInstall:
		missing[host] = append(missing[host], packages...)
	default:
		list := strings.Join(packages, " ")
		why, cure := "neither root nor sudo without a password", "have an administrator run: apt-get install "+list
		if p.facts[host].Root {
			why, cure = "no apt-get, dnf or yum", "install what corresponds to these Debian packages by hand"
		}
		p.refuse(lab.Refusal{
			Host: host, Path: path, Fatal: true, Cure: cure,
			Reason: fmt.Sprintf("%s lacks %s (%s), and nothing can be installed: %s", host, list, purpose, why),
		})
	}
}
