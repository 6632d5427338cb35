package plan

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// kernels finds the hosts that share a kernel, and refuses one machine under two names.
func (p *planner) kernels() error {
	var names []lab.HostName
	for _, h := range p.e.Hosts {
		for _, other := range names {
			if lab.SameMachine(p.facts[h.Name], p.facts[other]) {
				p.refuse(lab.Refusal{Host: h.Name, Path: "hosts." + string(h.Name), Fatal: true,
					Reason: fmt.Sprintf("%s and %s are the same machine: its knobs, ports and lock are there once", other, h.Name),
					Cure:   "make it one host with both roles: roles: [target, load]"})
				break
			}
		}
		names = append(names, h.Name)
	}
	p.plan.Kernels = lab.Kernels(p.facts, names)
	for _, group := range p.plan.Kernels {
		p.sayShared(group)
	}
	return nil
}

// sayShared warns of a target that shares its kernel with other hosts that load it.
func (p *planner) sayShared(group []lab.HostName) {
	target := func(name lab.HostName) bool { return p.has(name, lab.RoleTarget) }
	load := func(name lab.HostName) bool { return p.has(name, lab.RoleLoad) }
	if !slices.ContainsFunc(group, target) || !slices.ContainsFunc(group, load) {
		return
	}
	what := "hosts"
	if slices.ContainsFunc(group, func(name lab.HostName) bool { return p.facts[name].Container != "" }) {
		what = "containers"
	}
	p.warn("", "hosts."+string(group[0]), fmt.Sprintf("%s are %s of one machine, which serves target and load alike: compare states with each other, and no figure with one over a network",
		named(group), what))
}

func (p *planner) has(name lab.HostName, role lab.Role) bool {
	return slices.ContainsFunc(p.e.Hosts, func(h lab.Host) bool { return h.Name == name && h.Has(role) })
}
