package plots

import (
	"fmt"
	"html"
	"io"
	"math"

	chart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// density is how many renderer units one nominal pixel has: the renderers know whole units only, and at one unit per
// pixel lines and markers would visibly jump.
const density = 2

// svgFonts stand for Roboto, which measures the text and is drawn in PNG: all of them have nearly its widths.
const svgFonts = `text{font-family:Arial,"Liberation Sans",Helvetica,sans-serif}`

// Text sizes in pixels.
const (
	sizeTitle = 16.0
	sizeText  = 12.5
	sizeSmall = 11.0
)

// unitDPI is the resolution at which one point of a font is one unit of the renderer. The raster renderer forgets the
// 72 points of an inch and counts in 64ths (go-chart v2.1.2, RasterGraphicContext.recalc).
var unitDPI = map[Format]float64{SVG: 72, PNG: 64}

type point struct{ x, y float64 }

// box is a rectangle in pixels, y downward.
type box struct{ left, top, right, bottom float64 }

func (b box) width() float64   { return b.right - b.left }
func (b box) centreX() float64 { return (b.left + b.right) / 2 }

// anchor is the end of a text that its position names.
type anchor int

const (
	start anchor = iota
	middle
	end
)

type textStyle struct {
	size   float64 // 0 = sizeText
	anchor anchor
	colour drawing.Color // zero = ink
	upward bool          // turned a quarter to the left
}

type stroke struct {
	colour drawing.Color
	width  float64
	dash   []float64
}

// canvas draws in nominal pixels on a renderer of go-chart, and measures text the same for both formats.
type canvas struct {
	*ruler
	r             chart.Renderer
	vector        bool
	width, height float64
}

// newCanvas returns a white canvas of w × h pixels.
func newCanvas(f Format, rule *ruler, w, h float64) (*canvas, error) {
	w, h = math.Ceil(w), math.Ceil(h)
	provider := chart.PNG
	if f == SVG {
		provider = chart.SVGWithCSS(svgFonts, "")
	}
	r, err := provider(int(w*density), int(h*density))
	if err != nil {
		return nil, fmt.Errorf("make a canvas of %.0f × %.0f pixels: %w", w, h, err)
	}
	r.SetDPI(unitDPI[f])
	c := &canvas{ruler: rule, r: r, vector: f == SVG, width: w, height: h}
	c.rect(box{0, 0, w, h}, paper)
	return c, nil
}

func units(v float64) int { return int(math.Round(v * density)) }

// trace makes pts the current path.
func (c *canvas) trace(pts []point) {
	for i, p := range pts {
		if i == 0 {
			c.r.MoveTo(units(p.x), units(p.y))
			continue
		}
		c.r.LineTo(units(p.x), units(p.y))
	}
}

// line draws an open polyline.
func (c *canvas) line(s stroke, pts ...point) {
	if len(pts) < 2 {
		return
	}
	c.pen(s)
	c.trace(pts)
	c.r.Stroke()
}

func (c *canvas) pen(s stroke) {
	c.r.ResetStyle()
	c.r.SetStrokeColor(s.colour)
	c.r.SetStrokeWidth(math.Round(s.width * density))
	if len(s.dash) > 0 {
		dash := make([]float64, len(s.dash))
		for i, d := range s.dash {
			dash[i] = d * density
		}
		c.r.SetStrokeDashArray(dash)
	}
}

// area fills a polygon.
func (c *canvas) area(fill drawing.Color, pts ...point) {
	if len(pts) < 3 {
		return
	}
	c.r.ResetStyle()
	c.r.SetFillColor(fill)
	c.trace(pts)
	c.r.Close()
	c.r.Fill()
}

// shape fills a polygon and draws its edge.
func (c *canvas) shape(fill drawing.Color, edge stroke, pts ...point) {
	c.area(fill, pts...)
	c.line(edge, append(append([]point{}, pts...), pts[0])...)
}

func (c *canvas) rect(b box, fill drawing.Color) {
	c.area(fill, point{b.left, b.top}, point{b.right, b.top}, point{b.right, b.bottom}, point{b.left, b.bottom})
}

// disc draws a filled circle with an edge.
func (c *canvas) disc(at point, radius float64, fill drawing.Color, edge stroke) {
	const corners = 24
	pts := make([]point, corners)
	for i := range pts {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		pts[i] = point{at.x + radius*cos, at.y + radius*sin}
	}
	c.shape(fill, edge, pts...)
}

// text draws s with its baseline at p.
func (c *canvas) text(s string, p point, t textStyle) {
	if s == "" {
		return
	}
	if t.size == 0 {
		t.size = sizeText
	}
	if t.colour.IsZero() {
		t.colour = ink
	}
	c.r.ResetStyle()
	c.r.SetFontColor(t.colour)
	c.r.SetFontSize(t.size * density)
	if t.upward {
		c.r.SetTextRotation(-math.Pi / 2)
		defer c.r.ClearTextRotation()
	}
	if c.vector {
		c.vectorText(s, p, t)
		return
	}
	c.rasterText(s, p, t)
}

// vectorText leaves the anchoring to the viewer, whose font may be a little wider than the one measured.
func (c *canvas) vectorText(s string, p point, t textStyle) {
	c.r.SetFont(nil) // svgFonts apply
	body := html.EscapeString(s)
	if t.anchor != start {
		word := map[anchor]string{middle: "middle", end: "end"}[t.anchor]
		body = fmt.Sprintf(`<tspan x="%d" y="%d" text-anchor="%s">%s</tspan>`, units(p.x), units(p.y), word, body)
	}
	c.r.Text(body, units(p.x), units(p.y))
}

func (c *canvas) rasterText(s string, p point, t textStyle) {
	font, err := chart.GetDefaultFont()
	if err != nil {
		return // newCanvas has loaded it already
	}
	c.r.SetFont(font)
	shift := c.textWidth(s, t.size) * map[anchor]float64{start: 0, middle: 0.5, end: 1}[t.anchor]
	if t.upward {
		p.y += shift
	} else {
		p.x -= shift
	}
	c.r.Text(s, units(p.x), units(p.y))
}

// save writes the picture.
func (c *canvas) save(w io.Writer) error {
	if err := c.r.Save(w); err != nil {
		return fmt.Errorf("write a chart: %w", err)
	}
	return nil
}
