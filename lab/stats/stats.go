// Package stats compares and fits plain numbers: paired intervals, rank intervals, multiple comparisons and lines. It
// knows nothing of runs. Logarithms are taken by the caller; a function that cannot answer for so few values says so
// with ok = false, and never returns NaN.
package stats

import (
	"math"
	"slices"
	"sync"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// The confidence levels of intervals on paired differences.
const (
	// Plain is for a number of rounds fixed beforehand.
	Plain = 0.95
	// Stopping is for rounds that went on until the interval was narrow: the 95 % interval that allows for stopping.
	// Stopping on width with Plain (t quantile 0.975) excludes the truth in 5 to 7 % of comparisons; with this level
	// (two-sided, t quantile 0.9875) in 2.5 to 4 % (METHOD §4; simulated in this package's tests).
	Stopping = 0.975
)

// tQuantiles keeps quantiles already found: a campaign asks for the same few, and each costs a numerical inversion.
var tQuantiles sync.Map // [2]float64{p, df} → float64

// tQuantile returns the quantile p (0 to 1) of Student's t with df > 0 degrees of freedom.
func tQuantile(p, df float64) float64 {
	key := [2]float64{p, df}
	if q, known := tQuantiles.Load(key); known {
		return q.(float64)
	}
	q := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
	tQuantiles.Store(key, q)
	return q
}

// tTwoSided returns the probability of a value beyond ±t.
func tTwoSided(t, df float64) float64 {
	return min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.CDF(-math.Abs(t)))
}

// Interval is a two-sided interval.
type Interval struct{ Low, High float64 }

// Excludes reports whether x lies outside the interval; its ends count as inside.
func (i Interval) Excludes(x float64) bool { return x < i.Low || x > i.High }

// Paired is the analysis of paired differences by Student's t.
type Paired struct {
	N    int
	Mean float64
	SD   float64 // of the differences, n−1 in the denominator
	Interval
	P float64 // two-sided, that the mean is 0, at the confidence given: below 1−Plain exactly when the interval excludes 0
}

// PairedT returns mean and t interval of differences. With confidence Stopping, P is doubled, so that it stays in
// step with the wider interval. ok is false with fewer than two differences or one that is not finite.
func PairedT(differences []float64, confidence float64) (p Paired, ok bool) {
	if len(differences) < 2 || !finite(differences) {
		return Paired{N: len(differences)}, false
	}
	mean, sd := stat.MeanStdDev(differences, nil)
	n := float64(len(differences))
	se := sd / math.Sqrt(n)
	half := tQuantile((1+confidence)/2, n-1) * se
	p = Paired{N: len(differences), Mean: mean, SD: sd, Interval: Interval{mean - half, mean + half}}
	p.P = min(1, tZero(mean, se, n-1)*widening(confidence))
	return p, true
}

// widening is the factor that keeps p in step with an interval of that confidence.
func widening(confidence float64) float64 {
	if confidence == Plain {
		return 1
	}
	return (1 - Plain) / (1 - confidence)
}

// tZero is the two-sided p of mean ÷ se, with the limits for a standard error of 0.
func tZero(mean, se, df float64) float64 {
	switch {
	case mean == 0:
		return 1
	case se > 0:
		return tTwoSided(mean/se, df)
	}
	return 0
}

func finite(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// PairsFor returns the number of pairs after which a t interval at the confidence is expected to be no wider than
// ±halfWidth when the differences have the standard deviation sd. At most limit.
func PairsFor(sd, halfWidth, confidence float64, limit int) int {
	for n := 2; n < limit; n++ {
		if tQuantile((1+confidence)/2, float64(n-1))*sd <= halfWidth*math.Sqrt(float64(n)) {
			return n
		}
	}
	return limit
}

// Median returns the median and its order-statistic interval of at least 95 % coverage (benchmath). The interval
// exists from six values on: [min, max] covers 1−2^(1−n). It is description, not a test.
func Median(values []float64) (median float64, interval Interval, ok bool) {
	if len(values) == 0 || !finite(values) {
		return 0, Interval{}, false
	}
	thresholds := benchmath.DefaultThresholds
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &thresholds), Plain)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return s.Center, Interval{}, false
	}
	return s.Center, Interval{s.Lo, s.Hi}, true
}

// Holm returns the step-down adjusted p values in the order given: compare each with the level of the whole family.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(ps))
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = largest
	}
	return adjusted
}
