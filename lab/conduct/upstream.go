package conduct

import (
	"context"
	"fmt"
	"slices"

	"ngxlab/lab"
)

// hostsOf are the hosts that a server runs on: the target's, then that of the server it passes requests to.
func hostsOf(s lab.Serving) []lab.HostName {
	if s.Upstream == nil {
		return []lab.HostName{s.Target}
	}
	return append([]lab.HostName{s.Target}, hostsOf(*s.Upstream)...)
}

// eachServing are all servers of the plan, those that others pass requests to among them.
func eachServing(p lab.Plan) []lab.Serving {
	all := slices.Clone(p.Servings)
	if p.Capacity != nil {
		for _, kind := range p.Capacity.Kinds {
			all = append(all, p.Capacity.Servings[kind])
		}
	}
	for i := 0; i < len(all); i++ { // grows meanwhile
		if up := all[i].Upstream; up != nil {
			all = append(all, *up)
		}
	}
	return all
}

// apart refuses a server that passes requests to another one on its own host, which runs one server at a time.
func apart(p lab.Plan) error {
	for _, s := range eachServing(p) {
		if s.Upstream != nil && slices.Contains(hostsOf(*s.Upstream), s.Target) {
			return fmt.Errorf("state %q: the server on %s cannot pass requests to one on the same host, which runs one server at a time", s.State, s.Target)
		}
	}
	return nil
}

// start starts the server of a serving and, before it, the one that it passes requests to, each with the build made for
// it. They run until stop, which ends the latter last; the server itself also ends with ctx.
func (c *campaign) start(ctx context.Context, s lab.Serving) (server lab.Server, stop func(), err error) {
	s = c.complete(s)
	var up *lab.Server
	behind := func() {}
	if s.Upstream != nil {
		if up, behind, err = c.startBehind(ctx, *s.Upstream); err != nil {
			return server, behind, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop = func() { cancel(); behind() }
	server, err = c.hosts[s.Target].Serve(ctx, s)
	server.Upstream = up
	if err != nil {
		stop()
	}
	return server, stop, err
}

// startBehind starts a server that another one passes requests to. Once it runs, the end of ctx does not end it.
func (c *campaign) startBehind(ctx context.Context, s lab.Serving) (*lab.Server, func(), error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	starting := context.AfterFunc(ctx, cancel)
	server, err := c.hosts[s.Target].Serve(lasting, s)
	if !starting() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, cancel, &upstreamError{s, err}
	}
	return &server, cancel, nil
}

// upstreamError is of the start of a server that another one passes requests to.
type upstreamError struct {
	serving lab.Serving
	err     error
}

func (e *upstreamError) Error() string { return fmt.Sprintf("start the upstream: %v", e.err) }
func (e *upstreamError) Unwrap() error { return e.err }

// complete is a serving with the builds that its hosts have.
func (c *campaign) complete(s lab.Serving) lab.Serving {
	c.mu.Lock()
	s.Build = c.builds[s.Recipe][s.Target]
	c.mu.Unlock()
	s.Campaign = c.id
	if s.Upstream != nil {
		up := c.complete(*s.Upstream)
		s.Upstream = &up
	}
	return s
}

// vacate stops every server that runs on a host that a server needs: a host runs one at a time.
func (c *campaign) vacate(s lab.Serving) {
	needed := hostsOf(s)
	for target, r := range c.servers {
		if slices.ContainsFunc(hostsOf(r.serving), func(h lab.HostName) bool { return slices.Contains(needed, h) }) {
			c.drop(target)
		}
	}
}

// stateless is a serving without what only says which state it is of; Expect follows from the rest.
func stateless(s lab.Serving) lab.Serving {
	s.State, s.Expect = "", nil
	if s.Upstream != nil {
		up := stateless(*s.Upstream)
		s.Upstream = &up
	}
	return s
}
