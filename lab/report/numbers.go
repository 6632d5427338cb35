package report

import (
	"math"
	"strings"

	"ngxlab/lab"
)

// count prints a whole number.
func count(n int64) string { return lab.Number(float64(n), 0) }

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
	return lab.Significant(v/size, q.digits) + name
}

// rate prints events per second.
func rate(v float64) string { return ratePerS.print(v) }

// perCent prints a ratio; nought has no unit.
func perCent(v float64) string {
	if v == 0 {
		return "0"
	}
	return trimZeros(lab.Significant(v*100, 3)) + "%"
}

// bytesIn prints a size in binary units.
func bytesIn(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if math.Abs(v) >= unit.size {
			return trimZeros(lab.Significant(v/unit.size, 3)) + " " + unit.name
		}
	}
	return lab.Significant(v, 3) + " bytes"
}

// trimZeros drops a fraction of zeros: 8.00 is 8.
func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
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
