package capacity

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"ngxlab/lab"
	"ngxlab/lab/stats"
)

const (
	// maxBend is how far the curve may leave its chord, as a share of its rise, before a part is called not linear.
	// Slab pages and allocator steps bend a line by a per cent or two without changing what fits in a machine.
	maxBend = 0.05
	// leastSlope is the bytes per connection below which a part's bend is not judged: there is no rise to compare with.
	leastSlope = 8
)

// fitPart fits one part over all ramps of a kind.
func fitPart(part string, ramps [][]lab.CapacityLevel) lab.CapacityFit {
	fit := lab.CapacityFit{Kind: ramps[0][0].Kind, Part: part}
	var intercepts []float64
	var curve curvature
	for _, ramp := range ramps {
		var connections, bytes []float64
		for _, l := range ramp {
			connections = append(connections, float64(l.Connections))
			bytes = append(bytes, float64(l.Parts[part]))
		}
		line, ok := stats.LinearFit(connections, bytes)
		if !ok {
			continue // rampsOf leaves only ramps with two different levels
		}
		fit.Slopes = append(fit.Slopes, line.Slope)
		intercepts = append(intercepts, line.Intercept)
		curve.add(connections, bytes, line.Slope)
	}
	fit.InterceptBytes = stat.Mean(intercepts, nil)
	fit.BytesPerConnection = stat.Mean(fit.Slopes, nil)
	t, known := stats.PairedT(fit.Slopes, stats.Plain)
	fit.Low, fit.High, fit.NoInterval = t.Low, t.High, !known
	fit.NotLinear = math.Abs(fit.BytesPerConnection) >= leastSlope && curve.bent()
	return fit
}

// curvature gathers the quadratic terms of a part's ramps.
type curvature struct {
	quadratics []float64
	bends      []float64 // largest distance of the curve from its chord ÷ rise
}

func (c *curvature) add(connections, bytes []float64, slope float64) {
	quadratic, _, ok := stats.QuadraticTerm(connections, bytes)
	if !ok || slope == 0 {
		return
	}
	span := connections[len(connections)-1] - connections[0] // levels are sorted
	c.quadratics = append(c.quadratics, quadratic)
	c.bends = append(c.bends, math.Abs(quadratic*span/4/slope))
}

// bent reports whether the curves leave the line by more than maxBend, and agree in the direction.
func (c *curvature) bent() bool {
	if len(c.bends) == 0 || stat.Mean(c.bends, nil) <= maxBend {
		return false
	}
	t, known := stats.PairedT(c.quadratics, stats.Plain)
	return !known || t.Excludes(0)
}
