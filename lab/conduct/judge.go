package conduct

import (
	"cmp"
	"slices"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/observe"
)

// judge turns what was seen into figures, findings and a validity.
func (c *campaign) judge(run lab.Run, p lab.LoadPoint, s lab.Serving, seen *shot) lab.Run {
	for i, process := range run.Processes {
		run.Processes[i] = load.Parse(process)
	}
	slices.SortFunc(run.Processes, func(a, b lab.Process) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	slices.SortStableFunc(run.Samples, func(a, b lab.Sample) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.At, b.At))
	})
	merged := load.Merge(run.Processes, load.MergeInput{
		Point: p, Probe: run.Server.Probes[p.URL], Served: served(run.Samples, run.Cell.Target), Ahead: c.ahead(run.Cell.Target),
	})
	run.Figures, run.Histogram, run.Grade = merged.Figures, merged.Histogram, merged.Grade
	run.LoopModel, run.Window, run.Problem = merged.LoopModel, merged.Window, merged.Problem
	if run.Figures == nil {
		run.Figures = lab.Figures{}
	}
	return c.observed(run, p, s, seen)
}

// served are the target's counts of requests, the lab's own polls subtracted.
func served(samples []lab.Sample, target lab.HostName) []load.Served {
	var counts []load.Served
	for _, s := range samples {
		if n, known := observe.Requests(s); known && s.Host == target {
			counts = append(counts, load.Served{At: s.At, Requests: n})
		}
	}
	return counts
}

// ahead is how far each host's clock is ahead of the target's.
func (c *campaign) ahead(target lab.HostName) map[lab.HostName]time.Duration {
	ahead := map[lab.HostName]time.Duration{}
	now := time.Now()
	for name, clock := range c.clocks {
		ahead[name] = clock.Instant(now).Sub(c.clocks[target].Instant(now))
	}
	return ahead
}
