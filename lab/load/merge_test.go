package load

import (
	"math"
	"testing"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

// finished is a process that measured from begin for as long as its report says, in seconds of the target's clock.
func finished(begin, end float64, connections int, r lab.Report) lab.Process {
	at := func(s float64) lab.Instant { return lab.Instant(s * 1e9) }
	r.LoopModel = lab.ClosedLoop
	return lab.Process{Host: "a", Released: at(begin), Ended: at(end), Report: r,
		Command: lab.Command{Tool: r.Tool, Share: lab.Share{Connections: connections}}}
}

// counted is a report with nothing but counts.
func counted(tool string, n, seconds float64) lab.Report {
	return lab.Report{Tool: tool, Figures: lab.Figures{lab.Requests: n, lab.DurationS: seconds, lab.Failed: 0, lab.NonSuccess: 0, lab.RequestRate: n / seconds}}
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s is %.9g, want %.9g", what, got, want)
	}
}

var keepAlive = lab.LoadPoint{KeepAlive: true}

func TestOneProcessHasTheToolsOwnDuration(t *testing.T) {
	r := counted("wrk", 30000, 2)
	r.Figures[lab.MeanS], r.Figures[lab.P50S], r.Figures[lab.P99S] = 0.001, 0.0009, 0.004
	m := Merge([]lab.Process{finished(10, 12.3, 10, r)}, MergeInput{Point: keepAlive})
	near(t, "goodput", m.Figures[lab.Goodput], 15000, 1e-9)
	near(t, "duration", m.Window.DurationS, 2, 1e-9)
	if m.Window.Begin != 10e9 || m.Window.End != 12e9 || m.Window.Overlap != 1 || m.Window.SkewS != 0 {
		t.Errorf("window %+v", m.Window)
	}
	if m.Figures[lab.MeanS] != 0.001 || m.Figures[lab.P99S] != 0.004 || m.Figures[lab.ErrorRatio] != 0 || m.LoopModel != lab.ClosedLoop {
		t.Errorf("figures %v", m.Figures)
	}
	if _, known := m.Figures[lab.P999S]; known {
		t.Error("a p99.9 of 30,000 requests")
	}
}

// Oracle of facts/load-tools.md §3.4: 10,000 in 10 s and 10,000 in 5 s are not 3,000 per second.
func TestRatesOfUnequalWindowsAreNeverAdded(t *testing.T) {
	m := Merge([]lab.Process{finished(0, 10, 5, counted("ab", 10000, 10)), finished(0, 5, 5, counted("ab", 10000, 5))}, MergeInput{})
	near(t, "goodput", m.Figures[lab.Goodput], 2000, 1e-9)
	near(t, "overlap", m.Window.Overlap, 0.5, 1e-9)

	m = Merge([]lab.Process{finished(0, 4, 5, counted("ab", 12000, 4)), finished(1.5, 4.5, 5, counted("ab", 9000, 3))}, MergeInput{})
	near(t, "goodput", m.Figures[lab.Goodput], 14000./3, 1e-9)
	near(t, "overlap", m.Window.Overlap, 2.5/4.5, 1e-9)
	near(t, "skew", m.Window.SkewS, 1.5, 1e-9)
	if _, known := m.Figures[lab.RequestRate]; known {
		t.Error("a printed rate of two processes")
	}
}

func TestServersCountBetweenTheEdgesOfTheCommonWindow(t *testing.T) {
	a, b := counted("ab", 12000, 4), counted("ab", 9000, 3)
	a.Figures[lab.NonSuccess] = 2100 // a tenth of all
	ps := []lab.Process{finished(0, 4, 5, a), finished(1.5, 4.5, 5, b)}
	// 3,000 per second from each process, so 6,000 per second between 1.5 and 4 s.
	served := []Served{{-1e9, 100}, {0, 100}, {1.5e9, 4600}, {4e9, 19600}, {4.5e9, 21100}, {5e9, 21105}}
	m := Merge(ps, MergeInput{Served: served})
	near(t, "goodput", m.Figures[lab.Goodput], 6000*0.9, 1e-9)
	near(t, "duration", m.Window.DurationS, 2.5, 1e-9)
	near(t, "server requests", m.Figures[lab.ServerRequests], 21005, 1e-9)
	near(t, "error ratio", m.Figures[lab.ErrorRatio], 0.1, 1e-9)
	if m.Window.Begin != 1.5e9 || m.Window.End != 4e9 {
		t.Errorf("window %+v", m.Window)
	}
	// Readings that do not enclose the window are interpolated only between each other.
	m = Merge(ps, MergeInput{Served: served[4:]})
	near(t, "duration without a usable count", m.Window.DurationS, 4.5, 1e-9)
}

func TestAReadingAfterTheLoadDoesNotThinOutTheWindow(t *testing.T) {
	ps := []lab.Process{finished(0, 2.1, 5, counted("wrk", 2100, 2.1)), finished(0, 2.1, 5, counted("wrk", 2100, 2.1))}
	// 2,000 per second until 2.1 s; the last reading but one is before the end, the last long after.
	m := Merge(ps, MergeInput{Served: []Served{{-1e9, 0}, {0, 0}, {2e9, 4000}, {3e9, 4200}}})
	near(t, "goodput", m.Figures[lab.Goodput], 2000, 1e-9)
	// What a tool writes after its measurement is quiet time, too, but for its start.
	ps[0].Ended, ps[1].Ended = 2.6e9, 2.6e9
	m = Merge(ps, MergeInput{Served: []Served{{-1e9, 0}, {0, 0}, {2e9, 4000}, {3e9, 4200}}})
	near(t, "goodput", m.Figures[lab.Goodput], 2000, 0.01)
}

func TestServedIsInterpolatedBetweenReadings(t *testing.T) {
	s := []Served{{0, 0}, {10, 100}, {30, 500}}
	for at, want := range map[lab.Instant]float64{0: 0, 5: 50, 10: 100, 15: 200, 30: 500} {
		if got, ok := servedAt(s, at); !ok || got != want {
			t.Errorf("at %d: %g, want %g", at, got, want)
		}
	}
	for _, at := range []lab.Instant{-1, 31} {
		if _, ok := servedAt(s, at); ok {
			t.Errorf("a count at %d, outside of the readings", at)
		}
	}
}

func TestGoodIsNeverMoreThanTheServerCounted(t *testing.T) {
	m := Merge([]lab.Process{finished(0, 2, 10, counted("wrk", 1000, 2))}, MergeInput{Served: []Served{{-1, 50}, {3e9, 850}}})
	near(t, "goodput", m.Figures[lab.Goodput], 400, 1e-9)
	// A count that begins after the release has not seen everything.
	m = Merge([]lab.Process{finished(0, 2, 10, counted("wrk", 1000, 2))}, MergeInput{Served: []Served{{1e9, 450}, {3e9, 850}}})
	near(t, "goodput", m.Figures[lab.Goodput], 500, 1e-9)
	if _, known := m.Figures[lab.ServerRequests]; known {
		t.Error("a server's count of half of the run")
	}
}

func TestACountThatFellIsNone(t *testing.T) {
	m := Merge([]lab.Process{finished(0, 2, 5, counted("wrk", 1000, 2))}, MergeInput{Served: []Served{{-1e9, 5000}, {3e9, 700}}})
	near(t, "goodput", m.Figures[lab.Goodput], 500, 1e-9)
	if _, known := m.Figures[lab.ServerRequests]; known {
		t.Error("a restarted server counted")
	}
}

func TestClocksOfLoadHostsAreSetOff(t *testing.T) {
	a, b := finished(100, 102, 5, counted("ab", 1000, 2)), finished(0.5, 2.5, 5, counted("ab", 1000, 2))
	b.Host = "b"
	m := Merge([]lab.Process{a, b}, MergeInput{Ahead: map[lab.HostName]time.Duration{"a": 100 * time.Second}})
	near(t, "skew", m.Window.SkewS, 0.5, 1e-9)
	near(t, "duration", m.Window.DurationS, 2.5, 1e-9)
}

// Oracle of facts/load-tools.md §3.3: 989 × 1 ms and 11 × 5 ms on one host, 89 × 50 and 11 × 400 on the other.
func TestLatencyOfSeveralProcessesIsMergedNotAveraged(t *testing.T) {
	histogram := func(us ...int64) []byte {
		h := outputs.NewHistogram()
		for i := 0; i < len(us); i += 2 {
			h.Record(us[i], us[i+1])
		}
		encoded, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	a, b := counted("ab", 1000, 1), counted("ab", 100, 1)
	a.Histogram, b.Histogram = histogram(1000, 989, 5000, 11), histogram(50000, 89, 400000, 11)
	a.Figures[lab.MeanS], a.Figures[lab.StdevS], a.Figures[lab.MinS], a.Figures[lab.MaxS] = 0.001044, 0.000417419, 0.001, 0.005
	b.Figures[lab.MeanS], b.Figures[lab.StdevS], b.Figures[lab.MinS], b.Figures[lab.MaxS] = 0.0885, 0.110063113, 0.05, 0.4
	a.Figures[lab.P99S], b.Figures[lab.P99S] = 0.005, 0.4
	m := Merge([]lab.Process{finished(0, 1, 5, a), finished(0, 1, 5, b)}, MergeInput{})
	near(t, "mean", m.Figures[lab.MeanS], 0.008994545, 1e-6)
	near(t, "stdev", m.Figures[lab.StdevS], 0.041522131, 1e-6)
	near(t, "p90", m.Figures[lab.P90S], 0.005, 0.002)
	near(t, "p95", m.Figures[lab.P95S], 0.05, 0.002)
	near(t, "min", m.Figures[lab.MinS], 0.001, 1e-9)
	near(t, "max", m.Figures[lab.MaxS], 0.4, 1e-9)
	if _, known := m.Figures[lab.P99S]; known {
		t.Error("a p99 of 1,100 requests")
	}
	p99, err := outputs.Percentile(m.Histogram, 0.99)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p99 of the merged histogram", p99, 0.05, 0.002)

	b.Histogram = nil // without one there is nothing to merge
	delete(b.Figures, lab.StdevS)
	m = Merge([]lab.Process{finished(0, 1, 5, a), finished(0, 1, 5, b)}, MergeInput{})
	for _, metric := range []lab.Metric{lab.P50S, lab.P90S, lab.StdevS} {
		if v, known := m.Figures[metric]; known {
			t.Errorf("%s is %g without data of every process", metric, v)
		}
	}
}

func TestWhatIsGood(t *testing.T) {
	for _, c := range []struct {
		name    string
		tool    string
		figures lab.Figures
		probe   lab.Probe
		good    float64 // of 1000
		ratio   float64
	}{
		{"all", "wrk", lab.Figures{}, lab.Probe{Status: 200}, 1000, 0},
		{"status", "wrk", lab.Figures{lab.NonSuccess: 100}, lab.Probe{Status: 200}, 900, 0.1},
		{"late responses", "wrk", lab.Figures{lab.ErrTimeout: 50}, lab.Probe{Status: 200}, 950, 0.05},
		{"lost requests are no responses", "wrk", lab.Figures{lab.ErrRead: 1000}, lab.Probe{Status: 200}, 1000, 0.5},
		{"probe was 404", "wrk", lab.Figures{lab.NonSuccess: 990}, lab.Probe{Status: 404}, 990, 0.01},
		{"3xx of wrk", "wrk", lab.Figures{}, lab.Probe{Status: 302}, 1000, 0},
		{"3xx of ab", "ab", lab.Figures{lab.NonSuccess: 1000}, lab.Probe{Status: 302}, 1000, 0},
		{"length is status", "ab", lab.Figures{lab.NonSuccess: 147, lab.ErrLength: 147}, lab.Probe{Status: 200}, 853, 0.147},
		{"length is exception", "ab", lab.Figures{lab.Failed: 64, lab.ErrLength: 64, lab.ErrException: 64}, lab.Probe{Status: 200}, 936, 0.064},
		{"more failures than requests", "ab", lab.Figures{lab.Failed: 3000}, lab.Probe{Status: 200}, 0, 1},
		{"no body", "ab", lab.Figures{lab.BodyBytes: 0, lab.BytesRead: 21000}, lab.Probe{Status: 200, BodyBytes: 612}, 0, 1},
	} {
		r := counted(c.tool, 1000, 1)
		for metric, v := range c.figures {
			r.Figures[metric] = v
		}
		m := Merge([]lab.Process{finished(0, 1, 10, r)}, MergeInput{Probe: c.probe})
		if m.Figures[lab.Goodput] != c.good || math.Abs(m.Figures[lab.ErrorRatio]-c.ratio) > 1e-9 {
			t.Errorf("%s: goodput %g, error ratio %g, want %g and %g", c.name, m.Figures[lab.Goodput], m.Figures[lab.ErrorRatio], c.good, c.ratio)
		}
	}
}

func TestGradeSaysHowGoodResponsesAreEvidenced(t *testing.T) {
	probe := lab.Probe{Status: 200, HeaderBytes: 238, BodyBytes: 1024}
	for _, c := range []struct {
		name      string
		tool      string
		figures   lab.Figures
		probe     lab.Probe
		keepAlive bool
		want      lab.Grade
	}{
		{"wrk exact", "wrk", lab.Figures{lab.BytesRead: 1000 * 1262}, probe, true, lab.GradeB},
		{"wrk with responses in flight", "wrk", lab.Figures{lab.BytesRead: 1000*1262 + 10*1262}, probe, true, lab.GradeB},
		{"wrk with too many", "wrk", lab.Figures{lab.BytesRead: 1000*1262 + 11*1262}, probe, true, lab.GradeC},
		{"wrk with other bodies", "wrk", lab.Figures{lab.BytesRead: 1000 * 1200}, probe, true, lab.GradeC},
		{"wrk closing", "wrk", lab.Figures{lab.BytesRead: 1000 * 1257}, probe, false, lab.GradeB},
		{"wrk without bytes", "wrk", lab.Figures{}, probe, true, lab.GradeC},
		{"wrk with statuses", "wrk", lab.Figures{lab.BytesRead: 1000 * 1262, lab.NonSuccess: 1}, probe, true, lab.GradeC},
		{"ab exact", "ab", lab.Figures{lab.BodyBytes: 1000 * 1024, lab.BytesRead: 1}, probe, false, lab.GradeB},
		{"ab in flight", "ab", lab.Figures{lab.BodyBytes: 1010 * 1024, lab.BytesRead: 1}, probe, false, lab.GradeB},
		{"ab truncated", "ab", lab.Figures{lab.BodyBytes: 1000 * 5, lab.BytesRead: 1}, probe, false, lab.GradeC},
		{"ab without a body", "ab", lab.Figures{lab.BodyBytes: 0, lab.BytesRead: 1000 * 233}, lab.Probe{Status: 200, HeaderBytes: 238}, false, lab.GradeB},
		{"no probe", "ab", lab.Figures{lab.BodyBytes: 1000 * 1024, lab.BytesRead: 1}, lab.Probe{}, false, lab.GradeC},
	} {
		r := counted(c.tool, 1000, 1)
		for metric, v := range c.figures {
			r.Figures[metric] = v
		}
		m := Merge([]lab.Process{finished(0, 1, 10, r)}, MergeInput{Probe: c.probe, Point: lab.LoadPoint{KeepAlive: c.keepAlive}})
		if m.Grade != c.want {
			t.Errorf("%s: grade %s, want %s", c.name, m.Grade, c.want)
		}
	}
	r := counted("wrk", 1000, 1)
	delete(r.Figures, lab.NonSuccess)
	if m := Merge([]lab.Process{finished(0, 1, 10, r)}, MergeInput{Probe: probe}); m.Grade != lab.GradeD {
		t.Errorf("a count only has grade %s", m.Grade)
	}
}

func TestAProblemOfOneProcessLeavesNoFigures(t *testing.T) {
	bad := finished(0, 1, 5, counted("ab", 10, 1))
	bad.Problem = "ab was interrupted"
	m := Merge([]lab.Process{finished(0, 1, 5, counted("ab", 10, 1)), bad}, MergeInput{})
	if len(m.Figures) != 0 || m.Problem != "process 2 of 2 on a: ab was interrupted" {
		t.Errorf("figures %v, problem %q", m.Figures, m.Problem)
	}
	if m := Merge([]lab.Process{bad}, MergeInput{}); m.Problem != bad.Problem {
		t.Errorf("problem %q", m.Problem)
	}
	if m := Merge(nil, MergeInput{}); m.Problem == "" {
		t.Error("nothing ran, and no problem")
	}
}

func TestErrorClassesPrintedByOneProcessAddUp(t *testing.T) {
	a, b := counted("wrk", 1000, 1), counted("wrk", 1000, 1)
	a.Figures[lab.ErrTimeout], a.Figures[lab.Corrections], b.Figures[lab.Corrections] = 7, 0.1, 0.3
	m := Merge([]lab.Process{finished(0, 1, 5, a), finished(0, 1, 5, b)}, MergeInput{})
	if m.Figures[lab.ErrTimeout] != 7 || m.Figures[lab.Failed] != 7 {
		t.Errorf("figures %v", m.Figures)
	}
	near(t, "excess of the histograms", m.Figures[lab.Corrections], 0.2, 1e-9)
	if _, known := m.Figures[lab.BytesRead]; known {
		t.Error("bytes that nobody counted")
	}
}
