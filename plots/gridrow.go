package plots

import (
	"cmp"
	"slices"
	"strings"

	"ngxlab/lab"
)

// sortBy sorts xs by a key, keeping the order of equals.
func sortBy[K cmp.Ordered](xs []int, key func(int) K) {
	slices.SortStableFunc(xs, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
}

// matrixRow draws one metric over all panels.
func (c *canvas) matrixRow(m Matrix, row Row, l matrixLayout, i int) {
	y := l.axes[i]
	y.from, y.to = l.rowTops[i]+panelHeight, l.rowTops[i]
	c.axisTitle(row.Name, y.name, l.rowTops[i])
	for k, p := range l.panels {
		p.box.top, p.box.bottom = y.to, y.from
		c.panelFrame(p, y, k == 0)
		c.panelTicks(p, m.Loads)
		c.panelData(p, y, m, row)
	}
	c.text("connections", point{(l.left + l.width - margin) / 2, y.from + 34}, textStyle{size: sizeSmall, anchor: middle, colour: faint})
}

// axisTitle writes a vertical axis' name and unit along it.
func (c *canvas) axisTitle(name, unit string, top float64) {
	title := name
	if unit != "" {
		title += ", " + unit
	}
	title = c.fit(title, sizeText, panelHeight+30)
	c.text(title, point{margin + sizeText*0.8, top + panelHeight/2}, textStyle{anchor: middle, upward: true})
}

// panelFrame draws the grid lines, their labels on the first panel, and the group's name above.
func (c *canvas) panelFrame(p panel, y axis, first bool) {
	c.horizontals(p.box, y, first)
	c.line(stroke{colour: frame, width: 1}, point{p.box.left, p.box.top}, point{p.box.left, p.box.bottom})
	name := c.fit(p.name, sizeSmall, p.box.width())
	c.text(name, point{p.box.centreX(), p.box.top - 7}, textStyle{size: sizeSmall, anchor: middle, colour: faint})
}

// horizontals draws the grid lines of a vertical axis over a box, the labels left of it when asked.
func (c *canvas) horizontals(b box, y axis, labels bool) {
	for _, t := range y.ticks {
		at := y.at(t.value)
		s := stroke{colour: grid, width: 1}
		if t.value == 0 {
			s.colour = frame
		}
		c.line(s, point{b.left, at}, point{b.right, at})
		if labels {
			c.text(t.label, point{b.left - 7, at + sizeSmall*0.36}, textStyle{size: sizeSmall, anchor: end})
		}
	}
}

// panelTicks writes the connections below a panel.
func (c *canvas) panelTicks(p panel, loads []Load) {
	baseline := p.box.bottom + sizeSmall + 6
	if p.joined {
		c.numericTicks(p.x, p.box.bottom, baseline)
		return
	}
	for k, i := range p.loads {
		x := p.place(k, 0, 1, 0)
		c.text(lab.Number(float64(loads[i].Connections), 0), point{x, baseline}, textStyle{size: sizeSmall, anchor: middle})
		if k > 0 {
			edge := p.box.left + p.box.width()*float64(k)/float64(len(p.loads))
			c.line(stroke{colour: grid, width: 1}, point{edge, p.box.top}, point{edge, p.box.bottom})
		}
	}
}

// numericTicks draws the ticks of a horizontal axis, leaving out labels that would touch the one before.
func (c *canvas) numericTicks(x axis, edge, baseline float64) {
	free := x.from - 100
	for _, t := range x.ticks {
		at := x.at(t.value)
		half := c.textWidth(t.label, sizeSmall) / 2
		c.line(stroke{colour: frame, width: 1}, point{at, edge}, point{at, edge + 4})
		if at-half < free {
			continue
		}
		c.text(t.label, point{at, baseline}, textStyle{size: sizeSmall, anchor: middle})
		free = at + half + 8
	}
}

// panelData draws the bands first, then lines and markers, so that no band lies over a marker.
func (c *canvas) panelData(p panel, y axis, m Matrix, row Row) {
	if p.joined {
		for s := range m.States {
			c.band(p, y, m, row.Figures[s], lookOf(s))
		}
		for s := range m.States {
			c.course(p, y, m, row.Figures[s], lookOf(s))
		}
	}
	c.bounds(p, y, m, row)
	any := false
	for s := range m.States {
		for k, i := range p.loads {
			x := p.place(k, s, len(m.States), m.Loads[i].Connections)
			c.figure(row.Figures[s][i], x, y, lookOf(s), !p.joined)
			any = any || row.Figures[s][i].Mark != Absent
		}
	}
	if !any {
		c.text("not measured", point{p.box.centreX(), (p.box.top + p.box.bottom) / 2}, textStyle{anchor: middle, colour: faint})
	}
}

// stretches splits a state's load points where a figure is missing: a line over a gap would be an invention.
func stretches(loads []int, figures []Figure) [][]int {
	var all [][]int
	var run []int
	for _, i := range loads {
		if figures[i].drawn() {
			run = append(run, i)
			continue
		}
		if len(run) > 0 {
			all, run = append(all, run), nil
		}
	}
	if len(run) > 0 {
		all = append(all, run)
	}
	return all
}

// band fills the intervals of a state over a numeric axis.
func (c *canvas) band(p panel, y axis, m Matrix, figures []Figure, k look) {
	for _, run := range stretches(p.loads, figures) {
		var upper, lower []point
		for _, i := range run {
			low, high, ok := figures[i].interval()
			if !ok {
				low, high = figures[i].Value, figures[i].Value
			}
			x := p.x.at(float64(m.Loads[i].Connections))
			upper = append(upper, point{x, y.at(high)})
			lower = append(lower, point{x, y.at(low)})
		}
		slices.Reverse(lower)
		c.area(k.colour.WithAlpha(46), append(upper, lower...)...)
	}
}

// course joins the values of a state over a numeric axis.
func (c *canvas) course(p panel, y axis, m Matrix, figures []Figure, k look) {
	for _, run := range stretches(p.loads, figures) {
		var pts []point
		for _, i := range run {
			pts = append(pts, point{p.x.at(float64(m.Loads[i].Connections)), y.at(figures[i].Value)})
		}
		c.line(stroke{colour: k.colour, width: 2, dash: k.dash}, pts...)
	}
}

// figure draws one marker with its mark, and its interval as a whisker where there is no band.
func (c *canvas) figure(f Figure, x float64, y axis, k look, whisker bool) {
	if !f.drawn() {
		return
	}
	at := point{x, y.at(f.Value)}
	if low, high, ok := f.interval(); ok && whisker {
		c.whisker(x, y.at(low), y.at(high), k.colour)
	}
	c.marker(k.marker, at, f.Mark == Clean, k.colour)
	if f.Mark == LowerBound {
		c.arrowUp(at, boundArrow, k.colour)
	}
}

// joinWords joins the non-empty parts with ", ".
func joinWords(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ")
}
