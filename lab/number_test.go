package lab

import (
	"math"
	"testing"
)

func TestNumbersAsTheyAreWritten(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range [][2]string{
		{Number(1234567, 0), "1,234,567"}, {Number(-1234.5, 1), "−1,234.5"}, {Number(-0.0001, 1), "0.0"}, {Number(999, 0), "999"},
		{Number(nan, 0), Unknown}, {Number(inf, 2), Unknown},
		{Significant(0, 3), "0"}, {Significant(12345, 4), "12,350"}, {Significant(9.996, 3), "10.0"}, {Significant(-0.012345, 3), "−0.0123"},
		{Significant(999.9, 3), "1,000"}, {Significant(1234567, 3), "1,230,000"}, {Significant(nan, 3), Unknown}, {Significant(-inf, 3), Unknown},
		{PercentChange(1.384, 1.3835, 1.3845), "+38.40%"}, {PercentChange(1.384, 1.38, 1.388), "+38.4%"}, {PercentChange(1.384, 1.3, 1.45), "+38%"},
		{PercentChange(0.72, nan, nan), "−28.0%"}, {PercentChange(0.72, 0, 0), "−28.0%"}, {PercentChange(0.97, 0.9, 1.1), "−3%"},
		{PercentChange(1.0001, 0.99, 1.01), "0%"}, {PercentChange(0.9999, 0.98, 1.02), "0%"}, {PercentChange(1, 1, 1), "0%"},
		{PercentChange(3.114, 3, 3.3), "× 3.11"}, {PercentChange(0.2, nan, nan), "× 0.200"}, {PercentChange(0, 0, 0), Unknown}, {PercentChange(nan, nan, nan), Unknown},
		{PercentChange(3.2, 2.8, 3.4), "× 3.20"}, {PercentChange(2.8, 2.8, 3.4), "× 2.80"}, {PercentChange(3.1, 2.5, 3.1), "+210%"}, // one form within an interval
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}
