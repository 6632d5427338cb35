package plots

import "math"

// plot is the common layout of a chart with one pair of axes: title, axes with names and units, legend below.
type plot struct {
	rule         *ruler
	title        string
	x, y         axis
	xName, yName string
	legend       legend
	box          box
}

const plotHeight = 340.0

// newPlot places the data area; the axes get their pixels.
func newPlot(u *ruler, title string, y, x axis) plot {
	labels := make([]string, len(y.ticks))
	for i, t := range y.ticks {
		labels[i] = t.label
	}
	left := margin + 22 + u.widest(labels, sizeSmall) + 8
	top := margin + sizeTitle + 18
	p := plot{rule: u, title: title, x: x, y: y, box: box{left, top, chartWidth - margin - 20, top + plotHeight}}
	p.x.from, p.x.to = p.box.left, p.box.right
	p.y.from, p.y.to = p.box.bottom, p.box.top
	return p
}

// begin returns the canvas with everything drawn but the data.
func (p plot) begin(f Format) (*canvas, error) {
	legendTop := p.box.bottom + 50
	width := p.box.width()
	c, err := newCanvas(f, p.rule, chartWidth, legendTop+p.legend.height(p.rule, width)+margin/2)
	if err != nil {
		return nil, err
	}
	c.text(c.fit(p.title, sizeTitle, chartWidth-2*margin), point{margin, margin + sizeTitle*0.8}, textStyle{size: sizeTitle})
	c.axisTitle(p.yName, p.y.name, p.box.top+(plotHeight-panelHeight)/2)
	c.horizontals(p.box, p.y, true)
	for _, t := range p.x.ticks {
		at := p.x.at(t.value)
		c.line(stroke{colour: grid, width: 1}, point{at, p.box.top}, point{at, p.box.bottom})
	}
	c.line(stroke{colour: frame, width: 1}, point{p.box.left, p.box.top}, point{p.box.left, p.box.bottom}, point{p.box.right, p.box.bottom})
	c.numericTicks(p.x, p.box.bottom, p.box.bottom+sizeSmall+7)
	c.text(joinWords(p.xName, p.x.name), point{p.box.centreX(), p.box.bottom + 36}, textStyle{size: sizeSmall, anchor: middle, colour: faint})
	c.legend(p.legend, point{p.box.left, legendTop}, width)
	return c, nil
}

// finite reports whether v may be drawn.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
