package observe

import (
	"slices"

	"ngxlab/lab"
)

// client looks at every load host of the run.
func client(in Input, s series) ClientView {
	var v ClientView
	v.SharedCPUs, v.SharedKnown = sharedCPUs(in)
	for _, host := range loadHosts(in) {
		pids := loadPIDs(in, host)
		a, b, ok := s.edges(host, hasPIDs(pids))
		if !ok {
			continue
		}
		v.Busy = larger(v.Busy, busyShare(a, b, generatorCPUs(in, host)))
		v.Busy = larger(v.Busy, quotaShare(a, b, in.Facts[host].CgroupCPUs))
		v.ThreadMax = larger(v.ThreadMax, busiestThread(a, b, pids))
	}
	for _, host := range loadHosts(in) {
		v.SynRetrans = sum(v.SynRetrans, s.counter(host, "TCPSynRetrans"))
		v.ActiveOpens = sum(v.ActiveOpens, s.counter(host, "ActiveOpens"))
	}
	return v
}

func larger(a, b Number) Number {
	if !a.Known || b.Known && b.Value > a.Value {
		return b
	}
	return a
}

func sum(a, b Number) Number {
	switch {
	case !a.Known:
		return b
	case !b.Known:
		return a
	}
	return known(a.Value + b.Value)
}

// loadHosts are the hosts that ran load processes, by name.
func loadHosts(in Input) []lab.HostName {
	var out []lab.HostName
	for _, p := range in.Run.Processes {
		if !slices.Contains(out, p.Host) {
			out = append(out, p.Host)
		}
	}
	slices.Sort(out)
	return out
}

func loadPIDs(in Input, host lab.HostName) []int {
	var pids []int
	for _, p := range in.Run.Processes {
		if p.Host == host {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// hasPIDs says that a sample shows all of the processes at work.
func hasPIDs(pids []int) func(lab.Sample) bool {
	return func(s lab.Sample) bool {
		for _, pid := range pids {
			if !slices.ContainsFunc(s.Processes, func(p lab.ProcessSample) bool { return p.PID == pid }) {
				return false
			}
		}
		return len(pids) > 0
	}
}

// generatorCPUs are the CPUs that the load processes of a host may use.
func generatorCPUs(in Input, host lab.HostName) []int {
	var cpus []int
	for _, p := range in.Run.Processes {
		if p.Host != host {
			continue
		}
		if len(p.Command.CPUs) == 0 {
			return allCPUs(in, host)
		}
		cpus = append(cpus, p.Command.CPUs...)
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// quotaShare is the share of a CPU quota that load processes used; unknown without a quota.
func quotaShare(a, b lab.Sample, quota float64) Number {
	if quota <= 0 {
		return Number{}
	}
	load := processSeconds(a, b, func(p lab.ProcessSample) bool { return p.Role == lab.LoadProcess })
	return known(load / seconds(a, b) / quota)
}

// sharedCPUs are the CPUs that server and generators on its kernel may both use; known when the target's CPUs are.
func sharedCPUs(in Input) ([]int, bool) {
	target := in.Run.Cell.Target
	server := serverCPUs(in)
	if len(server) == 0 {
		return nil, false
	}
	var shared []int
	for _, host := range loadHosts(in) {
		if !lab.SameKernel(in.Facts, target, host) {
			continue
		}
		for _, cpu := range generatorCPUs(in, host) {
			if slices.Contains(server, cpu) {
				shared = append(shared, cpu)
			}
		}
	}
	slices.Sort(shared)
	return slices.Compact(shared), true
}

// busyShare is the mean busy share of some CPUs; stolen time counts neither way.
func busyShare(a, b lab.Sample, cpus []int) Number {
	busy, idle := 0.0, 0.0
	for _, after := range b.CPUs {
		i := slices.IndexFunc(a.CPUs, func(c lab.CPUTimes) bool { return c.CPU == after.CPU })
		if i < 0 || !slices.Contains(cpus, after.CPU) {
			continue
		}
		busy += after.BusyS() - a.CPUs[i].BusyS()
		idle += after.IdleS - a.CPUs[i].IdleS
	}
	if busy+idle <= 0 {
		return Number{}
	}
	return known(busy / (busy + idle))
}

func busiestThread(a, b lab.Sample, pids []int) Number {
	before := map[int]float64{}
	for _, p := range a.Processes {
		for thread, s := range p.Threads {
			before[thread] = s
		}
	}
	busiest := Number{}
	for _, p := range b.Processes {
		if !slices.Contains(pids, p.PID) {
			continue
		}
		for thread, s := range p.Threads {
			busiest = larger(busiest, known((s-before[thread])/seconds(a, b)))
		}
	}
	return busiest
}

// hosts looks at the environment on the target and every load host.
func hosts(in Input, s series) []HostView {
	target := in.Run.Cell.Target
	names := []lab.HostName{target}
	for _, host := range loadHosts(in) {
		if host != target {
			names = append(names, host)
		}
	}
	var views []HostView
	for _, name := range names {
		v := HostView{Name: name, Target: name == target, Load: slices.Contains(loadHosts(in), name), Cores: len(allCPUs(in, name))}
		environment(&v, in, s)
		yardsticks(&v, in)
		views = append(views, v)
	}
	return views
}

func environment(v *HostView, in Input, s series) {
	for _, sample := range s.of[v.Name] {
		if id := in.BootIDs[v.Name]; id != "" && sample.BootID != "" && sample.BootID != id {
			v.Rebooted = true
		}
	}
	if a, b, ok := s.ends(v.Name, anySample); ok {
		v.SpanS = seconds(a, b)
		v.SwapPages = known(float64(b.SwapPages) - float64(a.SwapPages))
		v.ClockStepS = known(float64(b.WallNS-a.WallNS)/1e9 - seconds(a, b))
	}
	if a, b, ok := s.edges(v.Name, complete(in, v.Name)); ok {
		v.Foreign = foreign(a, b, in, s, v.Name)
		v.Steal = steal(a, b)
	}
}

// complete says that a sample of a host shows all that the lab runs there.
func complete(in Input, host lab.HostName) func(lab.Sample) bool {
	if pids := loadPIDs(in, host); len(pids) > 0 {
		return hasPIDs(pids)
	}
	return anySample
}

// foreign is the CPU that was used by others than the lab's servers, generators and agents. /proc/stat shows a container
// the whole machine, so the lab's own are those of every host on the kernel. Where both ends of all connections are on
// it, the receive path is billed to the sending process; otherwise soft interrupts belong to no process and are left out.
func foreign(a, b lab.Sample, in Input, s series, host lab.HostName) Number {
	busy, bothEnds := 0.0, oneKernel(in)
	for _, after := range b.CPUs {
		i := slices.IndexFunc(a.CPUs, func(c lab.CPUTimes) bool { return c.CPU == after.CPU })
		if i < 0 {
			continue
		}
		busy += after.BusyS() - a.CPUs[i].BusyS()
		if !bothEnds {
			busy -= after.SoftIRQS - a.CPUs[i].SoftIRQS + after.IRQS - a.CPUs[i].IRQS
		}
	}
	if len(b.CPUs) == 0 {
		return Number{}
	}
	cores := busy / seconds(a, b)
	for _, name := range sharing(in, s, host) {
		a, b, ok := s.edges(name, complete(in, name))
		if !ok {
			return Number{}
		}
		ours := processSeconds(a, b, func(lab.ProcessSample) bool { return true }) + b.AgentCPUS - a.AgentCPUS
		cores -= ours / seconds(a, b)
	}
	return known(cores)
}

// sharing are the hosts of the run and those sampled that are on a host's kernel, itself among them.
func sharing(in Input, s series, host lab.HostName) []lab.HostName {
	names := append(loadHosts(in), in.Run.Cell.Target)
	for name := range s.of {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name lab.HostName) bool { return !lab.SameKernel(in.Facts, host, name) })
}

// oneKernel reports whether the target and all generators are on one kernel.
func oneKernel(in Input) bool {
	elsewhere := func(host lab.HostName) bool { return !lab.SameKernel(in.Facts, in.Run.Cell.Target, host) }
	return in.SharedKernel && !slices.ContainsFunc(loadHosts(in), elsewhere)
}

func steal(a, b lab.Sample) Number {
	stolen, all := 0.0, 0.0
	for _, after := range b.CPUs {
		i := slices.IndexFunc(a.CPUs, func(c lab.CPUTimes) bool { return c.CPU == after.CPU })
		if i < 0 {
			continue
		}
		before := a.CPUs[i]
		stolen += after.StealS - before.StealS
		all += after.StealS - before.StealS + after.BusyS() - before.BusyS() + after.IdleS - before.IdleS
	}
	if all <= 0 {
		return Number{}
	}
	return known(stolen / all)
}

func yardsticks(v *HostView, in Input) {
	for _, y := range in.Run.Yardsticks {
		if y.Host != v.Name || len(y.CPUS) == 0 {
			continue
		}
		mean := 0.0
		for _, s := range y.CPUS {
			mean += s / float64(len(y.CPUS))
		}
		if y.After {
			v.YardAfter = known(mean)
		} else {
			v.YardBefore = known(mean)
		}
	}
	if m, ok := in.MedianYardstickS[v.Name]; ok && m > 0 {
		v.YardMedian = known(m)
	}
}
