package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/conduct"
	"ngxlab/lab/plan"
	"ngxlab/store"
)

// longCampaign is the estimate above which a campaign wants --yes (METHOD §8).
const longCampaign = 4 * time.Hour

// runOptions are the flags of run and resume.
type runOptions struct {
	out       string // folder of the report
	json      bool
	yes       bool
	noInstall bool
	seed      uint64
}

func newRun(a *app) *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:     "run FILE|NAME",
		Short:   "Run the study of an experiment file, or of the library, and write its report",
		Example: "  ngxlab run study.yaml\n  ngxlab run quickstart --out report --db quickstart.db",
		Args:    args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, given []string) error { return run(cmd.Context(), a, given[0], o) },
	}
	o.flags(cmd)
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "seed of the order (default: made from the file and the campaign)")
	return cmd
}

func (o *runOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.out, "out", "", "folder of the report (default out/CAMPAIGN)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one event per line as JSON")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "agree to a campaign of more than four hours")
	noInstallFlag(cmd, &o.noInstall)
}

// run plans a new campaign and conducts it.
func run(ctx context.Context, a *app, file string, o runOptions) error {
	x, err := loadExperiment(file)
	if err != nil {
		return err
	}
	id := campaignID(x, a.now())
	if o.seed == 0 {
		o.seed = seedOf(x, id)
	}
	return a.withFleet(ctx, x, func(f *fleet) error {
		pl, err := a.prepare(ctx, f, x, id, o)
		if err != nil {
			return err
		}
		if err := allowed(pl, o); err != nil {
			return err
		}
		return a.writing(ctx, func(s *store.Store) error { return a.conduct(ctx, s, f, id, pl, o) })
	})
}

// campaignID names a campaign that begins now.
func campaignID(x lab.Experiment, now time.Time) lab.CampaignID {
	return lab.CampaignID(x.Name + "-" + now.UTC().Format("20060102-150405"))
}

// seedOf is the seed of a campaign; it is never 0, which stands for "not given" in the flags.
func seedOf(x lab.Experiment, id lab.CampaignID) uint64 { return max(1, lab.Seed(x.Hash, id)) }

// prepare claims the hosts, puts back what was left on them, reads their facts, makes the plan and lets the builds that
// there are try its configurations.
func (a *app) prepare(ctx context.Context, f *fleet, x lab.Experiment, id lab.CampaignID, o runOptions) (lab.Plan, error) {
	facts, err := a.claimed(ctx, f, x, id, o.noInstall)
	if err != nil {
		return lab.Plan{}, err
	}
	pl, err := plan.New(x, facts, o.seed)
	if err != nil {
		return pl, err
	}
	return a.tried(ctx, f, pl)
}

// claimed takes the hosts for the campaign and reads their facts as they are when nothing is left changed.
func (a *app) claimed(ctx context.Context, f *fleet, x lab.Experiment, id lab.CampaignID, noInstall bool) (map[lab.HostName]lab.Facts, error) {
	if err := f.claim(ctx, id); err != nil {
		return nil, err
	}
	if err := a.recover(ctx, f); err != nil {
		return nil, err
	}
	return f.facts(ctx, x, noInstall)
}

// allowed refuses a plan that cannot be carried out, and a long one without --yes.
func allowed(pl lab.Plan, o runOptions) error {
	if len(pl.Fatal()) > 0 {
		return &refusedError{pl}
	}
	if pl.Estimate.Duration > longCampaign && !o.yes {
		return &usageError{err: fmt.Errorf("the campaign would take about %s", span(pl.Estimate.Duration)), hint: "look at it with \"ngxlab plan\", then add --yes"}
	}
	return nil
}

// conduct walks the plan, then concludes: verdicts, report, summary.
func (a *app) conduct(ctx context.Context, s *store.Store, f *fleet, id lab.CampaignID, pl lab.Plan, o runOptions) error {
	out, err := a.walk(ctx, s, f, id, pl, o.json)
	if !out.Status.Measured() {
		return err
	}
	return errors.Join(err, unwritten(id, a.conclude(ctx, s, id, o)))
}

// walk lets the engine walk the plan, shows its progress, and says of every host whether it is as it was.
func (a *app) walk(ctx context.Context, s *store.Store, f *fleet, id lab.CampaignID, pl lab.Plan, asJSON bool) (lab.Outcome, error) {
	if !asJSON {
		a.doubts(pl)
	}
	progress := a.newProgress(pl, asJSON)
	a.touched.add(f.x, hostNames(f.x)...)
	out, err := conduct.Run(ctx, id, pl, a.conducted(f, id), s, progress.event)
	shown := progress.finish() // notes are written past it from here on
	err = errors.Join(err, a.mend(ctx, s, f, &out))
	for _, h := range f.x.Hosts {
		if _, bad := out.Unrestored[h.Name]; !bad {
			a.touched.remove(h.Name)
		}
	}
	a.restoreStatus(f, out)
	if !out.Status.Measured() {
		err = stopped(ctx, s, pl, out, err)
	}
	return out, errors.Join(a.unrestored(f, out), err, shown)
}

// doubts says before the first change what is left out and worth knowing.
func (a *app) doubts(pl lab.Plan) {
	p := &page{w: a.err}
	p.line("%s: %s", pl.Experiment.Name, pl.Experiment.Title)
	planDoubts(p, pl)
	planTime(p, pl)
	p.line("")
}

// conclude keeps the verdicts, writes the report, prints the summary, and says when the campaign should be doubted.
func (a *app) conclude(ctx context.Context, s *store.Store, id lab.CampaignID, o runOptions) error {
	r, err := judged(ctx, s, id)
	if err != nil {
		return err
	}
	if err := s.SaveVerdicts(ctx, id, r.Verdicts); err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join("out", string(id))
	}
	files, err := writeReport(ctx, o.out, r)
	if err != nil {
		return err
	}
	if err := a.summary(r, files, o.json); err != nil {
		return err
	}
	return doubtful(r)
}

// doubtful says why a finished campaign should not be trusted as it stands; nil when nothing speaks against it.
func doubtful(r lab.Results) error {
	if r.Campaign.Runs > 0 && r.Campaign.Invalid == r.Campaign.Runs {
		return &hinted{err: &doubtfulError{reason: "every run is invalid: " + reasons(r.Runs)}, hint: "\"ngxlab show RUN\" gives the evidence and what to do"}
	}
	for _, v := range r.Verdicts {
		if v.Claim != "" && v.Word == lab.Contradicted {
			return &doubtfulError{reason: fmt.Sprintf("claim %q is contradicted: %s", v.Claim, v.Text)}
		}
	}
	return nil
}

// reasons are the findings that made runs invalid, the most frequent first, with how often.
func reasons(runs []lab.Run) string {
	times := map[string]int{}
	for _, r := range runs {
		for _, f := range r.Findings {
			if f.Outcome == lab.Fired && f.Consequence == lab.Invalidate {
				times[f.Code]++
			}
		}
	}
	codes := slices.SortedFunc(maps.Keys(times), func(a, b string) int { return cmp.Or(times[b]-times[a], strings.Compare(a, b)) })
	for i, c := range codes {
		codes[i] = fmt.Sprintf("%s (%d)", c, times[c])
	}
	return orNone(joined(codes))
}
