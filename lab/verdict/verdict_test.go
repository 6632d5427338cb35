package verdict

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// figures fills a plan's runs: base × factor per state and load.
func figures(p lab.Plan, m lab.Metric, factor func(state, load string) float64) []lab.Run {
	var out []lab.Run
	for i, c := range p.Cells {
		values := times(base, factor(c.ID.State, c.ID.Load))
		slices.Reverse(values[i%3:]) // other noise for each cell
		for j := range values {
			values[j] *= base[j] / base[i%3+len(base)-1-max(j, i%3)]
			if j < i%3 {
				values[j] = base[j] * factor(c.ID.State, c.ID.Load)
			}
		}
		out = append(out, runs(c.ID.State, c.ID.Load, m, values...)...)
	}
	return out
}

func find(t *testing.T, all []lab.Verdict, family, state, load string) lab.Verdict {
	t.Helper()
	for _, v := range all {
		if v.Family == family && v.Comparison.State == state && v.Comparison.Load == load && v.Comparison.Metric == lab.Goodput {
			return v
		}
	}
	t.Fatalf("no verdict of %s on %q %q", family, state, load)
	return lab.Verdict{}
}

func TestLoadPointsThatDisagreeAreSaidInsteadOfAveraged(t *testing.T) {
	p := planOf(2, []string{"wrk 10", "ab 100"}, repeat20)
	all := All(lab.Results{Plan: p, Runs: figures(p, lab.Goodput, func(state, load string) float64 {
		switch {
		case state == "step1" && load == "wrk 10":
			return 1.2
		case state == "step1":
			return 0.8
		case state == "step2":
			return 1.3
		}
		return 1
	})})
	v := find(t, all, FamilySteps, "step1", "")
	if v.Word != lab.Undecided || !v.Comparison.Mixed || !strings.HasPrefix(v.Text, "the load points disagree: +20.0% at wrk 10, −20% at ab 100") {
		t.Errorf("%s: %q", v.Word, v.Text)
	}
	if v := find(t, all, FamilySteps, "step2", ""); v.Word != lab.Helps || v.Comparison.Mixed {
		t.Errorf("step2: %s: %q", v.Word, v.Text)
	}
	if v := find(t, all, FamilyWhere, "step1", "ab 100"); v.Word != lab.Hurts {
		t.Errorf("where: %s: %q", v.Word, v.Text)
	}
	if v := find(t, all, FamilyControl, "control", ""); v.Word != lab.Holds {
		t.Errorf("control: %s: %q", v.Word, v.Text)
	}
}

func TestOnlyHeadlineLoadsMakeTheFigureOfAStep(t *testing.T) {
	p := planOf(1, []string{"a", "b"}, repeat20)
	p.Loads[1].Headline = false
	all := All(lab.Results{Plan: p, Runs: figures(p, lab.Goodput, func(state, load string) float64 {
		if state == "step1" && load == "b" {
			return 3
		}
		return 1
	})})
	if v := find(t, all, FamilySteps, "step1", ""); v.Word != lab.NoDifference {
		t.Errorf("%s: %q", v.Word, v.Text)
	}
}

func TestCumulativeLadderComparesTheFinalStateWithTheBaseline(t *testing.T) {
	p := planOf(2, []string{"a"}, repeat20)
	p.Experiment.Ladder.Kind = lab.Cumulative
	p.States[2].Over = "step1"
	all := All(lab.Results{Plan: p, Runs: figures(p, lab.Goodput, func(state, _ string) float64 {
		return map[string]float64{"base": 1, "step1": 1.1, "step2": 1.21, "control": 1}[state]
	})})
	var overs []string
	for _, v := range all {
		if v.Family == FamilySteps && v.Comparison.Metric == lab.Goodput {
			overs = append(overs, v.Comparison.State+" over "+v.Comparison.Over+" "+v.Step)
		}
	}
	if want := []string{"step1 over base step1", "step2 over step1 step2", "step2 over base "}; !slices.Equal(overs, want) {
		t.Errorf("%q, want %q", overs, want)
	}
}

func TestAStepLeftOutIsJudgedByItsPresence(t *testing.T) {
	p := planOf(1, []string{"a"}, repeat20)
	p.Experiment.Ladder.Kind = lab.LeaveOneOut
	p.States = []lab.State{{Name: "base"}, {Name: lab.AllSteps, Over: "base"}, {Name: "without x", Step: "x", Over: lab.AllSteps, Without: true}}
	p.Cells = nil
	for _, s := range p.States {
		p.Cells = append(p.Cells, lab.Cell{ID: lab.CellID{Target: "web", State: s.Name, Load: "a"}})
	}
	all := All(lab.Results{Plan: p, Runs: figures(p, lab.Goodput, func(state, _ string) float64 {
		return map[string]float64{"base": 1, lab.AllSteps: 1.5, "without x": 1.2}[state]
	})})
	for _, v := range all {
		if v.Step == "x" && v.Comparison.Metric == lab.Goodput && v.Word != lab.Helps {
			t.Errorf("a step whose absence costs 20 %%: %s: %s", v.Word, v.Text)
		}
	}
}

func TestControlThatDiffersCastsDoubtOnEveryVerdict(t *testing.T) {
	p := planOf(1, []string{"a"}, repeat20)
	p.Experiment.Order = lab.Blocked
	all := All(lab.Results{Plan: p, Runs: figures(p, lab.Goodput, func(state, _ string) float64 {
		return map[string]float64{"base": 1, "step1": 1.5, "control": 1.1}[state]
	})})
	if v := find(t, all, FamilyControl, "control", ""); v.Word != lab.Contradicted {
		t.Errorf("%s: %s", v.Word, v.Text)
	}
	v := find(t, all, FamilySteps, "step1", "")
	if !slices.ContainsFunc(v.Reasons, func(r string) bool { return strings.HasPrefix(r, "aa-differs") }) {
		t.Errorf("reasons %q", v.Reasons)
	}
	if !strings.HasSuffix(v.Text, ", confounded with time") {
		t.Errorf("blocked order is not said: %q", v.Text)
	}
}

func TestWarningsOfTheRunsQualifyAVerdict(t *testing.T) {
	p := planOf(1, []string{"a"}, repeat20)
	rs := figures(p, lab.Goodput, func(string, string) float64 { return 1 })
	rs[0].Findings = []lab.Finding{{Code: "foreign-cpu", Outcome: lab.Fired, Consequence: lab.Warn}, {Code: "swap", Outcome: lab.Quiet, Consequence: lab.Warn}}
	v := find(t, All(lab.Results{Plan: p, Runs: rs}), FamilySteps, "step1", "")
	if !slices.Equal(v.Reasons, []string{"foreign-cpu in 1 of 12 runs"}) {
		t.Errorf("%q", v.Reasons)
	}
}

func TestBetweenGivesAnyCellWithoutAWord(t *testing.T) {
	p := planOf(1, []string{"a", "b"}, repeat20)
	rs := figures(p, lab.P99S, func(state, _ string) float64 { return map[string]float64{"base": 1, "step1": 2, "control": 1}[state] })
	c := Between(lab.Results{Plan: p, Runs: rs}, lab.CellID{Target: "web", State: "base"}, lab.CellID{Target: "web", State: "step1", Load: "b"}, lab.P99S)
	if c.Load != "b" || c.Pairs != 6 || math.Abs(c.Ratio-2) > 0.02 || !c.Stopping {
		t.Errorf("%+v", c)
	}
}
