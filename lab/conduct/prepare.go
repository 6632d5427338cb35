package conduct

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"ngxlab/lab"
)

// install installs what the plan says is missing. A package manager is never interrupted half-way: a cancelled campaign
// waits for it.
func (c *campaign) install(ctx context.Context) error {
	for _, name := range c.names() {
		packages := c.plan.Packages[name]
		if len(packages) == 0 {
			continue
		}
		if err := c.say(ctx, lab.Event{Kind: lab.EventInstall, Host: name, Text: strings.Join(packages, " ")}); err != nil {
			return err
		}
		err := c.hosts[name].Install(context.WithoutCancel(ctx), packages, io.Discard)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// build makes every recipe on every target, or finds it made.
func (c *campaign) build(ctx context.Context) error {
	for _, recipe := range c.plan.Builds {
		c.builds[recipe.Name] = map[lab.HostName]lab.Build{}
		for _, target := range c.names() {
			if !c.has(target, lab.RoleTarget) {
				continue
			}
			if err := c.buildOn(ctx, recipe, target); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *campaign) buildOn(ctx context.Context, recipe lab.Recipe, target lab.HostName) error {
	if err := c.say(ctx, lab.Event{Kind: lab.EventBuild, Host: target, Text: recipe.Name}); err != nil {
		return err
	}
	lines, wait := c.logLines(target)
	build, err := c.hosts[target].Build(ctx, recipe, lines)
	err = errors.Join(err, lines.Close())
	wait()
	if err != nil {
		return refused(ctx, err, buildRefusal(recipe, target))
	}
	c.builds[recipe.Name][target] = build
	if err := c.rec.Commit(ctx, c.id, lab.Record{Build: &build}); err != nil {
		return fmt.Errorf("record build %s of %s: %w", recipe.Name, target, err)
	}
	text := fmt.Sprintf("%s %s in %.1f s", recipe.Name, build.Version, build.TookS)
	if build.Cached {
		text = fmt.Sprintf("%s %s, built before", recipe.Name, build.Version)
	}
	return c.say(ctx, lab.Event{Kind: lab.EventBuilt, Host: target, Text: text})
}

// logLines turns what is written into build events, which are shown and not stored.
func (c *campaign) logLines(host lab.HostName) (io.WriteCloser, func()) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			c.emit(lab.Event{Kind: lab.EventBuild, Campaign: c.id, Host: host, Text: lines.Text()})
		}
		_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not block the build
	}()
	return w, func() { <-done }
}

// rehearse starts and probes the server of every state once, before anything on a host is changed: a configuration
// that the server refuses, a directive that is not in force or a port in use is found here.
func (c *campaign) rehearse(ctx context.Context) error {
	for _, serving := range c.plan.Servings {
		if err := c.rehearseOne(ctx, serving, c.stateRefusal); err != nil {
			return err
		}
	}
	if c.plan.Capacity == nil {
		return nil
	}
	for _, kind := range c.plan.Capacity.Kinds {
		if err := c.rehearseOne(ctx, c.plan.Capacity.Servings[kind], c.capacityRefusal); err != nil {
			return err
		}
	}
	return nil
}

// rehearseOne starts one server and lets it go; what the host refuses is placed in the experiment file.
func (c *campaign) rehearseOne(ctx context.Context, s lab.Serving, place func(lab.Serving, error) lab.Refusal) error {
	serverCtx, stop := context.WithCancel(ctx)
	defer stop()
	server, err := c.start(serverCtx, s)
	if err != nil {
		return refused(ctx, err, place(s, err))
	}
	return c.ready(ctx, s, server)
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
