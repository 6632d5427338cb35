package observe

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// Thresholds of a standstill. Slowest spans of quiet runs: 0.85 to 0.96 of the median, under foreign load 0.53 to 0.83.
const (
	stallSpanS   = 0.25 // the shortest time that counts as one
	stallShare   = 0.10 // of the run's median rate
	stallLatency = 0.05 // s: with slower answers, a span without any is nothing unusual
	fewestSpans  = 4
)

// serverStalled looks for a time in which next to nothing was answered: the server stood still, or the generators did.
func serverStalled(o Observation) lab.Finding {
	readings := countedInside(o)
	if wentDown(readings) {
		return unknown("the server's count went down")
	}
	rates := spanRates(readings)
	goodput := o.Figures[lab.Requests] / max(o.Figures[lab.DurationS], 1e-9)
	switch {
	case len(rates) < fewestSpans:
		return unknown(fmt.Sprintf("fewer than %d times of %g s between readings of the server's count within the window", fewestSpans, stallSpanS))
	case float64(o.Point.Connections) > stallLatency*goodput:
		return unknown("an answer takes too long for the standstill of a quarter of a second to be one")
	}
	slices.Sort(rates)
	median := rates[len(rates)/2]
	slowest := slices.Min(append(waitRates(readings, median), rates...))
	values := map[string]float64{"slowest_per_s": slowest, "median_per_s": median, "threshold": stallShare}
	evidence := fmt.Sprintf("the slowest %g s had %.0f requests per second, the median is %.0f (limit %.2f of it)", stallSpanS, slowest, median, stallShare)
	if median <= 0 || slowest < stallShare*median {
		return with(found(lab.Warn, "Server or generators stood still: the rate is too low by that time. See what stopped them, then run again.", "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

// countedInside are the target's samples with the server's count within the window, by time.
func countedInside(o Observation) []lab.Sample {
	var inside []lab.Sample
	for _, s := range o.Run.Samples {
		if s.Host == o.Run.Cell.Target && hasCount(s) && s.At >= o.Run.Window.Begin && s.At <= o.Run.Window.End {
			inside = append(inside, s)
		}
	}
	slices.SortFunc(inside, func(a, b lab.Sample) int { return int(min(max(a.At-b.At, -1), 1)) })
	return inside
}

// wentDown reports whether the server's count, or that of the polls, fell between two readings.
func wentDown(readings []lab.Sample) bool {
	for i := 1; i < len(readings); i++ {
		if !servedBetween(readings[i-1], readings[i]).Known {
			return true
		}
	}
	return false
}

// spanRates are requests per second between each reading and the first one at least stallSpanS later.
func spanRates(readings []lab.Sample) []float64 {
	var rates []float64
	for i, a := range readings {
		for _, b := range readings[i+1:] {
			if d := seconds(a, b); d >= stallSpanS {
				rates = append(rates, servedBetween(a, b).Value/d)
				break
			}
		}
	}
	return rates
}

// waitRates are requests per second while a poll waited for at least stallSpanS. Until it was sent the server is taken to
// have answered as it did otherwise.
func waitRates(readings []lab.Sample, otherwise float64) []float64 {
	var rates []float64
	for i := 1; i < len(readings); i++ {
		a, b := readings[i-1], readings[i]
		gap := seconds(a, b)
		if wait := min(b.TookS, gap); wait >= stallSpanS {
			rates = append(rates, max(servedBetween(a, b).Value-otherwise*(gap-wait), 0)/wait)
		}
	}
	return rates
}
