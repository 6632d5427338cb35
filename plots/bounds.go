package plots

import (
	"math"
	"slices"
)

// boundWithin is how far above the highest figure a bound is still drawn, as a ratio: one far above would press the
// figures to the ground, and says little about them.
const boundWithin = 2

// boundDash is the dash of a bound, finer than any of a series.
var boundDash = []float64{1.5, 4}

// highest is the highest value that the figures of the row reach.
func (r Row) highest() float64 {
	top := 0.0
	for _, figures := range r.Figures {
		for _, f := range figures {
			if !f.drawn() {
				continue
			}
			top = math.Max(top, f.top())
			if f.Mark == LowerBound {
				top = math.Max(top, f.Value*1.09) // room for the arrow
			}
		}
	}
	return top
}

// shownBounds are the bounds that are drawn, by state: 0 where there is none, nil when there is none at all.
func (r Row) shownBounds() (bounds [][]float64) {
	limit := boundWithin * r.highest()
	any := false
	for _, state := range r.Bounds {
		row := make([]float64, len(state))
		for i, b := range state {
			if b > 0 && b <= limit {
				row[i], any = b, true
			}
		}
		bounds = append(bounds, row)
	}
	if !any {
		return nil
	}
	return bounds
}

// bounds draws what the figures of a panel cannot exceed: a dotted line in the state's colour, grey and once when several
// states share it.
func (c *canvas) bounds(p panel, y axis, m Matrix, row Row) {
	all := row.shownBounds()
	for s, bounds := range all {
		same := func(other []float64) bool { return slices.Equal(other, bounds) }
		dotted := stroke{colour: lookOf(s).colour, width: 2, dash: boundDash}
		if slices.ContainsFunc(all[:s], same) {
			continue
		}
		shared := slices.ContainsFunc(all[s+1:], same)
		if shared {
			dotted.colour = faint
		}
		if p.joined {
			c.line(dotted, p.boundLine(y, m.Loads, bounds)...)
			continue
		}
		for k, i := range p.loads {
			if bounds[i] == 0 {
				continue
			}
			from, to := p.boundSpan(k, s, len(m.States), shared)
			c.line(dotted, point{from, y.at(bounds[i])}, point{to, y.at(bounds[i])})
		}
	}
}

// boundLine are the bounds over the connections of a panel's numeric axis.
func (p panel) boundLine(y axis, loads []Load, bounds []float64) []point {
	var pts []point
	for _, i := range p.loads {
		if bounds[i] > 0 {
			pts = append(pts, point{p.x.at(float64(loads[i].Connections)), y.at(bounds[i])})
		}
	}
	return pts
}

// boundSpan is the horizontal extent of a bound at the k-th category: all of it when several states share the bound.
func (p panel) boundSpan(k, state, states int, shared bool) (from, to float64) {
	slot := p.box.width() / float64(len(p.loads))
	if shared {
		return p.box.left + slot*(float64(k)+0.1), p.box.left + slot*(float64(k)+0.9)
	}
	at, half := p.place(k, state, states, 0), math.Min(slot*0.4/float64(states), 12)
	return at - half, at + half
}

// boundEntry explains the dotted lines.
var boundEntry = entry{text: "dotted: the bound", dotted: true}
