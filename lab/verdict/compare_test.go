package verdict

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/stats"
)

// runs makes one clean run per figure, rounds from 1.
func runs(state, load string, m lab.Metric, figures ...float64) []lab.Run {
	var out []lab.Run
	for i, v := range figures {
		out = append(out, lab.Run{Cell: lab.CellID{Target: "web", State: state, Load: load}, Round: i + 1, Attempt: 1, Part: 1,
			Validity: lab.Clean, Figures: lab.Figures{m: v}})
	}
	return out
}

// times multiplies each figure: base × factor × small known noise.
func times(base []float64, factor float64) []float64 {
	noise := []float64{1.01, 0.99, 1.005, 0.995, 1.0, 1.002, 0.998, 1.0}
	out := make([]float64, len(base))
	for i, b := range base {
		out[i] = b * factor * noise[i%len(noise)]
	}
	return out
}

var base = []float64{1000, 1100, 950, 1200, 1020, 980}

// compared compares b with a by the interval for a number of rounds fixed beforehand.
func compared(a, b []lab.Run, m lab.Metric) lab.Comparison {
	return compare(newSide(a), newSide(b), m, stats.Plain)
}

func TestRatioIsOfRoundsNotOfMeans(t *testing.T) {
	c := compared(runs("base", "a", lab.Goodput, base...), runs("tuned", "a", lab.Goodput, times(base, 1.1)...), lab.Goodput)
	if c.Pairs != 6 || c.Lost != 0 || c.Load != "a" || c.State != "tuned" || c.Over != "base" || c.Stopping {
		t.Errorf("%+v", c)
	}
	if math.Abs(c.Ratio-1.1) > 0.002 || c.Low >= c.Ratio || c.High <= c.Ratio || c.SD > 0.01 || c.P > 1e-6 || c.HLLow <= 1 {
		t.Errorf("%+v", c)
	}
}

func TestInvalidRunsNeverEnterAndTheLastValidAttemptDoes(t *testing.T) {
	a := runs("base", "a", lab.Goodput, 100, 100, 100, 100)
	b := runs("tuned", "a", lab.Goodput, 100, 100, 100, 100)
	b[0].Validity = lab.Invalid
	b[0].Figures[lab.Goodput] = 9
	again := b[0]
	again.Attempt, again.Validity, again.Figures = 2, lab.Warned, lab.Figures{lab.Goodput: 200}
	third := again
	third.Attempt, third.Validity, third.Figures = 3, lab.Invalid, lab.Figures{lab.Goodput: 7}
	b[1].Validity = lab.Invalid
	c := compared(a, append([]lab.Run{third, again}, b...), lab.Goodput)
	if c.Pairs != 3 || c.Lost != 1 || math.Abs(c.LogRatios[0]-math.Log(2)) > 1e-12 || c.Prevented != "" {
		t.Errorf("%+v", c)
	}
}

func TestMoreThanAThirdLostIsNotMeasurable(t *testing.T) {
	a, b := runs("base", "a", lab.Goodput, base...), runs("tuned", "a", lab.Goodput, times(base, 2)...)
	b[0].Validity, b[1].Validity = lab.Invalid, lab.Invalid
	b[0].Findings = []lab.Finding{{Code: "foreign-cpu", Outcome: lab.Fired, Consequence: lab.Invalidate}}
	if c := compared(a, b, lab.Goodput); c.Prevented != "" {
		t.Errorf("two of six lost: %s", c.Prevented)
	}
	a[5].Problem = "server died"
	c := compared(a, b, lab.Goodput)
	if c.Prevented != "3 of 6 rounds are incomplete (foreign-cpu, server died)" {
		t.Errorf("three of six lost: %q", c.Prevented)
	}
	if v := word(c, 0.02); v.Word != lab.NotMeasurable || v.Text != "not measurable: 3 of 6 rounds are incomplete (foreign-cpu, server died)" {
		t.Errorf("%s, %s", v.Word, v.Text)
	}
}

func TestPartsAreNeverMixed(t *testing.T) {
	a, b := runs("base", "a", lab.Goodput, base...), runs("tuned", "a", lab.Goodput, times(base, 1.2)...)
	for i := range a {
		if i >= 4 {
			a[i].Part = 2
		}
		if i >= 3 {
			b[i].Part = 2 // round 4 was measured in different parts
		}
	}
	c := compared(a, b, lab.Goodput)
	if c.Pairs != 3 || c.Part != 1 {
		t.Errorf("%d pairs in part %d, want the 3 of part 1", c.Pairs, c.Part)
	}
}

func TestOneFigureIsTheMeanOverLoadPoints(t *testing.T) {
	a := append(runs("base", "a", lab.Goodput, 100, 100, 100), runs("base", "b", lab.Goodput, 10, 10, 10)...)
	b := append(runs("tuned", "a", lab.Goodput, 121, 121, 121), runs("tuned", "b", lab.Goodput, 10, 10, 10)...)
	c := compared(a, b, lab.Goodput)
	if c.Load != "" || c.Pairs != 3 || math.Abs(c.LogRatios[0]-math.Log(1.1)) > 1e-9 || math.Abs(c.LogRatios[2]-math.Log(1.1)) > 1e-9 {
		t.Errorf("%+v", c)
	}
}

func TestARoundThatLacksALoadPointDoesNotPassTheOthersOffAsTheWhole(t *testing.T) {
	a := append(runs("base", "a", lab.Goodput, 100, 100, 100), runs("base", "b", lab.Goodput, 10, 10, 10)...)
	b := append(runs("tuned", "a", lab.Goodput, 121, 121, 121), runs("tuned", "b", lab.Goodput, 10, 10, 10)...)
	for lost, name := range map[int]string{2: "the load point at which the step acts", 5: "the other one"} {
		rs := slices.Clone(b)
		rs[lost].Validity = lab.Invalid // of round 3
		c := compared(a, rs, lab.Goodput)
		if c.Pairs != 3 || c.Lost != 0 || math.Abs(c.LogRatios[2]-math.Log(1.1)) > 1e-9 || math.Abs(c.Ratio-1.1) > 1e-9 {
			t.Errorf("without %s: %+v", name, c)
		}
	}
}

func TestTheOneFigureNamesTheLoadPointsItIsWithout(t *testing.T) {
	p := planOf(1, []string{"a", "b"}, repeat20)
	rs := figures(p, lab.Goodput, func(string, string) float64 { return 1 })
	for i, r := range rs {
		if r.Cell.Load == "b" {
			limited(rs[i:], 1)
		}
	}
	v := find(t, All(lab.Results{Plan: p, Runs: rs}), FamilySteps, "step1", "")
	if want := `the load generator was the limit of "base" (client-cpu)`; v.Comparison.LeftOut["b"] != want || !slices.Contains(v.Reasons, "without b: "+want) {
		t.Errorf("%+v", v)
	}
	if strings.Contains(strings.Join(v.Reasons, " "), "client-cpu in") {
		t.Errorf("runs that were left out cast doubt: %q", v.Reasons)
	}
}

func TestErrorPagesAreNoCheaperServer(t *testing.T) {
	a := runs("base", "a", lab.CPUPerRequest, times(base, 1e-8)...)
	b := runs("tuned", "a", lab.CPUPerRequest, times(base, 0.4e-8)...)
	for i := range b {
		b[i].Figures[lab.ErrorRatio] = 1
	}
	want := `errors 100% of "tuned", figures are compared up to 5%`
	if v := word(compared(a, b, lab.CPUPerRequest), 0.02); v.Word != lab.NotMeasurable || v.Comparison.Prevented != want {
		t.Errorf("%s: %s", v.Word, v.Text)
	}
}

func TestAFewGeneratorLimitedRunsAreTold(t *testing.T) {
	p := planOf(1, []string{"a"}, repeat20)
	rs := figures(p, lab.Goodput, func(string, string) float64 { return 1 })
	limited(rs, 1)
	v := find(t, All(lab.Results{Plan: p, Runs: rs}), FamilySteps, "step1", "")
	if v.Comparison.LowerBound || !slices.Contains(v.Reasons, "client-cpu in 1 of 12 runs") {
		t.Errorf("%+v", v)
	}
}

func TestFindingsOnLatencyLeaveRatesAlone(t *testing.T) {
	p := planOf(1, []string{"a"}, repeat20)
	for m, want := range map[lab.Metric][]string{
		lab.Goodput: nil,
		lab.P99S: {"latency-corrected in 1 of 12 runs",
			"closed loop: follows from goodput and connections, no proof of its own"},
	} {
		rs := figures(p, m, func(string, string) float64 { return 1 })
		for i := range rs {
			rs[i].LoopModel = lab.ClosedLoop
		}
		rs[0].Findings = []lab.Finding{{Code: "latency-corrected", Outcome: lab.Fired, Consequence: lab.Warn, LatencyOnly: true}}
		c := Between(lab.Results{Plan: p, Runs: rs}, lab.CellID{Target: "web", State: "base"}, lab.CellID{Target: "web", State: "step1"}, m)
		if !slices.Equal(c.Doubts, want) {
			t.Errorf("%s: %q", m, c.Doubts)
		}
	}
}

func TestIntervalsThatDisagreeAboutNoEffectAreUndecided(t *testing.T) {
	for _, c := range []struct{ low, high, hlLow, hlHigh float64 }{{1.001, 1.01, 0.999, 1.01}, {0.999, 1.01, 1.001, 1.01}} {
		k := comparison(c.low, 1.005, c.high)
		k.HLLow, k.HLHigh = c.hlLow, c.hlHigh
		if v := word(k, 0.02); v.Word != lab.Undecided || !strings.Contains(v.Text, "the rank interval") {
			t.Errorf("%+v: %s", c, v.Text)
		}
	}
}

func TestReasonsAreGivenPerLoadPointWhenTheyDiffer(t *testing.T) {
	a := append(runs("base", "a", lab.Goodput, 1, 2, 3), runs("base", "b", lab.Goodput, 1, 2, 3)...)
	b := append(runs("tuned", "a", lab.Goodput, 1, 2, 3), runs("tuned", "b", lab.Goodput, 1, 2, 3)...)
	for i := range b {
		b[i].Validity = lab.Invalid
		b[i].Findings = []lab.Finding{{Code: "foreign-cpu", Outcome: lab.Fired, Consequence: lab.Invalidate}}
	}
	if c := compared(a, b, lab.Goodput); c.Prevented != "no round in which both are valid (foreign-cpu)" {
		t.Errorf("one reason for both: %q", c.Prevented)
	}
	b[3].Validity, b[4].Validity, b[5].Validity = lab.Warned, lab.Warned, lab.Warned
	limited(a[3:], 3)
	want := `a: no round in which both are valid (foreign-cpu); b: the load generator was the limit of "base" (client-cpu)`
	if c := compared(a, b, lab.Goodput); c.Prevented != want {
		t.Errorf("%q, want %q", c.Prevented, want)
	}
}

func limited(rs []lab.Run, of int) []lab.Run {
	for i := range of {
		rs[i].Findings = append(rs[i].Findings, lab.Finding{Code: "client-cpu", Outcome: lab.Fired, Consequence: lab.LowerBound})
		rs[i].Validity = lab.Warned
	}
	return rs
}

func TestGeneratorLimitsRates(t *testing.T) {
	for _, c := range []struct {
		name                  string
		baseLimited, limitedB int
		factor                float64
		want                  lab.Word
		text                  string
	}{
		{"neither", 0, 0, 1.3, lab.Helps, "helps: +30% (+29% … +31%)"},
		{"state only", 0, 6, 1.3, lab.AtLeast, "helps, at least +29.1% (the load generator was the limit)"},
		{"state only, but slower", 0, 6, 0.9, lab.Undecided, "undecided, at least −10.6% (the load generator was the limit)"},
		{"base only", 6, 0, 1.3, lab.NotMeasurable, `not measurable: the load generator was the limit of "base" (client-cpu)`},
		{"both", 6, 6, 1.3, lab.NotMeasurable, `not measurable: the load generator was the limit of "base" (client-cpu)`},
		{"fewer than half of the runs", 2, 2, 1.3, lab.Helps, "helps: +30% (+29% … +31%)"},
	} {
		a := limited(runs("base", "a", lab.Goodput, base...), c.baseLimited)
		b := limited(runs("tuned", "a", lab.Goodput, times(base, c.factor)...), c.limitedB)
		v := word(compared(a, b, lab.Goodput), 0.02)
		if v.Word != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, v.Word, v.Text, c.want)
		}
		if strings.Contains(c.text, "helps: ") || c.want == lab.NotMeasurable {
			if !strings.HasPrefix(v.Text, c.text[:10]) {
				t.Errorf("%s: %q, want %q", c.name, v.Text, c.text)
			}
		} else if v.Text != c.text {
			t.Errorf("%s: %q, want %q", c.name, v.Text, c.text)
		}
	}
}

func TestCPUPerRequestStaysComparableWhenTheGeneratorIsTheLimit(t *testing.T) {
	a := limited(runs("base", "a", lab.CPUPerRequest, times(base, 1e-8)...), 6)
	b := limited(runs("tuned", "a", lab.CPUPerRequest, times(base, 0.88e-8)...), 6)
	v := word(compared(a, b, lab.CPUPerRequest), 0.02)
	if v.Word != lab.Helps || v.Text != "helps: −12.00% server CPU per request (−12.00% … −12.00%)" {
		t.Errorf("%s: %s", v.Word, v.Text)
	}
}

func TestErrorsAboveFivePercentPreventRatesAndAreJudgedThemselves(t *testing.T) {
	p := planOf(1, []string{"a"}, repeat20)
	var all []lab.Run
	for round := 1; round <= 6; round++ {
		for state, e := range map[string]float64{"base": 0.06 + 0.001*float64(round%3), "step1": 0} {
			all = append(all, lab.Run{Cell: lab.CellID{Target: "web", State: state, Load: "a"}, Round: round, Attempt: 1, Part: 1, Validity: lab.Warned,
				Figures: lab.Figures{lab.Goodput: 1000 + float64(round), lab.ErrorRatio: e}})
		}
	}
	verdicts := All(lab.Results{Plan: p, Runs: all})
	if v := verdicts[0]; v.Word != lab.NotMeasurable || v.Text != `not measurable: errors 6.1% of "base", rates are compared up to 5%` {
		t.Errorf("goodput: %s", v.Text)
	}
	i := slices.IndexFunc(verdicts, func(v lab.Verdict) bool { return v.Comparison.Metric == lab.ErrorRatio })
	if i < 0 || verdicts[i].Word != lab.Helps || !strings.HasPrefix(verdicts[i].Text, "errors 6.1% → 0%: helps: +6.5% good responses (") {
		t.Errorf("error ratio: %+v", verdicts)
	}
}
