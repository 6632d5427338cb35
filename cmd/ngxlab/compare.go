package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
	"ngxlab/store"
)

// compareOptions are the flags of compare.
type compareOptions struct {
	campaign string
	json     bool
}

// comparedMetrics are shown by compare, each apart.
var comparedMetrics = []lab.Metric{lab.Goodput, lab.CPUPerRequest, lab.P50S, lab.P99S}

func newCompare(a *app) *cobra.Command {
	o := compareOptions{}
	cmd := &cobra.Command{
		Use:     "compare A B",
		Short:   "Compare two states of a campaign, or two campaigns: A over B",
		Example: "  ngxlab compare \"log off\" default",
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.reading(cmd.Context(), func(s *store.Store) error { return compare(cmd.Context(), a, s, given[0], given[1], o) })
		},
	}
	cmd.Flags().StringVar(&o.campaign, "campaign", "", "the campaign whose states are meant (default: the latest)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array of comparisons")
	return cmd
}

// compare takes A and B for states of the campaign when both are, else for campaigns.
func compare(ctx context.Context, a *app, s *store.Store, first, second string, o compareOptions) error {
	c, err := campaign(ctx, s, o.campaign)
	if err != nil {
		return err
	}
	pl, err := s.Plan(ctx, c.ID)
	if err != nil {
		return err
	}
	_, isFirst := pl.State(first)
	_, isSecond := pl.State(second)
	if isFirst && isSecond {
		return compareStates(ctx, a, s, c.ID, first, second, o.json)
	}
	if o.campaign != "" || isFirst || isSecond {
		return stateMissing(pl, c.ID, first, second)
	}
	return compareCampaigns(ctx, a, s, first, second, o.json)
}

func stateMissing(pl lab.Plan, c lab.CampaignID, names ...string) error {
	for _, name := range names {
		if _, known := pl.State(name); !known {
			var all []string
			for _, s := range pl.States {
				all = append(all, fmt.Sprintf("%q", s.Name))
			}
			return &hinted{err: fmt.Errorf("campaign %s has no state %q", c, name), hint: "its states are " + joined(all)}
		}
	}
	return nil
}

// compareStates compares by paired rounds, as the verdicts do, but exploratory: intervals and no verdict words.
func compareStates(ctx context.Context, a *app, s *store.Store, c lab.CampaignID, state, over string, asJSON bool) error {
	r, err := s.Results(ctx, c, store.Options{})
	if err != nil {
		return err
	}
	all := []lab.Comparison{}
	for _, h := range r.Plan.Experiment.Hosts {
		if !h.Has(lab.RoleTarget) {
			continue
		}
		for _, m := range comparedMetrics {
			for _, load := range append([]string{""}, loadNames(r.Plan)...) {
				all = append(all, verdict.Between(r, lab.CellID{Target: h.Name, State: over, Load: load}, lab.CellID{Target: h.Name, State: state, Load: load}, m))
			}
		}
	}
	if asJSON {
		return writeJSON(a.out, all)
	}
	p := &page{w: a.out}
	p.line("%s over %s, campaign %s: ratio of paired rounds with its 95%% interval; exploratory, not a verdict", state, over, c)
	t := newTable([]int{3, 4}, "metric", "target", "load", "rounds", "ratio", "interval", "note")
	for _, k := range all {
		t.row(string(k.Metric), string(k.Target), loadName(k.Load), fmt.Sprint(k.Pairs), ratio(k), interval(k), note(k))
	}
	p.table("  ", t)
	return p.err
}

func loadNames(pl lab.Plan) []string {
	names := make([]string, len(pl.Loads))
	for i, l := range pl.Loads {
		names[i] = l.Name
	}
	return names
}

func loadName(name string) string {
	if name == "" {
		return "(all headline loads)"
	}
	return name
}

// ratio is "–" where nothing can be compared, and where a lower bound is all that is known.
func ratio(c lab.Comparison) string {
	if c.Pairs == 0 || c.Ratio == 0 || c.Prevented != "" || c.LowerBound {
		return "–"
	}
	return fmt.Sprintf("%.3f", c.Ratio)
}

func interval(c lab.Comparison) string {
	switch {
	case c.Pairs < 2 || c.Low == 0 && c.High == 0 || c.Prevented != "":
		return "none"
	case c.LowerBound:
		return fmt.Sprintf("≥ %.3f", c.Low)
	}
	return fmt.Sprintf("%.3f … %.3f", c.Low, c.High)
}

// note says what a reader must know with a comparison.
func note(c lab.Comparison) string {
	var all []string
	if c.Prevented != "" {
		all = append(all, "not comparable: "+c.Prevented)
	}
	if c.LowerBound {
		all = append(all, fmt.Sprintf("at least: the load generator was the limit of %q", c.State))
	}
	for _, load := range slices.Sorted(maps.Keys(c.LeftOut)) {
		all = append(all, fmt.Sprintf("without %s: %s", load, c.LeftOut[load]))
	}
	return strings.Join(append(all, c.Doubts...), "; ")
}

// beside is one cell of two campaigns: medians, because rounds of different campaigns are no pairs.
type beside struct {
	Cell   lab.CellID `json:"cell"`
	Metric lab.Metric `json:"metric"`
	First  float64    `json:"first"`
	Second float64    `json:"second"`
	Ratio  float64    `json:"ratio_of_medians,omitempty"`

	LowerBound   bool     `json:"lower_bound,omitempty"` // the load generator was the limit of the first campaign
	Prevented    string   `json:"prevented,omitempty"`   // why there is no ratio
	FirstDoubts  []string `json:"first_doubts,omitempty"`
	SecondDoubts []string `json:"second_doubts,omitempty"`
}

// sideBySide is what compare --json prints of two campaigns.
type sideBySide struct {
	First      lab.CampaignID `json:"first"`
	Second     lab.CampaignID `json:"second"`
	Conditions []string       `json:"conditions_that_differ"`
	Cells      []beside       `json:"cells"`
}

func compareCampaigns(ctx context.Context, a *app, s *store.Store, first, second string, asJSON bool) error {
	x, err := s.Results(ctx, lab.CampaignID(first), store.Options{})
	if err != nil {
		return err
	}
	y, err := s.Results(ctx, lab.CampaignID(second), store.Options{})
	if err != nil {
		return err
	}
	both := sideBySide{First: x.Campaign.ID, Second: y.Campaign.ID, Conditions: append([]string{}, conditions(x, y)...), Cells: []beside{}}
	for _, cell := range x.Plan.Cells {
		both.Cells = append(both.Cells, besides(validRuns(x.Runs, cell.ID), validRuns(y.Runs, cell.ID), cell.ID)...)
	}
	if len(both.Cells) == 0 {
		return &hinted{err: fmt.Errorf("campaigns %s and %s have no cell in common", both.First, both.Second), hint: "cells are the same when host, state and load point have the same names"}
	}
	if asJSON {
		return writeJSON(a.out, both)
	}
	p := &page{w: a.out}
	p.line("%s beside %s: medians of the valid runs; a description, for rounds of different campaigns are no pairs", both.First, both.Second)
	for _, c := range both.Conditions {
		p.line("differs: %s", c)
	}
	t := newTable([]int{3, 4, 5}, "state", "load", "metric", "first", "second", "ratio", "note")
	for _, b := range both.Cells {
		t.row(b.Cell.State, b.Cell.Load, string(b.Metric), figure(b.Metric, b.First), figure(b.Metric, b.Second), b.ratio(), b.note())
	}
	p.table("  ", t)
	return p.err
}

func besides(x, y []lab.Run, cell lab.CellID) []beside {
	first, second := medians(x), medians(y)
	var all []beside
	for _, m := range comparedMetrics {
		v, inX := first[m]
		w, inY := second[m]
		if !inX || !inY {
			continue
		}
		b := beside{Cell: cell, Metric: m, First: v, Second: w, FirstDoubts: verdict.Doubts(x, m), SecondDoubts: verdict.Doubts(y, m)}
		if b.LowerBound, b.Prevented = verdict.Limits(y, x, m); b.Prevented == "" && w != 0 {
			b.Ratio = v / w
		}
		all = append(all, b)
	}
	return all
}

func (b beside) ratio() string {
	switch {
	case b.Ratio == 0:
		return "–"
	case b.LowerBound:
		return fmt.Sprintf("≥ %.3f", b.Ratio)
	}
	return fmt.Sprintf("%.3f", b.Ratio)
}

func (b beside) note() string {
	var all []string
	if b.Prevented != "" {
		all = append(all, "not comparable: "+b.Prevented)
	}
	if b.LowerBound {
		all = append(all, "at least: the load generator was the limit of the first")
	}
	for _, d := range b.FirstDoubts {
		all = append(all, "first: "+d)
	}
	for _, d := range b.SecondDoubts {
		all = append(all, "second: "+d)
	}
	return strings.Join(all, "; ")
}

// conditions are what differs between two campaigns apart from their figures.
func conditions(x, y lab.Results) []string {
	all := changes(x.Plan, y.Plan.Facts)
	if x.Campaign.Hash != y.Campaign.Hash {
		all = append(all, "the experiment files")
	}
	if x.Version != y.Version {
		all = append(all, fmt.Sprintf("ngxlab: %s → %s", x.Version, y.Version))
	}
	ids := map[string]string{}
	for _, b := range x.Builds {
		ids[b.Recipe] = b.ID
	}
	for _, b := range y.Builds {
		if id, known := ids[b.Recipe]; known && id != b.ID {
			all = append(all, fmt.Sprintf("build %s: %s → %s", b.Recipe, id, b.ID))
		}
	}
	return all
}
