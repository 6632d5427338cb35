package conduct

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
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
	last := map[lab.HostName]lab.Serving{}
	for _, r := range c.rehearsals() {
		if err := c.rehearseOne(ctx, r); err != nil {
			return err
		}
		last[r.serving.Target] = r.serving
	}
	return each(slices.Sorted(maps.Keys(last)), func(target lab.HostName) error { return c.ended(ctx, last[target]) })
}

// rehearsals are the servers of all states, then those of the capacity part.
func (c *campaign) rehearsals() []rehearsal {
	var all []rehearsal
	for _, serving := range c.plan.Servings {
		all = append(all, rehearsal{serving, c.connection(serving), c.stateRefusal})
	}
	if c.plan.Capacity == nil {
		return all
	}
	for _, kind := range c.plan.Capacity.Kinds {
		all = append(all, rehearsal{c.plan.Capacity.Servings[kind], kind, c.capacityRefusal})
	}
	return all
}

// connection is the kind of connection by which load hosts try a server.
func (c *campaign) connection(s lab.Serving) lab.HoldKind {
	if c.plan.Experiment.Server.Site == "sleep" || s.DelayS > 0 {
		return lab.HoldActive // its answers may take as long as they like
	}
	return lab.HoldIdle
}

// rehearsal is one server to try.
type rehearsal struct {
	serving lab.Serving
	kind    lab.HoldKind                         // of the connection by which load hosts try it
	place   func(lab.Serving, error) lab.Refusal // where a refusal stands in the experiment file
}

// rehearseOne starts one server and lets it go. The first server of a target is tried from its load hosts.
func (c *campaign) rehearseOne(ctx context.Context, r rehearsal) error {
	s := r.serving
	if why := c.untried(s); why != "" {
		text := fmt.Sprintf("the server of state %q is not tried before anything is changed: %s", s.State, why)
		return c.say(ctx, lab.Event{Kind: lab.EventProblem, Host: s.Target, Text: text})
	}
	server, stop, err := c.start(ctx, s)
	defer stop()
	if err != nil {
		return refused(ctx, fmt.Sprintf("rehearse state %q", s.State), err, r.place(s, err))
	}
	if err := c.ready(ctx, s, server); err != nil {
		return err
	}
	return c.reached(ctx, s, r.kind)
}

// untried says why the server of a state cannot start before the state's knobs are in force; "" when it can.
func (c *campaign) untried(s lab.Serving) string {
	if s.Upstream != nil {
		if why := c.untried(*s.Upstream); why != "" {
			return fmt.Sprintf("its upstream on %s: %s", s.Upstream.Target, why)
		}
	}
	state, _ := c.plan.State(s.State)
	changes, err := tune.Transition(c.plan.Original, state, s.Target)
	if err != nil {
		return "" // the move to the state says it
	}
	for _, change := range changes {
		switch {
		case change.Knob == nrOpen && files(s) > number(change.From.Text):
			return fmt.Sprintf("its open-file limit of %d needs a higher fs.nr_open than the present %s", files(s), change.From.Text)
		case change.Knob.Kind == lab.KnobFile && strings.Contains(s.Config, change.Knob.Name):
			return fmt.Sprintf("its configuration names %s, which the state writes", change.Knob.Name)
		}
	}
	return ""
}

// nrOpen bounds every open-file limit.
var nrOpen = lab.KnobID{Kind: lab.KnobSysctl, Name: "fs.nr_open"}

// files is the open-file limit that a server asks for, 0 when it takes over the host's.
func files(s lab.Serving) int {
	most := s.Nofile
	for _, e := range s.Expect {
		if strings.HasSuffix(e.Knob.Name, "worker_rlimit_nofile") {
			most = max(most, number(lab.Unquoted(e.Value)))
		}
	}
	return most
}

// number is a value that is a whole number, 0 when it is none.
func number(text string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(text))
	return n
}

// serve starts the server of a serving and says that it is ready; see start.
func (c *campaign) serve(ctx context.Context, s lab.Serving) (lab.Server, func(), error) {
	server, stop, err := c.start(ctx, s)
	if err != nil {
		return server, stop, err
	}
	if err := c.ready(ctx, s, server); err != nil {
		stop()
		return server, stop, err
	}
	return server, stop, nil
}

// ready says that a server is started and probed.
func (c *campaign) ready(ctx context.Context, s lab.Serving, server lab.Server) error {
	text := fmt.Sprintf("%s, ready in %.3f s", s.State, server.StartedS)
	if up := server.Upstream; up != nil {
		text += fmt.Sprintf("; its upstream on %s in %.3f s", s.Upstream.Target, up.StartedS)
	}
	return c.say(ctx, lab.Event{Kind: lab.EventServer, Host: s.Target, Text: text})
}
