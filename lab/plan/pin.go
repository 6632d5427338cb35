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
	u := p.e.Server.Upstream
	if u == nil || u.Server.CPUs == "" {
		return nil
	}
	var err error
	p.upstreamCPUs, err = p.listed("server.upstream.server.cpus", u.Server.CPUs, u.Host)
	return err
}

// serverCPUs: `auto` is half of the CPUs where load shares them, and no pinning elsewhere.
func (p *planner) serverCPUs(target lab.Host) ([]int, error) {
	if p.e.Server.CPUs != "auto" {
		return p.listed("server.cpus", p.e.Server.CPUs, target.Name)
	}
	beside := p.loadBeside(target.Name)
	if len(beside) == 0 {
		return nil, nil
	}
	cpus := apart(p.facts[target.Name], beside)
	if cpus == nil {
		p.warn(target.Name, "server.cpus", "server and load share one CPU and are not pinned apart: figures mix both")
	}
	return cpus, nil
}

// loadBeside are the CPUs of every load host that may use some of a target's: itself, and other hosts on its kernel.
func (p *planner) loadBeside(target lab.HostName) [][]int {
	var beside [][]int
	for _, host := range p.loadHosts() {
		if cpus := p.facts[host].CPUs; lab.SameKernel(p.facts, target, host) && lab.Overlap(p.facts[target].CPUs, cpus) {
			beside = append(beside, cpus)
		}
	}
	return beside
}

// apart chooses CPUs for a server: half of all that it and its load may use, as many as it can use, those first that no
// load may use, and so that every load host keeps one at least. nil when there are none to choose.
func apart(f lab.Facts, beside [][]int) []int {
	union := slices.Concat(append(beside, f.CPUs)...)
	slices.Sort(union)
	want := min(max(len(slices.Compact(union))/2, 1), f.UsableCPUs())
	isShared := func(cpu int) bool {
		return slices.ContainsFunc(beside, func(cpus []int) bool { return slices.Contains(cpus, cpu) })
	}
	shared, own := split(f.CPUs, isShared)
	var chosen []int
	for _, cpu := range append(own, shared...) {
		with := append(slices.Clone(chosen), cpu)
		starved := func(cpus []int) bool { return len(less(cpus, with)) == 0 }
		if len(chosen) < want && !slices.ContainsFunc(beside, starved) {
			chosen = with
		}
	}
	slices.Sort(chosen)
	return chosen
}

// split parts a list by a test, keeping its order.
func split(list []int, test func(int) bool) (yes, no []int) {
	for _, n := range list {
		if test(n) {
			yes = append(yes, n)
		} else {
			no = append(no, n)
		}
	}
	return yes, no
}

// less is a list without some.
func less(list, without []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return slices.Contains(without, n) })
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

// loadCPUs are the CPUs of the generators of a load point per host; nil when none is pinned.
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
	if spec.CPUs == "" {
		p.shareOut(point.Hosts, pinned)
	}
	if len(pinned) == 0 {
		return nil, nil
	}
	return pinned, nil
}

// besideServer returns the CPUs that no server on the host's kernel uses; nil when load is not to be pinned, or cannot be.
func (p *planner) besideServer(spec lab.LoadSpec, point lab.LoadPoint, host lab.HostName) []int {
	if !spec.Pin || spec.CPUs != "" {
		return nil
	}
	path := fmt.Sprintf("load[%d].pin", point.Spec)
	left := p.facts[host].CPUs
	for _, target := range p.targets {
		if !lab.SameKernel(p.facts, host, target.Name) || !lab.Overlap(left, p.facts[target.Name].CPUs) {
			continue
		}
		where := "on this host"
		if target.Name != host {
			where = "of " + string(target.Name) + ", on the same machine,"
		}
		if p.cpus[target.Name] == nil {
			p.warn(host, path, fmt.Sprintf("load is not pinned: the server %s may use every CPU", where))
			return nil
		}
		if left = less(left, p.cpus[target.Name]); len(left) == 0 {
			p.warn(host, path, fmt.Sprintf("load is not pinned: the server %s uses every CPU of this host", where))
			return nil
		}
	}
	if u := p.e.Server.Upstream; u != nil && lab.SameKernel(p.facts, host, u.Host) {
		if left = less(left, p.upstreamCPUs); len(left) == 0 {
			p.warn(host, path, "load is not pinned: the server and its upstream use every CPU of this host")
			return nil
		}
	}
	return slices.Clone(left)
}

// shareOut gives hosts of one kernel CPUs of their own, as evenly as they go and no more than a host can use. Where
// there are too few for that, all keep the same ones.
func (p *planner) shareOut(hosts []lab.HostName, pinned map[lab.HostName][]int) {
	for _, group := range lab.Kernels(p.facts, hosts) {
		own := p.own(group, pinned)
		starved := func(host lab.HostName) bool { return len(own[host]) == 0 && len(pinned[host]) > 0 }
		if slices.ContainsFunc(group, starved) {
			continue
		}
		for host, cpus := range own {
			pinned[host] = cpus
		}
	}
}

// own deals out CPUs to hosts, each to the one that has the fewest of those that may have it.
func (p *planner) own(group []lab.HostName, may map[lab.HostName][]int) map[lab.HostName][]int {
	var all []int
	for _, host := range group {
		all = append(all, may[host]...)
	}
	slices.Sort(all)
	own := map[lab.HostName][]int{}
	for _, cpu := range slices.Compact(all) {
		least := lab.HostName("")
		for _, host := range group {
			takes := slices.Contains(may[host], cpu) && len(own[host]) < p.facts[host].UsableCPUs()
			if takes && (least == "" || len(own[host]) < len(own[least])) {
				least = host
			}
		}
		if least != "" {
			own[least] = append(own[least], cpu)
		}
	}
	return own
}
