package report

import (
	"fmt"
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

// rate prints events per second.
func rate(v float64) string { return significant(v, 4) }

// seconds prints a time in the unit that suits it.
func seconds(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if math.Abs(v) >= unit.size*0.9995 {
			return significant(v/unit.size, 3) + " " + unit.name
		}
	}
	if v == 0 {
		return "0 s"
	}
	return significant(v*1e9, 3) + " ns"
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

// perCent prints a ratio.
func perCent(v float64) string {
	if v == 0 {
		return "0"
	}
	return trimZeros(significant(v*100, 3)) + "%"
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

// cores prints CPU seconds per second.
func cores(v float64) string { return significant(v, 3) }

// plural is "1 run" or "3 runs".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%s %ss", count(int64(n)), word)
}
