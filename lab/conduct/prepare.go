package conduct

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"ngxlab/lab"
)

// install installs what the plan says is missing. A package manager is never interrupted half-way: a cancelled campaign
// waits for it.
func (c *campaign) install(ctx context.Context) error {
	err := each(c.names(), func(name lab.HostName) error {
		packages := c.plan.Packages[name]
		if len(packages) == 0 {
			return nil
		}
		if err := c.say(ctx, lab.Event{Kind: lab.EventInstall, Host: name, Text: strings.Join(packages, " ")}); err != nil {
			return err
		}
		return c.hosts[name].Install(context.WithoutCancel(ctx), packages, io.Discard)
	})
	if err != nil {
		return fmt.Errorf("install packages: %w", err)
	}
	return ctx.Err()
}

// logLines turns what is written into build events, which are shown and not stored.
func (c *campaign) logLines(host lab.HostName) (io.WriteCloser, func()) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			c.show(lab.Event{Kind: lab.EventBuild, Campaign: c.id, Host: host, Text: lines.Text()})
		}
		_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not block the build
	}()
	return w, func() { <-done }
}

// rehearse starts and probes the server of every state once, before anything on a host is changed: a configuration
// that the server refuses, a directive that is not in force or a port in use is found here, and a target that its load
// hosts cannot reach.
func (c *campaign) rehearse(ctx context.Context) error {
	reached := map[lab.HostName]bool{}
	kind := lab.HoldIdle
	if c.plan.Experiment.Server.Site == "sleep" {
		kind = lab.HoldActive // its answers may take as long as they like
	}
	for _, serving := range c.plan.Servings {
		if err := c.rehearseOne(ctx, rehearsal{serving, kind, c.stateRefusal}, reached); err != nil {
			return err
		}
	}
	if c.plan.Capacity == nil {
		return nil
	}
	for _, kind := range c.plan.Capacity.Kinds {
		if err := c.rehearseOne(ctx, rehearsal{c.plan.Capacity.Servings[kind], kind, c.capacityRefusal}, reached); err != nil {
			return err
		}
	}
	return nil
}

// rehearsal is one server to try.
type rehearsal struct {
	serving lab.Serving
	kind    lab.HoldKind                         // of the connection by which load hosts try it
	place   func(lab.Serving, error) lab.Refusal // where a refusal stands in the experiment file
}

// rehearseOne starts one server and lets it go. The first server of a target is tried from its load hosts.
func (c *campaign) rehearseOne(ctx context.Context, r rehearsal, reached map[lab.HostName]bool) error {
	s := r.serving
	serverCtx, stop := context.WithCancel(ctx)
	defer stop()
	server, err := c.start(serverCtx, s)
	if err != nil {
		return refused(ctx, fmt.Sprintf("rehearse state %q", s.State), err, r.place(s, err))
	}
	if err := c.ready(ctx, s, server); err != nil || reached[s.Target] {
		return err
	}
	reached[s.Target] = true
	return c.reached(ctx, s, r.kind)
}

// serve starts the server of a serving and says that it is ready.
func (c *campaign) serve(ctx context.Context, s lab.Serving) (lab.Server, error) {
	server, err := c.start(ctx, s)
	if err != nil {
		return server, err
	}
	return server, c.ready(ctx, s, server)
}

// start starts the server of a serving with the build made for it.
func (c *campaign) start(ctx context.Context, s lab.Serving) (lab.Server, error) {
	s.Build, s.Campaign = c.builds[s.Recipe][s.Target], c.id
	return c.hosts[s.Target].Serve(ctx, s)
}

// ready says that a server is started and probed.
func (c *campaign) ready(ctx context.Context, s lab.Serving, server lab.Server) error {
	text := fmt.Sprintf("%s, ready in %.3f s", s.State, server.StartedS)
	return c.say(ctx, lab.Event{Kind: lab.EventServer, Host: s.Target, Text: text})
}
