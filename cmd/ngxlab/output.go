package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ngxlab/lab"
)

// writeJSON prints one value, indented, with the keys of lab's types.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(jsonOut{w})
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// jsonOut writes JSON that does not steer a terminal either: what JSON lets stand as it is becomes an escape, which readers
// take for the same.
type jsonOut struct{ w io.Writer }

// Write takes whole values, as an encoder writes them.
func (j jsonOut) Write(p []byte) (int, error) {
	var b strings.Builder
	for _, r := range string(p) {
		if lab.Steers(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	if _, err := io.WriteString(j.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// page collects text and remembers the first error of its writer, so that printing reads as printing.
type page struct {
	w   io.Writer
	err error
}

// line prints one line.
func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, lab.Printable(fmt.Sprintf(format+"\n", args...)))
	}
}

// heading prints a line with an empty one before it.
func (p *page) heading(format string, args ...any) { p.line("\n"+format, args...) }

// table is rows of cells; the columns named in right are aligned to the right.
type table struct {
	rows  [][]string
	right map[int]bool
}

func newTable(right []int, head ...string) *table {
	t := &table{right: map[int]bool{}}
	for _, c := range right {
		t.right[c] = true
	}
	if len(head) > 0 {
		t.row(head...)
	}
	return t
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// table prints the rows, each column as wide as its widest cell.
func (p *page) table(indent string, t *table) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				b.WriteString(pad + cell + "  ")
			} else {
				b.WriteString(cell + pad + "  ")
			}
		}
		p.line("%s", strings.TrimRight(indent+b.String(), " "))
	}
}

// number prints v with thousands separated and as many decimals as four significant digits need.
func number(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 1000 {
		digits = max(0, 3-int(math.Floor(math.Log10(a))))
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

// seconds prints a small time in the unit that suits it.
func seconds(s float64) string {
	switch a := math.Abs(s); {
	case a == 0:
		return "0 s"
	case a < 1e-3:
		return number(s*1e6) + " µs"
	case a < 1:
		return number(s*1e3) + " ms"
	}
	return number(s) + " s"
}

// span prints how long something takes, for people: "45 s", "6 min", "2 h 5 min".
func span(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// size prints bytes in binary units.
func size(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for math.Abs(bytes) >= 1024 && i < len(units)-1 {
		bytes /= 1024
		i++
	}
	return number(bytes) + " " + units[i]
}

// figure prints a figure in the unit that its name carries.
func figure(m lab.Metric, v float64) string {
	switch name := string(m); {
	case strings.HasSuffix(name, "bytes_per_s"):
		return size(v) + "/s"
	case strings.HasSuffix(name, "_per_s"):
		return number(v) + "/s"
	case strings.HasSuffix(name, "_s"):
		return seconds(v)
	case strings.HasSuffix(name, "_bytes"), strings.HasPrefix(name, "bytes_"):
		return size(v)
	}
	return number(v)
}

// clock prints a time of day in UTC.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// joined is a list in words: "a, b, c".
func joined(all []string) string { return strings.Join(all, ", ") }
