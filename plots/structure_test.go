package plots

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// label is a text of an SVG chart with its bounding box, in pixels.
type label struct {
	text string
	box  box
}

var (
	textElement = regexp.MustCompile(`<text x="(-?\d+)" y="(-?\d+)" style="([^"]*)"([^>]*)>(.*?)</text>`)
	fontSize    = regexp.MustCompile(`font-size:([\d.]+)px`)
	anchorWord  = regexp.MustCompile(`text-anchor="(\w+)"`)
	tags        = regexp.MustCompile(`<[^>]*>`)
	viewBox     = regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`)
)

func labels(t *testing.T, svg string) []label {
	t.Helper()
	rule, err := newRuler()
	if err != nil {
		t.Fatal(err)
	}
	var all []label
	for _, m := range textElement.FindAllStringSubmatch(svg, -1) {
		x, y := atoi(t, m[1])/density, atoi(t, m[2])/density
		size := atoi(t, fontSize.FindStringSubmatch(m[3])[1]) / density
		text := html.UnescapeString(tags.ReplaceAllString(m[5], ""))
		w := rule.textWidth(text, size)
		before := 0.0
		if a := anchorWord.FindStringSubmatch(m[5]); a != nil {
			before = map[string]float64{"middle": w / 2, "end": w}[a[1]]
		}
		b := box{x - before, y - size*0.75, x - before + w, y + size*0.2}
		if strings.Contains(m[4], "rotate") {
			b = box{x - size*0.75, y + before - w, x + size*0.2, y + before}
		}
		all = append(all, label{text, b})
	}
	return all
}

func atoi(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (b box) overlaps(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

func TestLabelsNeitherOverlapNorLeaveThePicture(t *testing.T) {
	for _, e := range examples() {
		svg := string(e.bytes(t, SVG))
		size := viewBox.FindStringSubmatch(svg)
		picture := box{0, 0, atoi(t, size[1]) / density, atoi(t, size[2]) / density}
		all := labels(t, svg)
		if len(all) < 5 {
			t.Errorf("%s: only %d labels", e.name, len(all))
		}
		for i, l := range all {
			if l.box.left < 0 || l.box.top < 0 || l.box.right > picture.right || l.box.bottom > picture.bottom {
				t.Errorf("%s: %q is clipped: %+v of %+v", e.name, l.text, l.box, picture)
			}
			for _, o := range all[i+1:] {
				if l.box.overlaps(o.box) {
					t.Errorf("%s: %q overlaps %q", e.name, l.text, o.text)
				}
			}
		}
	}
}

func TestNoChartPrintsWhatIsNotANumber(t *testing.T) {
	for _, e := range examples() {
		svg := string(e.bytes(t, SVG))
		for _, bad := range []string{"NaN", "Inf", "-9223372036854775808", "%!"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%s: contains %s", e.name, bad)
			}
		}
		if strings.Contains(svg, "gzip & <") {
			t.Errorf("%s: a state name is not escaped", e.name)
		}
	}
}

func texts(t *testing.T, e example) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, l := range labels(t, string(e.bytes(t, SVG))) {
		count[l.text]++
	}
	return count
}

func TestAxesHaveRoundTicksWithUnits(t *testing.T) {
	for _, c := range []struct {
		e    example
		want []string
	}{
		{matrixExample("sweep", 6, sweep(10), 52000, false), []string{"goodput, per second", "0", "20,000", "80,000", "connections", "1,000"}},
		{matrixExample("huge", 12, sweep(10), 9.1e6, false), []string{"goodput, million per second", "0", "10", "20"}},
		{matrixExample("tiny", 3, mixedLoads, 0.0074, false), []string{"goodput, per second", "0", "0.002", "0.004"}},
		{latencyExample(), []string{"p50, ms", "p99, ms", "1", "2", "10", "20"}},
		{errorsExample(), []string{"error ratio, %", "0", "1.0"}},
		{cpuExample(), []string{"server, cores", "load generators, cores", "0.5", "20,000"}},
		{memoryExample("20k", 20000), []string{"memory, MiB", "connections held", "5,000", "150"}},
		{distributionExample("log", 4), []string{"percentile, %", "50", "90", "99", "99.9", "99.99", "10 ms", "300 µs", "1 s"}},
		{ladderExample("six", 6, 1), []string{"+20%", "0%", "helps", "undecided", "+38% (+36% … +41%)"}},
		{seriesExample(), []string{"CPU, cores", "time since the beginning of the window, s", "0.5", "60,000"}},
	} {
		got := texts(t, c.e)
		for _, want := range c.want {
			if got[want] == 0 {
				t.Errorf("%s has no label %q; it has %v", c.e.name, want, got)
			}
		}
	}
}

func TestLegendStandsBelowTheData(t *testing.T) {
	all := labels(t, string(matrixExample("sweep", 6, sweep(10), 52000, true).bytes(t, SVG)))
	bottom := 0.0
	for _, l := range all {
		if l.text == "connections" {
			bottom = l.box.bottom
		}
	}
	for _, l := range all {
		if (l.text == "default" || l.text == "control") && l.box.top < bottom {
			t.Errorf("%q of the legend stands at %v, above %v", l.text, l.box.top, bottom)
		}
	}
}

// oneFigure draws two states at one load point, the second with the given mark.
func oneFigure(t *testing.T, mark Mark) string {
	t.Helper()
	m := Matrix{Title: "t", States: []string{"a", "b"}, Loads: mixedLoads[:1], Rows: []Row{{Name: "goodput", Unit: PerSecond, Figures: [][]Figure{
		{{Value: 10, Low: 9, High: 11, Mark: Clean}}, {{Value: 10, Low: 9, High: 11, Mark: mark}}}}}}
	var b bytes.Buffer
	if err := DrawMatrix(&b, SVG, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInvalidFigureIsNamedButNotDrawn(t *testing.T) {
	of := func(svg string) int {
		return strings.Count(svg, fmt.Sprintf("rgba(%d,%d,%d", vermilion.R, vermilion.G, vermilion.B))
	}
	absent, invalid, clean := oneFigure(t, Absent), oneFigure(t, Invalid), oneFigure(t, Clean)
	if of(invalid) != of(absent) || of(invalid) >= of(clean) {
		t.Errorf("marks of the second state: %d invalid, %d absent, %d clean", of(invalid), of(absent), of(clean))
	}
	if !strings.Contains(invalid, "Not drawn, every run invalid: goodput of b at wrk 10 keep-alive") {
		t.Error("the invalid figure is not named")
	}
	if bound := oneFigure(t, LowerBound); of(bound) <= of(oneFigure(t, Warned)) || !strings.Contains(bound, "lower bound") {
		t.Error("a lower bound has no arrow or no explanation")
	}
	if !strings.Contains(oneFigure(t, Warned), "hollow: a run was warned") {
		t.Error("a hollow marker is not explained")
	}
}

func TestEffectOfWarnedRunsSaysSo(t *testing.T) {
	e := Effect{Figure: Figure{Value: 1.1, Low: 1.05, High: 1.15, Mark: Warned}}
	if got := e.numbers(); !strings.HasSuffix(got, "), warned") {
		t.Errorf("%q", got)
	}
	e.Mark = Clean
	if got := e.numbers(); strings.Contains(got, "warned") {
		t.Errorf("%q", got)
	}
}

func TestPanelWithoutAnyFigureSaysSo(t *testing.T) {
	m := Matrix{Title: "t", States: []string{"a"}, Loads: mixedLoads, Rows: []Row{{Name: "p99", Unit: Seconds, Figures: [][]Figure{
		{{Value: 1, Low: 1, High: 1, Mark: Clean}, {Value: 1, Low: 1, High: 1, Mark: Clean}, {}}}}}}
	var b bytes.Buffer
	if err := DrawMatrix(&b, SVG, m); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "not measured"); n != 1 {
		t.Errorf("“not measured” stands %d times", n)
	}
}

func TestLineIsBrokenWhereAFigureIsMissing(t *testing.T) {
	ok, gap := Figure{Value: 1, Mark: Clean}, Figure{Mark: Invalid}
	got := stretches([]int{0, 1, 2, 3, 4}, []Figure{ok, ok, gap, ok, {Value: math.NaN(), Mark: Clean}})
	if fmt.Sprint(got) != "[[0 1] [3]]" {
		t.Errorf("stretches: %v", got)
	}
}

func TestDifferentToolsAreNeverJoined(t *testing.T) {
	panels := Matrix{Loads: factorLoads()}.panels()
	if len(panels) != 2 || !panels[0].joined || panels[1].joined {
		t.Errorf("panels: %+v", panels)
	}
	if panels := (Matrix{Loads: mixedLoads}).panels(); panels[0].joined {
		t.Error("two levels are joined by a line")
	}
}

func TestNothingToDrawIsAnError(t *testing.T) {
	draws := map[string]func(io.Writer) error{
		"matrix":       func(w io.Writer) error { return DrawMatrix(w, SVG, Matrix{Title: "m"}) },
		"ladder":       func(w io.Writer) error { return DrawLadder(w, SVG, Ladder{}) },
		"memory":       func(w io.Writer) error { return DrawMemory(w, PNG, Memory{}) },
		"distribution": func(w io.Writer) error { return DrawDistribution(w, SVG, Distribution{}) },
		"series":       func(w io.Writer) error { return DrawSeries(w, SVG, Series{}) },
	}
	for name, draw := range draws {
		var b bytes.Buffer
		if err := draw(&b); err == nil || b.Len() > 0 {
			t.Errorf("%s: err %v, %d bytes", name, err, b.Len())
		}
	}
}

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		n         int
		want      string
	}{
		{0, 52000, 5, "[0 20000 40000 60000]"},
		{0, 100, 5, "[0 20 40 60 80 100]"},
		{0, 0.97, 3, "[0 0.5 1]"},
		{-9, 41, 4, "[-20 0 20 40 60]"},
		{0, 7, 5, "[0 2 4 6 8]"},
	} {
		if got := fmt.Sprint(roundTicks(c.low, c.high, c.n)); got != c.want {
			t.Errorf("roundTicks(%v, %v, %d) = %s, want %s", c.low, c.high, c.n, got, c.want)
		}
	}
}

func TestLabels(t *testing.T) {
	for got, want := range map[string]string{
		ninesLabel(3):          "99.9",
		listNote("x", nil):     "",
		joinWords("a", "", ""): "a",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNoTwoStatesLookTheSame(t *testing.T) {
	seen := map[string]int{}
	for i := range 84 {
		k := lookOf(i)
		key := fmt.Sprint(k.colour, k.marker, k.dash)
		if j, dup := seen[key]; dup {
			t.Fatalf("states %d and %d look the same", j, i)
		}
		seen[key] = i
	}
}

func TestLongNamesKeepBothEnds(t *testing.T) {
	rule, err := newRuler()
	if err != nil {
		t.Fatal(err)
	}
	got := rule.fit("kernel: somaxconn and the whole port range", 12, 120)
	if rule.textWidth(got, 12) > 120 || !strings.HasPrefix(got, "kernel") || !strings.HasSuffix(got, "range") {
		t.Errorf("fit: %q", got)
	}
	for _, line := range rule.wrap("one two three four five six seven", 12, 60, 3) {
		if rule.textWidth(line, 12) > 60 {
			t.Errorf("wrap: %q is too wide", line)
		}
	}
}

func TestBoundsAreDrawnUnlessTheyWouldPressTheFiguresToTheGround(t *testing.T) {
	near, far := boundsExample("near", true, sweep(5)), func(w io.Writer, f Format) error {
		m := Matrix{Title: "Goodput", States: []string{"a"}, Loads: sweep(1), Rows: []Row{{Name: "goodput", Figures: [][]Figure{{{Value: 10, Mark: Clean}}}, Bounds: [][]float64{{1000}}}}}
		return DrawMatrix(w, f, m)
	}
	if svg := string(near.bytes(t, SVG)); !strings.Contains(svg, "dotted: the bound") {
		t.Error("a bound close to the figures is not explained")
	}
	if svg := string(example{"far", far}.bytes(t, SVG)); strings.Contains(svg, "dotted") || strings.Contains(svg, ">1,000<") {
		t.Error("a bound a hundred times above the figure is drawn")
	}
}
