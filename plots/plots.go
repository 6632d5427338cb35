// Package plots draws the charts of a study, each from plain values to an io.Writer, as SVG or PNG from the same code.
//
// It draws with the renderers of go-chart and lays the picture out itself, because a chart of measurements needs what
// go-chart's chart types do not have: interval bands, round ticks on linear and logarithmic axes, a legend that never
// lies over the data, and marks that tell a clean figure from a warned one and from a lower bound. Colours are those
// of Okabe and Ito, safe for the colour-blind; every series has its own marker and dash too, for black and white.
//
// Values are in SI units (seconds, bytes, per second, ratios); a chart picks one scale per axis and names it there.
package plots

import (
	"fmt"
	"math"
)

// Format is the kind of picture.
type Format int

// The formats.
const (
	SVG Format = iota // text is text; the size follows the page
	PNG               // twice the nominal size, for dense screens
)

// Extension of a file of this format, without the dot.
func (f Format) Extension() string {
	if f == PNG {
		return "png"
	}
	return "svg"
}

// Mark says how far a figure may be trusted, and so how it is drawn.
type Mark int

// The marks, in the order in which a figure gets less trustworthy. The zero value is Absent, so that a figure nobody
// filled in is never drawn.
const (
	Absent     Mark = iota // no figure: not drawn
	Clean                  // filled marker
	Warned                 // hollow marker
	LowerBound             // hollow marker with an arrow upward: the generator was the limit
	Invalid                // not drawn, named in a note
)

// Figure is a value with its interval.
type Figure struct {
	Value     float64
	Low, High float64 // interval; both NaN when there is none
	Mark      Mark
}

// drawn reports whether the figure may appear on an axis.
func (f Figure) drawn() bool {
	ok := f.Mark == Clean || f.Mark == Warned || f.Mark == LowerBound
	return ok && !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0)
}

// interval returns the ends of the interval; ok is false when there is none.
func (f Figure) interval() (low, high float64, ok bool) {
	ok = !math.IsNaN(f.Low) && !math.IsNaN(f.High) && !math.IsInf(f.Low, 0) && !math.IsInf(f.High, 0) && f.Low <= f.High
	return f.Low, f.High, ok
}

// top is the highest value that the drawing of the figure reaches.
func (f Figure) top() float64 {
	if _, high, ok := f.interval(); ok {
		return math.Max(high, f.Value)
	}
	return f.Value
}

// bottom is the lowest value that the drawing of the figure reaches.
func (f Figure) bottom() float64 {
	if low, _, ok := f.interval(); ok {
		return math.Min(low, f.Value)
	}
	return f.Value
}

// errNothing is returned by every chart that is asked to draw no figure at all.
func errNothing(what string) error {
	return fmt.Errorf("draw %s: nothing to draw", what)
}
