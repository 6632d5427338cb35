package lab

import (
	"math"
	"slices"
)

// SameKernel reports whether two hosts run on one kernel: they are one host, or they were booted as one (containers of
// one machine, that machine among them). Hosts without facts share nothing.
func SameKernel(facts map[HostName]Facts, a, b HostName) bool {
	if a == b {
		return true
	}
	id := facts[a].BootID
	return id != "" && id == facts[b].BootID
}

// SameMachine reports whether two hosts are one machine under two names: one kernel and one network. Containers of one
// machine have networks of their own.
func SameMachine(a, b Facts) bool {
	if a.BootID == "" || a.BootID != b.BootID {
		return false
	}
	if a.Network == "" || b.Network == "" {
		return a.Container == "" && b.Container == ""
	}
	return a.Network == b.Network
}

// Kernels are the groups of two or more hosts that share a kernel, in the order of names.
func Kernels(facts map[HostName]Facts, names []HostName) [][]HostName {
	var groups [][]HostName
	for i, name := range names {
		shares := func(other HostName) bool { return SameKernel(facts, name, other) }
		if slices.ContainsFunc(names[:i], shares) {
			continue // it is in the group of that one
		}
		group := slices.DeleteFunc(slices.Clone(names[i:]), func(other HostName) bool { return !shares(other) })
		if len(group) > 1 {
			groups = append(groups, group)
		}
	}
	return groups
}

// SameKernel reports whether two hosts of the plan run on one kernel.
func (p Plan) SameKernel(a, b HostName) bool { return SameKernel(p.Facts, a, b) }

// SharedKernel reports whether any of the load hosts runs on the target's kernel.
func (p Plan) SharedKernel(target HostName, load []HostName) bool {
	return slices.ContainsFunc(load, func(host HostName) bool { return p.SameKernel(target, host) })
}

// YardstickHosts are those of the hosts whose yardstick is to be taken, in their order. Hosts of one kernel that may use the
// same CPUs would slow each other down and measure the same: the first stands for them.
func (p Plan) YardstickHosts(hosts []HostName) []HostName {
	var timed []HostName
	for _, name := range hosts {
		overlaps := func(other HostName) bool {
			return p.SameKernel(name, other) && Overlap(p.Facts[name].CPUs, p.Facts[other].CPUs)
		}
		if !slices.ContainsFunc(timed, overlaps) {
			timed = append(timed, name)
		}
	}
	return timed
}

// Overlap reports whether two lists have a CPU in common; a list that is not known may have any.
func Overlap(a, b []int) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(cpu int) bool { return slices.Contains(b, cpu) })
}

// UsableCPUs is how many CPUs' worth of time processes of the host can have: those that the agent may use or, when
// that is less, the CPU quota rounded up. 0 when nothing is known.
func (f Facts) UsableCPUs() int {
	n := len(f.CPUs)
	if n == 0 {
		n = f.Cores
	}
	if quota := int(math.Ceil(f.CgroupCPUs)); quota > 0 && (n == 0 || quota < n) {
		n = quota
	}
	return n
}

// BoundBytes is the memory that processes of the host can have: the machine's or, when that is less, the bound of
// their control group.
func (f Facts) BoundBytes() int64 {
	if f.CgroupBytes > 0 && (f.MemoryBytes == 0 || f.CgroupBytes < f.MemoryBytes) {
		return f.CgroupBytes
	}
	return f.MemoryBytes
}
