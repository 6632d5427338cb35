package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
)

// maxErrorRatio is the error ratio up to which rates are compared (METHOD §8).
const maxErrorRatio = 0.05

// isRate says whether the generator can spoil a comparison of m. CPU per request stays comparable.
func isRate(m lab.Metric) bool {
	return m == lab.Goodput || m == lab.RequestRate || m == lab.BytesRate
}

// lowerIsBetter says whether a ratio below 1 is the improvement.
func lowerIsBetter(m lab.Metric) bool {
	switch m {
	case lab.CPUPerRequest, lab.ClientCPUPerReq, lab.MeanS, lab.P50S, lab.P75S, lab.P90S, lab.P95S, lab.P99S, lab.P999S, lab.MaxS, lab.ServerPSS:
		return true
	}
	return false
}

// ofPart returns the valid runs of one part, by round.
func (s side) ofPart(part int) []*lab.Run {
	var runs []*lab.Run
	for at, r := range s.valid {
		if at.part == part {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *lab.Run) int { return a.Round - b.Round })
	return runs
}

// Limits judges whether the figures m of two groups of valid runs may be compared, as the verdicts do: lower when state
// over base is a lower bound, prevented why it says nothing.
func Limits(base, state []lab.Run, m lab.Metric) (lower bool, prevented string) {
	return limits(pointers(base), pointers(state), m)
}

func pointers(runs []lab.Run) []*lab.Run {
	out := make([]*lab.Run, len(runs))
	for i := range runs {
		out[i] = &runs[i]
	}
	return out
}

// Doubts says what qualifies the figures m of valid runs: "foreign-cpu in 3 of 12 runs".
func Doubts(runs []lab.Run, m lab.Metric) []string { return doubts(pointers(runs), m, false) }

// LowerBound says whether figures m of valid runs are what the target can do at least: rates that the generator limited
// in at least half of the runs.
func LowerBound(runs []lab.Run, m lab.Metric) bool {
	return isRate(m) && generatorLimited(pointers(runs)) != ""
}

// limits judges whether the runs may be compared on m. Neither side may have too many errors, whatever the figure: a
// fast error page is cheap for the server and soon answered. For rates the base must not be limited by the generator; a
// state that is gives a lower bound.
func limits(base, state []*lab.Run, m lab.Metric) (lower bool, prevented string) {
	if m == lab.ErrorRatio {
		return false, ""
	}
	for _, runs := range [][]*lab.Run{base, state} {
		if e, known := meanErrors(runs); known && e > maxErrorRatio {
			return false, fmt.Sprintf("errors %.3g%% of %q, %s are compared up to %g%%", 100*e, runs[0].Cell.State, figuresOf(m), 100*maxErrorRatio)
		}
	}
	if !isRate(m) {
		return false, ""
	}
	if codes := generatorLimited(base); codes != "" {
		return false, fmt.Sprintf("the load generator was the limit of %q (%s)", base[0].Cell.State, codes)
	}
	return generatorLimited(state) != "", ""
}

// figuresOf names what m is one of.
func figuresOf(m lab.Metric) string {
	if isRate(m) {
		return "rates"
	}
	return "figures"
}

// generatorLimited returns the codes by which at least half of the runs were limited by the generator; "" when they
// were not.
func generatorLimited(runs []*lab.Run) string {
	limited, codes := 0, map[string]bool{}
	for _, r := range runs {
		hit := false
		for _, f := range r.Findings {
			if f.Outcome == lab.Fired && f.Consequence == lab.LowerBound {
				hit, codes[f.Code] = true, true
			}
		}
		if hit {
			limited++
		}
	}
	if limited == 0 || 2*limited < len(runs) {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(codes)), ", ")
}

// meanErrors is the mean error ratio of the runs that know it.
func meanErrors(runs []*lab.Run) (float64, bool) {
	sum, n := 0.0, 0
	for _, r := range runs {
		if v, known := r.Figures[lab.ErrorRatio]; known {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// doubts lists what qualifies a comparison on m, by the findings of its runs: "foreign-cpu in 3 of 12 runs". Of a rate
// that is compared both ways, the runs that the generator limited are among them.
func doubts(runs []*lab.Run, m lab.Metric, lower bool) []string {
	counts := map[string]int{}
	for _, r := range runs {
		seen := map[string]bool{}
		for _, f := range r.Findings {
			if f.Outcome == lab.Fired && doubtful(f, m, lower) && !seen[f.Code] {
				seen[f.Code] = true
				counts[f.Code]++
			}
		}
	}
	var out []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s in %d of %d runs", code, counts[code], len(runs)))
	}
	return out
}

func doubtful(f lab.Finding, m lab.Metric, lower bool) bool {
	switch f.Consequence {
	case lab.Warn:
		return f.Concerns(m)
	case lab.LowerBound:
		return isRate(m) && !lower
	}
	return false
}

// spoilers are the codes of the findings that made a run invalid.
func spoilers(r *lab.Run) []string {
	var codes []string
	for _, f := range r.Findings {
		if f.Outcome == lab.Fired && f.Consequence == lab.Invalidate {
			codes = append(codes, f.Code)
		}
	}
	if len(codes) == 0 && r.Problem != "" {
		codes = append(codes, r.Problem)
	}
	return codes
}

// because names what made runs invalid: " (foreign-cpu, tool-failed)"; "" when none was.
func because(sides ...side) string {
	codes := map[string]bool{}
	for _, s := range sides {
		for at, spoiled := range s.spoiled {
			if _, repeated := s.valid[at]; repeated {
				continue
			}
			for _, code := range spoiled {
				codes[code] = true
			}
		}
	}
	if len(codes) == 0 {
		return ""
	}
	return " (" + strings.Join(slices.Sorted(maps.Keys(codes)), ", ") + ")"
}

func lostText(c lab.Comparison) string {
	return fmt.Sprintf("%d of %d rounds are incomplete", c.Lost, c.Pairs+c.Lost)
}
