package stats

import (
	"math"
	"slices"
)

// HodgesLehmann returns the median of the pairwise means of differences and the interval from inverting the exact
// signed-rank test (Hollander, Wolfe: Nonparametric Statistical Methods, 3.2 and 3.3). Its coverage is at least the
// confidence; ok is false when so few differences cannot reach it (fewer than six at 95 %).
func HodgesLehmann(differences []float64, confidence float64) (center float64, interval Interval, ok bool) {
	n := len(differences)
	if n == 0 || n > maxSignedRank || !finite(differences) {
		return 0, Interval{}, false
	}
	walsh := walshAverages(differences)
	center = middle(walsh)
	k := 0 // the largest count with P(W < k) ≤ (1 − confidence)/2
	for cumulative, counts := 0.0, signedRankCounts(n); k < len(counts); k++ {
		cumulative += counts[k] / math.Exp2(float64(n))
		if cumulative > (1-confidence)/2 {
			break
		}
	}
	if k == 0 {
		return center, Interval{}, false
	}
	return center, Interval{walsh[k-1], walsh[len(walsh)-k]}, true
}

// maxSignedRank bounds the number of differences; the exact distribution needs n²/2 counts up to 2^n.
const maxSignedRank = 500

func walshAverages(xs []float64) []float64 {
	means := make([]float64, 0, len(xs)*(len(xs)+1)/2)
	for i, x := range xs {
		for _, y := range xs[i:] {
			means = append(means, (x+y)/2)
		}
	}
	slices.Sort(means)
	return means
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// signedRankCounts returns how many of the 2^n signs give each rank sum 0 … n(n+1)/2.
func signedRankCounts(n int) []float64 {
	counts := make([]float64, n*(n+1)/2+1)
	counts[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := rank * (rank + 1) / 2; sum >= rank; sum-- {
			counts[sum] += counts[sum-rank]
		}
	}
	return counts
}
