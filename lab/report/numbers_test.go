package report

import (
	"math"
	"testing"

	"ngxlab/lab"
	"ngxlab/plots"
)

func TestNumbersAreShortAndHaveUnits(t *testing.T) {
	for _, c := range [][2]string{
		{duration.print(0.0000325), "32.5 µs"}, {duration.print(0.00123), "1.23 ms"}, {duration.print(2), "2.00 s"}, {duration.print(3e-9), "3.00 ns"}, {duration.print(0.99996e-3), "1.00 ms"},
		{rate(1.5), "1.500"}, {bytesIn(8 << 30), "8 GiB"}, {bytesIn(1536), "1.5 KiB"}, {bytesIn(512), "512 bytes"}, {bytesIn(3 << 40), "3 TiB"},
		{perCent(0.05), "5%"}, {perCent(0), "0"}, {perCent(0.0123), "1.23%"},
		{wholeBytes(4379.4), "4,379"}, {wholeBytes(0.31), "0.3"}, {wholeBytes(-6e-17), "0"}, {wholeBytes(2), "2"},
		{ruleBytes(9.03e8), "903 MB"}, {ruleBytes(250), "250 bytes"}, {ruleBytes(16e9), "16 GB"},
		{plural(1, "run"), "1 run"}, {plural(12000, "run"), "12,000 runs"},
		{slug("wrk 100 keep-alive, /1k.bin"), "wrk-100-keep-alive-1k-bin"},
		{quoteShell("it's"), `'it'\''s'`}, {quoteShell(""), "''"}, {quoteShell("-c10"), "-c10"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

func TestCellTakesTheValidAttemptOfEachRound(t *testing.T) {
	id := lab.CellID{Target: "web", State: "a", Load: "x"}
	runs := []lab.Run{
		{Cell: id, Part: 1, Round: 2, Attempt: 1, Validity: lab.Clean},
		{Cell: id, Part: 1, Round: 1, Attempt: 2, Validity: lab.Warned},
		{Cell: id, Part: 1, Round: 1, Attempt: 1, Validity: lab.Invalid},
		{Cell: id, Part: 1, Round: 3, Attempt: 1, Validity: lab.Invalid},
		{Cell: id, Part: 1, Round: 3, Attempt: 2, Validity: lab.Invalid},
		{Cell: id, Part: 2, Round: 1, Attempt: 1, Validity: lab.Clean},
	}
	c := cellsOf(runs)[cellKey{1, id}]
	if len(c.valid) != 2 || c.valid[0].Round != 1 || c.valid[0].Attempt != 2 || len(c.invalid) != 1 || c.invalid[0].Attempt != 2 {
		t.Errorf("%+v", c)
	}
}

func TestMostlyBoundCellIsALowerBound(t *testing.T) {
	bound := lab.Run{Validity: lab.Warned, Findings: []lab.Finding{{Code: "client-cpu", Outcome: lab.Fired, Consequence: lab.LowerBound}}}
	clean := lab.Run{Validity: lab.Clean}
	late := lab.Run{Validity: lab.Warned, Findings: []lab.Finding{{Code: "latency-corrected", Outcome: lab.Fired, Consequence: lab.Warn, LatencyOnly: true}}}
	for _, c := range []struct {
		runs []lab.Run
		m    lab.Metric
		want plots.Mark
	}{
		{[]lab.Run{bound, bound, clean}, lab.Goodput, plots.LowerBound},
		{[]lab.Run{bound, clean, clean}, lab.Goodput, plots.Warned},
		{[]lab.Run{bound, bound, clean}, lab.CPUPerRequest, plots.Clean},
		{[]lab.Run{bound, bound, clean}, lab.P99S, plots.Warned},
		{[]lab.Run{clean, clean}, lab.Goodput, plots.Clean},
		{[]lab.Run{{Validity: lab.Warned}}, lab.CPUPerRequest, plots.Warned},
		{[]lab.Run{late, clean}, lab.Goodput, plots.Clean},
		{[]lab.Run{late, clean}, lab.P99S, plots.Warned},
	} {
		if got, _ := marked(c.runs, c.m); got != c.want {
			t.Errorf("%d runs, %s: mark %d, want %d", len(c.runs), c.m, got, c.want)
		}
	}
}

func TestAnEffectOfWarnedRunsIsMarkedOnTheLadder(t *testing.T) {
	v := lab.Verdict{Word: lab.Helps, Comparison: lab.Comparison{Pairs: 6, Ratio: 1.1, Low: 1.05, High: 1.15}}
	s := &study{}
	if got := s.effect(v, true).Mark; got != plots.Clean {
		t.Errorf("clean runs: mark %d", got)
	}
	v.Comparison.Doubts = []string{"foreign-cpu in 1 of 12 runs"}
	if got := s.effect(v, true).Mark; got != plots.Warned {
		t.Errorf("warned runs: mark %d", got)
	}
	v.Comparison.LowerBound = true
	if got := s.effect(v, true).Mark; got != plots.LowerBound {
		t.Errorf("a lower bound from warned runs: mark %d", got)
	}
}

func TestHistogramsAreMergedOnlyWhenAllRunsHaveOne(t *testing.T) {
	with := lab.Run{Histogram: fakeHistogram(0.001)}
	q := mergedQuantiles([]lab.Run{with, with})
	if len(q) == 0 || q[0].Q != 0 || q[len(q)-1].Q > 1-10.0/8000+1e-9 {
		t.Fatalf("quantiles: %v", q)
	}
	for i := 1; i < len(q); i++ {
		if q[i].S < q[i-1].S || q[i].Q <= q[i-1].Q {
			t.Fatalf("not ascending at %d: %v", i, q[i-1:i+1])
		}
	}
	for _, bad := range [][]lab.Run{nil, {with, {}}, {with, {Histogram: []byte("junk")}}} {
		if q := mergedQuantiles(bad); q != nil {
			t.Errorf("%d runs: %d quantiles", len(bad), len(q))
		}
	}
}

func sampleAt(ms int64, requests uint64, polls uint64, cpu float64, answered bool) lab.Sample {
	s := lab.Sample{Host: "web", At: lab.Instant(ms * 1e6), Processes: []lab.ProcessSample{{Role: lab.ServerWorker, CPUS: cpu}}}
	if answered {
		s.Status = &lab.ServerStatus{Requests: requests, Polls: polls, Active: 101}
	}
	return s
}

func TestRunSeriesSubtractsPollsAndLeavesGaps(t *testing.T) {
	r := lab.Run{Cell: lab.CellID{Target: "web", State: "a", Load: "x"}, Round: 1, Validity: lab.Warned, Window: lab.Window{Begin: 1e9},
		Samples: []lab.Sample{sampleAt(1000, 100, 1, 0, true), sampleAt(1500, 1101, 2, 0.4, true), sampleAt(2000, 0, 0, 0.9, false), sampleAt(2500, 3103, 4, 1.3, true)}}
	s := runSeries(r)
	if len(s.Strips) != 3 || s.Title != "a at x, round 1 (warned)" {
		t.Fatalf("%+v", s)
	}
	rate := s.Strips[0].Lines[0]
	if rate.Values[0] != 2000 || !math.IsNaN(rate.Values[1]) || !math.IsNaN(rate.Values[2]) || rate.TimesS[0] != 0.5 {
		t.Errorf("requests: %+v", rate)
	}
	if cpu := s.Strips[1].Lines[0]; len(s.Strips[1].Lines) != 1 || cpu.Values[0] != 0.8 {
		t.Errorf("CPU: %+v", s.Strips[1])
	}
	if open := s.Strips[2].Lines[0]; open.Values[0] != 100 {
		t.Errorf("connections: %+v", open)
	}
	if empty := runSeries(lab.Run{}); len(empty.Strips) != 0 {
		t.Errorf("a run without samples: %+v", empty)
	}
}

func TestProseSetsNamesInCodeStyle(t *testing.T) {
	if got := prose("set `a` now"); len(got) != 3 || got[1].Text != "a" {
		t.Errorf("%+v", got)
	}
	if got := prose("a lone ` stays"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
