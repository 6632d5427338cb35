package lab

import (
	"math"
	"strconv"
	"strings"
)

// Unknown is written where a figure is not known: never 0.
const Unknown = "–"

// Number writes v with fixed decimals, commas between thousands and a true minus sign; Unknown when v is not finite.
func Number(v float64, places int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Unknown
	}
	whole, fraction, hasFraction := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', places, 64), ".")
	nought := strings.Trim(whole+fraction, "0") == ""
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasFraction {
		whole += "." + fraction
	}
	if v < 0 && !nought {
		return "−" + whole
	}
	return whole
}

// Significant writes v with n significant digits like Number, without an exponent; nought is "0".
func Significant(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return Number(v, 0)
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-float64(n-1))
	rounded := math.Round(v/unit) * unit
	return Number(rounded, max(0, n-1-int(math.Floor(math.Log10(math.Abs(rounded))+1e-12))))
}

// PercentChange writes a ratio, or an end of its interval, as a change: 1.384 is "+38.4%". The interval from low to
// high, NaN or 0 when there is none, gives the decimals; where it lies about three times or a third, all of it is
// written as multiples: "× 3.11". Unknown when ratio is not above 0.
func PercentChange(ratio, low, high float64) string {
	if !positive(ratio) {
		return Unknown
	}
	middle, places := ratio, 1
	if positive(low) && positive(high) {
		middle, places = math.Sqrt(low*high), percentPlaces(high-low)
	}
	if middle >= 3 || middle <= 1.0/3 {
		return "× " + Significant(ratio, 3)
	}
	text := Number((ratio-1)*100, places)
	switch {
	case strings.Trim(text, "0.") == "":
		return "0%"
	case ratio > 1:
		return "+" + text + "%"
	}
	return text + "%"
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// percentPlaces is how many decimals of a percentage an interval of ratios supports.
func percentPlaces(width float64) int {
	switch half := width * 100 / 2; {
	case half >= 1:
		return 0
	case half >= 0.1:
		return 1
	}
	return 2
}
