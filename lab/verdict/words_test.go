package verdict

import (
	"math"
	"strings"
	"testing"

	"ngxlab/lab"
)

func comparison(low, ratio, high float64) lab.Comparison {
	return lab.Comparison{Metric: lab.Goodput, Pairs: 6, Ratio: ratio, Low: low, High: high, HLLow: low, HLHigh: high, SD: math.Log(high/low) / 2 * math.Sqrt(6) / 2.57, AdjustedP: 0.01}
}

func TestWordsAndTexts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*lab.Comparison)
		c      lab.Comparison
		delta  float64
		word   lab.Word
		text   string
	}{
		{"clear gain", nil, comparison(1.36, 1.38, 1.41), 0.02, lab.Helps, "helps: +38% (+36% … +41%)"},
		{"clear loss", nil, comparison(0.80, 0.82, 0.85), 0.02, lab.Hurts, "hurts: −18% (−20% … −15%)"},
		{"less CPU", func(c *lab.Comparison) { c.Metric = lab.CPUPerRequest }, comparison(0.86, 0.88, 0.90), 0.02, lab.Helps, "helps: −12% server CPU per request (−14% … −10%)"},
		{"more CPU", func(c *lab.Comparison) { c.Metric = lab.CPUPerRequest }, comparison(1.10, 1.12, 1.14), 0.02, lab.Hurts, "hurts: +12% server CPU per request (+10% … +14%)"},
		{"small but sure", nil, comparison(1.004, 1.009, 1.014), 0.02, lab.Helps, "helps: +0.9% (+0.4% … +1.4%), measurable but below ±2%"},
		{"nothing", nil, comparison(0.97, 1.005, 1.04), 0.05, lab.NoDifference, "no difference larger than ±5%"},
		{"not adjusted", func(c *lab.Comparison) { c.AdjustedP = 0.2 }, comparison(1.001, 1.05, 1.1), 0.02, lab.Undecided, "undecided, between +0% and +10%; about 1 more round"},
		{"rank interval disagrees", func(c *lab.Comparison) { c.HLLow = 0.99 }, comparison(1.01, 1.05, 1.1), 0.02, lab.Undecided, "undecided, between +1% and +10%; about 1 more round; the rank interval −1% … +10% includes 0%"},
		{"no rank interval below six", func(c *lab.Comparison) { c.HLLow, c.HLHigh = 0, 0 }, comparison(1.36, 1.38, 1.41), 0.02, lab.Helps, "helps: +38% (+36% … +41%)"},
		{"nothing paired", func(c *lab.Comparison) { c.Prevented = "no round in which both are valid" }, lab.Comparison{}, 0.02, lab.NotMeasurable, "not measurable: no round in which both are valid"},
	} {
		if c.change != nil {
			c.change(&c.c)
		}
		v := word(c.c, c.delta)
		if v.Word != c.word || strings.ReplaceAll(v.Text, "+0%", "0%") != strings.ReplaceAll(c.text, "+0%", "0%") {
			t.Errorf("%s: %s: %q, want %s: %q", c.name, v.Word, v.Text, c.word, c.text)
		}
	}
}

func TestUndecidedSaysHowManyMoreRounds(t *testing.T) {
	v := word(func() lab.Comparison { c := comparison(0.97, 1.024, 1.08); c.AdjustedP = 0.3; return c }(), 0.02)
	if v.Word != lab.Undecided || v.MoreRounds < 5 || v.MoreRounds > 60 {
		t.Errorf("%s: %s, %d more", v.Word, v.Text, v.MoreRounds)
	}
	if !strings.HasPrefix(v.Text, "undecided, between −3% and +8%; about ") {
		t.Errorf("%q", v.Text)
	}
}
