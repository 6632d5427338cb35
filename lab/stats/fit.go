package stats

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Line is an ordinary least-squares line.
type Line struct {
	N         int
	Intercept float64
	Slope     float64
	SlopeSE   float64 // standard error of the slope; 0 with two points
	ResidualS float64 // standard deviation of the residuals, n−2 in the denominator
	R2        float64
}

// LinearFit fits y = intercept + slope·x. ok is false with fewer than two different x.
func LinearFit(xs, ys []float64) (Line, bool) {
	beta, cov, sse, ok := leastSquares(xs, ys, 1)
	if !ok {
		return Line{}, false
	}
	l := Line{N: len(xs), Intercept: beta[0], Slope: beta[1], R2: 1}
	if df := float64(len(xs) - 2); df > 0 {
		l.ResidualS = math.Sqrt(sse / df)
		l.SlopeSE = l.ResidualS * math.Sqrt(cov[1])
	}
	if total := sumSquares(ys); total > 0 {
		l.R2 = 1 - sse/total
	}
	return l, true
}

// QuadraticTerm fits y = a + b·x + c·x² and returns c with the two-sided p that it is 0: a small p says that a line
// does not describe the points. ok is false with fewer than four points or three different x.
func QuadraticTerm(xs, ys []float64) (c, p float64, ok bool) {
	if len(xs) < 4 {
		return 0, 0, false
	}
	beta, cov, sse, ok := leastSquares(xs, ys, 2)
	if !ok {
		return 0, 0, false
	}
	df := float64(len(xs) - 3)
	if sse <= 1e-18*sumSquares(ys) { // exact but for rounding
		if math.Abs(beta[2])*span(xs)*span(xs) <= 1e-9*math.Sqrt(sumSquares(ys)) {
			return 0, 1, true
		}
		return beta[2], 0, true
	}
	return beta[2], tZero(beta[2], math.Sqrt(sse/df*cov[2]), df), true
}

// leastSquares fits a polynomial; x is scaled to its span, so that large x do not spoil the matrix. cov is the
// diagonal of the inverse of XᵀX in the units of x.
func leastSquares(xs, ys []float64, degree int) (beta, cov []float64, sse float64, ok bool) {
	scale := span(xs)
	if len(xs) != len(ys) || len(xs) <= degree || scale == 0 || !finite(xs) || !finite(ys) {
		return nil, nil, 0, false
	}
	x := mat.NewDense(len(xs), degree+1, nil)
	for i := range xs {
		for d := range degree + 1 {
			x.Set(i, d, math.Pow(xs[i]/scale, float64(d)))
		}
	}
	var xtx, inverse mat.Dense
	xtx.Mul(x.T(), x)
	if err := inverse.Inverse(&xtx); err != nil {
		return nil, nil, 0, false
	}
	y := mat.NewVecDense(len(ys), append([]float64(nil), ys...))
	var coefficients, xty, fitted, residual mat.VecDense
	xty.MulVec(x.T(), y)
	coefficients.MulVec(&inverse, &xty)
	fitted.MulVec(x, &coefficients)
	residual.SubVec(y, &fitted)
	for d := range degree + 1 {
		factor := math.Pow(scale, float64(d))
		beta = append(beta, coefficients.AtVec(d)/factor)
		cov = append(cov, inverse.At(d, d)/(factor*factor))
	}
	return beta, cov, mat.Dot(&residual, &residual), true
}

func span(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	low, high := xs[0], xs[0]
	for _, x := range xs {
		low, high = min(low, x), max(high, x)
	}
	return high - low
}

func sumSquares(ys []float64) float64 {
	mean := 0.0
	for _, y := range ys {
		mean += y / float64(len(ys))
	}
	sum := 0.0
	for _, y := range ys {
		sum += (y - mean) * (y - mean)
	}
	return sum
}
