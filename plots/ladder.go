package plots

import (
	"fmt"
	"io"
	"math"

	"github.com/wcharczuk/go-chart/v2/drawing"

	"ngxlab/lab"
)

// Tone is what an effect means, for its colour and marker.
type Tone int

// The tones.
const (
	Open   Tone = iota // undecided
	Better             // measurably better
	Worse              // measurably worse
	Same               // no difference that matters
	None               // not measurable
)

// Effect is the ratio of one state to the one it is compared with, in one metric.
type Effect struct {
	Figure        // the ratio with its interval; Absent when not measurable
	Word   string // the verdict word
	Tone   Tone
}

// Rung is one state of a ladder.
type Rung struct {
	State   string
	Over    string // what it is compared with
	Effects []Effect
}

// Ladder is the effect of every step, one column per metric.
type Ladder struct {
	Title  string
	Names  []string // of the metrics, with the better direction: "goodput (more is better)"
	Delta  float64  // smallest effect that matters, as a ratio: the grey band is 1 ± Delta
	Rungs  []Rung
	Footer string
}

// Measures of a ladder in pixels.
const (
	rungHeight  = 48.0
	rungLabel   = 220.0
	verdictText = 212.0
	ladderWidth = 1140.0
)

// DrawLadder draws one row per state: the ratio to what it is compared with as a point with its interval, one column
// per metric, and the verdict in words beside each.
func DrawLadder(w io.Writer, f Format, l Ladder) error {
	if len(l.Rungs) == 0 || len(l.Names) == 0 {
		return errNothing(l.Title)
	}
	rule, err := newRuler()
	if err != nil {
		return err
	}
	top := margin + sizeTitle + 36
	bottom := top + rungHeight*float64(len(l.Rungs))
	c, err := newCanvas(f, rule, ladderWidth, bottom+62)
	if err != nil {
		return err
	}
	c.text(c.fit(l.Title, sizeTitle, ladderWidth-2*margin), point{margin, margin + sizeTitle*0.8}, textStyle{size: sizeTitle})
	c.rungLabels(l, top)
	each := (ladderWidth - 2*margin - rungLabel) / float64(len(l.Names))
	for i := range l.Names {
		left := margin + rungLabel + each*float64(i)
		c.effects(l, i, box{left + 10, top, left + each - verdictText, bottom})
	}
	c.text(c.fit(l.footer(), sizeSmall, ladderWidth-2*margin), point{margin, bottom + 50}, textStyle{size: sizeSmall, colour: faint})
	return c.save(w)
}

func (l Ladder) footer() string {
	text := fmt.Sprintf("Point: mean ratio over rounds. Bar: 95%% interval. Grey band: ±%s, the smallest effect that matters.", percent(l.Delta))
	if l.Footer != "" {
		text += " " + l.Footer
	}
	return text
}

func percent(ratio float64) string { return fmt.Sprintf("%.4g%%", ratio*100) }

// rungLabels writes state and comparison at the left of each row, over lines between the rows.
func (c *canvas) rungLabels(l Ladder, top float64) {
	for i, r := range l.Rungs {
		y := top + rungHeight*float64(i)
		if i > 0 {
			c.line(stroke{colour: grid, width: 1}, point{margin, y}, point{ladderWidth - margin, y})
		}
		c.text(c.fit(r.State, sizeText, rungLabel-12), point{margin, y + rungHeight*0.45}, textStyle{})
		c.text(c.fit("over "+r.Over, sizeSmall, rungLabel-12), point{margin, y + rungHeight*0.78}, textStyle{size: sizeSmall, colour: faint})
	}
}

// effects draws one column.
func (c *canvas) effects(l Ladder, column int, b box) {
	x := l.axis(column)
	x.from, x.to = b.left+8, b.right-22 // room for an arrow
	c.text(c.fit(l.Names[column], sizeText, b.width()+verdictText-20), point{b.left, b.top - 12}, textStyle{})
	c.rect(box{x.at(1 - l.Delta), b.top, x.at(1 + l.Delta), b.bottom}, drawing.Color{R: 235, G: 235, B: 235, A: 255})
	for _, t := range x.ticks {
		s := stroke{colour: grid, width: 1}
		if t.value == 1 {
			s = stroke{colour: frame, width: 1.5}
		}
		c.line(s, point{x.at(t.value), b.top}, point{x.at(t.value), b.bottom})
	}
	c.numericTicks(x, b.bottom, b.bottom+sizeSmall+7)
	for i, r := range l.Rungs {
		if column < len(r.Effects) {
			c.effect(r.Effects[column], x, b.top+rungHeight*(float64(i)+0.5), b.right+4)
		}
	}
}

// effect draws one ratio and its verdict.
func (c *canvas) effect(e Effect, x axis, y, textLeft float64) {
	colour, mark, solid := e.Tone.look()
	if e.drawn() {
		if low, high, ok := e.interval(); ok {
			c.horizontalInterval(x, y, low, high, colour)
		}
		c.marker(mark, point{x.at(e.Value), y}, solid && e.Mark != LowerBound, colour)
		if e.Mark == LowerBound {
			c.arrowRight(point{x.at(e.Value), y}, colour)
		}
	}
	c.text(c.fit(e.Word, sizeText, verdictText-8), point{textLeft, y - 3}, textStyle{colour: colour})
	c.text(c.fit(e.numbers(), sizeSmall, verdictText-8), point{textLeft, y + sizeSmall + 2}, textStyle{size: sizeSmall, colour: faint})
}

func (c *canvas) horizontalInterval(x axis, y, low, high float64, colour drawing.Color) {
	from, to := x.at(low), x.at(high)
	s := stroke{colour: colour, width: 2}
	c.line(s, point{from, y}, point{to, y})
	c.line(s, point{from, y - 5}, point{from, y + 5})
	c.line(s, point{to, y - 5}, point{to, y + 5})
}

// numbers prints the ratio as a change with its interval.
func (e Effect) numbers() string {
	if !e.drawn() {
		return ""
	}
	low, high, ok := e.interval()
	value, least := lab.PercentChange(e.Value, low, high), lab.PercentChange(low, low, high)
	warned := ""
	if e.Mark == Warned {
		warned = ", warned"
	}
	switch {
	case e.Mark == LowerBound && ok:
		return least // the word says "at least"
	case e.Mark == LowerBound:
		return value
	case !ok:
		return value + ", no interval" + warned
	}
	return fmt.Sprintf("%s (%s … %s)%s", value, least, lab.PercentChange(high, low, high), warned)
}

// look returns colour, marker and fill of a tone; the markers differ for black and white.
func (t Tone) look() (drawing.Color, marker, bool) {
	switch t {
	case Better:
		return drawing.Color{R: 0, G: 128, B: 93, A: 255}, disc, true
	case Worse:
		return vermilion, diamond, true
	case Same:
		return faint, square, true
	default:
		return faint, disc, false
	}
}

// axis spans the ratios of a column, their intervals, and 1 ± Delta: linear in per cent, logarithmic when the ratios
// reach three times or a third.
func (l Ladder) axis(column int) axis {
	low, high := 1-1.5*l.Delta, 1+1.5*l.Delta
	for _, r := range l.Rungs {
		if column < len(r.Effects) && r.Effects[column].drawn() {
			low = math.Min(low, r.Effects[column].bottom())
			high = math.Max(high, r.Effects[column].top())
		}
	}
	low, high = math.Max(low, 0.05), math.Min(high, 50) // an interval of two rounds may reach to infinity
	if high >= 3 || low <= 1.0/3 {
		return timesAxis(low/1.05, high*1.05)
	}
	pad := (high - low) * 0.04
	return changeAxis(low-pad, high+pad)
}

// changeAxis is linear over ratios, with ticks in per cent of change.
func changeAxis(low, high float64) axis {
	a := rangeAxis((low-1)*100, (high-1)*100, 4)
	a.low, a.high = low, high
	for i, t := range a.ticks {
		switch {
		case t.value > 0:
			a.ticks[i].label = "+" + t.label + "%"
		default:
			a.ticks[i].label = t.label + "%"
		}
		a.ticks[i].value = 1 + t.value/100
	}
	return a
}

// timesAxis is logarithmic over ratios, with ticks as multiples.
func timesAxis(low, high float64) axis {
	a := logAxis(Count, low, high, 6)
	for i := range a.ticks {
		a.ticks[i].label = "×" + a.ticks[i].label
	}
	return a
}
