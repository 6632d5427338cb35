package verdict

import (
	"math"
	"slices"
	"time"

	"ngxlab/lab"
)

// Enough says after a round whether a campaign has enough rounds, and why (not). It looks at the widths of the
// headline comparisons only, never at p or sign: goodput and server CPU per request of every step, and of the final
// state against the baseline. Comparisons that are prevented (the generator was the limit) do not hold a campaign up;
// when all are, rounds go on to the maximum. The budget counts the time from the first run's beginning to the last
// one's end in each round, and ends a campaign when a further round would exceed it, even below the minimum.
func Enough(p lab.Plan, done []lab.Run) (bool, lab.Reason) {
	repeat := p.Experiment.Repeat
	rounds, last := countRounds(done)
	switch {
	case last >= repeat.Max:
		return true, lab.ReasonMax
	case overBudget(repeat.Budget.Duration, done):
		return true, lab.ReasonBudget
	case rounds < repeat.Min:
		return false, lab.ReasonMinimum
	case adaptive(repeat) && precise(newCampaign(p, done), repeat.Precision):
		return true, lab.ReasonPrecise
	}
	return false, lab.ReasonContinue
}

// countRounds returns how many rounds the part with the most has, and the number of the last round.
func countRounds(runs []lab.Run) (rounds, last int) {
	byPart := map[int]map[int]bool{}
	for _, r := range runs {
		if byPart[r.Part] == nil {
			byPart[r.Part] = map[int]bool{}
		}
		byPart[r.Part][r.Round] = true
		rounds, last = max(rounds, len(byPart[r.Part])), max(last, r.Round)
	}
	return rounds, last
}

func overBudget(budget time.Duration, runs []lab.Run) bool {
	if budget <= 0 {
		return false
	}
	type span struct{ begin, end time.Time }
	spans := map[[2]int]span{}
	for _, r := range runs {
		key := [2]int{r.Part, r.Round}
		end := r.Began.Add(lab.Seconds(r.Window.DurationS).Duration)
		s, known := spans[key]
		if !known || r.Began.Before(s.begin) {
			s.begin = r.Began
		}
		if end.After(s.end) {
			s.end = end
		}
		spans[key] = s
	}
	var used time.Duration
	for _, s := range spans {
		used += s.end.Sub(s.begin)
	}
	return len(spans) > 0 && used+used/time.Duration(len(spans)) > budget
}

// precise reports whether every headline comparison that can be made is narrower than the precision.
func precise(c campaign, precision float64) bool {
	all := slices.DeleteFunc(c.headlines(), func(h lab.Comparison) bool { return h.Prevented != "" })
	wide := func(h lab.Comparison) bool { return math.Log(h.High/h.Low)/2 > math.Log1p(precision) }
	return len(all) > 0 && !slices.ContainsFunc(all, wide)
}

// headlines are the comparisons that decide when a campaign ends: of both headline figures, one per step and target.
func (c campaign) headlines() []lab.Comparison {
	var all []lab.Comparison
	for _, target := range c.targets() {
		for _, p := range c.stepPairs(target) {
			all = append(all, c.compare(p, "", lab.Goodput), c.compare(p, "", lab.CPUPerRequest))
		}
	}
	return all
}
