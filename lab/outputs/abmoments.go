package outputs

import (
	"math"

	"ngxlab/lab"
)

// leastWholeMS is the mean, in seconds, below which one of whole milliseconds says nothing: ab rounds each time, so
// that answers of 0.3 ms have a mean of 0 and answers of 0.8 ms one of 1 ms.
const leastWholeMS = 0.010

// dropCoarse leaves out latencies of which only whole milliseconds are known and which are too short for them; with the
// quantiles of -e (fine), those are the means of connecting and waiting.
func dropCoarse(r *lab.Report, fine bool) {
	for _, m := range []lab.Metric{lab.ConnectMeanS, lab.WaitMeanS, lab.MeanS, lab.StdevS, lab.P50S, lab.P75S, lab.P90S, lab.P95S, lab.P99S} {
		if fine && m == lab.MeanS {
			return
		}
		if v, known := r.Figures[m]; known && v < leastWholeMS {
			delete(r.Figures, m)
			if m == lab.P50S {
				r.Histogram = nil
			}
		}
	}
}

// fineMoments replaces mean and standard deviation of whole milliseconds by those of the points: between two quantiles of
// -e latencies are taken to spread evenly, in the tail every row of -g counts with its own. Without rows the tail is not
// known, and neither are they.
func fineMoments(f lab.Figures, points []rankedUS, tail int) {
	delete(f, lab.MeanS)
	delete(f, lab.StdevS)
	if tail == len(points) || len(points) == 0 {
		return
	}
	sum, squares, last := 0.0, 0.0, rankedUS{0, points[0].us}
	for i, p := range points {
		n, a, b := float64(p.rank-last.rank), float64(last.us), float64(p.us)
		if i >= tail {
			a = b
		}
		sum += n * (a + b) / 2
		squares += n * (a*a + a*b + b*b) / 3
		last = p
	}
	n := float64(last.rank)
	f[lab.MeanS] = sum / n / 1e6
	f[lab.StdevS] = math.Sqrt(max(squares/n-(sum/n)*(sum/n), 0)) / 1e6
}
