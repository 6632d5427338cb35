package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/experiments"
	"ngxlab/lab"
	"ngxlab/lab/capacity"
	"ngxlab/store"
)

// errNoCapacity says that there is nothing about memory per connection.
var errNoCapacity = errors.New("it has no capacity part")

func newCapacity(a *app) *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:     "capacity FILE|NAME|CAMPAIGN",
		Short:   "Measure the memory per connection of an experiment, or print that of a campaign",
		Example: "  ngxlab capacity study.yaml\n  ngxlab capacity study-20260102-150405 --json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if isExperiment(given[0]) {
				return measureCapacity(cmd.Context(), a, given[0], o)
			}
			return a.reading(cmd.Context(), func(s *store.Store) error { return showCapacity(cmd.Context(), a, s, given[0], o.json) })
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as an object")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "agree to more than four hours")
	noInstallFlag(cmd, &o.noInstall)
	return cmd
}

// isExperiment tells a file or a library name from a campaign.
func isExperiment(what string) bool {
	if _, err := os.Stat(what); !errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(what, ".yaml") {
		return true
	}
	return inLibrary(what)
}

// inLibrary reports whether an experiment of that name comes with ngxlab.
func inLibrary(name string) bool {
	_, err := experiments.Open(name)
	return err == nil
}

// measureCapacity conducts only the capacity part of an experiment.
func measureCapacity(ctx context.Context, a *app, file string, o runOptions) error {
	x, err := loadExperiment(file)
	if err != nil {
		return err
	}
	if x.Capacity == nil {
		return &hinted{err: fmt.Errorf("%s: %w", file, errNoCapacity), hint: "add a section \"capacity:\"; \"ngxlab init\" writes a file with an example"}
	}
	id := campaignID(x, a.now())
	o.seed = seedOf(x, id)
	return a.withFleet(ctx, x, func(f *fleet) error {
		pl, err := a.prepare(ctx, f, x, id, o)
		if err != nil {
			return err
		}
		pl.Cells, pl.Rounds = nil, nil // nothing but the capacity part
		if err := allowed(pl, o); err != nil {
			return err
		}
		return a.writing(ctx, func(s *store.Store) error {
			if _, err := a.walk(ctx, s, f, id, pl, false); err != nil {
				return err
			}
			return showCapacity(ctx, a, s, string(id), o.json)
		})
	})
}

// concluded is what the levels of a campaign say.
func concluded(r lab.Results) lab.CapacityResult { return capacity.Conclude(r.Plan, r.Levels) }

func showCapacity(ctx context.Context, a *app, s *store.Store, id string, asJSON bool) error {
	r, err := s.Results(ctx, lab.CampaignID(id), store.Options{})
	if err != nil {
		return err
	}
	if len(r.Levels) == 0 {
		return fmt.Errorf("campaign %s: %w", r.Campaign.ID, errNoCapacity)
	}
	c := concluded(r)
	if asJSON {
		return writeJSON(a.out, c)
	}
	return printCapacity(a, r, c)
}

func printCapacity(a *app, r lab.Results, c lab.CapacityResult) error {
	p := &page{w: a.out}
	p.line("campaign %s: %s", r.Campaign.ID, count(len(c.Levels), "level"))
	if c.Problem != "" {
		p.line("nothing can be concluded: %s", c.Problem)
	}
	p.heading("Memory per connection")
	t := newTable([]int{2, 4}, "kind", "part", "each", "interval", "at 0 connections", "")
	for _, f := range c.Fits {
		t.row(string(f.Kind), f.Part, size(f.BytesPerConnection), between(f.NoInterval, size(f.Low), size(f.High)), size(f.InterceptBytes), fitNote(f))
	}
	p.table("  ", t)
	p.heading("What fits")
	t = newTable([]int{1, 2}, "kind", "memory", "connections", "interval", "first limit", "")
	for _, j := range c.Projections {
		note := ""
		if j.Extrapolation {
			note = "extrapolation"
		}
		t.row(string(j.Kind), size(float64(j.SizeBytes)), number(float64(j.Connections)), between(j.NoInterval, number(float64(j.Low)), number(float64(j.High))),
			fmt.Sprintf("%s at %s", j.FirstLimit, number(float64(j.AtFirstLimit))), note)
	}
	p.table("  ", t)
	for _, r := range c.Rules {
		p.line("  rule of thumb (%s): %s: %s to %s %s; measured %s", r.Source, r.Rule, size(r.LowBytes), size(r.HighBytes), r.Of, size(r.MeasuredBytes))
	}
	for _, n := range c.Notes {
		p.line("  %s", n)
	}
	return p.err
}

// between is an interval in words.
func between(none bool, low, high string) string {
	if none {
		return "no interval"
	}
	return low + " … " + high
}

func fitNote(f lab.CapacityFit) string {
	var notes []string
	if f.NotLinear {
		notes = append(notes, "not linear")
	}
	if f.Divided {
		notes = append(notes, "half of what both ends take on one kernel: an assumption")
	}
	return strings.Join(notes, "; ")
}
