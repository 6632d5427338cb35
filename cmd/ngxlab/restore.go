package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// restoreOptions are the flags of restore.
type restoreOptions struct {
	check, json bool
	access      access
}

func newRestore(a *app) *cobra.Command {
	o := restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore [FILE] [HOST…]",
		Short: "Put hosts back as they were, from their own journals (default: this machine)",
		Long: "restore asks the journal of each host what a campaign left changed, and puts it back. It needs neither the\n" +
			"experiment file nor the database, and works from any machine. --check only lists what is not as it was. A HOST is [user@]host[:port], a name of\n" +
			"~/.ssh/config, or local; after an experiment FILE it is a name from there (default: all of its hosts).\n\n" +
			"The exit code is 3 when a host is known not to be as it was: its journal says so, or it was not put back, or it cannot be\n" +
			"asked and the database (--db) has a campaign that changed it and did not put it back. It is 1 when a host cannot be\n" +
			"asked and nothing of that is known, and when a campaign that is going on has the host: that campaign puts it back.",
		Example: "  ngxlab restore --check\n  ngxlab restore\n  ngxlab restore root@web1 local\n  ngxlab restore study.yaml web1",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o.access)
			if err != nil {
				return err
			}
			return restore(cmd.Context(), a, x, o)
		},
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "only list what is not as it was, and how it stands now")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	o.access.flags(cmd)
	return cmd
}

// restored is what restore says of one host.
type restored struct {
	Host     lab.HostName   `json:"host"`
	Pending  []lab.Pending  `json:"pending,omitempty"`
	Standing []lab.Standing `json:"standing,omitempty"` // of what is pending: how it stands now
	Restored []lab.Restored `json:"restored,omitempty"`
	Gone     bool           `json:"gone,omitempty"`    // a container that is not up: its sysctls are gone with it
	Unknown  bool           `json:"unknown,omitempty"` // the host could not be asked
	Error    string         `json:"error,omitempty"`
	err      error
	holder   lab.Holder // when it was asked for
	stateDir string     // of the agent that put it back
}

// asking is what is asked of a host that is attached; its error is what went wrong with the host.
type asking func(ctx context.Context, m *machine, r *restored) error

// restore tries every host, prints what became of each knob, and fails when a host is not as it was.
func restore(ctx context.Context, a *app, x lab.Experiment, o restoreOptions) error {
	var results []restored
	if o.check {
		results = a.askAll(ctx, x, askStanding)
	} else {
		results = a.restoreAll(ctx, x)
		a.recordPutBack(ctx, x, results)
	}
	if err := printRestored(a, results, o); err != nil {
		return err
	}
	errs := make([]error, len(results))
	bad := &unrestoredError{knobs: map[lab.HostName][]lab.KnobID{}}
	for i, r := range results {
		errs[i] = r.err
		if len(r.Pending) > 0 || r.err != nil && !r.Unknown && !inUse(r.err) && !isForeign(r.err) || r.Unknown && a.leftChanged(ctx, x, x.Hosts[i]) {
			bad.hosts = append(bad.hosts, r.Host)
			bad.knobs[r.Host] = r.unrestored()
		}
	}
	err := atHosts(x, errs)
	if len(bad.hosts) > 0 {
		bad.restore = a.restoreCommand(x, bad.hosts)
		err = errors.Join(err, bad)
	}
	return err
}

// unrestored are the knobs that are known not to be as they were.
func (r restored) unrestored() []lab.KnobID {
	var all []lab.KnobID
	for _, p := range r.Pending {
		all = append(all, p.Knob)
	}
	for _, k := range r.Restored {
		if k.Outcome == lab.RestoreFailed {
			all = append(all, k.Knob)
		}
	}
	return all
}

// sameHost reports whether two hosts are one, as far as their experiments show it.
func sameHost(labA string, a lab.Host, labB string, b lab.Host) bool {
	if isDocker(a) || isDocker(b) {
		return isDocker(a) && isDocker(b) && labA == labB && a.Name == b.Name
	}
	return a.Local == b.Local && a.Address == b.Address && a.Port == b.Port
}

// isDamaged reports whether a host answered that its journal is not as it was written.
func isDamaged(err error) bool {
	var remote *wire.Error
	return errors.As(err, &remote) && remote.Kind == wire.KindDamaged
}

// inUse reports whether a host answered that a campaign has it: that campaign puts it back.
func inUse(err error) bool {
	var remote *wire.Error
	return errors.As(err, &remote) && remote.Kind == wire.KindLocked
}

// askAll attaches all hosts at the same time and asks each; the results are in their order. A lab that is not up is not
// brought up for it.
func (a *app) askAll(ctx context.Context, x lab.Experiment, ask asking) []restored {
	results := make([]restored, len(x.Hosts))
	forEach(ctx, len(x.Hosts), attachTimeout, func(ctx context.Context, i int) error {
		r := &results[i]
		r.Host = x.Hosts[i].Name
		if m := a.entered(ctx, x, i, r); m != nil {
			r.fails(errors.Join(ask(ctx, m, r), m.close()))
		}
		return nil // it is in the result
	})
	return results
}

// entered attaches a host; nil when it cannot be, which is in the result.
func (a *app) entered(ctx context.Context, x lab.Experiment, i int, r *restored) *machine {
	m, err := a.attach(ctx, x.Name, x.Hosts[i])
	switch {
	case isGone(err):
		r.Gone = true
	case err != nil:
		r.Unknown = true
		r.fails(err)
	default:
		return m
	}
	return nil
}

// fails notes what went wrong with a host, if anything did.
func (r *restored) fails(err error) {
	if r.err = err; err != nil {
		r.Error = err.Error()
	}
}

// askPending asks a host's journal what is not restored, sorted by knob.
func askPending(ctx context.Context, m *machine, r *restored) (err error) {
	r.Pending, err = m.pending(ctx)
	r.Unknown = err != nil && !isDamaged(err)
	slices.SortFunc(r.Pending, func(x, y lab.Pending) int { return compareKnobs(x.Knob, y.Knob) })
	return err
}

// askStanding is askPending, and asks how that stands now. Nothing is changed.
func askStanding(ctx context.Context, m *machine, r *restored) (err error) {
	if err = askPending(ctx, m, r); err == nil && len(r.Pending) > 0 {
		r.Standing, err = m.standing(ctx)
	}
	return err
}

// restoreAll restores all hosts at the same time, each a second time through a new link when its link was lost.
func (a *app) restoreAll(ctx context.Context, x lab.Experiment) []restored {
	results := make([]restored, len(x.Hosts))
	forEach(ctx, len(x.Hosts), attachTimeout, func(ctx context.Context, i int) error {
		r := &results[i]
		r.Host = x.Hosts[i].Name
		if m := a.entered(ctx, x, i, r); m != nil {
			f := &fleet{x: x, machines: make([]*machine, len(x.Hosts))}
			f.machines[i] = m
			r.fails(errors.Join(a.restoreOne(ctx, f, i, r), f.close()))
		}
		return nil // it is in the result
	})
	return results
}

// restoreOne restores one attached host.
func (a *app) restoreOne(ctx context.Context, f *fleet, i int, r *restored) error {
	h := f.x.Hosts[i]
	if err := a.mayChange(ctx, f.x.Name, h); err != nil {
		return err
	}
	all, err := a.putBack(ctx, f.x, h.Name, f.machines[i])
	if errors.Is(err, lab.ErrLost) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reattachTimeout+restoreTimeout)
		defer cancel()
		all, err = a.again(ctx, f, i)
	}
	if m := f.machines[i]; err == nil && m != nil {
		r.by(ctx, m)
	}
	r.Restored = all
	return err
}

// by notes which agent put a host back, however long that took; when it is not known, the database is told nothing.
func (r *restored) by(ctx context.Context, m *machine) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	if facts, err := m.facts(ctx, lab.FactsQuery{Brief: true}); err == nil {
		r.stateDir = facts.StateDir
	}
}

// putBack restores a host from its journal, which a cancelled ctx does not stop half-way. Until that is done, leaving at
// once leaves it changed.
func (a *app) putBack(ctx context.Context, x lab.Experiment, name lab.HostName, m *machine) ([]lab.Restored, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	pending, _ := m.pending(ctx) // whatever is wrong with the journal, Restore says it too
	cancel()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout+lab.SlownessOf(lab.Originals(pending)).Restore)
	defer cancel()
	a.touched.add(x, name)
	all, err := m.Restore(ctx)
	if err == nil {
		a.touched.remove(name)
	}
	return all, err
}

func printRestored(a *app, results []restored, o restoreOptions) error {
	if o.json {
		return writeJSON(a.out, results)
	}
	p := &page{w: a.out}
	pending := newTable(nil, "host", "knob", "original", "now", "campaign", "since")
	done := newTable(nil)
	for _, r := range results {
		switch {
		case r.Gone:
			p.line("%s: its container is not up: nothing to put back", r.Host)
		case r.Unknown:
			p.line("%s: cannot be asked", r.Host)
		case r.err == nil && len(r.Pending) == 0 && len(r.Restored) == 0:
			p.line("%s: nothing to put back", r.Host)
		}
		a.pendingRows(pending, r)
		for _, k := range r.Restored {
			done.row(string(r.Host), k.Knob.String(), k.Text())
		}
	}
	if len(pending.rows) > 1 {
		p.table("", pending)
	}
	p.table("", done)
	return p.err
}

// pendingRows adds what is not restored on a host, with how it stands now where that is known.
func (a *app) pendingRows(t *table, r restored) {
	now := map[lab.KnobID]string{}
	for _, s := range r.Standing {
		now[s.Knob] = foundText(s)
	}
	for _, k := range r.Pending {
		t.row(string(r.Host), k.Knob.String(), knobValue(k.Knob, k.Original), cmp.Or(now[k.Knob], "not known"), string(k.Campaign), a.since(k.Since))
	}
}

func compareKnobs(a, b lab.KnobID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// since is a time of a host and how long ago that is.
func (a *app) since(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s (%s ago)", text, span(max(0, a.now().Sub(at))))
}
