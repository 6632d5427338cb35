package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/observe"
	"ngxlab/lab/verdict"
	"ngxlab/store"
)

func newVerify(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "verify CAMPAIGN",
		Short:   "Derive a campaign's figures and verdicts again from what is stored, and tell every difference",
		Example: "  ngxlab verify study-20260102-150405",
		Long: `verify checks of a campaign that
  - the pages of the database, the references between its tables and the counts of its listings are right;
  - the experiment's text and the configurations of its servers have the hashes that are stored with them;
  - the output of every load tool, parsed again, gives the report that is stored;
  - the figures that come from those reports and the server's own counts, merged again, are the stored ones
    (not when load hosts have clocks of their own: their offsets are not stored);
  - every run is as valid as its findings say;
  - the verdicts, derived again from the runs, are the stored ones.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.reading(cmd.Context(), func(s *store.Store) error { return verify(cmd.Context(), a, s, given[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object")
	return cmd
}

// verification is what verify found.
type verification struct {
	Campaign  lab.CampaignID `json:"campaign"`
	Runs      int            `json:"runs"`
	Processes int            `json:"processes"`
	Verdicts  int            `json:"verdicts"`
	Wrong     []string       `json:"wrong"`
}

func verify(ctx context.Context, a *app, s *store.Store, id string, asJSON bool) error {
	r, err := s.Results(ctx, lab.CampaignID(id), store.Options{})
	if err != nil {
		return err
	}
	v := verification{Campaign: r.Campaign.ID, Runs: len(r.Runs), Verdicts: len(r.Verdicts), Wrong: []string{}}
	broken, err := s.Check(ctx, r.Campaign.ID)
	if err != nil {
		return err
	}
	v.Wrong = append(v.Wrong, broken...)
	for _, light := range r.Runs {
		run, err := s.Run(ctx, light.ID) // one at a time: the raw output of a whole campaign may not fit in memory
		if err != nil {
			return err
		}
		v.Processes += len(run.Processes)
		v.Wrong = append(v.Wrong, verifyRun(r.Plan, run)...)
	}
	v.Wrong = append(v.Wrong, verifyVerdicts(r)...)
	if err := v.print(a, asJSON); err != nil {
		return err
	}
	if len(v.Wrong) > 0 {
		return fmt.Errorf("verify campaign %s: %s", v.Campaign, count(len(v.Wrong), "difference"))
	}
	return nil
}

// verifyRun parses the output of every process again, merges the reports, and holds the validity against the findings.
func verifyRun(pl lab.Plan, r lab.Run) []string {
	var wrong []string
	for i, p := range r.Processes {
		again := load.Parse(p)
		if !reflect.DeepEqual(again.Report.Figures, p.Report.Figures) || !bytes.Equal(again.Report.Histogram, p.Report.Histogram) || again.Problem != p.Problem {
			wrong = append(wrong, fmt.Sprintf("run %d, process %d: the output of %s, parsed again, gives another report", r.ID, i+1, p.Command.Tool))
		}
		r.Processes[i] = again
	}
	wrong = append(wrong, verifyFigures(pl, r)...)
	if worst := worstOf(r); r.Validity != worst {
		wrong = append(wrong, fmt.Sprintf("run %d is stored as %s, its findings say %s", r.ID, r.Validity, worst))
	}
	return wrong
}

// verifyFigures merges the reports again, when all processes ran on the target's own clock.
func verifyFigures(pl lab.Plan, r lab.Run) []string {
	point, known := pl.Load(r.Cell.Load)
	if !known {
		return []string{fmt.Sprintf("run %d: the plan has no load point %q", r.ID, r.Cell.Load)}
	}
	for _, p := range r.Processes {
		if p.Host != r.Cell.Target {
			return nil
		}
	}
	again := load.Merge(r.Processes, load.MergeInput{Point: point, Probe: r.Server.Probes[point.URL], Served: served(r)})
	var wrong []string
	for _, m := range slices.Sorted(maps.Keys(again.Figures)) {
		if stored, known := r.Figures[m]; !known || stored != again.Figures[m] {
			wrong = append(wrong, fmt.Sprintf("run %d: %s is stored as %s, merged again it is %s", r.ID, m, figure(m, stored), figure(m, again.Figures[m])))
		}
	}
	return wrong
}

// served are the target's counts of requests, the lab's own polls subtracted.
func served(r lab.Run) []load.Served {
	var counts []load.Served
	for _, s := range r.Samples {
		if n, known := observe.Requests(s); known && s.Host == r.Cell.Target {
			counts = append(counts, load.Served{At: s.At, Requests: n})
		}
	}
	return counts
}

// worstOf is the validity that the findings of a run give it.
func worstOf(r lab.Run) lab.Validity {
	validity := lab.Clean
	for _, f := range r.Findings {
		switch {
		case f.Outcome != lab.Fired:
		case f.Consequence == lab.Invalidate:
			return lab.Invalid
		case f.Consequence == lab.Warn:
			validity = lab.Warned
		}
	}
	return validity
}

// verifyVerdicts derives the verdicts again. A campaign that has not ended has none to compare.
func verifyVerdicts(r lab.Results) []string {
	if len(r.Verdicts) == 0 {
		return nil
	}
	stored := r.Verdicts
	r.Verdicts = nil
	again := verdict.All(r)
	if len(again) != len(stored) {
		return []string{fmt.Sprintf("%s are stored, %d come out again", count(len(stored), "verdict"), len(again))}
	}
	var wrong []string
	for i := range again {
		if !same(again[i], stored[i]) {
			wrong = append(wrong, fmt.Sprintf("verdict on %s over %s, %s: stored %q, again %q", stored[i].Comparison.State, stored[i].Comparison.Over,
				stored[i].Comparison.Metric, stored[i].Text, again[i].Text))
		}
	}
	return wrong
}

// same compares as JSON, which is how verdicts are stored.
func same(x, y any) bool {
	a, errA := json.Marshal(x)
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (v verification) print(a *app, asJSON bool) error {
	if asJSON {
		return writeJSON(a.out, v)
	}
	p := &page{w: a.out}
	p.line("campaign %s: %s with %s and %s derived again", v.Campaign, count(v.Runs, "run"), countOf(v.Processes, "process", "processes"), count(v.Verdicts, "verdict"))
	for _, w := range v.Wrong {
		p.line("  %s", w)
	}
	if len(v.Wrong) == 0 {
		p.line("  all as stored")
	}
	return p.err
}
