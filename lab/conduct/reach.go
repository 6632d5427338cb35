package conduct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"ngxlab/lab"
)

// reached makes sure, once for a target, that every load host of it gets an answer from the server that runs there now: a
// packet filter or a wrong address is found before anything is changed.
func (c *campaign) reached(ctx context.Context, s lab.Serving, kind lab.HoldKind) error {
	if c.tried[s.Target] {
		return nil
	}
	c.tried[s.Target] = true
	return each(c.loaders(s.Target), func(name lab.HostName) error { return c.reach(ctx, name, s, kind) })
}

// loaders are the other hosts that will load a target, sorted.
func (c *campaign) loaders(target lab.HostName) []lab.HostName {
	all := map[lab.HostName]bool{}
	for _, d := range c.plan.Drivings {
		for name := range d.Measured {
			all[name] = all[name] || d.Target == target
		}
	}
	if p := c.plan.Capacity; p != nil && p.Target == target {
		for _, name := range p.LoadHosts {
			all[name] = true
		}
	}
	maps.DeleteFunc(all, func(name lab.HostName, loads bool) bool { return !loads || name == target })
	return slices.Sorted(maps.Keys(all))
}

// reach opens one connection from a load host, waits for one answer unless answers take their time, and lets the
// connection go.
func (c *campaign) reach(ctx context.Context, name lab.HostName, s lab.Serving, kind lab.HoldKind) error {
	hold := lab.Hold{
		Kind: kind, Address: c.loadAddress(s), URL: s.URLs[0], Connections: 1, Processes: 1, Campaign: c.id, TLS: s.TLS != nil,
	}
	held, err := c.hosts[name].Hold(ctx, hold)
	released := c.release(ctx, name)
	if err == nil && held.Answered+held.Open == 0 {
		err = errors.New(held.Error)
	}
	if err == nil {
		return released
	}
	if !errors.Is(err, lab.ErrLost) {
		err = fmt.Errorf("%s cannot reach %s at %s: %w", name, s.Target, hold.Address, err)
	}
	return refused(ctx, "reach "+string(s.Target), err, c.reachRefusal(name, s))
}

// release lets go of everything that a host holds, also when the campaign was cancelled.
func (c *campaign) release(ctx context.Context, name lab.HostName) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	_, err := c.hosts[name].Hold(ctx, lab.Hold{Campaign: c.id})
	return err
}

// loadAddress is where load generators reach the server of a serving: host:port.
func (c *campaign) loadAddress(s lab.Serving) string {
	return net.JoinHostPort(c.plan.LoadAddress(s.Target), strconv.Itoa(s.Port))
}

// reachRefusal places what a load host cannot reach at the target, where its load_address is told.
func (c *campaign) reachRefusal(name lab.HostName, s lab.Serving) lab.Refusal {
	cure := fmt.Sprintf("let port %d through from %s to %s (packet filter, security group), or tell load_address, where load hosts reach %s",
		s.Port, name, s.Target, s.Target)
	return lab.Refusal{Host: name, Path: fmt.Sprintf("hosts.%s", s.Target), Cure: cure}
}
