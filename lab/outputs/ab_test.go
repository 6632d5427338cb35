package outputs

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"ngxlab/lab"
)

func parseAB(t *testing.T, text string) lab.Report {
	t.Helper()
	report, err := ParseAB(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestTimePerRequestIsNeverTheLatency(t *testing.T) {
	r := parseAB(t, string(sample(t, "ab/freeze2s.out")))
	wantFigure(t, r.Figures, lab.MeanS, 0.002) // Total: mean, not 1.737 ms
}

// A page of 2004: six decimals, no Receive class, always a line of write errors.
func TestOldVersionParses(t *testing.T) {
	r := parseAB(t, `This is ApacheBench, Version 2.0.40-dev <$Revision: 1.146 $> apache-2.0
Benchmarking example.net (be patient).....done


Server Software:        Apache
Concurrency Level:      10
Time taken for tests:   29.32944 seconds
Complete requests:      100
Failed requests:        42
   (Connect: 0, Length: 42, Exceptions: 0)
Write errors:           0
Requests per second:    3.44 [#/sec] (mean)
Time per request:       2903.294 [ms] (mean)
`)
	if r.Version != "2.0.40-dev 1.146" {
		t.Errorf("version %q", r.Version)
	}
	wantFigure(t, r.Figures, lab.DurationS, 29.32944)
	wantFigure(t, r.Figures, lab.ErrLength, 42)
	wantFigure(t, r.Figures, lab.Failed, 0)
	wantAbsent(t, r.Figures, lab.ErrRead, lab.MeanS, lab.P50S)
	if len(r.Warnings) != 1 {
		t.Errorf("warnings %q, want one on the lengths", r.Warnings)
	}
}

func TestWindowsLineEndsAndMixedProgressParse(t *testing.T) {
	text := strings.ReplaceAll(string(sample(t, "ab/normal.out")), "\n", "\r\n")
	text = strings.Replace(text, "Concurrency Level:", "Completed 200 requests\r\nFinished 2000 requests\r\nConcurrency Level:", 1)
	r := parseAB(t, text)
	wantFigure(t, r.Figures, lab.Requests, 2000)
	wantFigure(t, r.Figures, lab.P99S, 0.007)
	if r.Interrupted {
		t.Error("a finished run counts as interrupted")
	}
}

func TestProgressWithoutFinishedIsInterrupted(t *testing.T) {
	text := strings.Replace(string(sample(t, "ab/interrupted_progress.out")), "Server Software:", "Completed 10000 requests\nServer Software:", 1)
	if !parseAB(t, text).Interrupted {
		t.Error("an interrupted run is not seen")
	}
}

func TestFailureClassesOverlap(t *testing.T) {
	for _, c := range []struct {
		classes string
		non2xx  int
		failed  float64
		doubt   bool // more lengths differ than broken requests and statuses explain
	}{
		{"Connect: 0, Receive: 0, Length: 64, Exceptions: 64", 0, 64, false},
		{"Connect: 0, Receive: 100, Length: 0, Exceptions: 50", 0, 100, false},
		{"Connect: 0, Receive: 20, Length: 20, Exceptions: 20", 0, 20, false},
		{"Connect: 0, Receive: 0, Length: 147, Exceptions: 0", 147, 0, false},
		{"Connect: 0, Receive: 0, Length: 10, Exceptions: 10", 30, 10, false},
		{"Connect: 0, Receive: 0, Length: 12, Exceptions: 10", 0, 10, true},
	} {
		text := strings.Replace(string(sample(t, "ab/rst_r.out")), "Connect: 0, Receive: 20, Length: 20, Exceptions: 20", c.classes, 1)
		if c.non2xx > 0 {
			text = strings.Replace(text, "Total transferred:", fmt.Sprintf("Non-2xx responses:      %d\nTotal transferred:", c.non2xx), 1)
		}
		r := parseAB(t, text)
		wantFigure(t, r.Figures, lab.Failed, c.failed)
		if doubt := len(r.Warnings) > 0; doubt != c.doubt {
			t.Errorf("%s with %d non-2xx: warnings %q", c.classes, c.non2xx, r.Warnings)
		}
	}
}

func TestRequestsWithoutAnyByteAreDoubted(t *testing.T) {
	r := parseAB(t, string(sample(t, "ab/drop444.out")))
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "nothing was received") {
		t.Errorf("warnings %v", r.Warnings)
	}
}

func TestThreeColumnTableHasNoMedian(t *testing.T) {
	text := string(sample(t, "ab/no_percentiles_d.out"))
	head, _, _ := strings.Cut(text, "Connect:   ")
	r := parseAB(t, head+"Connect:        0     0       0\nProcessing:     0     1       4\nTotal:          0     1       4\n")
	wantFigure(t, r.Figures, lab.MaxS, 0.004)
	wantAbsent(t, r.Figures, lab.P50S, lab.StdevS)
}

func TestHTMLTableIsRefusedByName(t *testing.T) {
	_, err := ParseAB(strings.NewReader("<table >\n<tr ><th colspan=2>Server Software:</th></tr>\n"))
	if err == nil || !strings.Contains(err.Error(), "-w") {
		t.Errorf("error %v", err)
	}
}

func TestTruncatedReportIsAnError(t *testing.T) {
	text := string(sample(t, "ab/normal.out"))
	cut := text[:strings.Index(text, "Complete requests")]
	if _, err := ParseAB(strings.NewReader(cut)); err == nil {
		t.Error("a report without counts parses")
	}
}

func quantilesOf(t *testing.T, name string) lab.Report {
	t.Helper()
	r, err := Reduce(KindABQuantiles, bytes.NewReader(sample(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRowsReadPastTheDataAreLeftOut(t *testing.T) {
	q := quantilesOf(t, "ab/e_small.csv")
	for i := 1; i < len(q.Quantiles); i++ {
		if q.Quantiles[i].S < q.Quantiles[i-1].S {
			t.Fatalf("quantiles descend at %g", q.Quantiles[i].Q)
		}
	}
	text := parseAB(t, string(sample(t, "ab/e_small.out")))
	r, err := CombineAB(text, &q, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantFigure(t, r.Figures, lab.MaxS, 0.001131)
	wantAbsent(t, r.Figures, lab.P999S)
	h, err := DecodeHistogram(r.Histogram)
	if err != nil || h.Count() != 10 {
		t.Errorf("%d latencies, %v; want 10", h.Count(), err)
	}
}

// With garbage above the true values the order alone proves nothing; the number of requests does.
func TestGarbageThatAscendsIsLeftOutByCount(t *testing.T) {
	var file strings.Builder
	file.WriteString("Percentage served,Time in ms\n")
	for i := 0; i <= 100; i++ {
		v := 1.0
		if i >= 95 && i < 100 {
			v = 1.5
		}
		if i == 100 {
			v = 2
		}
		fmt.Fprintf(&file, "%d,%.3f\n", i, v)
	}
	q, err := ParseABQuantiles(strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := CombineAB(lab.Report{Figures: lab.Figures{lab.Requests: 10}}, &q, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, r.Figures, lab.P95S, lab.P99S)
}

func TestRequestFileGivesRatesAndMeans(t *testing.T) {
	r, err := Reduce(KindABRequests, bytes.NewReader(sample(t, "ab/g.tsv")))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, n := range r.PerSecond {
		sum += n
	}
	if sum != 500 || r.Figures[lab.Requests] != 500 {
		t.Errorf("%g completions in %d seconds, %g requests", sum, len(r.PerSecond), r.Figures[lab.Requests])
	}
	wantFigure(t, r.Figures, lab.MaxS, 0.005)
}

func TestRequestsInAnyOrderFallIntoTheirSeconds(t *testing.T) {
	rows := []string{"x\t102\t0\t5\t5\t5", "x\t100\t0\t5\t5\t5", "x\t100\t0\t2500\t2500\t9", "x\t101\t0\t1\t1\t1"}
	r, err := ParseABRequests(strings.NewReader("starttime\tseconds\tctime\tdtime\tttime\twait\n" + strings.Join(rows, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(r.PerSecond) != "[1 1 2]" {
		t.Errorf("per second %v", r.PerSecond)
	}
	wantFigure(t, r.Figures, lab.MeanS, (5+5+2500+1)/4.0/1000)
}

func TestCutLastRowIsLeftOutButABrokenMiddleIsAnError(t *testing.T) {
	head, row := "starttime\tseconds\tctime\tdtime\tttime\twait\n", "x\t100\t0\t5\t5\t5\n"
	r, err := ParseABRequests(strings.NewReader(head + row + "x\t100\t0"))
	if err != nil || len(r.Warnings) != 1 {
		t.Errorf("cut file: %v, warnings %v", err, r.Warnings)
	}
	if _, err := ParseABRequests(strings.NewReader(head + "x\t100\n" + row)); err == nil {
		t.Error("a broken row in the middle parses")
	}
}

func TestBothFilesRefineTheReport(t *testing.T) {
	text := parseAB(t, string(sample(t, "ab/csv_tsv.out")))
	q := quantilesOf(t, "ab/e.csv")
	g, err := ParseABRequests(bytes.NewReader(sample(t, "ab/g.tsv")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := CombineAB(text, &q, &g)
	if err != nil {
		t.Fatal(err)
	}
	h, err := DecodeHistogram(r.Histogram)
	if err != nil || h.Count() != 500 {
		t.Errorf("%d latencies, %v", h.Count(), err)
	}
	if p50 := r.Figures[lab.P50S]; p50 <= 0 || p50 > 0.001 {
		t.Errorf("p50 %g s, want µs resolution", p50)
	}
	if got, err := Percentile(r.Histogram, 0.9); err != nil || math.Abs(got-r.Figures[lab.P90S]) > 0.002*got {
		t.Errorf("p90 of the histogram %g, of the file %g, %v", got, r.Figures[lab.P90S], err)
	}
	// n/D × R = c, of which ab's whole milliseconds know nothing.
	f := r.Figures
	if l := f[lab.Requests] / f[lab.DurationS] * f[lab.MeanS] / f[lab.Connections]; l < 0.85 || l > 1.05 {
		t.Errorf("mean %g s: %.3f of the connections were busy", f[lab.MeanS], l)
	}
	if sd := f[lab.StdevS]; sd <= 0 || sd > 0.002 {
		t.Errorf("standard deviation %g s", sd)
	}
	wantAbsent(t, f, lab.ConnectMeanS, lab.WaitMeanS)
	if text.Figures[lab.P50S] != 0 {
		t.Error("the report given was changed")
	}
}

func TestMeanAndDeviationAreThoseOfTheLatencies(t *testing.T) {
	// 10,000 latencies, evenly from 0.2 to 0.6 ms but for the last hundredth: 20 ms each.
	var q lab.Report
	for i := range 101 {
		s := 0.0002 + 0.0004*float64(i)/99
		if i == 100 {
			s = 0.020
		}
		q.Quantiles = append(q.Quantiles, lab.Quantile{Q: float64(i) / 100, S: s})
	}
	rows := NewHistogram()
	rows.Record(0, 9900/2)
	rows.Record(1000, 9900/2)
	rows.Record(20000, 100)
	encoded, err := rows.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const n = 10000
	g := lab.Report{Histogram: encoded, Figures: lab.Figures{lab.Requests: n, lab.MeanS: 0.0007, lab.ConnectMeanS: 0.011, lab.WaitMeanS: 0}}
	r, err := CombineAB(lab.Report{Figures: lab.Figures{lab.Requests: n, lab.StdevS: 0.002}}, &q, &g)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.99*0.0004 + 0.01*0.020
	squares := 0.99*(0.0004*0.0004+0.0004*0.0004/12) + 0.01*0.020*0.020
	for m, want := range map[lab.Metric]float64{lab.MeanS: mean, lab.StdevS: math.Sqrt(squares - mean*mean), lab.ConnectMeanS: 0.011} {
		if got := r.Figures[m]; math.Abs(got-want) > 0.005*want {
			t.Errorf("%s %g, want %g", m, got, want)
		}
	}
	wantAbsent(t, r.Figures, lab.WaitMeanS)
}

func TestWholeMillisecondsAreNoShortLatencies(t *testing.T) {
	q := lab.Report{Quantiles: []lab.Quantile{{Q: 0, S: 0.0001}, {Q: 0.5, S: 0.0004}, {Q: 1, S: 0.02}}}
	text := lab.Report{Figures: lab.Figures{lab.Requests: 10000, lab.MeanS: 0.001, lab.P50S: 0, lab.P99S: 0.011, lab.MaxS: 0.02}, Histogram: []byte("x")}
	r, err := CombineAB(text, nil, nil)
	if err != nil || r.Figures[lab.P99S] != 0.011 || r.Histogram != nil {
		t.Errorf("%v, %v", r, err)
	}
	wantAbsent(t, r.Figures, lab.MeanS, lab.P50S)
	text.Histogram = nil
	if r, err = CombineAB(text, &q, nil); err != nil || r.Figures[lab.P50S] != 0.0004 {
		t.Errorf("%v, %v", r, err)
	}
	wantAbsent(t, r.Figures, lab.MeanS)
}

func FuzzParseAB(f *testing.F) {
	for _, name := range []string{"ab/normal.out", "ab/verbose2.out", "ab/refused_start_r.out", "ab/timeout_t2.out"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseAB(bytes.NewReader(text))
		checkReport(t, r, err)
	})
}

func FuzzParseABQuantiles(f *testing.F) {
	f.Add(sample(f, "ab/e_n3.csv"), 3.0)
	f.Add(sample(f, "ab/e.csv"), 500.0)
	f.Fuzz(func(t *testing.T, text []byte, n float64) {
		r, err := ParseABQuantiles(bytes.NewReader(text))
		checkReport(t, r, err)
		if err == nil && n < 1e12 {
			combined, err := CombineAB(lab.Report{Figures: lab.Figures{lab.Requests: n}}, &r, nil)
			if !math.IsNaN(n) && n >= 0 {
				checkReport(t, combined, err)
			}
		}
	})
}

func FuzzParseABRequests(f *testing.F) {
	f.Add(sample(f, "ab/g.tsv")[:400])
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseABRequests(bytes.NewReader(text))
		checkReport(t, r, err)
	})
}
