package plan

import (
	"time"

	"ngxlab/lab"
)

// What parts of a campaign take, as measured on a machine of 2 cores (METHOD, DESIGN §15).
const (
	buildTime   = 45 * time.Second       // configure and make of nginx
	installTime = 20 * time.Second       // packages of one host
	startTime   = 500 * time.Millisecond // a fresh server, checked and probed
	betweenRuns = 100 * time.Millisecond // neither load nor cool-down: yardsticks, clocks, the store
	settleTime  = 3 * time.Second        // of a capacity level: 2 s without change, and what comes before
	openRate    = 10000                  // connections opened per second
	assumedRate = 10000                  // requests per second, where a load point runs for a count
)

// estimate tells how long the campaign will take with the fewest and with the most rounds.
func (p *planner) estimate() {
	fixed := p.preparation() + p.capacityTime()
	round, r := p.roundTime(), p.e.Repeat
	least := time.Duration(max(r.Min, 1)) * round
	most := time.Duration(max(r.Max, r.Min, 1)) * round
	if r.Budget.Duration > 0 {
		most = min(most, max(least, r.Budget.Duration))
	}
	p.plan.Estimate = lab.Duration{Duration: fixed + least}
	p.plan.EstimateMax = lab.Duration{Duration: fixed + most}
}

// preparation is packages, builds, and one start of every server to see that it works. Targets of one distribution and
// architecture share a build.
func (p *planner) preparation() time.Duration {
	platforms := map[[2]string]bool{}
	for _, target := range p.targets {
		f := p.facts[target.Name]
		platforms[[2]string{f.Distribution, f.Architecture}] = true
	}
	return time.Duration(len(p.plan.Packages))*installTime +
		time.Duration(len(p.plan.Builds)*len(platforms))*buildTime +
		time.Duration(len(p.plan.Servings))*startTime
}

func (p *planner) roundTime() time.Duration {
	servings := time.Duration(len(p.targets) * len(p.plan.States))
	serving := startTime
	for i, l := range p.plan.Loads {
		warmup := l.Warmup.Duration
		if i == 0 {
			warmup = l.WarmupFirst.Duration
		}
		serving += warmup + duration(l) + p.e.Repeat.CoolDown.Duration + betweenRuns
	}
	return servings * serving
}

func duration(l lab.LoadPoint) time.Duration {
	if l.Timed() {
		return l.Duration.Duration
	}
	return time.Duration(l.Requests) * time.Second / assumedRate
}

func (p *planner) capacityTime() time.Duration {
	c := p.plan.Capacity
	if c == nil {
		return 0
	}
	ramp, open := startTime, 0
	for _, level := range c.Levels {
		ramp += settleTime + time.Duration(max(level-open, 0))*time.Second/openRate
		open = max(level, open)
	}
	return time.Duration(c.Ramps*len(c.Kinds)) * ramp
}
