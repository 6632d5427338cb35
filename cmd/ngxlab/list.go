package main

import (
	"context"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/store"
)

func newList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the campaigns of the database, newest first",
		Example: "  ngxlab list --db quickstart.db",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.reading(cmd.Context(), func(s *store.Store) error { return list(cmd.Context(), a, s, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array")
	return cmd
}

func list(ctx context.Context, a *app, s *store.Store, asJSON bool) error {
	campaigns, err := s.Campaigns(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.out, append([]lab.Campaign{}, campaigns...))
	}
	t := newTable([]int{4, 5, 6}, "campaign", "began", "took", "status", "runs", "invalid", "findings", "title")
	for _, c := range campaigns {
		took := ""
		if c.Ended != nil {
			took = span(c.Ended.Sub(c.Began))
		}
		t.row(string(c.ID), clock(c.Began), took, string(c.Status), number(float64(c.Runs)), number(float64(c.Invalid)), number(float64(c.Findings)), c.Title)
	}
	p := &page{w: a.out}
	p.table("", t)
	return p.err
}
