package capacity

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"ngxlab/lab"
)

const (
	confidence = 0.95
	// maxBend is how far the curve may leave its chord, as a share of its rise, before a part is called not linear.
	// Slab pages and allocator steps bend a line by a per cent or two without changing what fits in a machine.
	maxBend = 0.05
	// leastSlope is the bytes per connection below which a part's bend is not judged: there is no rise to compare with.
	leastSlope = 8
	// leastLevels is how many levels a quadratic term needs to be more than an exact fit.
	leastLevels = 4
)

// line is the fit of one part over one ramp.
type line struct {
	slope, intercept float64
	quadratic        float64 // coefficient of the square; NaN with too few levels
	bend             float64 // largest distance of the curve from its chord ÷ rise; NaN with too few levels
}

// fitLine fits bytes over connections by least squares.
func fitLine(connections, bytes []float64) line {
	var l line
	l.intercept, l.slope = stat.LinearRegression(connections, bytes, nil, false)
	l.quadratic, l.bend = math.NaN(), math.NaN()
	if len(connections) < leastLevels {
		return l
	}
	l.quadratic = quadraticTerm(connections, bytes)
	span := floats.Max(connections) - floats.Min(connections)
	l.bend = math.Abs(l.quadratic) * span / 4 / math.Abs(l.slope)
	return l
}

// quadraticTerm is the coefficient of x² in the least-squares parabola: what is left of x² after its own line, against y.
func quadraticTerm(x, y []float64) float64 {
	squares := make([]float64, len(x))
	for i, v := range x {
		squares[i] = v * v
	}
	a, b := stat.LinearRegression(x, squares, nil, false)
	rest := make([]float64, len(x))
	for i := range x {
		rest[i] = squares[i] - a - b*x[i]
	}
	return floats.Dot(rest, y) / floats.Dot(rest, rest)
}

// interval is the mean of xs and its confidence interval by t; ok is false for fewer than two.
func interval(xs []float64) (mean, low, high float64, ok bool) {
	mean = stat.Mean(xs, nil)
	if len(xs) < 2 {
		return mean, mean, mean, false
	}
	n := float64(len(xs))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.5 + confidence/2)
	half := t * stat.StdDev(xs, nil) / math.Sqrt(n)
	return mean, mean - half, mean + half, true
}

// fitPart fits one part over all ramps of a kind.
func fitPart(part string, ramps [][]lab.CapacityLevel) lab.CapacityFit {
	fit := lab.CapacityFit{Kind: ramps[0][0].Kind, Part: part}
	var intercepts, quadratics, bends []float64
	for _, ramp := range ramps {
		var connections, bytes []float64
		for _, l := range ramp {
			connections = append(connections, float64(l.Connections))
			bytes = append(bytes, float64(l.Parts[part]))
		}
		l := fitLine(connections, bytes)
		fit.Slopes = append(fit.Slopes, l.slope)
		intercepts = append(intercepts, l.intercept)
		if !math.IsNaN(l.bend) {
			quadratics, bends = append(quadratics, l.quadratic), append(bends, l.bend)
		}
	}
	var known bool
	fit.BytesPerConnection, fit.Low, fit.High, known = interval(fit.Slopes)
	fit.NoInterval = !known
	fit.InterceptBytes = stat.Mean(intercepts, nil)
	fit.NotLinear = math.Abs(fit.BytesPerConnection) >= leastSlope && bent(quadratics, bends)
	return fit
}

// bent reports whether the curves leave the line by more than maxBend, and agree in the direction.
func bent(quadratics, bends []float64) bool {
	if len(bends) == 0 || stat.Mean(bends, nil) <= maxBend {
		return false
	}
	_, low, high, known := interval(quadratics)
	return !known || low > 0 || high < 0
}
