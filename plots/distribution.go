package plots

import (
	"io"
	"math"
	"strconv"
)

// Quantile is one point of a latency distribution.
type Quantile struct {
	Q float64 // 0 … 1
	S float64 // seconds
}

// Course is the distribution of one state, by ascending Q.
type Course struct {
	Name      string
	Quantiles []Quantile
	Hollow    bool // some of its runs were warned
}

// Distribution is latency over the percentiles of one load point.
type Distribution struct {
	Title   string
	Note    string // loop model, and what the latency includes
	Courses []Course
}

// DrawDistribution draws latency over a percentile axis: each step to the right is ten times rarer (90, 99, 99.9 %).
func DrawDistribution(w io.Writer, f Format, d Distribution) error {
	low, high, rarest := d.extent()
	if !(high > 0) {
		return errNothing(d.Title)
	}
	rule, err := newRuler()
	if err != nil {
		return err
	}
	y := zeroAxis(Seconds, high, 5)
	if high/low >= logFrom {
		y = wholeDecades(Seconds, low, high)
	}
	p := newPlot(rule, d.Title, y, percentileAxis(rarest))
	p.yName, p.xName = "latency", "percentile"
	p.legend = d.legend()
	c, err := p.begin(f)
	if err != nil {
		return err
	}
	for i, course := range d.Courses {
		c.quantiles(p, course, lookOf(i))
	}
	return c.save(w)
}

// wholeDecades widens a logarithmic axis to 1, 2 or 5 × 10^k on both ends.
func wholeDecades(u Unit, low, high float64) axis {
	return logAxis(u, roundDown(low), roundUp(high), 9)
}

// roundDown returns the largest 1, 2 or 5 × 10^k that is not above v.
func roundDown(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*power <= v*(1+1e-9) {
			return m * power
		}
	}
	return power
}

// extent returns the smallest and largest latency and the largest quantile below 1.
func (d Distribution) extent() (low, high, rarest float64) {
	low = math.Inf(1)
	for _, course := range d.Courses {
		for _, q := range course.Quantiles {
			if q.Q >= 1 || !finite(q.S) || q.S <= 0 {
				continue
			}
			low, high, rarest = math.Min(low, q.S), math.Max(high, q.S), math.Max(rarest, q.Q)
		}
	}
	return low, high, rarest
}

// nines is the place of a quantile on the axis: 0 for the lowest, 1 for 90 %, 2 for 99 %.
func nines(q float64) float64 { return -math.Log10(1 - q) }

// percentileAxis has its ticks at 0, 50, 90, 99 … up to the rarest quantile.
func percentileAxis(rarest float64) axis {
	a := axis{high: math.Max(1, nines(rarest)), name: "%"}
	a.ticks = []tick{{0, "0"}, {nines(0.5), "50"}}
	for k := 1; float64(k) <= a.high+1e-6; k++ {
		a.ticks = append(a.ticks, tick{value: float64(k), label: ninesLabel(k)})
	}
	return a
}

// ninesLabel prints 90, 99, 99.9 … for 1, 2, 3 ….
func ninesLabel(k int) string {
	return strconv.FormatFloat(100-math.Pow(10, float64(2-k)), 'f', max(0, k-2), 64)
}

func (d Distribution) legend() legend {
	var l legend
	for i, course := range d.Courses {
		k := lookOf(i)
		mark := Clean
		if course.Hollow {
			mark = Warned
		}
		l.entries = append(l.entries, entry{text: course.Name, series: &k, mark: mark, joined: true})
	}
	if d.Note != "" {
		l.notes = append(l.notes, d.Note)
	}
	return l
}

// quantiles draws one course, with a marker at each tick that it has a value near.
func (c *canvas) quantiles(p plot, course Course, k look) {
	var pts []point
	for _, q := range course.Quantiles {
		if q.Q < 1 && finite(q.S) && q.S > 0 {
			pts = append(pts, point{p.x.at(nines(q.Q)), p.y.at(q.S)})
		}
	}
	c.line(stroke{colour: k.colour, width: 2, dash: k.dash}, pts...)
	for _, t := range p.x.ticks {
		if at, ok := nearest(pts, p.x.at(t.value)); ok {
			c.marker(k.marker, at, !course.Hollow, k.colour)
		}
	}
}

// nearest returns the point of pts at most six pixels from x.
func nearest(pts []point, x float64) (point, bool) {
	best, found := point{}, false
	for _, p := range pts {
		if math.Abs(p.x-x) <= 6 && (!found || math.Abs(p.x-x) < math.Abs(best.x-x)) {
			best, found = p, true
		}
	}
	return best, found
}
