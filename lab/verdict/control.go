package verdict

import (
	"fmt"
	"maps"
	"slices"

	"ngxlab/lab"
)

// control holds the control state against the baseline: two measurements of the same thing. Its words are Holds
// (equal within the precision), Contradicted (they differ: the intervals of this machine are not honest, rule
// aa-differs) and Undecided.
func (c campaign) control(target lab.HostName, m lab.Metric) []lab.Verdict {
	var verdicts []lab.Verdict
	for _, s := range c.plan.States {
		if s.Control {
			verdicts = append(verdicts, c.controlVerdict(pair{target: target, state: s.Name, over: s.Over}, m))
		}
	}
	return verdicts
}

func (c campaign) controlVerdict(p pair, m lab.Metric) lab.Verdict {
	compared := c.compare(p, "", m)
	precision := c.plan.Experiment.Repeat.Precision
	v := lab.Verdict{Comparison: compared, Family: FamilyControl}
	interval := fmt.Sprintf("%s%s (%s)", percent(compared.Ratio, compared), of(m), span(compared.Low, compared.High, compared))
	switch {
	case compared.Prevented != "":
		v.Word, v.Text = lab.NotMeasurable, "not measurable: "+compared.Prevented
	case excludesOne(compared.Low, compared.High):
		v.Word, v.Text = lab.Contradicted, "the control differs from the baseline: "+interval
	case within(compared.Low, compared.High, precision):
		v.Word, v.Text = lab.Holds, fmt.Sprintf("the control equals the baseline within ±%s: %s", share(precision), interval)
	default:
		v.Word, v.Text = lab.Undecided, fmt.Sprintf("the control equals the baseline, but not within ±%s: %s", share(precision), interval)
	}
	return v
}

// qualify adds to every verdict what a reader must know with it: warnings of its runs, an order that confounds it
// with time, parts left out, too few rounds for the rank interval, and a control that differs.
func (c campaign) qualify(all, control []lab.Verdict) {
	for i := range all {
		v := &all[i]
		compared := v.Comparison
		v.Comparison.Doubts = c.doubts(compared)
		v.Reasons = append(v.Reasons, v.Comparison.Doubts...)
		for _, load := range slices.Sorted(maps.Keys(compared.LeftOut)) {
			v.Reasons = append(v.Reasons, fmt.Sprintf("without %s: %s", load, compared.LeftOut[load]))
		}
		if v.Word != lab.NotMeasurable && c.plan.Experiment.Order == lab.Blocked {
			v.Text += ", confounded with time"
			v.Reasons = append(v.Reasons, "confounded with time: the states were measured one after the other")
		}
		if compared.Pairs > 1 && compared.Pairs < 6 && compared.Prevented == "" {
			v.Reasons = append(v.Reasons, fmt.Sprintf("%d rounds are too few for the rank interval", compared.Pairs))
		}
		if parts := c.parts(compared); parts > 1 {
			v.Reasons = append(v.Reasons, fmt.Sprintf("of %d parts measured under different conditions, only part %d is compared", parts, compared.Part))
		}
		if compared.LowerBound {
			v.Reasons = append(v.Reasons, fmt.Sprintf("the load generator was the limit of %q", compared.State))
		}
		for _, aa := range control {
			if aa.Word == lab.Contradicted && v.Family != FamilyControl && aa.Comparison.Metric == compared.Metric && aa.Comparison.Target == compared.Target {
				v.Reasons = append(v.Reasons, "aa-differs: "+aa.Text)
			}
		}
	}
}

// doubts are what qualifies a comparison by its runs, and a comparison of latencies by itself: in a closed loop they are
// no figure of their own (METHOD §1).
func (c campaign) doubts(compared lab.Comparison) []string {
	runs := c.used(compared)
	var out []string
	if compared.Pairs > 0 { // else there is nothing that a warning could qualify
		out = doubts(runs, compared.Metric, compared.LowerBound)
	}
	closed := func(r *lab.Run) bool { return r.LoopModel == lab.ClosedLoop }
	if compared.Metric.IsLatency() && slices.ContainsFunc(runs, closed) {
		out = append(out, "closed loop: follows from goodput and connections, no proof of its own")
	}
	return out
}

// used are the runs that a comparison took.
func (c campaign) used(compared lab.Comparison) []*lab.Run {
	var runs []*lab.Run
	for _, state := range []string{compared.Over, compared.State} {
		for at, r := range c.sides[lab.CellID{Target: compared.Target, State: state}].valid {
			_, left := compared.LeftOut[at.load]
			if at.part == compared.Part && !left && (compared.Load == at.load || compared.Load == "" && c.headline[at.load]) {
				runs = append(runs, r)
			}
		}
	}
	return runs
}

func (c campaign) parts(compared lab.Comparison) int {
	seen := map[int]bool{}
	for _, state := range []string{compared.Over, compared.State} {
		for at := range c.sides[lab.CellID{Target: compared.Target, State: state}].tried {
			seen[at.part] = true
		}
	}
	return len(seen)
}
