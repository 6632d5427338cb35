package conduct

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"ngxlab/lab"
)

// Settling of a capacity level (METHOD §6): server memory and TCP slab change by less than settleChange over
// settleSpan. Memory that has not settled after settleMax is recorded as such.
const (
	settleChange   = 0.005
	settleSpan     = 2 * time.Second
	settleInterval = 500 * time.Millisecond
	settleMax      = 30 * time.Second
)

// pageBytes is the unit of sockstat's memory; the kernels we run on have 4 KiB pages.
const pageBytes = 4096

// ramp is one ascent over the levels from a fresh server.
type ramp struct {
	kind   lab.HoldKind
	number int
}

// capacity holds connections on the ladder of levels, several ramps of each kind, each from a fresh server.
func (c *campaign) capacity(ctx context.Context) error {
	p := c.plan.Capacity
	if p == nil {
		return nil
	}
	if err := c.clock(ctx, 0); err != nil {
		return fmt.Errorf("capacity: %w", err)
	}
	state, ok := c.plan.State(p.State)
	if !ok {
		return fmt.Errorf("capacity: the plan has no state %q", p.State)
	}
	if err := c.retire(ctx, state); err != nil {
		return fmt.Errorf("capacity: %w", err)
	}
	if err := c.move(ctx, state); err != nil {
		return fmt.Errorf("capacity: %w", err)
	}
	c.dropAll()
	for _, kind := range p.Kinds {
		for number := 1; number <= p.Ramps; number++ {
			if c.held(ramp{kind, number}) {
				continue
			}
			if err := c.ramp(ctx, ramp{kind, number}); err != nil {
				return fmt.Errorf("capacity %s, ramp %d: %w", kind, number, err)
			}
		}
	}
	return nil
}

// held reports whether every level of a ramp is already in the store.
func (c *campaign) held(r ramp) bool {
	n := 0
	for _, l := range c.levels {
		if l.Kind == r.kind && l.Ramp == r.number {
			n++
		}
	}
	return n == len(c.plan.Capacity.Levels)
}

// ramp ascends once. Connections are closed and the server is stopped at its end, whatever happened.
func (c *campaign) ramp(ctx context.Context, r ramp) error {
	p := c.plan.Capacity
	serving := p.Servings[r.kind]
	_, stop, err := c.serve(ctx, serving)
	defer stop()
	if err != nil {
		return err
	}
	defer c.letGo(ctx)
	for _, n := range p.Levels {
		level, err := c.level(ctx, r, serving, n)
		if err != nil {
			return err
		}
		if err := c.commit(ctx, lab.Record{Level: &level}); err != nil {
			return fmt.Errorf("record level %d: %w", n, err)
		}
		text := fmt.Sprintf("%s, ramp %d of %d: %d connections", r.kind, r.number, p.Ramps, level.Connections)
		if err := c.say(ctx, lab.Event{Kind: lab.EventCapacity, Host: p.Target, Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// letGo closes all held connections, also when the campaign was cancelled.
func (c *campaign) letGo(ctx context.Context) {
	_ = each(c.plan.Capacity.LoadHosts, func(name lab.HostName) error {
		err := c.release(ctx, name)
		if err != nil {
			c.sayAnyway(context.WithoutCancel(ctx), lab.Event{Kind: lab.EventProblem, Host: name, Text: "close held connections: " + err.Error()})
		}
		return nil // said, and the hosts end what they hold when they are left
	})
}

// level holds n connections and waits until memory has settled.
func (c *campaign) level(ctx context.Context, r ramp, s lab.Serving, n int) (lab.CapacityLevel, error) {
	level := lab.CapacityLevel{Kind: r.kind, Ramp: r.number, Asked: n}
	names := c.plan.Capacity.LoadHosts
	shares, held := lab.Split(n, len(names)), make([]lab.Held, len(names))
	err := each(names, func(name lab.HostName) (err error) {
		i := slices.Index(names, name)
		held[i], err = c.hosts[name].Hold(ctx, c.hold(r.kind, s, shares[i]))
		return err
	})
	if err != nil {
		return level, fmt.Errorf("hold %d connections: %w", n, err)
	}
	for i, name := range names {
		if held[i].Failed > 0 {
			level.Problem = fmt.Sprintf("%d of %d connections from %s failed: %s", held[i].Failed, shares[i], name, held[i].Error)
		}
	}
	for _, h := range held {
		level.Connections += h.Open
	}
	return c.settle(ctx, s, level)
}

func (c *campaign) hold(kind lab.HoldKind, s lab.Serving, n int) lab.Hold {
	return lab.Hold{
		Kind: kind, URL: s.URLs[0], Connections: n, Campaign: c.id, Processes: c.plan.Capacity.Holders, Address: c.loadAddress(s),
	}
}

// settle samples the target until its memory stands still, and takes the last sample.
func (c *campaign) settle(ctx context.Context, s lab.Serving, level lab.CapacityLevel) (lab.CapacityLevel, error) {
	ctx, cancel := context.WithTimeout(ctx, settleMax+10*time.Second)
	defer cancel()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	var seen []lab.Sample
	w := watchServer(s, lab.Watch{
		Start: c.clocks[s.Target].Instant(time.Now()), Interval: lab.Duration{Duration: settleInterval},
		Count: int(settleMax / settleInterval), Slabs: true,
	})
	err := c.hosts[s.Target].Watch(watched, w, func(sample lab.Sample) {
		if seen = append(seen, sample); settled(seen) {
			stop()
		}
	})
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return level, fmt.Errorf("wait until the memory of %s has settled: %w", s.Target, err)
	}
	if len(seen) == 0 {
		level.Problem = "no sample of the server's memory"
		return level, nil
	}
	last := seen[len(seen)-1]
	level.SettledS = last.At.Sub(seen[0].At).Seconds()
	level.Unsettled = !settled(seen)
	level.Parts = parts(last)
	_, anonymous, readable := last.ServerMemory()
	level.Anonymous = anonymous
	if s.StatusPort != 0 { // else they are those that the load hosts hold
		level = counted(level, last)
	}
	if !readable && level.Problem == "" {
		level.Problem = "the memory of the server's processes cannot be read"
	}
	return level, nil
}

// counted takes the number of connections from the server, the lab's own poll subtracted.
func counted(level lab.CapacityLevel, last lab.Sample) lab.CapacityLevel {
	if last.Status == nil {
		level.Problem = "the server did not answer how many connections it has"
		return level
	}
	level.Connections = max(0, last.Status.Active-1)
	if level.Problem == "" && float64(level.Connections) < 0.99*float64(level.Asked) {
		level.Problem = fmt.Sprintf("%d connections asked for, the server has %d", level.Asked, level.Connections)
	}
	return level
}

// settled reports whether server memory and TCP slab moved by less than settleChange over the last settleSpan.
func settled(seen []lab.Sample) bool {
	n := int(settleSpan / settleInterval)
	if len(seen) <= n {
		return false
	}
	first, last := parts(seen[len(seen)-1-n]), parts(seen[len(seen)-1])
	for _, part := range []string{lab.PartServer, "TCP", "TCPv6"} {
		if math.Abs(float64(last[part]-first[part])) > settleChange*float64(max(first[part], 1)) {
			return false
		}
	}
	return true
}

// parts are the memory totals of a sample by part; what could not be read is missing.
func parts(s lab.Sample) map[string]int64 {
	all := map[string]int64{}
	for name, bytes := range s.Slabs {
		all[name] = bytes
	}
	if bytes, _, known := s.ServerMemory(); known {
		all[lab.PartServer] = bytes
	}
	if pages, ok := s.Sockets["tcp_mem_pages"]; ok {
		all[lab.PartSocketMemory] = pages * pageBytes
	}
	return all
}
