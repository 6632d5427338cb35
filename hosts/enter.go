package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// Options of Enter and Local.
type Options struct {
	Name  lab.HostName // in the experiment; "" = "local"
	Dir   string       // the agent's state directory; "" = its own choice
	Agent string       // path of an agent to use instead of the embedded one, whatever the host's architecture
	Sudo  bool         // start the agent through sudo -n, unless the user is root
}

// Bounds of Enter.
const (
	greetLimit = 20 * time.Second // for a host to open a session and to answer on it
	sendLimit  = 5 * time.Minute  // for an agent to be sent: 9 MB at 30 kB/s
)

// Enter finds a directory and the architecture on the host, sends the agent when it is not there already, starts it, and
// greets it: one session when the agent is there. An agent that is there but damaged is sent again, once. Closing the
// Host closes d; on an error Enter has closed it. Errors name the host.
func Enter(ctx context.Context, d Door, o Options) (*Host, error) {
	if o.Name == "" {
		o.Name = "local"
	}
	h, err := enter(ctx, d, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, errors.Join(err, d.Close()))
	}
	return h, nil
}

func enter(ctx context.Context, d Door, o Options) (*Host, error) {
	e, err := newEntrance(d, o)
	if err != nil {
		return nil, err
	}
	return e.host(ctx, o.Name)
}

// entrance is a host being entered.
type entrance struct {
	door   Door
	agents agentSet
	shell  shell
	limit  time.Duration // of one session, until it has answered

	at   []string // where the agent is looked for
	sent string   // where it was put; "" = not yet
	came bool     // it was there all the same, and was started once more
	tty  bool
	runs bool // scripts: one has answered
}

func newEntrance(d Door, o Options) (*entrance, error) {
	if !quotable(o.Dir) {
		return nil, fmt.Errorf("state directory %q: no shell can be given it unchanged; leave out quotes, $, ! and the like", o.Dir)
	}
	agents, err := agentsFor(o)
	if err != nil {
		return nil, err
	}
	sh := shell{names: agents.names(), places: places, dir: o.Dir, sudo: o.Sudo}
	return &entrance{door: d, agents: agents, shell: sh, limit: greetLimit}, nil
}

// host starts the agent and attaches to it.
func (e *entrance) host(ctx context.Context, name lab.HostName) (*Host, error) {
	c, err := e.agent(ctx)
	if err != nil {
		return nil, err
	}
	h, err := attach(c, name)
	if err != nil {
		return nil, err
	}
	h.door = e.door
	if a, ok := e.door.(addressed); ok {
		h.address = a.Address()
	}
	return h, nil
}

// agent starts the agent and returns when it has greeted. Whatever keeps it from that is seen to once: an agent that is
// missing or damaged is sent, one that somebody else sent meanwhile is started, sudo is given a terminal.
func (e *entrance) agent(ctx context.Context) (*conn, error) {
	e.at = e.shell.places
	for {
		c, why := e.start(ctx)
		if why == nil {
			return c, nil
		}
		if why.final {
			return nil, e.blame(ctx, why)
		}
		there, err := e.look(ctx, why)
		if err != nil {
			return nil, err
		}
		switch sound := e.agents.is(there); {
		case !sound && e.sent == "":
			if err := e.send(ctx, there); err != nil {
				return nil, err
			}
		case sound && e.sent == "" && !e.came:
			e.came = true
		case sound && e.shell.sudo && there.user != "root" && !e.tty:
			e.tty = true
		case sound && e.shell.sudo && there.user != "root":
			return nil, &SudoError{User: there.user, Agent: path.Join(there.dir, wire.AgentPrefix+"*"), err: why}
		case !sound:
			return nil, fmt.Errorf("the agent was put at %s but does not work there (it says %q): %w", e.sent, there.has, why)
		default:
			return nil, why
		}
	}
}

// unstarted says why no agent greeted.
type unstarted struct {
	err   error
	noise []byte // that came instead
	final bool   // nothing can be tried

	unopened bool // the host did not even take the script
}

func (u *unstarted) Error() string { return u.err.Error() }
func (u *unstarted) Unwrap() error { return u.err }

// start runs the script and waits for the greeting of the right agent.
func (e *entrance) start(ctx context.Context) (*conn, *unstarted) {
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	pipe, err := e.door.Open(ctx, e.shell.start(e.at, e.tty), e.tty)
	if err != nil {
		return nil, &unstarted{err: fmt.Errorf("start the agent: %w", causeOf(ctx, err)), final: true, unopened: true}
	}
	c := newConn(pipe)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends the read
	g, noise, err := wire.ReadGreeting(c)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = e.agents.accept(g)
	}
	if err == nil {
		return c, nil
	}
	late, limit := ctx.Err() != nil, endOfProcess
	if late {
		limit = endOfLink
	}
	return nil, &unstarted{
		err: fmt.Errorf("wait for the agent: %w%s%s", err, said(noise), c.ending(limit)), noise: noise, final: late,
	}
}

// look tells what is on the host: from the answer of a script that has looked already, else by a second one. Where that
// does not answer either, why says it all.
func (e *entrance) look(ctx context.Context, why *unstarted) (seen, error) {
	if there, whole := parseSeen(why.noise); whole {
		e.runs = true
		return there, nil
	}
	there, err := e.lookFrom(ctx, 0)
	if err != nil {
		return seen{}, e.blame(ctx, why)
	}
	return there, nil
}

// lookFrom runs a script that looks at the places from one on.
func (e *entrance) lookFrom(ctx context.Context, place int) (seen, error) {
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	pipe, err := e.door.Open(ctx, e.shell.look(place), false)
	if err != nil {
		return seen{}, fmt.Errorf("look for a directory: %w", causeOf(ctx, err))
	}
	c := newConn(pipe)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	_, noise, err := wire.ReadGreeting(c) // there is none: the noise is what is asked for
	if !stop() {
		err = context.Cause(ctx)
	}
	ending := c.ending(endOfProcess)
	there, whole := parseSeen(noise)
	if !whole {
		return seen{}, fmt.Errorf("look for a directory: %w%s%s", err, said(noise), ending)
	}
	e.runs = true
	return there, nil
}

// send puts the host's agent into the first usable directory that takes it (a disk may be full), from where it is to be
// started.
func (e *entrance) send(ctx context.Context, there seen) error {
	binary, name, err := e.agents.of(there.machine)
	if err != nil {
		return err
	}
	none := &noPlaceError{bytes: len(binary)}
	for {
		none.add(there.reasons)
		if there.place < 0 || there.place >= len(e.shell.places) {
			return none
		}
		final, err := e.put(ctx, there.dir+"/"+name, binary)
		if err == nil {
			e.at = e.shell.places[there.place : there.place+1]
			return nil
		}
		if final {
			return err
		}
		none.reasons = append(none.reasons, err)
		if there, err = e.lookFrom(ctx, there.place+1); err != nil {
			none.reasons = append(none.reasons, err)
			return none
		}
	}
}

// put sends the agent to a path. final: there is no time for another.
func (e *entrance) put(ctx context.Context, path string, binary []byte) (final bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sendLimit, fmt.Errorf("not done after %v", sendLimit))
	defer cancel()
	if err := e.door.Put(ctx, path, 0o755, bytes.NewReader(binary)); err != nil {
		return ctx.Err() != nil, fmt.Errorf("put the agent at %s (%d bytes): %w", path, len(binary), causeOf(ctx, err))
	}
	e.sent = path
	return false, nil
}

func (e *entrance) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.limit, fmt.Errorf("no answer within %v", e.limit))
}

// causeOf adds to an error why ctx ended, if it did.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}
