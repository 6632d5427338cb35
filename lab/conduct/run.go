package conduct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ngxlab/lab"
)

// recordTimeout bounds the last words to the store of a campaign that was cancelled.
const recordTimeout = 10 * time.Second

// campaign is one walk through a plan.
type campaign struct {
	id    lab.CampaignID
	plan  lab.Plan
	hosts map[lab.HostName]Machine
	rec   Recorder
	emit  func(lab.Event)

	mu      sync.Mutex                            // over builds, and over rec and emit while several hosts are busy
	builds  map[string]map[lab.HostName]lab.Build // recipe → host → build
	inForce lab.State                             // the state that the hosts are in
	clocks  map[lab.HostName]lab.Clock
	servers map[lab.HostName]*running // by target
	tried   map[lab.HostName]bool     // targets that their load hosts have reached
	spared  map[slot]int              // runs before a resume whose load was not fired: they are no attempts
	runs    []lab.Run                 // of this part of the campaign, in order of commitment
	levels  []lab.CapacityLevel       // already held
	began   time.Time
	planned int       // runs expected as known now
	idle    time.Time // since when nothing but the lab's own work is done, as if load, rest and server starts had taken no time since
}

// Run walks the plan on the hosts, which must have had nothing pending in their journals when the plan's facts were
// read. Whatever happens, an error, a lost host or a cancelled ctx, it puts every host back as it was before it returns; no
// host keeps it for ever. emit is never called twice at the same time. Errors say where in the campaign, on which host, and
// what was tried; the outcome says which hosts could not be restored.
func Run(ctx context.Context, id lab.CampaignID, p lab.Plan, hosts map[lab.HostName]Machine, rec Recorder, emit func(lab.Event)) (lab.Outcome, error) {
	c, err := begin(ctx, &campaign{id: id, plan: p, hosts: bound(p, hosts), rec: rec, emit: emit})
	if err != nil {
		return lab.Outcome{Campaign: id, Status: lab.StatusFailed}, err
	}
	reason, err := c.work(ctx)
	c.dropAll()
	unrestored, kept, restoreErr := c.restore(ctx)
	out := c.outcome(ctx, reason, err)
	out.Unrestored, out.Kept = unrestored, kept
	if out.Status == lab.StatusDone && len(unrestored) > 0 {
		out.Status = lab.StatusUnrestored
	}
	return out, errors.Join(err, restoreErr, c.end(ctx, out, err))
}

// begin opens the campaign in the store and takes over what is already done of the plan's part.
func begin(ctx context.Context, c *campaign) (*campaign, error) {
	if fatal := c.plan.Fatal(); len(fatal) > 0 {
		return nil, fmt.Errorf("plan %s: %d refusals, first: %s", c.plan.Experiment.Name, len(fatal), fatal[0].Reason)
	}
	if err := apart(c.plan); err != nil {
		return nil, fmt.Errorf("plan %s: %w", c.plan.Experiment.Name, err)
	}
	done, err := c.rec.Begin(ctx, c.id, c.plan)
	if err != nil {
		return nil, fmt.Errorf("begin campaign %s: %w", c.id, err)
	}
	c.spared = map[slot]int{}
	for _, r := range done.Runs {
		if r.Part != c.plan.Part {
			continue
		}
		c.runs = append(c.runs, r)
		if notFired(r) {
			c.spared[slot{r.Round, r.Cell}]++
		}
	}
	c.levels = done.Levels
	c.began = time.Now()
	c.builds = map[string]map[lab.HostName]lab.Build{}
	c.clocks = map[lab.HostName]lab.Clock{}
	c.servers = map[lab.HostName]*running{}
	c.tried = map[lab.HostName]bool{}
	c.inForce = c.plan.Original
	c.planned = c.plan.Experiment.Repeat.Min * len(c.plan.Cells)
	return c, nil
}

// work is the campaign from the first package to the last held connection.
func (c *campaign) work(ctx context.Context) (lab.Reason, error) {
	if err := c.say(ctx, lab.Event{Kind: lab.EventBegin, Text: c.plan.Experiment.Title}); err != nil {
		return "", err
	}
	for _, phase := range []func(context.Context) error{c.install, c.build, c.rehearse} {
		if err := phase(ctx); err != nil {
			return "", err
		}
	}
	reason, err := c.rounds(ctx)
	if err != nil {
		return reason, err
	}
	return reason, c.capacity(ctx)
}

// say emits and records an event.
func (c *campaign) say(ctx context.Context, e lab.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.At, e.Campaign = time.Now().UTC(), c.id
	e.Done, e.Total = len(c.runs), max(c.expected(), len(c.runs))
	e.Left = c.left()
	c.emit(e)
	if err := c.rec.Event(ctx, c.id, e); err != nil {
		return fmt.Errorf("record event of campaign %s: %w", c.id, err)
	}
	return nil
}

// sayAnyway is say where a full store must not keep the hosts from coming back.
func (c *campaign) sayAnyway(ctx context.Context, e lab.Event) {
	if err := c.say(ctx, e); err != nil {
		c.show(lab.Event{Kind: lab.EventProblem, Host: e.Host, Text: err.Error()})
	}
}

// show emits an event that is not recorded.
func (c *campaign) show(e lab.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.emit(e)
}

// names returns the hosts in a fixed order.
func (c *campaign) names() []lab.HostName { return slices.Sorted(maps.Keys(c.hosts)) }

// has reports whether a host has the role.
func (c *campaign) has(name lab.HostName, role lab.Role) bool {
	return slices.ContainsFunc(c.plan.Experiment.Hosts, func(h lab.Host) bool { return h.Name == name && h.Has(role) })
}

// expected is how many runs there will be as known now: a repetition stands for no other run.
func (c *campaign) expected() int { return c.planned + c.repetitions() }

// left estimates the time to the end from the plan's estimate and the share of runs done.
func (c *campaign) left() lab.Duration {
	if c.planned == 0 {
		return lab.Duration{}
	}
	open := float64(max(0, c.expected()-len(c.runs))) / float64(c.planned)
	return lab.Seconds(open * c.plan.Estimate.Seconds())
}

// outcome sums up the campaign.
func (c *campaign) outcome(ctx context.Context, reason lab.Reason, err error) lab.Outcome {
	out := lab.Outcome{Campaign: c.id, Status: lab.StatusDone, Reason: reason, Runs: len(c.runs)}
	for _, r := range c.runs {
		out.Rounds = max(out.Rounds, r.Round)
		if r.Validity == lab.Invalid {
			out.Invalid++
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		out.Status = lab.StatusInterrupted
	case err != nil:
		out.Status = lab.StatusFailed
	}
	return out
}

// end records the outcome, also of a cancelled campaign.
func (c *campaign) end(ctx context.Context, out lab.Outcome, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	text := string(out.Status)
	if cause != nil {
		text += ": " + cause.Error()
	}
	return errors.Join(
		c.commit(ctx, lab.Record{Outcome: &out}),
		c.say(ctx, lab.Event{Kind: lab.EventEnd, Text: text}),
	)
}
