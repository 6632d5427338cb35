package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
	"ngxlab/store"
)

// showOptions are the flags of show.
type showOptions struct{ json, raw, config bool }

func newShow(a *app) *cobra.Command {
	o := showOptions{}
	cmd := &cobra.Command{
		Use:     "show [CAMPAIGN|RUN]",
		Short:   "Show a campaign (default: the latest), or one run by its number",
		Example: "  ngxlab show\n  ngxlab show 17 --raw\n  ngxlab show 17 --config",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.reading(cmd.Context(), func(s *store.Store) error { return show(cmd.Context(), a, s, first(given), o) })
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an object")
	cmd.Flags().BoolVar(&o.raw, "raw", false, "with the raw output of the load tools (of a run)")
	cmd.Flags().BoolVar(&o.config, "config", false, "with the configuration that the server had in force (of a run)")
	return cmd
}

func show(ctx context.Context, a *app, s *store.Store, what string, o showOptions) error {
	if id, err := strconv.ParseInt(what, 10, 64); err == nil {
		return showRun(ctx, a, s, id, o)
	}
	return showCampaign(ctx, a, s, what, o)
}

// shown is a campaign as show --json prints it.
type shown struct {
	lab.Campaign
	Version  string              `json:"version"`
	Cells    []shownCell         `json:"cells"`
	Verdicts []lab.Verdict       `json:"verdicts,omitempty"`
	Builds   []lab.Build         `json:"builds,omitempty"`
	Capacity *lab.CapacityResult `json:"capacity,omitempty"`
	List     []shownRun          `json:"run_list"`
}

// shownCell is a cell with the medians of its valid runs, and what qualifies them.
type shownCell struct {
	store.CellCount
	Medians    lab.Figures `json:"medians,omitempty"`
	LowerBound bool        `json:"lower_bound,omitempty"` // goodput: the load generator was the limit
	Doubts     []string    `json:"doubts,omitempty"`      // "foreign-cpu in 1 of 6 runs"
}

// shownRun is a run in a list.
type shownRun struct {
	ID       int64        `json:"id"`
	Cell     lab.CellID   `json:"cell"`
	Part     int          `json:"part"`
	Round    int          `json:"round"`
	Attempt  int          `json:"attempt"`
	Validity lab.Validity `json:"validity"`
	Limit    string       `json:"limit,omitempty"`
	Figures  lab.Figures  `json:"figures,omitempty"`
	Findings []string     `json:"findings,omitempty"` // codes, lower bound, warned or invalid
}

func showCampaign(ctx context.Context, a *app, s *store.Store, id string, o showOptions) error {
	c, err := campaign(ctx, s, id)
	if err != nil {
		return err
	}
	r, err := s.Results(ctx, c.ID, store.Options{})
	if err != nil {
		return err
	}
	counts, err := s.Cells(ctx, c.ID)
	if err != nil {
		return err
	}
	sh := shown{Campaign: r.Campaign, Version: r.Version, Verdicts: r.Verdicts, Builds: r.Builds, List: []shownRun{}}
	for _, n := range counts {
		valid := validRuns(r.Runs, n.Cell)
		sh.Cells = append(sh.Cells, shownCell{n, medians(valid), verdict.LowerBound(valid, lab.Goodput), cellDoubts(valid)})
	}
	for _, run := range r.Runs {
		sh.List = append(sh.List, shownRun{run.ID, run.Cell, run.Part, run.Round, run.Attempt, run.Validity, run.Limit, run.Figures, grave(run.Findings)})
	}
	if len(r.Levels) > 0 {
		concluded := concluded(r)
		sh.Capacity = &concluded
	}
	if o.json {
		return writeJSON(a.out, sh)
	}
	return printCampaign(a, r, sh)
}

// validRuns are a cell's valid runs of the last part.
func validRuns(runs []lab.Run, cell lab.CellID) []lab.Run {
	part := 0
	for _, r := range runs {
		part = max(part, r.Part)
	}
	var valid []lab.Run
	for _, r := range runs {
		if r.Cell == cell && r.Part == part && r.Validity != lab.Invalid {
			valid = append(valid, r)
		}
	}
	return valid
}

// cellDoubts are what qualifies any of the figures shown of a cell.
func cellDoubts(valid []lab.Run) []string {
	var all []string
	for _, m := range shownMetrics {
		all = append(all, verdict.Doubts(valid, m)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// shownMetrics are the figures shown of a cell.
var shownMetrics = []lab.Metric{lab.Goodput, lab.P99S, lab.CPUPerRequest}

func medians(runs []lab.Run) lab.Figures {
	values := map[lab.Metric][]float64{}
	for _, r := range runs {
		for m, v := range r.Figures {
			values[m] = append(values[m], v)
		}
	}
	all := lab.Figures{}
	for m, vs := range values {
		slices.Sort(vs)
		all[m] = (vs[(len(vs)-1)/2] + vs[len(vs)/2]) / 2
	}
	return all
}

// grave are the codes of fired findings that mark a run.
func grave(fs []lab.Finding) []string {
	var codes []string
	for _, f := range fs {
		if f.Outcome == lab.Fired && f.Consequence != lab.Note && f.Consequence != lab.Limit {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

func printCampaign(a *app, r lab.Results, sh shown) error {
	p := &page{w: a.out}
	p.line("%s: %s", sh.ID, sh.Title)
	p.line("%s; began %s; %s; %d invalid, %s", sh.Status, clock(sh.Began), count(sh.Runs, "run"), sh.Invalid, count(sh.Findings, "finding"))
	if sh.Reason != "" {
		p.line("stopped because %s", sh.Reason)
	}
	if sh.Parts > 1 {
		p.line("resumed under other conditions: %d parts, of which the last is shown", sh.Parts)
	}
	for _, h := range r.Plan.Experiment.Hosts {
		p.line("%s: %s", h.Name, factsLine(r.Plan.Facts[h.Name]))
	}
	verdictTable(p, sh.Verdicts, severalTargets(r.Plan.Experiment))
	p.heading("Cells (medians of the valid runs)")
	t := newTable([]int{3, 4, 5, 6, 7}, "target", "state", "load", "runs", "invalid", "goodput", "p99", "CPU per request", "findings")
	for _, c := range sh.Cells {
		goodput := known(c.Medians, lab.Goodput)
		if c.LowerBound {
			goodput = "≥ " + goodput
		}
		t.row(string(c.Cell.Target), c.Cell.State, c.Cell.Load, number(float64(c.Runs)), number(float64(c.Invalid)),
			goodput, known(c.Medians, lab.P99S), known(c.Medians, lab.CPUPerRequest), strings.Join(c.Doubts, ", "))
	}
	p.table("  ", t)
	buildTable(p, r)
	printRuns(p, sh.List, severalTargets(r.Plan.Experiment))
	capacityLines(p, r)
	return p.err
}

// known prints a figure, "–" when it is unknown.
func known(f lab.Figures, m lab.Metric) string {
	if v, ok := f[m]; ok {
		return figure(m, v)
	}
	return "–"
}

func printRuns(p *page, runs []shownRun, several bool) {
	p.heading("Runs")
	t := newTable([]int{0, 1, 4}, "run", "round", "state", "load", "goodput", "validity", "limit", "findings")
	for _, r := range runs {
		t.row(strconv.FormatInt(r.ID, 10), strconv.Itoa(r.Round), stateOf(r.Cell, several), r.Cell.Load, known(r.Figures, lab.Goodput), string(r.Validity), r.Limit, strings.Join(r.Findings, ", "))
	}
	p.table("  ", t)
}

func showRun(ctx context.Context, a *app, s *store.Store, id int64, o showOptions) error {
	r, err := s.Run(ctx, id)
	if err != nil {
		return err
	}
	c, err := s.CampaignOf(ctx, id)
	if err != nil {
		return err
	}
	v, err := servedBy(ctx, s, c, r)
	if err != nil {
		return err
	}
	if o.json {
		return writeRunJSON(a, r, v, o.raw)
	}
	p := &page{w: a.out}
	p.line("run %d of campaign %s: %s, %s, %s; round %d, attempt %d", r.ID, c, r.Cell.Target, r.Cell.State, r.Cell.Load, r.Round, r.Attempt)
	p.line("%s; began %s; evidence grade %s; %s loop; limit: %s", r.Validity, clock(r.Began), orNone(string(r.Grade)), orNone(string(r.LoopModel)), orNone(r.Limit))
	if r.Problem != "" {
		p.line("problem: %s", r.Problem)
	}
	printFigures(p, r.Figures)
	printFindings(p, r.Findings)
	printServer(p, r, v, o.config)
	for _, proc := range r.Processes {
		printProcess(p, proc, o.raw)
	}
	return p.err
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// writeRunJSON prints a run; the load tools' output as text, and only when it is asked for.
func writeRunJSON(a *app, r lab.Run, v answering, raw bool) error {
	type process struct {
		lab.Process
		Stdout     string                `json:"stdout,omitempty"`
		Stderr     string                `json:"stderr,omitempty"`
		Files      map[string]string     `json:"files,omitempty"`
		Reductions map[string]lab.Report `json:"reductions,omitempty"`
	}
	out := struct {
		lab.Run
		answering
		Processes []process `json:"processes,omitempty"`
	}{Run: r, answering: v}
	for _, p := range r.Processes {
		q := process{Process: p}
		if raw {
			q.Stdout, q.Stderr, q.Reductions, q.Files = string(p.Stdout), string(p.Stderr), p.Reductions, map[string]string{}
			for name, body := range p.Files {
				q.Files[name] = string(body)
			}
		}
		out.Processes = append(out.Processes, q)
	}
	return writeJSON(a.out, out)
}

func printFigures(p *page, f lab.Figures) {
	p.heading("Figures")
	t := newTable([]int{1})
	var names []string
	for m := range f {
		names = append(names, string(m))
	}
	slices.Sort(names)
	for _, m := range names {
		t.row(m, figure(lab.Metric(m), f[lab.Metric(m)]))
	}
	p.table("  ", t)
}

func printFindings(p *page, fs []lab.Finding) {
	var silent []string
	p.heading("Findings")
	for _, f := range fs {
		switch f.Outcome {
		case lab.NotEvaluated:
			silent = append(silent, f.Code)
		case lab.Fired:
			p.line("  %s (%s): %s", f.Code, f.Consequence, f.Evidence)
			if f.Advice != "" {
				p.line("    %s", f.Advice)
			}
			if f.Step != "" {
				p.line("    %s", strings.ReplaceAll(strings.TrimSpace(f.Step), "\n", "\n    "))
			}
		}
	}
	if len(silent) > 0 {
		p.line("  not evaluated: %s", strings.Join(silent, ", "))
	}
}

func printProcess(p *page, proc lab.Process, raw bool) {
	p.heading("%s on %s, exit %d%s", proc.Command.Tool, proc.Host, proc.Exit, signalText(proc))
	p.line("  %s", commandLine(proc.Command.Argv))
	if proc.Problem != "" {
		p.line("  problem: %s", proc.Problem)
	}
	if !raw {
		return
	}
	for _, part := range []struct{ name, text string }{{"stdout", string(proc.Stdout)}, {"stderr", string(proc.Stderr)}} {
		if part.text != "" {
			p.line("  %s:\n%s", part.name, strings.TrimRight(part.text, "\n"))
		}
	}
}

func signalText(p lab.Process) string {
	switch {
	case p.TimedOut:
		return " (deadline passed)"
	case p.Signal != "":
		return fmt.Sprintf(" (%s)", p.Signal)
	}
	return ""
}
