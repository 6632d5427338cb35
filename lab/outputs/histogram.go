package outputs

import (
	"errors"
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"ngxlab/lab"
)

// The geometry of every latency histogram: µs from 1 to one hour, three significant digits (an error of at most
// 0.1 %, about 190 KB in memory, a few KB encoded). A longer latency counts as one hour.
const (
	histogramMaxUS  = int64(3600 * 1e6)
	histogramDigits = 3
)

// Histogram counts latencies in µs.
type Histogram struct{ h *hdrhistogram.Histogram }

// NewHistogram returns an empty histogram.
func NewHistogram() Histogram {
	return Histogram{hdrhistogram.New(1, histogramMaxUS, histogramDigits)}
}

// Record counts n latencies of us µs; beyond the range they count at its end.
func (h Histogram) Record(us, n int64) {
	// The bounds are kept here, so that RecordValues cannot refuse.
	_ = h.h.RecordValues(min(max(us, 0), histogramMaxUS), n)
}

// Count is the number of latencies.
func (h Histogram) Count() int64 { return h.h.TotalCount() }

// Encode returns the histogram as HdrHistogram V2, compressed, base64; nil when it is empty.
func (h Histogram) Encode() ([]byte, error) {
	if h.Count() == 0 {
		return nil, nil
	}
	encoded, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return encoded, nil
}

// DecodeHistogram reads what Encode wrote.
func DecodeHistogram(encoded []byte) (Histogram, error) {
	h, err := hdrhistogram.Decode(encoded)
	if err != nil {
		return Histogram{}, fmt.Errorf("decode histogram: %w", err)
	}
	return Histogram{h}, nil
}

// HistogramFromQuantiles makes a histogram of n latencies from ascending quantiles: the share between two
// neighbours is counted at the upper one, what is above the last at maxS seconds (ignored when below it). A percentile
// of it is thus never too low, and at most one neighbour too high. Counts sum to n exactly.
func HistogramFromQuantiles(n int64, quantiles []lab.Quantile, maxS float64) (Histogram, error) {
	points := make([]rankedUS, 0, len(quantiles))
	for _, q := range quantiles {
		if !(q.Q >= 0 && q.Q <= 1) {
			return Histogram{}, fmt.Errorf("histogram from quantiles: %g is not between 0 and 1", q.Q)
		}
		points = append(points, rankedUS{int64(math.Ceil(q.Q*float64(n) - 1e-9)), microseconds(q.S)})
	}
	return fromRanks(n, points, microseconds(maxS))
}

// rankedUS says that at least rank latencies are at most us µs.
type rankedUS struct{ rank, us int64 }

func fromRanks(n int64, points []rankedUS, maxUS int64) (Histogram, error) {
	if n <= 0 || len(points) == 0 {
		return Histogram{}, errors.New("histogram from quantiles: no latencies")
	}
	h := NewHistogram()
	var done, last int64
	for _, p := range points {
		if p.us < last {
			return Histogram{}, fmt.Errorf("histogram from quantiles: %d µs comes after %d µs", p.us, last)
		}
		if rank := min(p.rank, n); rank > done {
			h.Record(p.us, rank-done)
			done = rank
		}
		last = p.us
	}
	if done < n {
		h.Record(max(maxUS, last), n-done)
	}
	return h, nil
}

// microseconds rounds seconds to whole µs within the histogram's range.
func microseconds(s float64) int64 {
	return int64(math.Round(min(max(s*1e6, 0), float64(histogramMaxUS))))
}

// MergeHistograms adds histograms up; empty ones are skipped. It returns nil when all are empty.
func MergeHistograms(encoded [][]byte) ([]byte, error) {
	sum := NewHistogram()
	for i, e := range encoded {
		if len(e) == 0 {
			continue
		}
		h, err := DecodeHistogram(e)
		if err != nil {
			return nil, fmt.Errorf("merge histogram %d of %d: %w", i+1, len(encoded), err)
		}
		for _, b := range h.h.Distribution() {
			if b.Count > 0 {
				sum.Record(b.To, b.Count)
			}
		}
	}
	return sum.Encode()
}

// Percentile returns the latency in seconds that the share q (0 to 1) of an encoded histogram does not exceed
// (nearest rank). An empty histogram is an error.
func Percentile(encoded []byte, q float64) (float64, error) {
	if len(encoded) == 0 {
		return 0, errors.New("percentile of an empty histogram")
	}
	if !(q >= 0 && q <= 1) {
		return 0, fmt.Errorf("percentile: %g is not between 0 and 1", q)
	}
	h, err := DecodeHistogram(encoded)
	if err != nil {
		return 0, err
	}
	if h.Count() == 0 {
		return 0, errors.New("percentile of an empty histogram")
	}
	return float64(h.h.ValueAtQuantile(q*100)) / 1e6, nil
}

// percentiles are the metrics that a distribution fills.
var percentiles = []struct {
	metric lab.Metric
	q      float64
}{{lab.P50S, 0.5}, {lab.P75S, 0.75}, {lab.P90S, 0.9}, {lab.P95S, 0.95}, {lab.P99S, 0.99}, {lab.P999S, 0.999}}

// setPercentiles fills the percentile figures from an encoded histogram.
func setPercentiles(f lab.Figures, encoded []byte) error {
	for _, p := range percentiles {
		s, err := Percentile(encoded, p.q)
		if err != nil {
			return err
		}
		f[p.metric] = s
	}
	return nil
}
