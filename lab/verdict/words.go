package verdict

import (
	"fmt"
	"math"

	"ngxlab/lab"
	"ngxlab/lab/stats"
)

// alpha is the level of adjusted p values.
const alpha = 0.05

// mostRounds bounds the estimate of rounds still needed.
const mostRounds = 999

// word decides a comparison whose AdjustedP is final. delta is the smallest effect that matters, as a ratio.
func word(c lab.Comparison, delta float64) lab.Verdict {
	v := lab.Verdict{Comparison: c}
	significant := c.AdjustedP < alpha && excludesOne(c.Low, c.High)
	switch {
	case c.Prevented != "":
		v.Word, v.Text = lab.NotMeasurable, "not measurable: "+c.Prevented
	case c.LowerBound:
		lowerBoundWord(&v, significant)
	case significant && rankAgrees(c):
		direction(&v, delta)
	case within(c.Low, c.High, delta) && rankAgrees(c):
		v.Word, v.Text = lab.NoDifference, fmt.Sprintf("no difference larger than ±%s%s", share(delta), of(c.Metric))
	default:
		undecided(&v, delta)
		v.Text += rankText(c)
	}
	return v
}

func excludesOne(low, high float64) bool { return low > 1 || high < 1 }

// within says whether the interval lies within ±delta.
func within(low, high, delta float64) bool { return low >= 1-delta && high <= 1+delta }

// rankAgrees says that both intervals exclude 1, or neither. Below six pairs there is no rank interval, and t stands
// alone.
func rankAgrees(c lab.Comparison) bool {
	return c.HLHigh == 0 || excludesOne(c.HLLow, c.HLHigh) == excludesOne(c.Low, c.High)
}

// rankText says how the rank interval disagrees; "" when it does not.
func rankText(c lab.Comparison) string {
	if rankAgrees(c) {
		return ""
	}
	does := "includes"
	if excludesOne(c.HLLow, c.HLHigh) {
		does = "excludes"
	}
	return "; the rank interval " + span(c.HLLow, c.HLHigh, c) + " " + does + " 0%"
}

func direction(v *lab.Verdict, delta float64) {
	c := v.Comparison
	v.Word = lab.Hurts
	if c.Ratio > 1 != lowerIsBetter(c.Metric) {
		v.Word = lab.Helps
	}
	v.Text = fmt.Sprintf("%s: %s%s (%s)", v.Word, percent(c.Ratio, c), of(c.Metric), span(c.Low, c.High, c))
	if within(c.Low, c.High, delta) {
		v.Text += fmt.Sprintf(", measurable but below ±%s", share(delta))
	}
}

func lowerBoundWord(v *lab.Verdict, significant bool) {
	c := v.Comparison
	if significant && c.Low > 1 && rankAgrees(c) {
		v.Word, v.Text = lab.AtLeast, fmt.Sprintf("helps, at least %s (the load generator was the limit)", percent(c.Low, c))
		return
	}
	v.Word, v.Text = lab.Undecided, fmt.Sprintf("undecided, at least %s (the load generator was the limit)", percent(c.Low, c))
}

func undecided(v *lab.Verdict, delta float64) {
	c := v.Comparison
	v.Word = lab.Undecided
	v.MoreRounds = moreRounds(c, delta)
	v.Text = fmt.Sprintf("undecided, between %s and %s%s", percent(c.Low, c), percent(c.High, c), of(c.Metric))
	if v.MoreRounds > 0 {
		v.Text += fmt.Sprintf("; about %d more %s", v.MoreRounds, plural(v.MoreRounds, "round"))
	}
}

// moreRounds estimates the rounds until the interval either excludes 1 or lies within ±delta, whichever is nearer,
// if ratio and spread stay as they are; at least 1.
func moreRounds(c lab.Comparison, delta float64) int {
	effect := math.Abs(math.Log(c.Ratio))
	width := max(effect, math.Log1p(delta)-effect)
	if c.SD <= 0 || width <= 0 {
		return 1
	}
	return max(1, stats.PairsFor(c.SD, width, confidence(c), c.Pairs+mostRounds)-c.Pairs)
}

func confidence(c lab.Comparison) float64 {
	if c.Stopping {
		return stats.Stopping
	}
	return stats.Plain
}

// of names a metric in a percentage; goodput goes without saying.
func of(m lab.Metric) string {
	switch m {
	case lab.Goodput:
		return ""
	case lab.CPUPerRequest:
		return " server CPU per request"
	case lab.ErrorRatio:
		return " good responses"
	}
	return " " + string(m)
}

// percent writes a ratio of c as a change.
func percent(ratio float64, c lab.Comparison) string { return lab.PercentChange(ratio, c.Low, c.High) }

func span(low, high float64, c lab.Comparison) string {
	return percent(low, c) + " … " + percent(high, c)
}

// share writes a ratio such as 0.02 as "2%".
func share(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
