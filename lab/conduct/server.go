package conduct

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// running is a server of the campaign. At most one runs on a target.
type running struct {
	serving lab.Serving
	server  lab.Server
	stop    func()
	warmed  bool                               // a load point was run on it
	inForce map[lab.HostName]map[string]string // what it and its upstream ran under at their first samples, as lab.Sample.InForce
	over    bool                               // it has died, or someone else has changed what it runs under: it measures nothing more
}

// running returns the server of a target that runs, or starts the one of the serving afresh, which then runs until it is
// stopped.
func (c *campaign) running(ctx context.Context, round int, s lab.Serving) (*running, error) {
	if r := c.servers[s.Target]; r != nil && !r.over {
		return r, nil
	}
	c.vacate(s)
	begin := time.Now()
	server, stop, err := c.serve(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("start the server of state %q, round %d: %w", s.State, round, err)
	}
	r := &running{serving: s, server: server, stop: stop, inForce: map[lab.HostName]map[string]string{}}
	c.servers[s.Target] = r
	err = c.reached(ctx, s, c.connection(s))
	c.exempt(time.Since(begin))
	return r, err
}

// drop stops the server of a target, if there is one, without waiting for its end.
func (c *campaign) drop(target lab.HostName) {
	if r := c.servers[target]; r != nil {
		r.stop()
		delete(c.servers, target)
	}
}

// dropAll stops every server.
func (c *campaign) dropAll() {
	for target := range c.servers {
		c.drop(target)
	}
}

// retire stops the servers that cannot go on into a state, and waits for the end of those on whose hosts knobs change
// then. That is part of a server's start, as the wait for the end of the one before is.
func (c *campaign) retire(ctx context.Context, to lab.State) error {
	begin := time.Now()
	defer func() { c.exempt(time.Since(begin)) }()
	for _, target := range slices.Sorted(maps.Keys(c.servers)) {
		r := c.servers[target]
		changes, err := c.changesUnder(r.serving, to)
		if err != nil {
			return err
		}
		if c.goesOn(r, to, changes) {
			continue
		}
		c.drop(target)
		if len(changes) == 0 {
			continue // the next server waits for its end
		}
		if err := c.ended(ctx, r.serving); err != nil {
			return err
		}
	}
	return nil
}

// changesUnder are what is written on the hosts of a server from the state in force to another one.
func (c *campaign) changesUnder(s lab.Serving, to lab.State) ([]lab.Change, error) {
	var all []lab.Change
	for _, name := range hostsOf(s) {
		changes, err := c.changes(to, name)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// endPoll is how often a host is asked whether a server that was stopped is gone: it takes some milliseconds.
const endPoll = 5 * time.Millisecond

// ended waits until nobody listens on the port of a server any more, nor on that of the one it passed requests to:
// nginx's master closes its sockets last.
func (c *campaign) ended(ctx context.Context, s lab.Serving) error {
	_, err := within(ctx, s.Target, "stop", endBound, nothing(func(ctx context.Context) error {
		for listens := true; listens; {
			err := c.hosts[s.Target].Watch(ctx, lab.Watch{Once: true, Ports: []int{s.Port}}, func(sample lab.Sample) {
				listens = len(sample.Listeners) > 0
			})
			if err == nil && listens {
				err = pause(ctx, endPoll)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return fmt.Errorf("stop the server of state %q: %w", s.State, err)
	}
	if s.Upstream != nil {
		return c.ended(ctx, *s.Upstream)
	}
	return nil
}

// goesOn reports whether a server can go on into a state: the experiment lets it, it would be started in the same way,
// and all that changes on its hosts takes effect on a server that already runs.
func (c *campaign) goesOn(r *running, to lab.State, changes []lab.Change) bool {
	next, err := c.serving(r.serving.Target, to.Name)
	return err == nil && c.plan.Experiment.Server.Restart == lab.RestartNeeded && !r.over && sameStart(r.serving, next) &&
		!slices.ContainsFunc(changes, func(change lab.Change) bool { return !tune.Live(change.Knob) })
}

// sameStart reports whether two servers are started in the same way.
func sameStart(a, b lab.Serving) bool { return reflect.DeepEqual(stateless(a), stateless(b)) }
