package report

import (
	"math"
	"strconv"
	"strings"
)

// unknown stands for a figure that was not measured.
const unknown = "–"

// significant prints v with n significant digits, thousands separated, without an exponent.
func significant(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return unknown
	}
	if v == 0 {
		return "0"
	}
	magnitude := int(math.Floor(math.Log10(math.Abs(v))))
	unit := math.Pow(10, float64(magnitude-n+1))
	rounded := math.Round(v/unit) * unit
	places := max(0, n-1-int(math.Floor(math.Log10(math.Abs(rounded))+1e-12)))
	return grouped(rounded, places)
}

// grouped prints v with fixed decimals and commas between thousands.
func grouped(v float64, places int) string {
	whole, fraction, hasFraction := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', places, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasFraction {
		whole += "." + fraction
	}
	if v < 0 {
		return "−" + whole
	}
	return whole
}

// count prints a whole number.
func count(n int64) string { return grouped(float64(n), 0) }

// quantity is how a kind of figure is printed: a value and its interval share one unit.
type quantity struct {
	digits int
	unit   func(v float64) (size float64, name string) // the name with the space before it
}

var (
	ratePerS = quantity{4, func(float64) (float64, string) { return 1, "" }}
	duration = quantity{3, timeUnit}
	ratio    = quantity{3, func(float64) (float64, string) { return 0.01, "%" }}
)

// timeUnit is the unit that suits a time of v seconds.
func timeUnit(v float64) (size float64, name string) {
	switch v = math.Abs(v); {
	case v >= 0.9995 || v == 0:
		return 1, " s"
	case v >= 0.9995e-3:
		return 1e-3, " ms"
	case v >= 0.9995e-6:
		return 1e-6, " µs"
	}
	return 1e-9, " ns"
}

// print prints a value with its unit.
func (q quantity) print(v float64) string {
	size, name := q.unit(v)
	return significant(v/size, q.digits) + name
}

// rate prints events per second.
func rate(v float64) string { return ratePerS.print(v) }

// perCent prints a ratio; nought has no unit.
func perCent(v float64) string {
	if v == 0 {
		return "0"
	}
	return trimZeros(significant(v*100, 3)) + "%"
}

// bytesIn prints a size in binary units.
func bytesIn(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if math.Abs(v) >= unit.size {
			return trimZeros(significant(v/unit.size, 3)) + " " + unit.name
		}
	}
	return significant(v, 3) + " bytes"
}

// trimZeros drops a fraction of zeros: 8.00 is 8.
func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// change prints a ratio as a change with the given decimals: 1.384 is "+38.4%"; from three times on it is "× 3.11".
func change(ratio float64, places int) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) || ratio <= 0 {
		return unknown
	}
	if ratio >= 3 || ratio <= 1.0/3 {
		return "× " + significant(ratio, 3)
	}
	percent := (ratio - 1) * 100
	text := grouped(math.Abs(percent), places)
	switch {
	case strings.Trim(text, "0.") == "":
		return "0%"
	case percent < 0:
		return "−" + text + "%"
	}
	return "+" + text + "%"
}

// changePlaces is how many decimals of a percentage an interval supports.
func changePlaces(low, high float64) int {
	switch half := (high - low) * 100 / 2; {
	case half >= 1:
		return 0
	case half >= 0.1 || math.IsNaN(half):
		return 1
	}
	return 2
}

// plural is "1 run" or "3 runs".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	ending := "s"
	if strings.HasSuffix(word, "s") {
		ending = "es"
	}
	return count(int64(n)) + " " + word + ending
}
