package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
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

// maxSignFlip bounds the exact sign-flip test: 2^20 sums.
const maxSignFlip = 20

// SignFlip returns the exact two-sided p of the mean of differences under all 2^n changes of sign; its smallest
// value is 2/2^n. ok is false for none or for more than 20 differences.
func SignFlip(differences []float64) (p float64, ok bool) {
	n := len(differences)
	if n == 0 || n > maxSignFlip || !finite(differences) {
		return 0, false
	}
	observed, scale := 0.0, 0.0
	for _, d := range differences {
		observed += d
		scale += math.Abs(d)
	}
	atLeast, limit := 0, math.Abs(observed)-1e-12*scale
	for signs := range 1 << n {
		sum := 0.0
		for i, d := range differences {
			if signs>>i&1 == 1 {
				d = -d
			}
			sum += d
		}
		if math.Abs(sum) >= limit {
			atLeast++
		}
	}
	return float64(atLeast) / math.Exp2(float64(n)), true
}

// Trend is a Mann–Kendall test with the Theil–Sen slope.
type Trend struct {
	S     int     // concordant − discordant pairs
	Tau   float64 // S over the number of pairs
	P     float64 // two-sided; exact without ties, else normal with the variance corrected for ties
	Slope float64 // median slope, per step of the order
}

// MannKendall tests values, in their order, for a trend. ok is false for fewer than three values.
func MannKendall(values []float64) (t Trend, ok bool) {
	n := len(values)
	if n < 3 || !finite(values) {
		return Trend{}, false
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	tied := false
	for i := range values {
		for j := i + 1; j < n; j++ {
			d := values[j] - values[i]
			tied = tied || d == 0
			t.S += sign(d)
			slopes = append(slopes, d/float64(j-i))
		}
	}
	slices.Sort(slopes)
	t.Slope = middle(slopes)
	t.Tau = float64(t.S) / float64(len(slopes))
	if tied || n > maxExactKendall {
		t.P = kendallNormal(values, t.S)
	} else {
		t.P = kendallExact(n, t.S)
	}
	return t, true
}

// TheilSen returns the median of the slopes between all points with different x. ok is false when there is none.
func TheilSen(xs, ys []float64) (slope float64, ok bool) {
	if len(xs) != len(ys) || !finite(xs) || !finite(ys) {
		return 0, false
	}
	var slopes []float64
	for i := range xs {
		for j := i + 1; j < len(xs); j++ {
			if xs[j] != xs[i] {
				slopes = append(slopes, (ys[j]-ys[i])/(xs[j]-xs[i]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, false
	}
	slices.Sort(slopes)
	return middle(slopes), true
}

func sign(d float64) int {
	switch {
	case d > 0:
		return 1
	case d < 0:
		return -1
	}
	return 0
}

// maxExactKendall bounds the exact distribution of inversions.
const maxExactKendall = 100

// kendallExact is twice the share of permutations with at most as many inversions as |S| leaves.
func kendallExact(n, s int) float64 {
	shares := []float64{1}
	for size := 2; size <= n; size++ {
		next := make([]float64, len(shares)+size-1)
		for i, share := range shares {
			for j := range size {
				next[i+j] += share / float64(size)
			}
		}
		shares = next
	}
	if s < 0 {
		s = -s
	}
	inversions := (n*(n-1)/2 - s) / 2
	p := 0.0
	for _, share := range shares[:inversions+1] {
		p += share
	}
	return min(1, 2*p)
}

func kendallNormal(values []float64, s int) float64 {
	variance := kendallVariance(len(values))
	for _, size := range tieSizes(values) {
		variance -= kendallVariance(size)
	}
	if variance <= 0 || s == 0 {
		return 1
	}
	z := (math.Abs(float64(s)) - 1) / math.Sqrt(variance)
	return min(1, 2*distuv.UnitNormal.CDF(-z))
}

func kendallVariance(n int) float64 {
	m := float64(n)
	return m * (m - 1) * (2*m + 5) / 18
}

func tieSizes(values []float64) []int {
	counts := map[float64]int{}
	for _, v := range values {
		counts[v]++
	}
	var sizes []int
	for _, c := range counts {
		sizes = append(sizes, c)
	}
	return sizes
}
