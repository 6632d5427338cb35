package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/store"
)

func newStatus(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say how the latest campaign stands and whether this machine is as it was",
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
	Planned  int           `json:"planned_runs,omitempty"` // of the smallest number of rounds
	Last     *lab.Event    `json:"last_event,omitempty"`
	Pending  []lab.Pending `json:"pending,omitempty"` // on this machine
	Unknown  string        `json:"pending_unknown,omitempty"`
}

func status(ctx context.Context, a *app, asJSON bool) error {
	var st standing
	err := a.reading(ctx, func(s *store.Store) error { return st.read(ctx, s) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if st.Pending, err = a.pendingHere(ctx); err != nil {
		st.Unknown = err.Error()
	}
	if asJSON {
		return writeJSON(a.out, st)
	}
	return st.print(a)
}

func (st *standing) read(ctx context.Context, s *store.Store) error {
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
	st.Planned = pl.Experiment.Repeat.Min * len(pl.Cells)
	events, err := s.LastEvents(ctx, c.ID, 1)
	if len(events) > 0 {
		st.Last = &events[0]
	}
	return err
}

// pendingHere asks this machine's journal.
func (a *app) pendingHere(ctx context.Context) (pending []lab.Pending, err error) {
	m, err := a.attach(ctx, lab.Host{Name: "local", Local: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	return m.pending(ctx)
}

func (st *standing) print(a *app) error {
	p := &page{w: a.out}
	if c := st.Campaign; c == nil {
		p.line("%s has no campaign", a.db)
	} else {
		p.line("campaign %s: %s, %d of about %s, %d invalid", c.ID, c.Status, c.Runs, count(max(st.Planned, c.Runs), "run"), c.Invalid)
	}
	if e := st.Last; e != nil {
		p.line("last: %s at %s %s", e.Kind, clock(e.At), e.Text)
	}
	switch {
	case st.Unknown != "":
		p.line("this machine: its journal could not be read: %s", st.Unknown)
	case len(st.Pending) == 0:
		p.line("this machine: nothing is left changed")
	default:
		p.line("this machine: %s left changed by campaign %s; if it is no longer running, run %q", count(len(st.Pending), "knob"), st.Pending[0].Campaign, a.restoreCommand())
	}
	return p.err
}
