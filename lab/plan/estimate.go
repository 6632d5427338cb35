package plan

import (
	"slices"
	"time"

	"ngxlab/lab"
)

// What parts of a campaign take, as measured on a machine of 2 cores (METHOD, DESIGN §15).
const (
	buildTime   = 45 * time.Second       // configure and make of nginx
	unpackTime  = 15 * time.Second       // index and packages of a distribution, unpacked
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

// preparation is packages, builds, and one start of every server to see that it works.
func (p *planner) preparation() time.Duration {
	all := time.Duration(len(p.plan.Packages))*installTime + time.Duration(len(p.plan.Servings))*startTime
	for _, r := range p.plan.Builds {
		all += makingTime(p.plan, r)
	}
	return all
}

// makingTime is how long a build takes on all hosts that need it: those of one distribution and architecture share what is
// compiled.
func makingTime(pl lab.Plan, r lab.Recipe) time.Duration {
	platforms := map[[2]string]bool{}
	for _, host := range buildHosts(pl, r.Name) {
		f := pl.Facts[host]
		platforms[[2]string{f.Distribution, f.Architecture}] = true
	}
	each := buildTime
	switch {
	case r.Installed != "":
		each = 0
	case len(r.Package) > 0:
		each = unpackTime
	}
	return time.Duration(len(platforms)) * each
}

// buildHosts are those that a server of the build runs on, in the order of the servings.
func buildHosts(pl lab.Plan, build string) []lab.HostName {
	var hosts []lab.HostName
	for _, s := range pl.Servings {
		for at := &s; at != nil; at = at.Upstream {
			if at.Recipe == build && !slices.Contains(hosts, at.Target) {
				hosts = append(hosts, at.Target)
			}
		}
	}
	return hosts
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
