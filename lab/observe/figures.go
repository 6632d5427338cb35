package observe

import (
	"slices"

	"ngxlab/lab"
)

// derived returns the figures that the samples give: CPU of both sides, the server's counts, foreign CPU, Little's ratio,
// memory and yardstick. A figure whose observation is missing is absent.
func derived(in Input, o Observation, s series) lab.Figures {
	f := lab.Figures{}
	put := func(m lab.Metric, n Number) {
		if n.Known {
			f[m] = n.Value
		}
	}
	put(lab.ServerRequests, o.Counts.Requests)
	put(lab.ServerAccepts, o.Counts.Accepts)
	put(lab.ServerCPU, o.Server.Cores)
	if len(o.Client.Unseen) == 0 {
		put(lab.ClientBusy, o.Client.Busy)
	}
	if len(o.Client.UnseenThreads) == 0 {
		put(lab.ClientThreadMax, o.Client.ThreadMax)
	}
	putThrottled(put, o.Hosts)
	put(lab.CPUPerRequest, cpuPerRequest(in, s))
	put(lab.ClientCPU, clientCores(in, s))
	put(lab.LittleRatio, little(o))
	put(lab.ServerPSS, pss(s.inside(in.Run.Cell.Target)))
	if len(o.Server.Workers) > 0 {
		f[lab.ServerCPUWorker] = o.Server.Workers[0]
	}
	if those, ok := s.edges(in.Run.Cell.Target, anySample); ok {
		put(lab.ServerBusy, busyShare(those, serverCPUs(in)))
	}
	if cores, n, d := f[lab.ClientCPU], o.Figures[lab.Requests], o.Figures[lab.DurationS]; cores > 0 && n > 0 {
		put(lab.ClientCPUPerReq, known(cores*d/n))
	}
	put(lab.ForeignCPU, worstForeign(o.Hosts))
	put(lab.YardstickS, yardstick(o.Hosts))
	return f
}

// cpuPerRequest is the CPU time of all server processes over the requests the server counted, less the lab's polls,
// between the same two samples: of the window, or all around it when the window has none.
func cpuPerRequest(in Input, s series) Number {
	target := in.Run.Cell.Target
	both := func(sample lab.Sample) bool { return hasCount(sample) && hasServer(sample) }
	those, ok := s.edges(target, both)
	if !ok {
		those, ok = s.ends(target, both)
	}
	if !ok || replaced(in.Run.Server, those) != "" {
		return Number{}
	}
	requests, cpu := those.served(), those.cpuSeconds(isServer)
	if !requests.Known || requests.Value <= 0 || !cpu.Known || cpu.Value <= 0 {
		return Number{}
	}
	return known(cpu.Value / requests.Value)
}

// clientCores are those that the load processes of all hosts used, unknown when those of one host are.
func clientCores(in Input, s series) Number {
	var all []Number
	for _, host := range loadHosts(in) {
		cores := Number{}
		if those, ok := s.edges(host, hasPIDs(loadPIDs(in, host))); ok {
			cores = those.cores(those.cpuSeconds(isLoad))
		}
		all = append(all, cores)
	}
	return total(all)
}

// little is n/D × R / c with the measured mean R: how many of the connections had a request in progress.
func little(o Observation) Number {
	n, d, r := o.Figures[lab.Requests], o.Figures[lab.DurationS], of(o.Figures, lab.MeanS)
	c := float64(o.Point.Connections)
	if n <= 0 || d <= 0 || c <= 0 || !r.Known || r.Value <= 0 {
		return Number{}
	}
	return known(n / d * r.Value / c)
}

// pss is that of the last sample in which every process of the server shows it.
func pss(samples []lab.Sample) Number {
	for _, s := range slices.Backward(samples) {
		if bytes, anonymous, ok := s.ServerMemory(); ok && !anonymous {
			return known(float64(bytes))
		}
	}
	return Number{}
}

func worstForeign(hosts []HostView) Number {
	worst := Number{}
	for _, h := range hosts {
		worst = larger(worst, h.Foreign)
	}
	return worst
}

// yardstick is the target's, mean of before and after.
func yardstick(hosts []HostView) Number {
	if len(hosts) == 0 || !hosts[0].YardBefore.Known || !hosts[0].YardAfter.Known {
		return Number{}
	}
	return known((hosts[0].YardBefore.Value + hosts[0].YardAfter.Value) / 2)
}
