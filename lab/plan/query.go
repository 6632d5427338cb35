package plan

import (
	"maps"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/server"
)

// alwaysRead are sysctls that a plan needs whatever the experiment sets.
var alwaysRead = []string{
	"fs.file-max", "net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_mem", "net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max",
}

// Query says what to ask of every host before planning: the sysctls, commands and packages that the experiment
// touches. Lists are sorted and have no repeats.
func Query(e lab.Experiment) lab.FactsQuery {
	sysctls := slices.Clone(alwaysRead)
	for _, step := range e.Steps {
		sysctls = slices.AppendSeq(sysctls, maps.Keys(step.Sysctl))
	}
	commands := []string{"cc", "make"}
	var packages []string
	for _, spec := range e.Load {
		if tool, known := load.Named(spec.Tool); known {
			commands, packages = append(commands, tool.Command), append(packages, tool.Package)
		}
	}
	for _, recipe := range e.Builds {
		packages = append(packages, server.Recipe(recipe).Packages...)
	}
	return lab.FactsQuery{Sysctls: sorted(sysctls), Commands: sorted(commands), Packages: sorted(packages)}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
