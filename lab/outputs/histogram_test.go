package outputs

import (
	"math"
	"testing"

	"ngxlab/lab"
)

func encoded(t *testing.T, counts map[int64]int64) []byte {
	t.Helper()
	h := NewHistogram()
	for us, n := range counts {
		h.Record(us, n)
	}
	e, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantPercentile(t *testing.T, h []byte, q, want float64) {
	t.Helper()
	if got, err := Percentile(h, q); err != nil || math.Abs(got-want) > 0.001*want {
		t.Errorf("p%g = %g, %v; want %g", q*100, got, err, want)
	}
}

// Two hosts whose percentiles cannot be averaged: 989 × 1 ms + 11 × 5 ms, and 89 × 50 ms + 11 × 400 ms.
func TestMergedPercentilesAreThoseOfAllRequests(t *testing.T) {
	merged, err := MergeHistograms([][]byte{
		encoded(t, map[int64]int64{1000: 989, 5000: 11}), nil, encoded(t, map[int64]int64{50_000: 89, 400_000: 11}),
	})
	if err != nil {
		t.Fatal(err)
	}
	wantPercentile(t, merged, 0.99, 0.050)
	wantPercentile(t, merged, 0.95, 0.050)
	wantPercentile(t, merged, 0.90, 0.005)
}

// 1000 × 10 ms + 10 × 2000 ms: the 95th percentile of all is 10 ms.
func TestFewSlowRequestsDoNotLiftTheMergedPercentile(t *testing.T) {
	merged, err := MergeHistograms([][]byte{encoded(t, map[int64]int64{10_000: 1000}), encoded(t, map[int64]int64{2_000_000: 10})})
	if err != nil {
		t.Fatal(err)
	}
	wantPercentile(t, merged, 0.95, 0.010)
}

func TestQuantilesBecomeCountsThatSumToTheRequests(t *testing.T) {
	h, err := HistogramFromQuantiles(1001, []lab.Quantile{{Q: 0.5, S: 0.001}, {Q: 0.9, S: 0.002}, {Q: 0.99, S: 0.004}}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if h.Count() != 1001 {
		t.Errorf("%d counts", h.Count())
	}
	for q, want := range map[float64]float64{0.25: 0.001, 0.5: 0.001, 0.9: 0.002, 0.99: 0.004, 1: 0.5} {
		wantPercentile(t, e, q, want)
	}
}

func TestImpossibleQuantilesAreErrors(t *testing.T) {
	for _, q := range [][]lab.Quantile{nil, {{Q: 0.5, S: 2}, {Q: 0.9, S: 1}}, {{Q: math.NaN(), S: 1}}, {{Q: 1.5, S: 1}}} {
		if _, err := HistogramFromQuantiles(10, q, 1); err == nil {
			t.Errorf("%v makes a histogram", q)
		}
	}
	if _, err := HistogramFromQuantiles(0, []lab.Quantile{{Q: 0.5, S: 2}}, 1); err == nil {
		t.Error("no requests make a histogram")
	}
}

func TestNothingHasNoPercentile(t *testing.T) {
	if _, err := Percentile(nil, 0.5); err == nil {
		t.Error("an empty histogram has a percentile")
	}
	if e, err := MergeHistograms(nil); e != nil || err != nil {
		t.Errorf("merging nothing gives %q, %v", e, err)
	}
	if _, err := MergeHistograms([][]byte{[]byte("junk")}); err == nil {
		t.Error("junk merges")
	}
	if _, err := Percentile(encoded(t, map[int64]int64{1: 1}), 1.1); err == nil {
		t.Error("110 % is a percentile")
	}
}

func TestUnknownReductionIsAnError(t *testing.T) {
	if _, err := Reduce("raw", nil); err == nil {
		t.Error("raw is reduced")
	}
}

func FuzzDecodeHistogram(f *testing.F) {
	f.Add([]byte("HISTFAAAAB542pNpmSzMwMDAxQABzFCaEUoz2X+AMIKZAEARAtM="))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := Percentile(text, 0.99); err == nil && (math.IsNaN(p) || p < 0) {
			t.Errorf("percentile %v", p)
		}
	})
}
