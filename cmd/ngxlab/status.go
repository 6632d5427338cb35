package main

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/store"
)

func newStatus(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say how the latest campaign stands and whether its hosts are as they were",
		Example: "  ngxlab status",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return status(cmd.Context(), a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object")
	return cmd
}

// standing is what status says.
type standing struct {
	Campaign *lab.Campaign `json:"campaign,omitempty"`
	Hostless bool          `json:"hostless,omitempty"`     // it is running by the database, and holds none of its hosts: it was killed
	Planned  int           `json:"planned_runs,omitempty"` // of the smallest number of rounds
	Last     *lab.Event    `json:"last_event,omitempty"`
	Hosts    []restored    `json:"hosts"` // those of the campaign, this machine without one; what is pending there
}

// status asks the hosts' journals, and brings no lab up for it.
func status(ctx context.Context, a *app, asJSON bool) error {
	var st standing
	x := lab.Experiment{Hosts: []lab.Host{{Name: "local", Local: true}}}
	err := a.reading(ctx, func(s *store.Store) error { return st.read(ctx, s, &x) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	st.Hosts = a.askAll(ctx, x, askHolder)
	if st.holdsNone() {
		// It may have ended meanwhile.
		if err := a.reading(ctx, func(s *store.Store) error { return st.read(ctx, s, &x) }); err != nil {
			return err
		}
		st.Hostless = st.holdsNone()
	}
	if asJSON {
		return writeJSON(a.out, st)
	}
	return st.print(a, x)
}

// askHolder is askPending, and asks who holds the host.
func askHolder(ctx context.Context, m *machine, r *restored) (err error) {
	if err = askPending(ctx, m, r); err == nil {
		r.holder, err = m.holder(ctx)
	}
	return err
}

// holdsNone reports whether the campaign runs by the database, which one does that holds all of its hosts, and is known to hold
// none of them.
func (st *standing) holdsNone() bool {
	return st.Campaign != nil && st.Campaign.Status == lab.StatusRunning && !slices.ContainsFunc(st.Hosts, func(r restored) bool {
		return r.err != nil || r.holder.Campaign == st.Campaign.ID
	})
}

// read reads the latest campaign and, when there is one, its experiment.
func (st *standing) read(ctx context.Context, s *store.Store, x *lab.Experiment) error {
	c, err := s.Latest(ctx)
	var none *store.NotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	st.Campaign = &c
	pl, err := s.Plan(ctx, c.ID)
	if err != nil {
		return err
	}
	*x = pl.Experiment
	st.Planned = pl.Experiment.Repeat.Min * len(pl.Cells)
	events, err := s.LastEvents(ctx, c.ID, 1)
	if len(events) > 0 {
		st.Last = &events[0]
	}
	return err
}

func (st *standing) print(a *app, x lab.Experiment) error {
	p := &page{w: a.out}
	if c := st.Campaign; c == nil {
		p.line("%s has no campaign", a.db)
	} else {
		p.line("campaign %s: %s, %d of about %s, %d invalid", c.ID, c.Status, c.Runs, count(max(st.Planned, c.Runs), "run"), c.Invalid)
	}
	if st.Hostless {
		p.line("it holds none of its hosts: it was killed, or has lost them; when it is gone, %q goes on", "ngxlab resume "+string(st.Campaign.ID))
	}
	if e := st.Last; e != nil {
		p.line("last: %s at %s %s", e.Kind, clock(e.At), e.Text)
	}
	var engineless []lab.HostName
	var down *engineError
	for _, h := range st.Hosts {
		switch {
		case errors.As(h.err, &down): // told once for all
			engineless = append(engineless, h.Host)
		case h.Gone:
			p.line("%s: the container is not up", h.Host)
		case h.err != nil:
			p.line("%s: its journal could not be read: %s", h.Host, h.Error)
		case len(h.Pending) == 0:
			p.line("%s: nothing is left changed", h.Host)
		default:
			p.line("%s: %s left changed by campaign %s; if it is no longer running, run %q", h.Host, count(len(h.Pending), "knob"),
				h.Pending[0].Campaign, a.restoreCommand(x, []lab.HostName{h.Host}))
		}
	}
	if down != nil {
		p.line("%s: not known what is left changed: %s", joinHosts(engineless), down)
	}
	return p.err
}
