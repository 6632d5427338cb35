package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ngxlab/lab"
)

// result is the last line of run --json: it has the kind and time of an event.
type result struct {
	At       time.Time     `json:"at"`
	Kind     string        `json:"kind"` // "result"
	Campaign lab.Campaign  `json:"campaign"`
	Verdicts []lab.Verdict `json:"verdicts"`
	Report   []string      `json:"report"` // files
}

// summary prints what a campaign found and where its report is.
func (a *app) summary(r lab.Results, files []string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(jsonOut{a.out}).Encode(result{At: a.now().UTC(), Kind: "result", Campaign: r.Campaign, Verdicts: r.Verdicts, Report: files})
	}
	p := &page{w: a.out}
	p.line("%s: %s, %s, %d invalid", r.Campaign.ID, r.Campaign.Status, count(r.Campaign.Runs, "run"), r.Campaign.Invalid)
	if r.Campaign.Reason != "" {
		p.line("stopped because %s", r.Campaign.Reason)
	}
	verdictTable(p, r.Verdicts, severalTargets(r.Plan.Experiment))
	capacityLines(p, r)
	if len(files) > 0 {
		p.heading("Report")
	}
	for _, f := range files {
		p.line("  %s", f)
	}
	return p.err
}

// verdictTable prints one line per step with its verdicts on the headline figures, then the control and the claims.
func verdictTable(p *page, vs []lab.Verdict, several bool) {
	type key struct {
		target      lab.HostName
		state, over string
	}
	texts := map[key]map[lab.Metric]string{}
	var order []key
	for _, v := range vs {
		k := key{v.Comparison.Target, v.Comparison.State, v.Comparison.Over}
		if v.Family != "steps" && v.Family != "control" || v.Comparison.Load != "" {
			continue
		}
		if texts[k] == nil {
			texts[k] = map[lab.Metric]string{}
			order = append(order, k)
		}
		texts[k][v.Comparison.Metric] = v.Text
	}
	if len(order) > 0 {
		p.heading("Steps")
		t := newTable(nil, "state", "over", "goodput", "server CPU per request")
		for _, k := range order {
			t.row(stateOf(lab.CellID{Target: k.target, State: k.state}, several), k.over, texts[k][lab.Goodput], texts[k][lab.CPUPerRequest])
		}
		p.table("  ", t)
	}
	claimTable(p, vs)
}

func claimTable(p *page, vs []lab.Verdict) {
	t := newTable(nil)
	for _, v := range vs {
		if v.Claim != "" {
			t.row(v.Claim, v.Text)
		}
	}
	if len(t.rows) > 0 {
		p.heading("Claims")
		p.table("  ", t)
	}
}

// capacityLines prints the bytes per connection and what fits, when the campaign measured it.
func capacityLines(p *page, r lab.Results) {
	if len(r.Levels) == 0 {
		return
	}
	c := concluded(r)
	p.heading("Capacity")
	if c.Problem != "" {
		p.line("  nothing can be concluded: %s", c.Problem)
	}
	for _, f := range c.Fits {
		switch each := fmt.Sprintf("%s each (%s)", size(f.BytesPerConnection), between(f.NoInterval, size(f.Low), size(f.High))); {
		case f.Part == lab.PartTotal:
			p.line("  %s connections: %s", f.Kind, each)
		case f.Part == lab.PartServer && !hasTotal(c, f.Kind):
			p.line("  %s connections: %s in the server; in all unknown", f.Kind, each)
		}
	}
	for _, j := range c.Projections {
		p.line("  %s hold about %s %s connections; first limit: %s at %s", size(float64(j.SizeBytes)), number(float64(j.Connections)), j.Kind,
			j.FirstLimit, number(float64(j.AtFirstLimit)))
	}
	if c.Problem == "" && len(c.Projections) == 0 {
		for _, n := range c.Notes {
			p.line("  %s", n)
		}
	}
}

func hasTotal(c lab.CapacityResult, kind lab.HoldKind) bool {
	return slices.ContainsFunc(c.Fits, func(f lab.CapacityFit) bool { return f.Kind == kind && f.Part == lab.PartTotal })
}
