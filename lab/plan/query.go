package plan

import (
	"cmp"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/server"
	"ngxlab/lab/tune"
)

// alwaysRead are sysctls that a plan needs whatever the experiment sets.
var alwaysRead = []string{
	"fs.file-max", "fs.nr_open", "kernel.pid_max", "kernel.threads-max", "net.core.rmem_default", "net.core.rmem_max", "net.core.somaxconn",
	"net.core.wmem_default", "net.core.wmem_max", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
	"net.ipv4.ip_unprivileged_port_start", "net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_mem",
	"net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max",
}

// Query says what to ask of a host before planning: the sysctls, commands, packages and users that the experiment touches, and
// the other knobs that it sets there. Lists are sorted and have no repeats.
func Query(e lab.Experiment, host lab.Host) lab.FactsQuery {
	sysctls := slices.Clone(alwaysRead)
	for _, step := range e.Steps {
		for name := range step.Sysctl {
			sysctls = append(sysctls, name)
			if half, coupled := tune.Halves(name); coupled {
				sysctls = append(sysctls, half)
			}
		}
	}
	commands, packages := buildTools(e)
	for _, spec := range e.Load {
		if tool, known := load.Named(spec.Tool); known {
			commands, packages = append(commands, tool.Command), append(packages, tool.Package)
		}
	}
	return lab.FactsQuery{
		Sysctls: sorted(sysctls), Knobs: askedKnobs(e, host), Commands: sorted(commands), Packages: sorted(packages), Users: sorted(serverUsers(e)),
	}
}

// buildTools are the commands and packages that the builds of an experiment need on a host.
func buildTools(e lab.Experiment) (commands, packages []string) {
	commands = []string{"cc", "make"}
	for name, recipe := range e.Builds {
		recipe.Name = name
		recipe = server.Recipe(recipe)
		switch {
		case recipe.Installed != "":
		case len(recipe.Package) > 0:
			commands = append(commands, forPackages...)
		default:
			for _, pkg := range recipe.Packages {
				packages = append(packages, pkg)
				if tool := toolOf(recipe, pkg); tool != "" {
					commands = append(commands, tool)
				}
			}
		}
	}
	return commands, packages
}

// serverUsers are the users that servers run as.
func serverUsers(e lab.Experiment) []string {
	users := []string{e.Server.User}
	if u := e.Server.Upstream; u != nil {
		users = append(users, u.Server.User)
	}
	return slices.DeleteFunc(users, func(name string) bool { return name == "" })
}

// askedKnobs are the knobs that a host is asked for: those of the steps, and the files that keep what a step persists.
func askedKnobs(e lab.Experiment, host lab.Host) []lab.Setting {
	var all []lab.Setting
	for _, step := range e.Steps {
		all = append(all, persisted(step, host)...)
		for _, s := range lab.StepSettings(step, host) {
			if !s.Knob.Served() && s.Knob.Kind != lab.KnobSysctl {
				all = append(all, asking(s))
			}
		}
	}
	slices.SortFunc(all, func(a, b lab.Setting) int {
		return cmp.Or(cmp.Compare(a.Knob.Kind, b.Knob.Kind), cmp.Compare(a.Knob.Name, b.Knob.Name), cmp.Compare(a.Value, b.Value), boolOrder(a.Absent, b.Absent))
	})
	return slices.Compact(all)
}

// asking is a setting as hosts are asked for it, whichever step it comes from.
func asking(s lab.Setting) lab.Setting {
	return lab.Setting{Knob: s.Knob, Value: s.Value, Absent: s.Absent}
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
