package conduct

import (
	"maps"
	"slices"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/observe"
	"ngxlab/lab/tune"
)

// observed adds what the monitors saw: derived figures, findings, validity and the limiting resource.
func (c *campaign) observed(run lab.Run, p lab.LoadPoint, f fresh, seen *shot) lab.Run {
	o := observe.Observe(observe.Input{
		Run: run, Point: p, Serving: f.serving, Facts: c.plan.Facts,
		SharedKernel: c.plan.SharedKernel(run.Cell.Target, p.Hosts), Knobs: c.readings(seen), BootIDs: c.bootIDs(),
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

// readings hold every knob of the hosts against the state in force: what it should be, and what it was before or, when
// that was right, after the run.
func (c *campaign) readings(seen *shot) []observe.KnobReading {
	var all []observe.KnobReading
	for _, name := range c.names() {
		ids := c.knobIDs(name)
		before, after := seen.before[name], seen.after[name]
		if len(before) != len(ids) || len(after) != len(ids) {
			continue // a host that takes no part in this run
		}
		for i, id := range ids {
			want, found := c.wanted(name, id), normal(id, before[i])
			if found == want {
				found = normal(id, after[i])
			}
			all = append(all, observe.KnobReading{Host: name, Knob: id, Before: want, After: found})
		}
	}
	return all
}

// wanted is the value of a knob in the state in force.
func (c *campaign) wanted(name lab.HostName, id lab.KnobID) lab.Value {
	for _, s := range c.inForce.Settings[name] {
		if s.Knob == id {
			return normal(id, lab.Value{Text: s.Value})
		}
	}
	return lab.Value{Absent: true}
}

func normal(id lab.KnobID, v lab.Value) lab.Value {
	v.Text = tune.Normalise(id, v.Text)
	return v
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
