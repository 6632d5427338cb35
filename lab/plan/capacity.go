package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

// ownFiles are the descriptors that a holder or a worker has beside its connections.
const ownFiles = 64

// minHolders: two holders at least, so that one busy process does not bound the rate of opening.
const minHolders = 2

// capacity plans the held connections: a server per kind, the levels, and every known bound on them.
func (p *planner) capacity() error {
	spec := p.e.Capacity
	if spec == nil {
		return nil
	}
	target := p.targets[0]
	if p.e.Server.TLS != nil {
		p.refuse(lab.Refusal{
			Host: target.Name, Path: "capacity", Fatal: true, Reason: "connections are held without TLS, which the server asks for",
			Cure: "measure the capacity of the same server without tls, in an experiment of its own",
		})
	}
	s := p.capacityState(*spec, target.Name)
	c := &lab.CapacityPlan{
		Target: target.Name, LoadHosts: p.holdingHosts(target.Name), State: s.Name, Servings: map[lab.HoldKind]lab.Serving{},
		Levels: spec.Connections, Kinds: spec.Kinds, Ramps: max(spec.Ramps, 1),
	}
	c.SharedKernel = p.plan.SharedKernel(target.Name, c.LoadHosts)
	top := 0
	if len(c.Levels) > 0 {
		top = slices.Max(c.Levels)
	}
	c.Holders = p.holders(*spec, c.LoadHosts, top)
	for _, kind := range c.Kinds {
		serving, err := server.CapacityServing(p.input(target, s), kind, spec.Nginx)
		if err != nil {
			p.refuse(lab.Refusal{Host: target.Name, Path: "capacity", Reason: err.Error(), Cure: "correct the capacity section", Fatal: true})
			continue
		}
		c.Servings[kind] = serving
	}
	c.Limits = p.capacityLimits(c, overlaid(s, target.Name, spec.Nginx))
	p.plan.Capacity = c
	p.refuseLevels(c, top)
	p.warnMemory(c, top)
	return nil
}

// capacityState is the state asked for, else the last of the ladder, with the open-file limit raised as far as it
// goes unless the state sets it: the limit takes no memory, and the connections need it.
func (p *planner) capacityState(spec lab.CapacitySpec, target lab.HostName) lab.State {
	s, found := p.plan.State(spec.State)
	if !found {
		last := slices.DeleteFunc(slices.Clone(p.plan.States), func(s lab.State) bool { return s.Control || s.Without })
		s = last[len(last)-1]
		if spec.State != "" {
			p.warn(target, "capacity.state", fmt.Sprintf("state %q is left out; capacity is measured in %q", spec.State, s.Name))
		}
	}
	s.Settings = maps.Clone(s.Settings)
	if value(s, target, lab.KnobNofile, "") == "" {
		most := p.facts[target].NofileHard
		if nrOpen := p.facts[target].NrOpen; nrOpen > 0 {
			most = min(most, nrOpen)
		}
		nofile := lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: strconv.Itoa(most)}
		s.Settings[target] = append(slices.Clone(s.Settings[target]), nofile)
		sortSettings(s.Settings[target])
	}
	return s
}

// overlaid is a state with the directives of the capacity section over its own.
func overlaid(s lab.State, target lab.HostName, directives map[string]string) lab.State {
	const last = "capacity"
	s.Steps = append(slices.Clone(s.Steps), last)
	s.Settings = maps.Clone(s.Settings)
	settings := slices.Clone(s.Settings[target])
	for _, name := range slices.Sorted(maps.Keys(directives)) {
		settings = append(settings, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: name}, Value: directives[name], Step: last})
	}
	s.Settings[target] = settings
	return s
}

func (p *planner) loadHosts() []lab.HostName {
	var hosts []lab.HostName
	for _, h := range p.e.Hosts {
		if h.Has(lab.RoleLoad) {
			hosts = append(hosts, h.Name)
		}
	}
	return hosts
}

// holdingHosts are the load hosts that hold connections: those with a kernel other than the target's where there are any,
// so that its kernel memory is that of its own ends alone.
func (p *planner) holdingHosts(target lab.HostName) []lab.HostName {
	all := p.loadHosts()
	apart := slices.DeleteFunc(slices.Clone(all), func(host lab.HostName) bool { return lab.SameKernel(p.facts, target, host) })
	if len(apart) > 0 {
		return apart
	}
	return all
}

// holders is the number of holding processes per load host that the open-file limits ask for.
func (p *planner) holders(spec lab.CapacitySpec, hosts []lab.HostName, top int) int {
	if spec.Holders > 0 {
		return spec.Holders
	}
	need := minHolders
	shares := lab.Split(top, len(hosts))
	for i, host := range hosts {
		room := max(p.facts[host].NofileHard-ownFiles, 1)
		need = max(need, (shares[i]+room-1)/room)
	}
	return need
}

// capacityLimits are the known bounds on held connections, smallest first.
func (p *planner) capacityLimits(c *lab.CapacityPlan, s lab.State) []lab.CapacityLimit {
	facts := p.inForce(s)
	b, f := p.bounds(s, c.Target), facts[c.Target]
	ends, shared := int64(1), ""
	if c.SharedKernel {
		ends, shared = 2, ", two per connection because both ends are on this kernel"
	}
	var limits []lab.CapacityLimit
	if !b.foreign {
		limits = append(limits, lab.CapacityLimit{Name: "worker_connections", Connections: int64(b.workers) * int64(max(b.clean(), 0)),
			Detail: fmt.Sprintf("%d workers × %d: with a sixteenth of its %d worker_connections free, nginx begins to close idle ones; its listeners and its own take %d", b.workers, b.clean(), b.connections, listeners+2)})
	}
	limits = append(limits, lab.CapacityLimit{
		Name: "hard nofile", Connections: int64(b.workers) * int64(max(b.files-ownFiles, 0)),
		Detail: fmt.Sprintf("%d workers × %d open files, less %d of their own", b.workers, b.files, ownFiles),
	})
	limits = append(limits, holderLimits(c, facts)...)
	for _, bound := range []struct {
		name, text, detail string
	}{
		{"conntrack_max", f.Sysctls["net.netfilter.nf_conntrack_max"], "net.netfilter.nf_conntrack_max = %d entries"},
		{"fs.file-max", f.Sysctls["fs.file-max"], "fs.file-max = %d files"},
		{"tcp_mem", last(f.Sysctls["net.ipv4.tcp_mem"]), "net.ipv4.tcp_mem[2] = %d pages, at one page of buffers per socket"},
	} {
		if n, err := strconv.ParseInt(strings.TrimSpace(bound.text), 10, 64); err == nil {
			limits = append(limits, lab.CapacityLimit{Name: bound.name, Connections: n / ends, Detail: fmt.Sprintf(bound.detail, n) + shared})
		}
	}
	slices.SortStableFunc(limits, func(a, b lab.CapacityLimit) int { return cmp.Compare(a.Connections, b.Connections) })
	return limits
}

// holderLimits bound what the load hosts together can hold.
func holderLimits(c *lab.CapacityPlan, facts map[lab.HostName]lab.Facts) []lab.CapacityLimit {
	var files, ports int64
	for _, host := range c.LoadHosts {
		f := facts[host]
		files += int64(c.Holders) * int64(max(f.NofileHard-ownFiles, 0))
		ports += localPorts(f)
	}
	limits := []lab.CapacityLimit{{Name: "holders' nofile", Connections: files,
		Detail: fmt.Sprintf("%d holders on each load host × the hard limit of open files, less %d of their own", c.Holders, ownFiles)}}
	if ports > 0 {
		limits = append(limits, lab.CapacityLimit{Name: "ports", Connections: ports, Detail: "net.ipv4.ip_local_port_range of one source address per load host"})
	}
	return limits
}

// localPorts is the number of ports that connections from one address may have; 0 when unknown.
func localPorts(f lab.Facts) int64 {
	numbers := strings.Fields(f.Sysctls["net.ipv4.ip_local_port_range"])
	if len(numbers) != 2 {
		return 0
	}
	return int64(number(numbers[1], 0) - number(numbers[0], 0) + 1)
}

func last(vector string) string {
	numbers := strings.Fields(vector)
	if len(numbers) == 0 {
		return ""
	}
	return numbers[len(numbers)-1]
}

// cures of a bound on capacity.
var cures = map[string]string{
	"worker_connections": "raise events.worker_connections or worker_processes under capacity.nginx, or lower capacity.connections",
	"hard nofile":        "raise worker_processes under capacity.nginx or the hard limit of open files, or lower capacity.connections",
	"holders' nofile":    "raise capacity.holders, or lower capacity.connections",
	"ports":              "widen net.ipv4.ip_local_port_range in a step of that state, with on: [load], or add load hosts, or lower capacity.connections",
}

// roughBytes is what a connection takes in kernel and server, about: enough to see that a container's bound is too tight.
const roughBytes = 8 << 10

// warnMemory says when the levels hardly fit into the target's container: the kernel would end its processes.
func (p *planner) warnMemory(c *lab.CapacityPlan, top int) {
	f := p.facts[c.Target]
	if bound := f.BoundBytes(); f.CgroupBytes > 0 && int64(top)*roughBytes > bound {
		p.warn(c.Target, "capacity.connections", fmt.Sprintf("capacity: %d connections take about %d MiB, and processes of %s may have %d MiB",
			top, int64(top)*roughBytes>>20, c.Target, bound>>20))
	}
}

// refuseLevels refuses levels beyond a bound that is sure, and warns of those that depend on more.
func (p *planner) refuseLevels(c *lab.CapacityPlan, top int) {
	for _, limit := range c.Limits {
		if int64(top) <= limit.Connections {
			continue
		}
		text := fmt.Sprintf("capacity: %d connections are above %s = %d (%s)", top, limit.Name, limit.Connections, limit.Detail)
		if limit.Name == "tcp_mem" || limit.Name == "conntrack_max" && !tracking(p.facts[c.Target]) {
			p.warn(c.Target, "capacity.connections", text)
			continue
		}
		cure := cmp.Or(cures[limit.Name], "raise it, or lower capacity.connections")
		p.refuse(lab.Refusal{Host: c.Target, Path: "capacity.connections", Reason: text, Cure: cure, Fatal: true})
	}
}

// tracking reports whether the kernel tracks connections at present.
func tracking(f lab.Facts) bool { return number(f.Sysctls["net.netfilter.nf_conntrack_count"], 0) > 0 }
