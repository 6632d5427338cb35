package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/plan"
)

func planSoftware(p *page, pl lab.Plan) {
	p.heading("Software")
	for _, h := range pl.Experiment.Hosts {
		switch purposes := planPackages(pl, h.Name); {
		case len(purposes) > 0:
			p.line("  %s: installs the packages %s", h.Name, strings.Join(purposes, "; "))
		case pl.Facts[h.Name].NoInstall:
			p.line("  %s: no package is installed (--no-install)", h.Name)
		case len(pl.Fatal()) > 0 && !pl.Facts[h.Name].CanInstall:
			p.line("  %s: no package can be installed", h.Name) // what lacks is among the refusals
		default:
			p.line("  %s: no package has to be installed", h.Name)
		}
	}
	for _, r := range pl.Builds {
		planBuild(p, pl, r)
	}
}

// planPackages are the packages that a host lacks, each once, with what first needs them.
func planPackages(pl lab.Plan, host lab.HostName) []string {
	left := slices.Clone(pl.Packages[host])
	var purposes []string
	take := func(wanted []string, purpose string) {
		taken := slices.DeleteFunc(slices.Clone(left), func(name string) bool { return !slices.Contains(wanted, name) })
		if len(taken) > 0 {
			purposes = append(purposes, strings.Join(taken, " ")+" "+purpose)
			left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(wanted, name) })
		}
	}
	for _, r := range pl.Builds {
		if r.Compiled() && slices.Contains(buildHosts(pl, r.Name), host) {
			take(r.Packages, "to build "+r.Name)
		}
	}
	for _, tool := range load.Tools() {
		take([]string{tool.Package}, "for load")
	}
	if len(left) > 0 {
		purposes = append(purposes, strings.Join(left, " "))
	}
	return purposes
}

// planBuild prints how a build is had, what is in it, and what each host that needs it has to do for it.
func planBuild(p *page, pl lab.Plan, r lab.Recipe) {
	p.line("  build %s: %s %s", r.Name, strings.TrimSpace(r.Flavor+" "+r.Version), origin(r))
	for _, l := range buildLines(r) {
		if l[1] != "" {
			p.line("    %s %s", l[0], l[1])
		}
	}
	for _, argv := range r.Make {
		p.line("    %s", commandLine(argv))
	}
	for _, family := range buildFamilies(pl, r.Name) {
		for i, host := range family {
			p.line("    %s: %s", host, becomes(pl, r, host, family[0], i > 0))
		}
	}
}

// buildLines are what goes into a build, each with its word.
func buildLines(r lab.Recipe) [][2]string {
	var added []string
	for _, m := range r.Added {
		kind := ""
		if m.Dynamic {
			kind = ", dynamic"
		}
		added = append(added, fmt.Sprintf("%s (%s%s)", strings.TrimSpace(m.Name+" "+m.Version), sources(m.Sources), kind))
	}
	all := [][2]string{{"modules", joined(r.Modules)}, {"dynamic modules", joined(r.Dynamic)}, {"with", strings.Join(added, "; ")}}
	if slices.Contains(r.Modules, "echo") && (len(r.Echo) > 0 || r.EchoWants != "") && r.Compiled() {
		all = append(all, [2]string{"echo", strings.TrimSpace(r.EchoWants + prefixed(" from ", sources(r.Echo)))})
	}
	compiler := strings.TrimSpace(strings.Join([]string{r.Compiler, prefixed("-cflags ", r.CFlags), prefixed("-ldflags ", r.LDFlags)}, " "))
	all = append(all, [2]string{"compiler", compiler})
	if len(r.Flags) > 0 && r.Compiled() {
		all = append(all, [2]string{"./configure", commandLine(r.Flags)})
	}
	return all
}

// origin says where a build comes from.
func origin(r lab.Recipe) string {
	switch {
	case r.Installed != "":
		return "as installed at " + r.Installed
	case len(r.Package) > 0:
		return strings.TrimSpace("out of the packages "+strings.Join(r.Package, " ")+prefixed(" of ", r.Suite)) + ", unpacked and not installed"
	}
	return "from " + sources(r.Sources)
}

// sources prints the places that a build's source is taken from, in the order in which they are tried.
func sources(all []lab.BuildSource) string {
	var parts []string
	for _, s := range all {
		switch {
		case s.Debian != "":
			parts = append(parts, strings.Join(slices.DeleteFunc([]string{"the Debian source package", s.Debian, s.Version, s.Suite}, func(word string) bool { return word == "" }), " "))
		case s.Path != "":
			parts = append(parts, s.Path)
		case s.Git != "":
			parts = append(parts, s.Git+" at "+s.Commit)
		case len(s.Text) > 0:
			parts = append(parts, "the experiment file ("+joined(slices.Sorted(maps.Keys(s.Text)))+")")
		default:
			parts = append(parts, s.URL)
		}
	}
	return strings.Join(parts, ", else ")
}

// becomes says what a host has to do for a build. Hosts of one kind share what the first of them has.
func becomes(pl lab.Plan, r lab.Recipe, host, first lab.HostName, further bool) string {
	b, has := pl.Built[r.Name][host]
	switch {
	case has && r.Installed != "":
		return joined(said("installed at "+b.Binary, b.Version))
	case r.Installed != "":
		return "looked for when the campaign begins"
	case has && len(r.Package) > 0:
		return joined(said("unpacked before", b.Version))
	case has && b.From != "":
		return joined(said(fmt.Sprintf("copied from %s before", b.From), b.Version))
	case has:
		return joined(said("built before", b.Version, "in "+seconds(math.Round(10*b.TookS)/10)))
	case further:
		return "copied from " + string(first)
	case len(r.Package) > 0:
		return "taken from packages, about " + span(makingTime(pl, r))
	}
	compiler := r.Compiler
	if compiler == "" && r.IsNginx() { // what makes a program of one's own, its commands say
		compiler = pl.Facts[host].Compiler
	}
	return fmt.Sprintf("will be compiled, about %s%s", span(makingTime(pl, r)), prefixed(", with ", compiler))
}

// buildHosts are those that a server of a build runs on: targets by name, then those of upstreams.
func buildHosts(pl lab.Plan, build string) []lab.HostName {
	hosts := map[lab.HostName]bool{}
	for _, s := range pl.Servings {
		for at := &s; at != nil; at = at.Upstream {
			if at.Recipe == build {
				hosts[at.Target] = true
			}
		}
	}
	all := slices.Sorted(maps.Keys(hosts))
	behindTargets := func(name lab.HostName) int {
		if slices.ContainsFunc(pl.Experiment.Hosts, func(h lab.Host) bool { return h.Name == name && h.Has(lab.RoleTarget) }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b lab.HostName) int { return cmp.Compare(behindTargets(a), behindTargets(b)) })
	return all
}

// buildFamilies are the hosts of a build that share a binary: the first makes it, the others get copies. Of an installed one
// there are no copies.
func buildFamilies(pl lab.Plan, build string) [][]lab.HostName {
	var families [][]lab.HostName
	at := map[[2]string]int{}
	for _, host := range buildHosts(pl, build) {
		kind := [2]string{pl.Facts[host].Distribution, pl.Facts[host].Architecture}
		i, known := at[kind]
		if !known || kind[0] == "" || kind[1] == "" {
			i = len(families)
			at[kind] = i
			families = append(families, nil)
		}
		families[i] = append(families[i], host)
	}
	return families
}

// makingTime is how long the plan takes for a build on one host: what its estimate would lose if every host had it.
func makingTime(pl lab.Plan, r lab.Recipe) time.Duration {
	var had []plan.Trial
	for _, host := range buildHosts(pl, r.Name) {
		for _, s := range servingsOn(pl, host) {
			if s.Recipe == r.Name {
				had = append(had, plan.Trial{Target: host, State: s.State, Tried: lab.Tried{Build: &lab.Build{Recipe: r.Name}}})
			}
		}
	}
	all := pl
	all.EstimateMax = lab.Duration{Duration: 1000 * time.Hour} // whatever is left of it
	kinds := map[[2]string]bool{}
	for _, host := range buildHosts(pl, r.Name) {
		kinds[[2]string{pl.Facts[host].Distribution, pl.Facts[host].Architecture}] = true
	}
	spared := all.EstimateMax.Duration - plan.WithTrials(all, had).EstimateMax.Duration
	return spared / time.Duration(max(len(kinds), 1))
}
