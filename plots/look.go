package plots

import "github.com/wcharczuk/go-chart/v2/drawing"

// Colours that are not data.
var (
	paper = drawing.Color{R: 255, G: 255, B: 255, A: 255}
	ink   = drawing.Color{R: 34, G: 34, B: 34, A: 255}
	faint = drawing.Color{R: 95, G: 95, B: 95, A: 255}
	grid  = drawing.Color{R: 222, G: 222, B: 222, A: 255}
	frame = drawing.Color{R: 150, G: 150, B: 150, A: 255}
)

// The colours of Okabe and Ito (Color Universal Design, 2008), without the yellow, which does not show on white.
var (
	blue      = drawing.Color{R: 0, G: 114, B: 178, A: 255}
	vermilion = drawing.Color{R: 213, G: 94, B: 0, A: 255}
	green     = drawing.Color{R: 0, G: 158, B: 115, A: 255}
	purple    = drawing.Color{R: 204, G: 121, B: 167, A: 255}
	orange    = drawing.Color{R: 230, G: 159, B: 0, A: 255}
	sky       = drawing.Color{R: 86, G: 180, B: 233, A: 255}
	black     = drawing.Color{R: 0, G: 0, B: 0, A: 255}
)

// marker is the shape of a series' points.
type marker int

const (
	disc marker = iota
	square
	diamond
	wedge // a triangle on its tip; one on its base would look like the arrow of a lower bound
	pentagon
	hourglass
)

// look is how one series is drawn.
type look struct {
	colour drawing.Color
	dash   []float64
	marker marker
}

// lookOf returns the look of the i-th series. Colours, markers and dashes repeat after 7, 6 and 4, so no two of the
// first 84 series are the same.
func lookOf(i int) look {
	colours := [...]drawing.Color{blue, vermilion, green, purple, orange, sky, black}
	dashes := [...][]float64{nil, {7, 3}, {2, 2.5}, {9, 3, 2, 3}}
	return look{colour: colours[i%len(colours)], dash: dashes[i%len(dashes)], marker: marker(i % 6)}
}

// markerRadius is half the nominal size of a marker in pixels.
const markerRadius = 4.5

// marker draws a marker: filled when solid, else hollow.
func (c *canvas) marker(m marker, at point, solid bool, colour drawing.Color) {
	fill := paper
	if solid {
		fill = colour
	}
	edge := stroke{colour: colour, width: 1.5}
	if m == disc {
		c.disc(at, markerRadius, fill, edge)
		return
	}
	c.shape(fill, edge, m.outline(at, markerRadius)...)
}

// outline returns the corners of a marker.
func (m marker) outline(at point, r float64) []point {
	corner := func(dx, dy float64) point { return point{at.x + dx*r, at.y + dy*r} }
	switch m {
	case square:
		return []point{corner(-0.9, -0.9), corner(0.9, -0.9), corner(0.9, 0.9), corner(-0.9, 0.9)}
	case diamond:
		return []point{corner(0, -1.25), corner(1.15, 0), corner(0, 1.25), corner(-1.15, 0)}
	case wedge:
		return []point{corner(-1.1, -0.85), corner(1.1, -0.85), corner(0, 1.2)}
	case pentagon:
		return []point{corner(0, -1.15), corner(1.1, -0.35), corner(0.7, 0.95), corner(-0.7, 0.95), corner(-1.1, -0.35)}
	default:
		return []point{corner(-1, -1), corner(1, -1), corner(-1, 1), corner(1, 1)}
	}
}

// boundArrow is the length of a lower bound's arrow in pixels.
const boundArrow = 17.0

// arrowUp draws the arrow of a lower bound above a point.
func (c *canvas) arrowUp(at point, length float64, colour drawing.Color) {
	tip := at.y - length
	c.line(stroke{colour: colour, width: 1.5}, point{at.x, at.y - markerRadius}, point{at.x, tip + 4})
	c.area(colour, point{at.x - 4, tip + 6}, point{at.x + 4, tip + 6}, point{at.x, tip})
}

// arrowRight draws the arrow of a lower bound to the right of a point.
func (c *canvas) arrowRight(at point, colour drawing.Color) {
	tip := at.x + boundArrow
	c.line(stroke{colour: colour, width: 1.5}, point{at.x + markerRadius, at.y}, point{tip - 4, at.y})
	c.area(colour, point{tip - 6, at.y - 4}, point{tip - 6, at.y + 4}, point{tip, at.y})
}

// whisker draws a vertical interval with caps.
func (c *canvas) whisker(x, low, high float64, colour drawing.Color) {
	s := stroke{colour: colour, width: 1.5}
	c.line(s, point{x, low}, point{x, high})
	c.line(s, point{x - 3, low}, point{x + 3, low})
	c.line(s, point{x - 3, high}, point{x + 3, high})
}
