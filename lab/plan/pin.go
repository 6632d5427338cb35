package plan

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// pinServers resolves the CPUs of the server on every target.
func (p *planner) pinServers() error {
	p.cpus = map[lab.HostName][]int{}
	for _, target := range p.targets {
		cpus, err := p.serverCPUs(target)
		if err != nil {
			return err
		}
		p.cpus[target.Name] = cpus
	}
	return nil
}

// serverCPUs: `auto` is the first half of the CPUs where load shares the host, and no pinning elsewhere.
func (p *planner) serverCPUs(target lab.Host) ([]int, error) {
	have := p.facts[target.Name].CPUs
	if p.e.Server.CPUs != "auto" {
		return p.listed("server.cpus", p.e.Server.CPUs, target.Name)
	}
	switch {
	case !target.Has(lab.RoleLoad):
		return nil, nil
	case len(have) < 2:
		p.warn(target.Name, "server.cpus", "server and load share one CPU and are not pinned apart: figures mix both")
		return nil, nil
	}
	return slices.Clone(have[:len(have)/2]), nil
}

// listed reads a list of CPUs and refuses those that the host does not have.
func (p *planner) listed(path, list string, host lab.HostName) ([]int, error) {
	cpus, err := lab.ParseCPUs(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	have := p.facts[host].CPUs
	for _, cpu := range cpus {
		if !slices.Contains(have, cpu) {
			p.refuse(lab.Refusal{Host: host, Path: path, Fatal: true,
				Reason: fmt.Sprintf("CPU %d is not one that may be used on %s", cpu, host), Cure: fmt.Sprintf("choose among %v", have)})
			return nil, nil
		}
	}
	return cpus, nil
}

// loads makes the load points and resolves their CPUs.
func (p *planner) loads() error {
	points, err := lab.LoadPoints(p.e)
	if err != nil {
		return err
	}
	for i := range points {
		if points[i].CPUs, err = p.loadCPUs(points[i]); err != nil {
			return err
		}
	}
	p.plan.Loads = points
	return nil
}

func (p *planner) loadCPUs(point lab.LoadPoint) (map[lab.HostName][]int, error) {
	spec := p.e.Load[point.Spec]
	pinned := map[lab.HostName][]int{}
	for _, host := range point.Hosts {
		cpus := p.besideServer(spec, point, host)
		if spec.CPUs != "" {
			var err error
			if cpus, err = p.listed(fmt.Sprintf("load[%d].cpus", point.Spec), spec.CPUs, host); err != nil {
				return nil, err
			}
		}
		if len(cpus) > 0 {
			pinned[host] = cpus
		}
	}
	if len(pinned) == 0 {
		return nil, nil
	}
	return pinned, nil
}

// besideServer returns the CPUs that the server does not use; nil when load is not to be pinned, or cannot be.
func (p *planner) besideServer(spec lab.LoadSpec, point lab.LoadPoint, host lab.HostName) []int {
	if !spec.Pin || spec.CPUs != "" {
		return nil
	}
	path := fmt.Sprintf("load[%d].pin", point.Spec)
	used, isTarget := p.cpus[host]
	if isTarget && used == nil {
		p.warn(host, path, "load is not pinned: the server on this host may use every CPU")
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(p.facts[host].CPUs), func(cpu int) bool { return slices.Contains(used, cpu) })
	if len(left) == 0 {
		p.warn(host, path, "load is not pinned: the server uses every CPU of this host")
	}
	return left
}
