package plots

import (
	"math"

	"ngxlab/lab"
)

// Unit is what an axis counts; it decides the scale and the words of its ticks.
type Unit int

// The units. Values given to a chart are in the SI unit named here.
const (
	PerSecond Unit = iota // responses per second
	Seconds
	Share // a ratio, printed in per cent
	Cores // CPU seconds per second
	Bytes
	Count // anything counted
)

// scale is a unit that values may be printed in.
type scale struct {
	divisor float64
	from    float64 // smallest top of an axis that it is used for
	name    string
}

var (
	timeScales = []scale{{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {1e-6, 1e-6, "µs"}, {1e-9, 0, "ns"}}
	byteScales = []scale{{1 << 40, 1 << 40, "TiB"}, {1 << 30, 1 << 30, "GiB"}, {1 << 20, 1 << 20, "MiB"}, {1 << 10, 1 << 10, "KiB"}, {1, 0, "bytes"}}
	rateScales = []scale{{1e9, 1e10, "billion per second"}, {1e6, 1e7, "million per second"}, {1, 0, "per second"}}
	ranks      = []scale{{1e9, 1e10, "billion"}, {1e6, 1e7, "million"}, {1, 0, ""}}
)

// scaled returns the divisor and name of the scale in which values up to top are printed.
func (u Unit) scaled(top float64) (divisor float64, name string) {
	scales := map[Unit][]scale{
		PerSecond: rateScales, Seconds: timeScales, Bytes: byteScales, Count: ranks,
		Share: {{0.01, 0, "%"}}, Cores: {{1, 0, "cores"}},
	}[u]
	for _, s := range scales {
		if top >= s.from {
			return s.divisor, s.name
		}
	}
	last := scales[len(scales)-1]
	return last.divisor, last.name
}

// tick is a labelled place on an axis; the value is in the axis's own scale.
type tick struct {
	value float64
	label string
}

// axis maps values to pixels.
type axis struct {
	low, high float64 // in SI units
	from, to  float64 // pixels of low and high
	log       bool
	ticks     []tick // values in SI units
	name      string // of the unit, e.g. "ms"
}

// at returns the pixel of a value; values outside are held at the ends.
func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	v = math.Min(math.Max(v, low), high)
	if a.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if high == low {
		return (a.from + a.to) / 2
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// zeroAxis returns an axis from 0 to a round value not below top, with about n ticks.
func zeroAxis(u Unit, top float64, n int) axis {
	if !(top > 0) {
		top = map[Unit]float64{Share: 0.01, Seconds: 1e-3, Bytes: 1 << 20}[u]
		if top == 0 {
			top = 1
		}
	}
	divisor, name := u.scaled(top)
	values := roundTicks(0, top/divisor, n)
	a := axis{high: values[len(values)-1] * divisor, name: name}
	a.ticks = labelled(values, divisor)
	return a
}

// rangeAxis returns an axis over [low, high], with about n round ticks inside, the ends not rounded.
func rangeAxis(low, high float64, n int) axis {
	if high <= low {
		low, high = low-1, high+1
	}
	a := axis{low: low, high: high}
	for _, t := range labelled(roundTicks(low, high, n), 1) {
		if t.value >= low-1e-9*(high-low) && t.value <= high+1e-9*(high-low) {
			a.ticks = append(a.ticks, t)
		}
	}
	return a
}

// logAxis returns a logarithmic axis over [low, high], low > 0, with ticks at 1, 2 and 5 × 10^k, thinned to n.
func logAxis(u Unit, low, high float64, n int) axis {
	divisor, name := u.scaled(high)
	a := axis{low: low, high: high, log: true, name: name}
	if u == Seconds {
		a.name = "" // every label has its own
	}
	for _, mantissas := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		a.ticks = u.logTicks(low/divisor, high/divisor, divisor, mantissas)
		if len(a.ticks) <= n {
			return a
		}
	}
	return a
}

// logLabel names a tick of a logarithmic axis: a time in its own unit, because the axis spans several.
func (u Unit) logLabel(v, divisor float64) string {
	if u != Seconds {
		return lab.Number(v, decimals(v))
	}
	own, name := u.scaled(v * divisor * (1 + 1e-9))
	v *= divisor / own
	return lab.Number(v, decimals(v)) + " " + name
}

func (u Unit) logTicks(low, high, divisor float64, mantissas []float64) []tick {
	var ticks []tick
	for k := math.Floor(math.Log10(low)); k <= math.Ceil(math.Log10(high)); k++ {
		for _, m := range mantissas {
			v := m * math.Pow(10, k)
			if v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				ticks = append(ticks, tick{value: v * divisor, label: u.logLabel(v, divisor)})
			}
		}
	}
	return ticks
}

// roundTicks returns about n ascending values at a distance of 1, 2 or 5 × 10^k, from at most low to at least high.
func roundTicks(low, high float64, n int) []float64 {
	distance := roundUp((high - low) / float64(max(n, 1)))
	first := math.Floor(low/distance + 1e-9)
	last := math.Ceil(high/distance - 1e-9)
	var values []float64
	for i := first; i <= last; i++ {
		values = append(values, i*distance)
	}
	return values
}

// roundUp returns the smallest 1, 2 or 5 × 10^k that is not below v.
func roundUp(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// labelled names ticks with as many decimals as their distance needs.
func labelled(values []float64, divisor float64) []tick {
	places := 0
	if len(values) > 1 {
		places = decimals(values[1] - values[0])
	}
	ticks := make([]tick, len(values))
	for i, v := range values {
		ticks[i] = tick{value: v * divisor, label: lab.Number(v, places)}
		if v == 0 {
			ticks[i].label = "0"
		}
	}
	return ticks
}

// decimals is how many places a round number needs.
func decimals(v float64) int {
	if v == 0 {
		return 0
	}
	return max(0, -int(math.Floor(math.Log10(math.Abs(v))+1e-9)))
}
