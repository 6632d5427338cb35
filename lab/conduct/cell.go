package conduct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ngxlab/lab"
)

// Between runs client-side ports may run short: wait while more than half of them are in TIME_WAIT (METHOD §8).
const (
	timeWaitShare = 0.5
	timeWaitMax   = 60 * time.Second
	timeWaitPoll  = time.Second
)

// cell warms up, measures, judges and commits one run, and lets what is left of the cool-down pass. Where a knob is found
// drifted before the load, none is fired.
func (c *campaign) cell(ctx context.Context, round int, id lab.CellID, r *running) (lab.Run, error) {
	point, okPoint := c.plan.Load(id.Load)
	driving, okDriving := c.driving(id)
	if !okPoint || !okDriving {
		return lab.Run{}, fmt.Errorf("round %d: the plan cannot drive load point %q against %s", round, id.Load, id.Target)
	}
	run, err := c.announce(ctx, round, id, r)
	if err != nil {
		return run, err
	}
	if err := c.warm(ctx, id, driving, !r.warmed); err != nil {
		return run, fmt.Errorf("warm up for %s, %s, round %d: %w", id.State, id.Load, round, err)
	}
	r.warmed = true
	seen, err := c.shoot(ctx, r, point, driving)
	if errors.Is(err, errDrifted) {
		return c.unfired(ctx, run, seen)
	}
	if err != nil {
		return run, fmt.Errorf("measure %s, %s, round %d: %w", id.State, id.Load, round, err)
	}
	run = c.judge(c.account(run, seen), point, r.serving, seen)
	if err := c.keep(ctx, run); err != nil {
		return run, err
	}
	if err := c.coolDown(ctx, point, seen); err != nil {
		return run, fmt.Errorf("cool down after %s, %s, round %d: %w", id.State, id.Load, round, err)
	}
	return run, nil
}

// announce says that a run begins, and gives it its place in the campaign.
func (c *campaign) announce(ctx context.Context, round int, id lab.CellID, r *running) (lab.Run, error) {
	n, _ := c.attempts(round, id)
	run := lab.Run{Cell: id, Round: round, Attempt: n + 1, Part: c.plan.Part, Server: r.server}
	run.Server.ReadBack = slices.Concat(r.server.ReadBack, c.otherThanAsked(id))
	kind := lab.EventRun
	if n > 0 {
		kind = lab.EventRetry
	}
	return run, c.say(ctx, lab.Event{Kind: kind, Host: id.Target, Cell: &id, Round: round, Text: id.State + ", " + id.Load})
}

// driving finds the plan's commands for a cell.
func (c *campaign) driving(id lab.CellID) (lab.Driving, bool) {
	for _, d := range c.plan.Drivings {
		if d.Target == id.Target && d.Load == id.Load {
			return d, true
		}
	}
	return lab.Driving{}, false
}

// warm runs the same shape of load just before; its results are not used, its time is not overhead.
func (c *campaign) warm(ctx context.Context, id lab.CellID, d lab.Driving, first bool) error {
	commands := d.Warmup
	if first {
		commands = d.First
	}
	if len(commands) == 0 {
		return nil
	}
	if err := c.say(ctx, lab.Event{Kind: lab.EventWarmup, Host: id.Target, Cell: &id, Text: id.State + ", " + id.Load}); err != nil {
		return err
	}
	return c.armed(ctx, commands, func(sets map[lab.HostName]set) error {
		begin := time.Now()
		_, err := c.fire(ctx, sets, begin.Add(c.lead()))
		c.exempt(time.Since(begin))
		return err
	})
}

// exempt takes time that was load, rest or a server's start out of what the lab needs between two runs.
func (c *campaign) exempt(d time.Duration) {
	if !c.idle.IsZero() { // there was a run before
		c.idle = c.idle.Add(d)
	}
}

// account sets the run's times: when it began, and what passed since the run before that was neither load, cool-down
// nor server start. From its end on time counts anew.
func (c *campaign) account(run lab.Run, seen *shot) lab.Run {
	run.Began = seen.began.UTC()
	if !c.idle.IsZero() {
		run.OverheadS = max(0, seen.began.Sub(c.idle).Seconds())
	}
	c.idle = seen.ended
	run.Processes, run.Samples, run.Yardsticks = seen.processes, seen.samples, seen.yards
	return run
}

// keep commits a run, also when the campaign was cancelled while it was judged: it is measured, so it is not lost.
func (c *campaign) keep(ctx context.Context, run lab.Run) error {
	saved, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := c.commit(saved, lab.Record{Run: &run}); err != nil {
		return fmt.Errorf("record run %s, %s, round %d: %w", run.Cell.State, run.Cell.Load, run.Round, err)
	}
	run.Processes, run.Samples = nil, nil // the store has them; the campaign needs figures and findings only
	c.runs = append(c.runs, run)
	id := run.Cell
	return c.say(saved, lab.Event{
		Kind: lab.EventRunDone, Host: id.Target, Cell: &id, Round: run.Round, Figures: run.Figures,
		Findings: grave(run.Findings), Validity: run.Validity, Text: id.State + ", " + id.Load,
	})
}

// grave are the codes of fired findings that mark a run.
func grave(all []lab.Finding) []string {
	var codes []string
	for _, f := range all {
		if f.Outcome == lab.Fired && f.Consequence != lab.Note && f.Consequence != lab.Limit {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// coolDown lets the hosts rest after a run, longer while client-side ports are short. What is read, judged and recorded
// of the run is done within that time, or the part of it that there is.
func (c *campaign) coolDown(ctx context.Context, p lab.LoadPoint, seen *shot) error {
	rest := c.plan.Experiment.Repeat.CoolDown.Duration
	if err := pause(ctx, rest-time.Since(seen.ended)); err != nil {
		return err
	}
	begin := time.Now()
	for _, name := range p.Hosts {
		if err := c.waitForPorts(ctx, name, seen); err != nil {
			return err
		}
	}
	c.exempt(rest + time.Since(begin))
	return nil
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// waitForPorts waits while a load host has too many ports in TIME_WAIT. On a host that is also a target the count
// mixes both sides, and loopback reuses such ports: no wait there.
func (c *campaign) waitForPorts(ctx context.Context, name lab.HostName, seen *shot) error {
	limit := int64(timeWaitShare * float64(c.ports(name)))
	if c.has(name, lab.RoleTarget) || limit == 0 {
		return nil
	}
	deadline := time.Now().Add(timeWaitMax)
	for told := false; timeWait(name, seen.samples) > limit && time.Now().Before(deadline); told = true {
		if !told {
			text := fmt.Sprintf("more than %d ports of %s are in TIME_WAIT", limit, name)
			if err := c.say(ctx, lab.Event{Kind: lab.EventWait, Host: name, Text: text}); err != nil {
				return err
			}
		}
		if err := pause(ctx, timeWaitPoll); err != nil {
			return err
		}
		if err := c.sample(ctx, lab.Watch{Once: true}, name, seen); err != nil {
			return err
		}
	}
	return nil
}

// timeWait is the latest count of TIME_WAIT sockets of a host.
func timeWait(name lab.HostName, samples []lab.Sample) int64 {
	var last lab.Sample
	for _, s := range samples {
		if s.Host == name && s.At >= last.At {
			last = s
		}
	}
	return last.Sockets["tcp_tw"]
}

// ports is how many local ports a host has for connections to one address, 0 when unknown.
func (c *campaign) ports(name lab.HostName) int {
	var low, high int
	if _, err := fmt.Sscan(c.plan.Facts[name].Sysctls["net.ipv4.ip_local_port_range"], &low, &high); err != nil {
		return 0
	}
	return high - low + 1
}
