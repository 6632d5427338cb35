package plots

import (
	"io"
	"math"
)

// Line is one course over time.
type Line struct {
	Name   string
	TimesS []float64 // since the beginning of the window
	Values []float64 // as long as TimesS; NaN leaves a gap
}

// Strip is lines of one unit over the common time axis.
type Strip struct {
	Name  string
	Unit  Unit
	Lines []Line
}

// Series is the course of one run.
type Series struct {
	Title  string
	Strips []Strip
	Note   string
}

const stripHeight = 120.0

// markedUpTo is how many values a line may have for each to get a marker.
const markedUpTo = 80

// DrawSeries draws the strips of a run one below the other, over one time axis, each vertical axis from zero.
func DrawSeries(w io.Writer, f Format, s Series) error {
	from, to := s.span()
	if !(to > from) {
		return errNothing(s.Title)
	}
	rule, err := newRuler()
	if err != nil {
		return err
	}
	l := s.layout(rule, from, to)
	c, err := newCanvas(f, rule, chartWidth, l.height)
	if err != nil {
		return err
	}
	c.text(c.fit(s.Title, sizeTitle, chartWidth-2*margin), point{margin, margin + sizeTitle*0.8}, textStyle{size: sizeTitle})
	for i, strip := range s.Strips {
		c.strip(strip, l.boxes[i], l.axes[i], l.x, l.first[i])
	}
	last := l.boxes[len(l.boxes)-1]
	c.numericTicks(l.x, last.bottom, last.bottom+sizeSmall+7)
	c.text("time since the beginning of the window, s", point{last.centreX(), last.bottom + 36}, textStyle{size: sizeSmall, anchor: middle, colour: faint})
	c.legend(l.legend, point{last.left, last.bottom + 46}, last.width())
	return c.save(w)
}

// span returns the first (at most 0) and last time with a value.
func (s Series) span() (from, to float64) {
	from, to = 0, math.Inf(-1)
	for _, strip := range s.Strips {
		for _, line := range strip.Lines {
			first, last := line.span()
			from, to = math.Min(from, first), math.Max(to, last)
		}
	}
	return from, to
}

// span returns the first and last time with a value, +Inf and −Inf when there is none.
func (l Line) span() (from, to float64) {
	from, to = math.Inf(1), math.Inf(-1)
	for i, t := range l.TimesS {
		if finite(l.Values[i]) {
			from, to = math.Min(from, t), math.Max(to, t)
		}
	}
	return from, to
}

func (s Strip) top() float64 {
	top := 0.0
	for _, line := range s.Lines {
		for _, v := range line.Values {
			if finite(v) {
				top = math.Max(top, v)
			}
		}
	}
	return top
}

// seriesLayout is where everything of a series chart goes.
type seriesLayout struct {
	x      axis
	axes   []axis
	boxes  []box
	first  []int // index of each strip's first line among all lines
	legend legend
	height float64
}

func (s Series) layout(u *ruler, from, to float64) seriesLayout {
	l := seriesLayout{x: rangeAxis(from, to, 8)}
	var labels []string
	for _, strip := range s.Strips {
		a := zeroAxis(strip.Unit, strip.top(), 3)
		l.axes = append(l.axes, a)
		for _, t := range a.ticks {
			labels = append(labels, t.label)
		}
	}
	left := margin + u.widest(labels, sizeSmall) + 10
	y := margin + sizeTitle + 14
	lines := 0
	for _, strip := range s.Strips {
		l.boxes = append(l.boxes, box{left, y + 18, chartWidth - margin - 10, y + 18 + stripHeight})
		y += 18 + stripHeight + 14
		l.first = append(l.first, lines)
		for _, line := range strip.Lines {
			k := lookOf(lines)
			l.legend.entries = append(l.legend.entries, entry{text: line.Name, series: &k, mark: Clean, joined: true})
			lines++
		}
	}
	if s.Note != "" {
		l.legend.notes = append(l.legend.notes, s.Note)
	}
	l.x.from, l.x.to = left, chartWidth-margin-10
	l.height = y + 36 + l.legend.height(u, l.x.to-left) + margin/2
	return l
}

// strip draws one strip.
func (c *canvas) strip(s Strip, b box, y, x axis, first int) {
	y.from, y.to = b.bottom, b.top
	c.text(joinWords(s.Name, y.name), point{b.left, b.top - 6}, textStyle{size: sizeSmall})
	c.horizontals(b, y, true)
	for _, t := range x.ticks {
		c.line(stroke{colour: grid, width: 1}, point{x.at(t.value), b.top}, point{x.at(t.value), b.bottom})
	}
	for i, line := range s.Lines {
		c.timeLine(line, x, y, lookOf(first+i))
	}
}

// timeLine draws the stretches of a line between its gaps, a marker at each value.
func (c *canvas) timeLine(l Line, x, y axis, k look) {
	var pts []point
	flush := func() {
		c.line(stroke{colour: k.colour, width: 1.5, dash: k.dash}, pts...)
		if len(l.Values) <= markedUpTo {
			for _, p := range pts {
				c.marker(k.marker, p, true, k.colour)
			}
		}
		pts = nil
	}
	for i, v := range l.Values {
		if !finite(v) {
			flush()
			continue
		}
		pts = append(pts, point{x.at(l.TimesS[i]), y.at(v)})
	}
	flush()
}
