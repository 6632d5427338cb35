package plots

import (
	"fmt"
	"strings"

	chart "github.com/wcharczuk/go-chart/v2"
)

// rulerSize is the size text is measured at in pixels: large, so that rounding does not matter.
const rulerSize = 1000

// ruler measures text, the same for both formats.
type ruler struct {
	advance func(s string) float64 // width at rulerSize
	widths  map[string]float64     // of text at size 1
}

// newRuler measures with the metrics of the font itself. The renderers' MeasureText builds a cache of glyph images
// for every text, which took most of the time of a report.
func newRuler() (*ruler, error) {
	font, err := chart.GetDefaultFont()
	if err != nil {
		return nil, fmt.Errorf("load the font: %w", err)
	}
	const scale = rulerSize * 64 // the font counts in 64ths
	advance := func(s string) float64 {
		width, before := 0, font.Index(0)
		for i, r := range s {
			glyph := font.Index(r)
			if i > 0 {
				width += int(font.Kern(scale, before, glyph))
			}
			width += int(font.HMetric(scale, glyph).AdvanceWidth)
			before = glyph
		}
		return float64(width) / 64
	}
	return &ruler{advance: advance, widths: map[string]float64{}}, nil
}

// textWidth returns the width of s in pixels.
func (u *ruler) textWidth(s string, size float64) float64 {
	w, known := u.widths[s]
	if !known {
		w = u.advance(s) / rulerSize
		u.widths[s] = w
	}
	return w * size
}

// widest returns the width of the widest text.
func (u *ruler) widest(texts []string, size float64) float64 {
	w := 0.0
	for _, s := range texts {
		w = max(w, u.textWidth(s, size))
	}
	return w
}

// fit shortens s with an ellipsis in its middle until it is at most width pixels wide: both the beginning and the
// end of a long state name tell it from its neighbours.
func (u *ruler) fit(s string, size, width float64) string {
	if u.textWidth(s, size) <= width {
		return s
	}
	runes := []rune(s)
	for keep := len(runes) - 1; keep > 0; keep-- {
		head := (keep + 1) / 2
		short := string(runes[:head]) + "…" + string(runes[len(runes)-(keep-head):])
		if u.textWidth(short, size) <= width {
			return short
		}
	}
	return "…"
}

// wrap breaks s at spaces into at most lines lines of at most width pixels; the last one is shortened when needed.
func (u *ruler) wrap(s string, size, width float64, lines int) []string {
	var wrapped []string
	words := strings.Fields(s)
	for len(words) > 0 && len(wrapped) < lines-1 {
		n := u.wordsWithin(words, size, width)
		wrapped = append(wrapped, u.fit(strings.Join(words[:n], " "), size, width))
		words = words[n:]
	}
	if len(words) > 0 {
		wrapped = append(wrapped, u.fit(strings.Join(words, " "), size, width))
	}
	return wrapped
}

// wordsWithin returns how many of words fit in width, at least one.
func (u *ruler) wordsWithin(words []string, size, width float64) int {
	n := 1
	for n < len(words) && u.textWidth(strings.Join(words[:n+1], " "), size) <= width {
		n++
	}
	return n
}
