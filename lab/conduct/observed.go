package conduct

import (
	"maps"
	"slices"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/observe"
)

// observed adds what the monitors saw: derived figures, findings, validity and the limiting resource.
func (c *campaign) observed(run lab.Run, p lab.LoadPoint, s lab.Serving, seen *shot) lab.Run {
	o := observe.Observe(observe.Input{
		Run: run, Point: p, Serving: s, Facts: c.plan.Facts,
		SharedKernel: c.plan.SharedKernel(run.Cell.Target, p.Hosts), Knobs: seen.knobs, BootIDs: c.bootIDs(),
		MedianYardstickS: c.yardsticks(run), Ahead: c.ahead(run.Cell.Target), ClockDoubt: c.clockDoubt(run.Cell.Target),
	})
	maps.Copy(run.Figures, o.Figures)
	run.Findings, run.Validity = observe.Judge(o, observe.Rules())
	run.Limit = observe.Limiting(run.Findings)
	return run
}

// clockDoubt is how far the other hosts' clocks may be off against the target's.
func (c *campaign) clockDoubt(target lab.HostName) map[lab.HostName]time.Duration {
	doubt := map[lab.HostName]time.Duration{}
	for name, clock := range c.clocks {
		if name != target {
			doubt[name] = lab.Seconds(clock.UncertaintyS + c.clocks[target].UncertaintyS).Duration
		}
	}
	return doubt
}

// bootIDs are those of the facts.
func (c *campaign) bootIDs() map[lab.HostName]string {
	ids := map[lab.HostName]string{}
	for name, facts := range c.plan.Facts {
		ids[name] = facts.BootID
	}
	return ids
}

// yardsticks are the campaign's medians so far, this run included, per host in seconds.
func (c *campaign) yardsticks(run lab.Run) map[lab.HostName]float64 {
	times := map[lab.HostName][]float64{}
	for _, r := range append(slices.Clone(c.runs), run) {
		for _, y := range r.Yardsticks {
			times[y.Host] = append(times[y.Host], y.CPUS...)
		}
	}
	medians := map[lab.HostName]float64{}
	for host, all := range times {
		if len(all) > 0 {
			slices.Sort(all)
			medians[host] = all[len(all)/2]
		}
	}
	return medians
}
