// Package verdict turns runs into comparisons and verdicts (METHOD §1, 3, 4), and says when a campaign has enough
// rounds. It is pure. Ratios are State over Over; intervals are of the ratio; percentages in texts are ratio − 1.
//
// Rounds are blocks: only runs of the same part, round and load point are paired. Invalid runs never enter; of
// several attempts the last valid one does.
package verdict

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/stats"
)

// maxLost is the share of rounds that may be incomplete; with more, nothing is concluded.
const maxLost = 1.0 / 3

// Between compares two states of a campaign at one load point ("" = the one figure over the headline load points)
// as its verdicts do, for exploration: an interval, no word.
func Between(r lab.Results, over, state lab.CellID, m lab.Metric) lab.Comparison {
	c := newCampaign(r.Plan, r.Runs)
	compared := c.compare(pair{target: state.Target, state: state.State, over: over.State}, state.Load, m)
	compared.Doubts = c.doubts(compared)
	return compared
}

// slot is where a run belongs within its state.
type slot struct {
	part, round int
	load        string
}

// side is the runs of one state on one target.
type side struct {
	cell    lab.CellID
	valid   map[slot]*lab.Run // the last attempt that is not invalid
	tried   map[slot]bool
	spoiled map[slot][]string // codes of the findings that made attempts invalid
}

func emptySide(cell lab.CellID) side {
	return side{cell: cell, valid: map[slot]*lab.Run{}, tried: map[slot]bool{}, spoiled: map[slot][]string{}}
}

func newSide(runs []lab.Run) side {
	s := emptySide(lab.CellID{})
	for i := range runs {
		r := &runs[i]
		at := slot{r.Part, r.Round, r.Cell.Load}
		s.cell = r.Cell
		s.tried[at] = true
		if r.Validity == lab.Invalid || r.Validity == "" || r.Problem != "" {
			s.spoiled[at] = append(s.spoiled[at], spoilers(r)...)
			continue
		}
		if before, known := s.valid[at]; !known || r.Attempt >= before.Attempt {
			s.valid[at] = r
		}
	}
	return s
}

// only returns the side at some load points.
func (s side) only(loads map[string]bool) side {
	if s.within(loads) {
		return s
	}
	out := emptySide(s.cell)
	for at := range s.tried {
		if loads[at.load] {
			out.tried[at] = true
			out.spoiled[at] = s.spoiled[at]
			if r, known := s.valid[at]; known {
				out.valid[at] = r
			}
		}
	}
	return out
}

func (s side) within(loads map[string]bool) bool {
	for at := range s.tried {
		if !loads[at.load] {
			return false
		}
	}
	return true
}

func (s side) loads() []string {
	seen := map[string]bool{}
	for at := range s.tried {
		seen[at.load] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// compare compares the runs of a state with those of the state it is held against (ratio = state ÷ base) on one metric.
// With several load points, each round counts with the mean log ratio over them; those that cannot be compared are left
// out, and when none can, their reasons are given. Without two complete pairs there is no interval. ErrorRatio is
// compared as the ratio of the shares of good responses, so that more is better and 0 is allowed. Runs of several parts
// are never mixed: the part with the most pairs is taken.
func compare(base, state side, m lab.Metric, confidence float64) lab.Comparison {
	loads := bothLoads(base, state)
	if len(loads) == 1 {
		c := compareLoad(base, state, m, confidence)
		c.Load = loads[0]
		return c
	}
	kept, lower := map[string]bool{}, false
	prevented := map[string][]string{} // reason → load points
	for _, load := range loads {
		at := map[string]bool{load: true}
		c := compareLoad(base.only(at), state.only(at), m, stats.Plain)
		if c.Prevented != "" {
			prevented[c.Prevented] = append(prevented[c.Prevented], load)
			continue
		}
		kept[load] = true
		lower = lower || c.LowerBound
	}
	if len(kept) == 0 {
		c := newComparison(base, state, m)
		c.Prevented = reasons(prevented)
		return c
	}
	c := pairUp(base.only(kept), state.only(kept), m, confidence)
	c.LowerBound, c.LeftOut = lower, byLoad(prevented)
	return c
}

// byLoad turns reasons with their load points into load points with their reasons; nil when there are none.
func byLoad(prevented map[string][]string) map[string]string {
	if len(prevented) == 0 {
		return nil
	}
	out := map[string]string{}
	for reason, loads := range prevented {
		for _, load := range loads {
			out[load] = reason
		}
	}
	return out
}

// reasons writes what prevents each load point; one reason for all stands alone.
func reasons(prevented map[string][]string) string {
	switch len(prevented) {
	case 0:
		return "no run of both states"
	case 1:
		for reason := range prevented {
			return reason
		}
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(prevented)) {
		parts = append(parts, strings.Join(prevented[reason], ", ")+": "+reason)
	}
	return strings.Join(parts, "; ")
}

func bothLoads(base, state side) []string {
	in := map[string]bool{}
	for _, load := range base.loads() {
		in[load] = true
	}
	return slices.DeleteFunc(state.loads(), func(load string) bool { return !in[load] })
}

// compareLoad compares at one load point and says what prevents it.
func compareLoad(base, state side, m lab.Metric, confidence float64) lab.Comparison {
	c := pairUp(base, state, m, confidence)
	if c.Prevented != "" {
		return c
	}
	c.LowerBound, c.Prevented = limits(base.ofPart(c.Part), state.ofPart(c.Part), m)
	return c
}

func newComparison(base, state side, m lab.Metric) lab.Comparison {
	return lab.Comparison{Target: state.cell.Target, State: state.cell.State, Over: base.cell.State, Metric: m}
}

// pairUp pairs the rounds of the part with the most pairs and computes the figures.
func pairUp(base, state side, m lab.Metric, confidence float64) lab.Comparison {
	c := newComparison(base, state, m)
	parts := map[int]rounds{}
	for at := range base.tried {
		addRatio(parts, base, state, at, m)
	}
	for at := range state.tried {
		if !base.tried[at] {
			addRatio(parts, base, state, at, m)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		if means := parts[part].means(); len(means) >= c.Pairs {
			c.Part, c.Pairs, c.LogRatios, c.Lost = part, len(means), means, len(parts[part])-len(means)
		}
	}
	fill(&c, confidence)
	if c.Prevented != "" {
		c.Prevented += because(base, state)
	}
	return c
}

// addRatio notes the round as tried, and its log ratio where both runs are there and have the figure.
func addRatio(parts map[int]rounds, base, state side, at slot, m lab.Metric) {
	if parts[at.part] == nil {
		parts[at.part] = rounds{}
	}
	round := parts[at.part][at.round]
	if round == nil {
		round = map[string]float64{}
		parts[at.part][at.round] = round
	}
	a, b := base.valid[at], state.valid[at]
	if a == nil || b == nil {
		return
	}
	x, okX := figure(a, m)
	y, okY := figure(b, m)
	if okX && okY {
		round[at.load] = math.Log(y / x)
	}
}

// leastGood stands for a run without a single good response, whose share has no logarithm.
const leastGood = 1e-6

func figure(r *lab.Run, m lab.Metric) (float64, bool) {
	v, known := r.Figures[m]
	if m == lab.ErrorRatio {
		v = max(1-v, leastGood)
	}
	return v, known && v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// rounds are the log ratios of one part: round → load point → log ratio. A round without any was tried and lost.
type rounds map[int]map[string]float64

// means averages within each round that has a pair, by ascending round. A round that lacks a load point is not taken
// for one in which that load point shows what the others do: it counts with how far its load points are from their own
// means, about the mean of all. Were it averaged as it is, losing the load point at which a step acts would lose the
// effect.
func (r rounds) means() []float64 {
	effects := r.effects()
	all := average(effects)
	var means []float64
	for _, round := range slices.Sorted(maps.Keys(r)) {
		switch logs := r[round]; len(logs) {
		case 0:
		case len(effects):
			means = append(means, average(logs))
		default:
			apart := map[string]float64{}
			for load, l := range logs {
				apart[load] = l - effects[load]
			}
			means = append(means, all+average(apart))
		}
	}
	return means
}

// effects are the mean log ratio of each load point.
func (r rounds) effects() map[string]float64 {
	byLoad := map[string]map[int]float64{}
	for round, logs := range r {
		for load, l := range logs {
			if byLoad[load] == nil {
				byLoad[load] = map[int]float64{}
			}
			byLoad[load][round] = l
		}
	}
	effects := map[string]float64{}
	for load, logs := range byLoad {
		effects[load] = average(logs)
	}
	return effects
}

// average is the mean of the values in the order of their keys, so that the sum is the same each time; 0 of none.
func average[K cmp.Ordered](values map[K]float64) float64 {
	sum := 0.0
	for _, k := range slices.Sorted(maps.Keys(values)) {
		sum += values[k]
	}
	return sum / max(1, float64(len(values)))
}

// fill computes ratio, intervals and p from the log ratios, and prevents what has too few.
func fill(c *lab.Comparison, confidence float64) {
	c.Stopping = confidence != stats.Plain
	t, ok := stats.PairedT(c.LogRatios, confidence)
	switch {
	case c.Pairs == 0:
		c.Prevented = "no round in which both are valid"
	case float64(c.Lost) > maxLost*float64(c.Pairs+c.Lost):
		c.Prevented = lostText(*c)
	case !ok:
		c.Prevented = "one round has no interval"
	}
	if c.Pairs > 0 {
		c.Ratio = math.Exp(mean(c.LogRatios))
	}
	if !ok {
		return
	}
	c.Low, c.High, c.SD, c.P, c.AdjustedP = math.Exp(t.Low), math.Exp(t.High), t.SD, t.P, t.P
	if _, hl, ok := stats.HodgesLehmann(c.LogRatios, stats.Plain); ok {
		c.HLLow, c.HLHigh = math.Exp(hl.Low), math.Exp(hl.High)
	}
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
