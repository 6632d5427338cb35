package observe

import (
	"slices"

	"ngxlab/lab"
)

// client looks at every load host of the run.
func client(in Input, s series) ClientView {
	var v ClientView
	v.SharedCPUs, v.SharedKnown = sharedCPUs(in)
	var retrans, opens []Number
	for _, host := range loadHosts(in) {
		if busy := generatorBusy(in, s, host); busy.Known {
			v.Busy = larger(v.Busy, busy)
		} else {
			v.Unseen = append(v.Unseen, host)
		}
		if thread := busiestThread(s, host, loadPIDs(in, host)); thread.Known {
			v.ThreadMax = larger(v.ThreadMax, thread)
		} else {
			v.UnseenThreads = append(v.UnseenThreads, host)
		}
		retrans, opens = append(retrans, s.counter(host, "TCPSynRetrans")), append(opens, s.counter(host, "ActiveOpens"))
	}
	v.SynRetrans, v.ActiveOpens = total(retrans), total(opens)
	return v
}

// generatorBusy is the busy share of the CPUs that the load processes of a host may use or, if that is more, of its quota;
// unknown when either is.
func generatorBusy(in Input, s series, host lab.HostName) Number {
	those, ok := s.edges(host, hasPIDs(loadPIDs(in, host)))
	if !ok {
		return Number{}
	}
	busy, quota := busyShare(those, generatorCPUs(in, host)), in.Facts[host].CgroupCPUs
	if quota <= 0 || !busy.Known {
		return busy
	}
	used := those.cores(those.cpuSeconds(isLoad))
	if !used.Known {
		return Number{}
	}
	return larger(busy, known(used.Value/quota))
}

func isLoad(p lab.ProcessSample) bool { return p.Role == lab.LoadProcess }

func larger(a, b Number) Number {
	if !a.Known || b.Known && b.Value > a.Value {
		return b
	}
	return a
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
func busyShare(those span, cpus []int) Number {
	spent, ok := those.cpus()
	busy, idle := 0.0, 0.0
	for _, c := range spent {
		if slices.Contains(cpus, c.CPU) {
			busy += c.BusyS()
			idle += c.IdleS
		}
	}
	if !ok || busy+idle <= 0 {
		return Number{}
	}
	return known(busy / (busy + idle))
}

// hosts looks at the environment on the target, every load host, and the host of an upstream.
func hosts(in Input, s series) []HostView {
	target := in.Run.Cell.Target
	names := []lab.HostName{target}
	for _, host := range loadHosts(in) {
		if host != target {
			names = append(names, host)
		}
	}
	if up := in.Serving.Upstream; up != nil && !slices.Contains(names, up.Target) {
		names = append(names, up.Target)
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
	if those, ok := s.ends(v.Name, anySample); ok {
		v.SpanS = those.seconds()
		v.SwapPages = those.grown(func(sample lab.Sample) float64 { return float64(sample.SwapPages) })
		v.ClockStepS = known(float64(those.last().WallNS-those[0].WallNS)/1e9 - v.SpanS)
	}
	if those, ok := s.edges(v.Name, complete(in, v.Name)); ok {
		v.Foreign = foreign(those, in, s, v.Name)
		v.Steal = steal(those)
	}
	throttled(v, in, s)
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
func foreign(those span, in Input, s series, host lab.HostName) Number {
	spent, ok := those.cpus()
	if !ok {
		return Number{}
	}
	busy, bothEnds := 0.0, oneKernel(in)
	for _, c := range spent {
		busy += c.BusyS()
		if !bothEnds {
			busy -= c.SoftIRQS + c.IRQS
		}
	}
	var ours []Number
	for _, name := range sharing(in, s, host) {
		ours = append(ours, ownCores(in, s, name))
	}
	return minus(those.cores(known(busy)), total(ours))
}

// ownCores are those that the lab used of a host: its processes there, and the agent.
func ownCores(in Input, s series, host lab.HostName) Number {
	those, ok := s.edges(host, complete(in, host))
	if !ok {
		return Number{}
	}
	processes := those.cpuSeconds(func(lab.ProcessSample) bool { return true })
	agent := those.grown(func(sample lab.Sample) float64 { return sample.AgentCPUS })
	return those.cores(total([]Number{processes, agent}))
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

// oneKernel reports whether the target, its upstream and all generators are on one kernel.
func oneKernel(in Input) bool {
	elsewhere := func(host lab.HostName) bool { return !lab.SameKernel(in.Facts, in.Run.Cell.Target, host) }
	if up := in.Serving.Upstream; up != nil && elsewhere(up.Target) {
		return false
	}
	return in.SharedKernel && !slices.ContainsFunc(loadHosts(in), elsewhere)
}

func steal(those span) Number {
	spent, ok := those.cpus()
	stolen, all := 0.0, 0.0
	for _, c := range spent {
		stolen += c.StealS
		all += c.StealS + c.BusyS() + c.IdleS
	}
	if !ok || all <= 0 {
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
