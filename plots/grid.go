package plots

import (
	"fmt"
	"io"
	"math"
	"slices"

	"ngxlab/lab"
)

// Load is a load point as a place on the horizontal axis.
type Load struct {
	Name        string // full name, for notes
	Group       string // load points of one group differ in their connections only and may be joined by a line
	Connections int
}

// Row is one metric of a matrix, with its own vertical axis from zero.
type Row struct {
	Name    string // "goodput"
	Unit    Unit
	Figures [][]Figure  // [state][load point]
	Bounds  [][]float64 // [state][load point]: what a figure cannot exceed, 0 where nothing bounds it; nil = nowhere
}

// Matrix is figures of states over load points.
type Matrix struct {
	Title  string
	States []string
	Loads  []Load
	Rows   []Row
}

// panel is the load points of one group.
type panel struct {
	name   string
	loads  []int // indexes into Matrix.Loads, by connections
	joined bool  // enough levels for a numeric axis and a line
	box    box
	x      axis
}

// joinedFrom is how many distinct levels a group needs to be drawn over a numeric axis with a line: two points joined
// by a line would suggest a course that nobody measured.
const joinedFrom = 3

// Measures of a matrix in pixels.
const (
	chartWidth  = 900.0
	panelHeight = 250.0
	panelGap    = 14.0
	margin      = 16.0
)

// DrawMatrix draws states over load points: one row per metric, one panel per group of load points, the connections on
// its horizontal axis. Groups (another tool, another URL) are never joined by a line. Bounds are dotted lines; those
// more than twice above every figure are left out. Invalid figures are not drawn but named below.
func DrawMatrix(w io.Writer, f Format, m Matrix) error {
	if !m.drawn() {
		return errNothing(m.Title)
	}
	rule, err := newRuler()
	if err != nil {
		return err
	}
	l := m.layout(rule)
	c, err := newCanvas(f, rule, l.width, l.height)
	if err != nil {
		return err
	}
	c.text(c.fit(m.Title, sizeTitle, l.width-2*margin), point{margin, margin + sizeTitle*0.8}, textStyle{size: sizeTitle})
	for i, row := range m.Rows {
		c.matrixRow(m, row, l, i)
	}
	c.legend(l.legend, point{l.left, l.legendTop}, l.width-l.left-margin)
	return c.save(w)
}

func (m Matrix) drawn() bool {
	for _, f := range m.figures() {
		if f.drawn() {
			return true
		}
	}
	return false
}

func (m Matrix) figures() []Figure {
	var all []Figure
	for _, row := range m.Rows {
		for _, figures := range row.Figures {
			all = append(all, figures...)
		}
	}
	return all
}

// matrixLayout is where everything of a matrix goes.
type matrixLayout struct {
	width, height float64
	left          float64 // of the first panel
	panels        []panel // boxes hold the horizontal extent only
	rowTops       []float64
	axes          []axis // per row
	legend        legend
	legendTop     float64
}

func (m Matrix) layout(u *ruler) matrixLayout {
	l := matrixLayout{panels: m.panels(), left: margin + 22}
	labels := 0.0
	for _, row := range m.Rows {
		a := zeroAxis(row.Unit, row.top(), 5)
		l.axes = append(l.axes, a)
		for _, t := range a.ticks {
			labels = math.Max(labels, u.textWidth(t.label, sizeSmall))
		}
	}
	l.left += labels + 8
	l.width = math.Max(chartWidth, l.left+m.widthNeeded(l.panels)+margin)
	l.spread()
	for i := range l.panels {
		l.panels[i].measuredTicks(u, m.Loads)
	}
	y := margin + sizeTitle + 12
	for range m.Rows {
		l.rowTops = append(l.rowTops, y+20)
		y += 20 + panelHeight + 48
	}
	l.legendTop = y
	l.legend = m.legend(l.panels)
	l.height = y + l.legend.height(u, l.width-l.left-margin) + margin/2
	return l
}

// top is the highest value drawn in the row.
func (r Row) top() float64 {
	top := r.highest()
	for _, row := range r.shownBounds() {
		top = math.Max(top, slices.Max(append(row, 0)))
	}
	return top
}

func (m Matrix) legend(panels []panel) legend {
	joined := false
	for _, p := range panels {
		joined = joined || p.joined
	}
	l := seriesLegend(m.States, joined, m.figures())
	var left []string
	for _, row := range m.Rows {
		if row.shownBounds() != nil {
			l.entries = append(l.entries, boundEntry)
		}
		left = append(left, m.leftOut(row)...)
	}
	if note := listNote("Not drawn, every run invalid", left); note != "" {
		l.notes = append(l.notes, note)
	}
	return l
}

// leftOut names the figures of a row that are not drawn.
func (m Matrix) leftOut(row Row) []string {
	var left []string
	for s, figures := range row.Figures {
		for p, f := range figures {
			if f.Mark == Invalid {
				left = append(left, fmt.Sprintf("%s of %s at %s", row.Name, m.States[s], m.Loads[p].Name))
			}
		}
	}
	return left
}

// panels gathers the load points by group, in the order in which the groups first occur.
func (m Matrix) panels() []panel {
	var panels []panel
	where := map[string]int{}
	for i, load := range m.Loads {
		at, known := where[load.Group]
		if !known {
			at = len(panels)
			where[load.Group] = at
			panels = append(panels, panel{name: load.Group})
		}
		panels[at].loads = append(panels[at].loads, i)
	}
	for i := range panels {
		panels[i].arrange(m.Loads)
	}
	return panels
}

// arrange sorts the panel's load points by connections and decides whether they are joined.
func (p *panel) arrange(loads []Load) {
	sortBy(p.loads, func(i int) int { return loads[i].Connections })
	distinct := map[int]bool{}
	for _, i := range p.loads {
		distinct[loads[i].Connections] = true
	}
	p.joined = len(distinct) >= joinedFrom && len(distinct) == len(p.loads)
	if p.joined {
		low, high := loads[p.loads[0]].Connections, loads[p.loads[len(p.loads)-1]].Connections
		p.x = connectionsAxis(float64(low), float64(high))
	}
}

// logFrom is the ratio of largest to smallest connections from which an axis is logarithmic.
const logFrom = 20

func connectionsAxis(low, high float64) axis {
	if low > 0 && high/low >= logFrom {
		return logAxis(Count, low/1.15, high*1.15, 8)
	}
	pad := (high - low) * 0.04
	a := rangeAxis(math.Max(0, low-pad), high+pad, 6)
	return a
}

// weight is the share of the width a panel asks for.
func (p panel) weight() float64 {
	if p.joined {
		return math.Max(4, float64(len(p.loads))*0.6)
	}
	return math.Max(1.3, float64(len(p.loads)))
}

// widthNeeded is the least width at which the markers of a category do not touch.
func (m Matrix) widthNeeded(panels []panel) float64 {
	need := 0.0
	for _, p := range panels {
		if p.joined {
			need += 260
			continue
		}
		need += math.Max(64, float64(len(m.States))*11) * p.weight()
	}
	return math.Min(need+panelGap*float64(len(panels)-1), 2400)
}

// spread gives each panel its horizontal extent.
func (l *matrixLayout) spread() {
	room := l.width - margin - l.left - panelGap*float64(len(l.panels)-1)
	total := 0.0
	for _, p := range l.panels {
		total += p.weight()
	}
	x := l.left
	for i := range l.panels {
		p := &l.panels[i]
		p.box.left, p.box.right = x, x+room*p.weight()/total
		p.x.from, p.x.to = p.box.left+8, p.box.right-8
		x = p.box.right + panelGap
	}
}

// measuredTicks puts the ticks of a numeric axis at the measured connections when all their labels fit.
func (p *panel) measuredTicks(u *ruler, loads []Load) {
	if !p.joined {
		return
	}
	var ticks []tick
	free := math.Inf(-1)
	for _, i := range p.loads {
		t := tick{value: float64(loads[i].Connections), label: lab.Number(float64(loads[i].Connections), 0)}
		half := u.textWidth(t.label, sizeSmall)/2 + 4
		if p.x.at(t.value)-half < free {
			return
		}
		free = p.x.at(t.value) + half
		ticks = append(ticks, t)
	}
	p.x.ticks = ticks
}

// place is the horizontal pixel of a state's point at the k-th load point of the panel. Points of a category stand
// side by side, those of a numeric axis at their connections.
func (p panel) place(k, state, states int, connections int) float64 {
	if p.joined {
		return p.x.at(float64(connections))
	}
	slot := p.box.width() / float64(len(p.loads))
	spread := math.Min(slot*0.8, float64(states)*26)
	offset := (float64(state)+0.5)/float64(states) - 0.5
	return p.box.left + slot*(float64(k)+0.5) + spread*offset
}
