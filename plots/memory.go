package plots

import (
	"fmt"
	"io"
	"math"

	"ngxlab/lab"
)

// MemoryPart is one part of the memory over the connections: the measured points of every ramp, and the fit.
type MemoryPart struct {
	Name            string
	Ramps           [][]MemoryPoint
	InterceptBytes  float64
	SlopeBytes      float64 // per connection
	LowBytes        float64 // ends of the slope's interval; both NaN when there is none
	HighBytes       float64
	SlopeUnknown    bool // points only
	DividedByTwo    bool // said in the legend
	NotLinear       bool // said in the legend
	connectionsUpTo float64
}

// MemoryPoint is one level.
type MemoryPoint struct {
	Connections int
	Bytes       float64
}

// Memory is a chart of memory over connections.
type Memory struct {
	Title string
	Parts []MemoryPart
}

// DrawMemory draws the points of all ramps, the fitted line of each part, and the band of its interval.
func DrawMemory(w io.Writer, f Format, m Memory) error {
	right, top := m.extent()
	if right <= 0 {
		return errNothing(m.Title)
	}
	rule, err := newRuler()
	if err != nil {
		return err
	}
	p := newPlot(rule, m.Title, zeroAxis(Bytes, top, 5), zeroAxis(Count, right, 6))
	p.yName, p.xName = "memory", "connections held"
	p.legend = m.legend()
	c, err := p.begin(f)
	if err != nil {
		return err
	}
	for i, part := range m.Parts {
		part.connectionsUpTo = right
		c.fitBand(p, part, lookOf(i))
	}
	for i, part := range m.Parts {
		part.connectionsUpTo = right
		c.memoryPart(p, part, lookOf(i))
	}
	return c.save(w)
}

// extent returns the most connections and the most bytes that are drawn.
func (m Memory) extent() (connections, bytes float64) {
	for _, part := range m.Parts {
		for _, ramp := range part.Ramps {
			for _, p := range ramp {
				connections = math.Max(connections, float64(p.Connections))
				bytes = math.Max(bytes, p.Bytes)
			}
		}
	}
	return connections, bytes
}

func (m Memory) legend() legend {
	var l legend
	bands := false
	for i, part := range m.Parts {
		k := lookOf(i)
		l.entries = append(l.entries, entry{text: part.label(), series: &k, mark: Clean, joined: !part.SlopeUnknown})
		bands = bands || !math.IsNaN(part.LowBytes)
	}
	note := "Points: every settled level of every ramp. Lines: mean of one slope per ramp."
	if bands {
		note += " Bands: 95% interval of the slope, by t over the ramps."
	}
	l.notes = append(l.notes, note)
	return l
}

func (p MemoryPart) label() string {
	text := p.Name
	if !p.SlopeUnknown {
		text += fmt.Sprintf(": %s bytes per connection", lab.Number(math.Round(p.SlopeBytes), 0))
	}
	if p.DividedByTwo {
		text += " (kernel ÷ 2)"
	}
	if p.NotLinear {
		text += " (not linear)"
	}
	return text
}

// fitBand fills the interval of the slope, turning about the middle of the tested range.
func (c *canvas) fitBand(p plot, part MemoryPart, k look) {
	if part.SlopeUnknown || math.IsNaN(part.LowBytes) || math.IsNaN(part.HighBytes) {
		return
	}
	end := part.connectionsUpTo
	at := func(n, slope float64) point {
		pivot := end / 2
		return point{p.x.at(n), p.y.at(part.InterceptBytes + part.SlopeBytes*pivot + slope*(n-pivot))}
	}
	centre := point{p.x.at(end / 2), at(end/2, 0).y}
	fill := k.colour.WithAlpha(46)
	c.area(fill, at(0, part.LowBytes), centre, at(0, part.HighBytes))
	c.area(fill, at(end, part.LowBytes), centre, at(end, part.HighBytes))
}

// memoryPart draws a part's line and points.
func (c *canvas) memoryPart(p plot, part MemoryPart, k look) {
	if !part.SlopeUnknown {
		end := part.connectionsUpTo
		c.line(stroke{colour: k.colour, width: 2, dash: k.dash},
			point{p.x.at(0), p.y.at(part.InterceptBytes)},
			point{p.x.at(end), p.y.at(part.InterceptBytes + part.SlopeBytes*end)})
	}
	for _, ramp := range part.Ramps {
		for _, l := range ramp {
			c.marker(k.marker, point{p.x.at(float64(l.Connections)), p.y.at(l.Bytes)}, true, k.colour)
		}
	}
}
