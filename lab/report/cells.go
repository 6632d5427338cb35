package report

import (
	"math"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/stats"
	"ngxlab/plots"
	"ngxlab/templates"
)

// cellKey names a cell within a part; parts are never mixed.
type cellKey struct {
	part int
	id   lab.CellID
}

// cell is the runs of one cell, one per round: the last valid attempt of a round, else its last invalid one.
type cell struct {
	valid   []lab.Run
	invalid []lab.Run // rounds without a valid attempt
}

// cellsOf gathers runs; they may come in any order.
func cellsOf(runs []lab.Run) map[cellKey]cell {
	type place struct {
		key   cellKey
		round int
	}
	chosen := map[place]lab.Run{}
	for _, r := range runs {
		at := place{cellKey{r.Part, r.Cell}, r.Round}
		if had, known := chosen[at]; !known || better(r, had) {
			chosen[at] = r
		}
	}
	cells := map[cellKey]cell{}
	for at, r := range chosen {
		c := cells[at.key]
		if r.Validity == lab.Invalid {
			c.invalid = append(c.invalid, r)
		} else {
			c.valid = append(c.valid, r)
		}
		cells[at.key] = c
	}
	for key, c := range cells {
		byRound(c.valid)
		byRound(c.invalid)
		cells[key] = c
	}
	return cells
}

// better reports whether a stands for its round rather than b: valid before invalid, then the later attempt.
func better(a, b lab.Run) bool {
	if (a.Validity == lab.Invalid) != (b.Validity == lab.Invalid) {
		return b.Validity == lab.Invalid
	}
	return a.Attempt > b.Attempt
}

func byRound(runs []lab.Run) {
	slices.SortFunc(runs, func(a, b lab.Run) int { return a.Round - b.Round })
}

// summary is a figure of a cell over its rounds.
type summary struct {
	value     float64
	low, high float64 // NaN when there is no interval
	n         int
	mark      plots.Mark
	codes     []string // of the findings behind the mark, sorted
}

// figure summarises a metric: the median over the valid runs, or over the invalid ones when there is no valid one,
// marked Invalid then. Absent when no run has the metric.
func (c cell) figure(m lab.Metric) summary {
	s := summarise(c.valid, m)
	if s.n > 0 {
		s.mark, s.codes = marked(c.valid, m)
		return s
	}
	if s = summarise(c.invalid, m); s.n > 0 {
		s.low, s.high = math.NaN(), math.NaN()
		s.mark, s.codes = plots.Invalid, codesOf(c.invalid, lab.Invalidate)
	}
	return s
}

func summarise(runs []lab.Run, m lab.Metric) summary {
	s := summary{low: math.NaN(), high: math.NaN()}
	var values []float64
	for _, r := range runs {
		if v, known := r.Figures[m]; known && enough(r, m) && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if s.n = len(values); s.n == 0 {
		return s
	}
	median, interval, ok := stats.Median(values)
	if s.value = median; ok {
		s.low, s.high = interval.Low, interval.High
	}
	return s
}

// leastForP99 is how many requests a p99 needs: a hundred beyond it (findings, short-run).
const leastForP99 = 10000

// enough reports whether the run has enough requests for the metric.
func enough(r lab.Run, m lab.Metric) bool {
	n, known := r.Figures[lab.Requests]
	return m != lab.P99S || !known || n >= leastForP99
}

// marked returns the mark of a metric over valid runs. A run that was bound by its generator is a lower bound of the
// goodput, leaves CPU time per request as it is, and makes everything else doubtful. When most runs are lower bounds
// so is their median; when few are, it is merely warned. A warning that concerns latencies leaves the others as they
// are.
func marked(runs []lab.Run, m lab.Metric) (plots.Mark, []string) {
	warned, bound := concerning(runs, m), codesOf(runs, lab.LowerBound)
	switch {
	case len(bound) > 0 && m == lab.Goodput && 2*boundRuns(runs) >= len(runs):
		return plots.LowerBound, union(bound, warned)
	case m == lab.CPUPerRequest && len(warned) == 0 && !unexplained(runs):
		return plots.Clean, nil
	case len(warned)+len(bound) > 0 || unexplained(runs):
		return plots.Warned, union(bound, warned)
	}
	return plots.Clean, nil
}

// concerning returns the codes of the warnings on a metric, sorted.
func concerning(runs []lab.Run, m lab.Metric) []string {
	var all []string
	for _, r := range runs {
		for _, f := range r.Findings {
			if fired(f, lab.Warn) && f.Concerns(m) {
				all = append(all, f.Code)
			}
		}
	}
	return union(all)
}

// unexplained reports whether a run is not clean without a finding that says why.
func unexplained(runs []lab.Run) bool {
	return slices.ContainsFunc(runs, func(r lab.Run) bool {
		return r.Validity != lab.Clean && !slices.ContainsFunc(r.Findings, func(f lab.Finding) bool { return fired(f, lab.Warn) || fired(f, lab.LowerBound) })
	})
}

func allClean(runs []lab.Run) bool {
	return !slices.ContainsFunc(runs, func(r lab.Run) bool { return r.Validity != lab.Clean })
}

func boundRuns(runs []lab.Run) int {
	n := 0
	for _, r := range runs {
		if slices.ContainsFunc(r.Findings, func(f lab.Finding) bool { return fired(f, lab.LowerBound) }) {
			n++
		}
	}
	return n
}

func fired(f lab.Finding, c lab.Consequence) bool {
	return f.Outcome == lab.Fired && f.Consequence == c
}

// codesOf returns the codes that fired with a consequence in any of the runs, sorted.
func codesOf(runs []lab.Run, c lab.Consequence) []string {
	var all []string
	for _, r := range runs {
		for _, f := range r.Findings {
			if fired(f, c) {
				all = append(all, f.Code)
			}
		}
	}
	return union(all)
}

func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// plotted is the summary as a chart takes it.
func (s summary) plotted() plots.Figure {
	return plots.Figure{Value: s.value, Low: s.low, High: s.high, Mark: s.mark}
}

// text prints the figure with its interval and its mark; an invalid one is struck.
func (s summary) text(q quantity) templates.Text {
	if s.n == 0 {
		return styled(lab.Unknown, templates.Quiet)
	}
	size, unit := q.unit(s.value)
	print := func(v float64) string { return lab.Significant(v/size, q.digits) }
	if s.value == 0 {
		unit = ""
	}
	value := join(plain(print(s.value)), s.interval(print), plain(unit))
	switch s.mark {
	case plots.Invalid:
		return join(styled(print(s.value)+unit, templates.Struck), styled(" ✗", templates.Bad))
	case plots.LowerBound:
		return join(plain("≥ "), value, styled(" ⚠", templates.Doubt))
	case plots.Warned:
		return join(value, styled(" ⚠", templates.Doubt))
	}
	return join(value, styled(" ✓", templates.Good))
}

// interval is " (low … high)"; nothing when there is none, or when all runs are alike.
func (s summary) interval(print func(float64) string) templates.Text {
	if math.IsNaN(s.low) || math.IsNaN(s.high) || s.low == s.high {
		return nil
	}
	return styled(" ("+print(s.low)+" … "+print(s.high)+")", templates.Quiet)
}

// partsOf returns the numbers of the campaign's parts, ascending; at least one.
func partsOf(runs []lab.Run) []int {
	var parts []int
	for _, r := range runs {
		if !slices.Contains(parts, r.Part) {
			parts = append(parts, r.Part)
		}
	}
	if len(parts) == 0 {
		return []int{1}
	}
	slices.Sort(parts)
	return parts
}

// targetsOf returns the targets in the order of the plan's cells.
func targetsOf(p lab.Plan) []lab.HostName {
	var targets []lab.HostName
	for _, c := range p.Cells {
		if !slices.Contains(targets, c.ID.Target) {
			targets = append(targets, c.ID.Target)
		}
	}
	return targets
}

// limit is the limiting resource that most valid runs of the cell name; "" when none does.
func (c cell) limit() string {
	votes := map[string]int{}
	best := ""
	for _, r := range c.valid {
		if r.Limit == "" {
			continue
		}
		votes[r.Limit]++
		if n := votes[r.Limit]; n > votes[best] || n == votes[best] && r.Limit < best {
			best = r.Limit
		}
	}
	return best
}
