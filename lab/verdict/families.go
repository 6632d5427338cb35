package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/stats"
)

// The families of verdicts; p values are adjusted within one family, target and metric.
const (
	FamilySteps   = "steps"   // one figure per step, and the final state against the baseline
	FamilyWhere   = "where"   // inside a step: its load points
	FamilyClaims  = "claims"  // statements of the experiment file
	FamilyControl = "control" // the baseline against itself
)

// All returns every verdict of a campaign, ordered by family (steps, where, claims, control), target, metric and
// state: goodput and server CPU per request for steps and control, and the error ratio of a step whose rates cannot
// be compared for their errors.
func All(r lab.Results) []lab.Verdict {
	c := newCampaign(r.Plan, r.Runs)
	var steps, where, control []lab.Verdict
	for _, target := range c.targets() {
		for _, m := range []lab.Metric{lab.Goodput, lab.CPUPerRequest} {
			steps = append(steps, c.steps(target, m)...)
			where = append(where, c.where(target, m)...)
			control = append(control, c.control(target, m)...)
		}
		steps = append(steps, c.errors(target)...)
	}
	all := slices.Concat(steps, where, c.claims(), control)
	c.qualify(all, control)
	return all
}

// campaign is a plan with its runs by target and state.
type campaign struct {
	plan       lab.Plan
	confidence float64
	sides      map[lab.CellID]side // Load is ""
	headline   map[string]bool
}

func newCampaign(p lab.Plan, runs []lab.Run) campaign {
	c := campaign{plan: p, confidence: stats.Plain, sides: map[lab.CellID]side{}, headline: map[string]bool{}}
	if adaptive(p.Experiment.Repeat) {
		c.confidence = stats.Stopping
	}
	any := slices.ContainsFunc(p.Loads, func(l lab.LoadPoint) bool { return l.Headline })
	for _, l := range p.Loads {
		c.headline[l.Name] = l.Headline || !any
	}
	groups := map[lab.CellID][]lab.Run{}
	for _, r := range runs {
		cell := lab.CellID{Target: r.Cell.Target, State: r.Cell.State}
		groups[cell] = append(groups[cell], r)
	}
	for cell, group := range groups {
		c.sides[cell] = newSide(group)
	}
	return c
}

// adaptive says whether the number of rounds depends on the widths seen, so that intervals must allow for it.
func adaptive(r lab.Repeat) bool { return r.Precision > 0 && r.Max > r.Min }

func (c campaign) targets() []lab.HostName {
	var targets []lab.HostName
	for _, cell := range c.plan.Cells {
		if !slices.Contains(targets, cell.ID.Target) {
			targets = append(targets, cell.ID.Target)
		}
	}
	return targets
}

// pair is two states to compare: state over over shows the effect of step.
type pair struct {
	target            lab.HostName
	state, over, step string
}

// stepPairs are the comparisons of family 1. A state "without" a step is held the other way round, so that the ratio
// is always the effect of having the step. In a cumulative ladder the final state is compared with the baseline too.
func (c campaign) stepPairs(target lab.HostName) []pair {
	var pairs []pair
	rungs := 0
	for _, s := range c.plan.States {
		switch {
		case s.Control || s.Over == "":
			continue
		case s.Without:
			pairs = append(pairs, pair{target, s.Over, s.Name, s.Step})
		default:
			pairs = append(pairs, pair{target, s.Name, s.Over, s.Step})
		}
		rungs++
	}
	if kind := c.plan.Experiment.Ladder.Kind; rungs > 1 && (kind == lab.Cumulative || kind == "") {
		pairs = append(pairs, pair{target, pairs[len(pairs)-1].state, c.plan.Baseline().Name, ""})
	}
	return pairs
}

// compare compares at one load point, or over the headline ones when load is "".
func (c campaign) compare(p pair, load string, m lab.Metric) lab.Comparison {
	loads := c.headline
	if load != "" {
		loads = map[string]bool{load: true}
	}
	base := c.sides[lab.CellID{Target: p.target, State: p.over}].only(loads)
	state := c.sides[lab.CellID{Target: p.target, State: p.state}].only(loads)
	base.cell = lab.CellID{Target: p.target, State: p.over}
	state.cell = lab.CellID{Target: p.target, State: p.state}
	out := compare(base, state, m, c.confidence)
	out.Load = load
	return out
}

func (c campaign) steps(target lab.HostName, m lab.Metric) []lab.Verdict {
	pairs := c.stepPairs(target)
	verdicts := c.family(pairs, []string{""}, m, FamilySteps)
	for i, p := range pairs {
		if text := c.mixed(p, m); text != "" && verdicts[i].Word != lab.NotMeasurable {
			verdicts[i].Comparison.Mixed = true
			verdicts[i].Word, verdicts[i].Text = lab.Undecided, "the load points disagree: "+text
			verdicts[i].MoreRounds = 0
		}
	}
	return verdicts
}

// family compares every pair at every load and adjusts p over all that can be compared.
func (c campaign) family(pairs []pair, loads []string, m lab.Metric, name string) []lab.Verdict {
	var comparisons []lab.Comparison
	var steps []string
	for _, p := range pairs {
		for _, load := range loads {
			comparisons = append(comparisons, c.compare(p, load, m))
			steps = append(steps, p.step)
		}
	}
	adjust(comparisons)
	verdicts := make([]lab.Verdict, len(comparisons))
	for i, compared := range comparisons {
		verdicts[i] = word(compared, c.plan.Experiment.Repeat.Effect)
		verdicts[i].Family, verdicts[i].Step = name, steps[i]
	}
	return verdicts
}

func adjust(comparisons []lab.Comparison) {
	var ps []float64
	var which []int
	for i, c := range comparisons {
		if c.Prevented == "" {
			ps, which = append(ps, c.P), append(which, i)
		}
	}
	for i, p := range stats.Holm(ps) {
		comparisons[which[i]].AdjustedP = p
	}
}

// headlineLoads are the load points of the one figure that the pair has, in the order of the plan.
func (c campaign) loads(onlyHeadline bool) []string {
	var loads []string
	for _, l := range c.plan.Loads {
		if c.headline[l.Name] || !onlyHeadline {
			loads = append(loads, l.Name)
		}
	}
	return loads
}

// mixed describes load points that a step moves in opposite directions, each beyond doubt; "" when there are none.
func (c campaign) mixed(p pair, m lab.Metric) string {
	loads := c.loads(true)
	if len(loads) < 2 {
		return ""
	}
	up, down := "", ""
	for _, v := range c.family([]pair{p}, loads, m, FamilyWhere) {
		if v.Word != lab.Helps && v.Word != lab.Hurts {
			continue
		}
		text := fmt.Sprintf("%s at %s", percent(v.Comparison.Ratio, v.Comparison), v.Comparison.Load)
		if v.Comparison.Ratio > 1 {
			up = cmp.Or(up, text)
		} else {
			down = cmp.Or(down, text)
		}
	}
	if up == "" || down == "" {
		return ""
	}
	return up + ", " + down
}

// where is family 2: one family per step, over its load points, when there are several.
func (c campaign) where(target lab.HostName, m lab.Metric) []lab.Verdict {
	loads := c.loads(false)
	if len(loads) < 2 {
		return nil
	}
	var verdicts []lab.Verdict
	for _, p := range c.stepPairs(target) {
		verdicts = append(verdicts, c.family([]pair{p}, loads, m, FamilyWhere)...)
	}
	return verdicts
}

// errors judges the share of good responses of steps whose rates cannot be compared for their errors.
func (c campaign) errors(target lab.HostName) []lab.Verdict {
	var pairs []pair
	for _, p := range c.stepPairs(target) {
		if c.tooManyErrors(p.over, target) || c.tooManyErrors(p.state, target) {
			pairs = append(pairs, p)
		}
	}
	verdicts := c.family(pairs, []string{""}, lab.ErrorRatio, FamilySteps)
	for i, p := range pairs {
		before, _ := meanErrors(c.runs(p.over, target))
		after, _ := meanErrors(c.runs(p.state, target))
		verdicts[i].Text = fmt.Sprintf("errors %s → %s: %s", share(before), share(after), verdicts[i].Text)
	}
	return verdicts
}

func (c campaign) tooManyErrors(state string, target lab.HostName) bool {
	byLoad := map[string][]*lab.Run{}
	for _, r := range c.runs(state, target) {
		byLoad[r.Cell.Load] = append(byLoad[r.Cell.Load], r)
	}
	for _, runs := range byLoad {
		if e, known := meanErrors(runs); known && e > maxErrorRatio {
			return true
		}
	}
	return false
}

// runs are the valid runs of a state at the headline load points, of every part.
func (c campaign) runs(state string, target lab.HostName) []*lab.Run {
	var runs []*lab.Run
	for at, r := range c.sides[lab.CellID{Target: target, State: state}].valid {
		if c.headline[at.load] {
			runs = append(runs, r)
		}
	}
	return runs
}
