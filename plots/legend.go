package plots

import (
	"fmt"
	"math"
	"strings"
)

// Measures of a legend in pixels.
const (
	legendRow    = 20.0
	legendSample = 34.0 // line and marker before the text
	legendGap    = 22.0 // between columns
)

// legend explains the series, then the marks that occur, then what is not drawn. It stands below the data.
type legend struct {
	entries []entry
	notes   []string
}

// entry is one line of a legend: a series, or a mark in grey when its series is nil.
type entry struct {
	text   string
	series *look
	mark   Mark
	joined bool // the series is drawn with a line
	dotted bool // the line of a bound, which belongs to no series
}

// seriesLegend names the series in order, then every mark that occurs among the figures.
func seriesLegend(names []string, joined bool, figures []Figure) legend {
	var l legend
	for i, name := range names {
		look := lookOf(i)
		l.entries = append(l.entries, entry{text: name, series: &look, mark: Clean, joined: joined})
	}
	seen := map[Mark]bool{}
	for _, f := range figures {
		seen[f.Mark] = true
	}
	if seen[Warned] {
		l.entries = append(l.entries, entry{text: "hollow: a run was warned", mark: Warned})
	}
	if seen[LowerBound] {
		l.entries = append(l.entries, entry{text: "arrow: lower bound, the load generator was the limit", mark: LowerBound})
	}
	return l
}

// places returns where each entry goes, relative to the legend, and how many rows there are. Entries stand in columns
// as wide as the widest entry of at most half the width; a wider one takes several columns.
func (l legend) places(u *ruler, width float64) (at []point, rows int) {
	column := 0.0
	for _, e := range l.entries {
		if w := e.width(u); w <= width/2 {
			column = math.Max(column, w)
		}
	}
	if column == 0 {
		column = width
	}
	columns, used := max(1, int(width/column)), 0
	for _, e := range l.entries {
		span := min(columns, int(math.Ceil(e.width(u)/column)))
		if used > 0 && used+span > columns {
			rows, used = rows+1, 0
		}
		at = append(at, point{float64(used) * column, float64(rows) * legendRow})
		used += span
	}
	return at, rows + 1
}

func (e entry) width(u *ruler) float64 {
	return legendSample + u.textWidth(e.text, sizeText) + legendGap
}

func (l legend) height(u *ruler, width float64) float64 {
	if len(l.entries) == 0 && len(l.notes) == 0 {
		return 0
	}
	_, rows := l.places(u, width)
	lines := len(l.noteLines(u, width))
	return float64(rows)*legendRow + float64(lines)*(sizeSmall+5) + 8
}

func (l legend) noteLines(u *ruler, width float64) []string {
	var lines []string
	for _, note := range l.notes {
		lines = append(lines, u.wrap(note, sizeSmall, width, 3)...)
	}
	return lines
}

// legend draws l with its upper left corner at the given point.
func (c *canvas) legend(l legend, at point, width float64) {
	places, rows := l.places(c.ruler, width)
	for i, e := range l.entries {
		x, y := at.x+places[i].x, at.y+places[i].y+legendRow/2
		c.sample(e, point{x, y})
		c.text(c.fit(e.text, sizeText, width-places[i].x-legendSample), point{x + legendSample, y + sizeText*0.36}, textStyle{})
	}
	y := at.y + float64(rows)*legendRow + sizeSmall + 5
	for _, line := range l.noteLines(c.ruler, width) {
		c.text(line, point{at.x, y}, textStyle{size: sizeSmall, colour: faint})
		y += sizeSmall + 5
	}
}

// sample draws the marker of an entry, and its line.
func (c *canvas) sample(e entry, at point) {
	centre := point{at.x + 13, at.y}
	if e.dotted {
		c.line(stroke{colour: faint, width: 2, dash: boundDash}, at, point{at.x + 26, at.y})
		return
	}
	if e.series == nil {
		if e.mark == LowerBound {
			centre.y += 5
			c.arrowUp(centre, 13, faint)
		}
		c.marker(disc, centre, false, faint)
		return
	}
	if e.joined {
		c.line(stroke{colour: e.series.colour, width: 2, dash: e.series.dash}, at, point{at.x + 26, at.y})
	}
	c.marker(e.series.marker, centre, e.mark == Clean, e.series.colour)
}

// listNote says in one line what is left out of a chart: at most four names, then how many more.
func listNote(what string, names []string) string {
	const shown = 4
	if len(names) == 0 {
		return ""
	}
	if len(names) > shown {
		return fmt.Sprintf("%s: %s and %d more", what, strings.Join(names[:shown], "; "), len(names)-shown)
	}
	return what + ": " + strings.Join(names, "; ")
}
