package observe

import (
	"math"
	"strings"
	"testing"

	"ngxlab/lab"
)

// published is an imported report: figures without samples.
func published(tool string, n, c int, keepAlive bool, f lab.Figures) Observation {
	return Observe(Input{
		Run:   lab.Run{Figures: f, Processes: []lab.Process{{Command: lab.Command{Tool: tool}}}},
		Point: lab.LoadPoint{Tool: tool, Requests: n, Connections: c, KeepAlive: keepAlive},
	})
}

// Stepwise tuning on 8 cores: ab -c 20000 -n 100000, four steps and a fifth run of 80000.
func TestEightCoreStudyIsDecidedByItsSlowestRequests(t *testing.T) {
	for _, c := range []struct {
		step                         string
		d, rate, mean, p99, longest  float64
		failed, non2xx               float64
		share, little, lowest, above float64 // lowest and above: the bracket, 0 = cannot be recovered
		straggler                    string
	}{
		{"baseline", 64.315, 1554.84, 0.132, 3.024, 60.001, 5, 2, 0.93, 0.010, 13500, 22900, "invalid"},
		{"kernel sockets", 4.690, 21320.91, 0.154, 3.027, 4.619, 1, 1, 0.98, 0.164, 0, 0, "invalid"},
		{"nginx", 4.613, 21676.88, 0.483, 3.325, 3.354, 16, 16, 0.73, 0.52, 0, 0, "invalid"},
		{"open files", 4.560, 21930.98, 0.397, 3.343, 3.595, 25, 25, 0.79, 0.44, 0, 0, "invalid"},
	} {
		o := published("ab", 100000, 20000, false, lab.Figures{lab.Requests: 100000, lab.DurationS: c.d, lab.RequestRate: c.rate, lab.MeanS: c.mean,
			lab.P99S: c.p99, lab.MaxS: c.longest, lab.Failed: c.failed, lab.NonSuccess: c.non2xx, lab.Connections: 20000})
		f := finding(o, "straggler")
		if word(f) != c.straggler || math.Abs(f.Values["longest_over_duration"]-c.share) > 0.006 {
			t.Errorf("%s: straggler %s, %.3f; want %s, %.2f", c.step, word(f), f.Values["longest_over_duration"], c.straggler, c.share)
		}
		low, known := f.Values["rate_low_per_s"]
		if known != (c.lowest > 0) || known && (math.Abs(low-c.lowest) > 50 || math.Abs(f.Values["rate_high_per_s"]-c.above) > 60) {
			t.Errorf("%s: without the straggler %.0f to %.0f, want %.0f to %.0f", c.step, low, f.Values["rate_high_per_s"], c.lowest, c.above)
		}
		if got := o.Figures[lab.LittleRatio]; math.Abs(got-c.little) > 0.006 {
			t.Errorf("%s: Little's ratio %.4f, want %.3f", c.step, got, c.little)
		}
		for code, want := range map[string]string{"littles-law": "warned", "short-run": "warned", "impossible": "quiet", "errors": "note", "client-cpu": "not evaluated"} {
			if f := finding(o, code); word(f) != want {
				t.Errorf("%s: %s is %s, want %s: %s", c.step, code, word(f), want, f.Evidence)
			}
		}
	}
}

// nginx's defaults with 1024 worker_connections: 64 failures per class at c = 1000, 4064 at c = 5000.
func TestDefaultWorkerConnectionsExplainTheFailures(t *testing.T) {
	for _, c := range []struct {
		connections int
		rate        float64
		failed      float64
	}{{1000, 24557.34, 64}, {5000, 19751.38, 4064}} {
		o := published("ab", 200000, c.connections, false, lab.Figures{lab.Requests: 200000, lab.DurationS: 200000 / c.rate, lab.RequestRate: c.rate,
			lab.Failed: c.failed, lab.ErrLength: c.failed, lab.ErrException: c.failed, lab.NonSuccess: 0})
		o.Server.WorkerConnections, o.Server.Listeners, o.Server.Workers = known(1024), 1, []float64{0}
		f := finding(o, "worker-connections")
		if word(f) != "limit" || !strings.Contains(f.Evidence, "957 of worker_connections 1024") || !strings.Contains(f.Step, "worker_connections:") {
			t.Errorf("c = %d: %s: %s %s", c.connections, word(f), f.Evidence, f.Step)
		}
	}
}

// brpc with a fixed delay: the ceiling is connections ÷ delay, 1000 and 500 per second.
func TestFixedDelayIsTheBound(t *testing.T) {
	for delay, rate := range map[float64]float64{1: 822.36, 2: 414.83} {
		o := quietScene().observe()
		idle(0.1, 0.1, 0)(&o)
		o.Point = lab.LoadPoint{Tool: "ab", KeepAlive: true, Connections: 1000}
		o.Figures = lab.Figures{lab.Requests: 10000, lab.DurationS: 10000 / rate, lab.MeanS: delay, lab.LittleRatio: rate * delay / 1000, lab.Failed: 0}
		f := finding(o, "latency-bound")
		if word(f) != "limit" || math.Abs(f.Values["bound_per_s"]-1000/delay) > 1 {
			t.Errorf("delay %g s: %s, bound %.0f: %s", delay, word(f), f.Values["bound_per_s"], f.Evidence)
		}
	}
}

// wrk against /hello on 8 cores: with 300 connections the latency is too long for the rate, with 20000 more than half
// of the connections had nothing to do.
func TestLatencyThatDoesNotFitTheRateIsSeen(t *testing.T) {
	for _, c := range []struct {
		connections int
		rate, mean  float64
		little      float64
		want        string
	}{
		{300, 28523.93, 0.01726, 1.64, "warned"},
		{5000, 30625.28, 0.12232, 0.749, "quiet"},
		{8000, 29120.44, 0.21962, 0.799, "quiet"},
		{10000, 28526, 0.28633, 0.817, "quiet"},
		{20000, 30553.62, 0.28633, 0.437, "quiet"},
	} {
		o := published("wrk", 0, c.connections, true, lab.Figures{lab.Requests: 30 * c.rate, lab.DurationS: 30, lab.RequestRate: c.rate, lab.MeanS: c.mean})
		f := finding(o, "littles-law")
		if word(f) != c.want || math.Abs(f.Values["little_ratio"]-c.little) > 0.005 {
			t.Errorf("c = %d: %s, %.3f; want %s, %.3f", c.connections, word(f), f.Values["little_ratio"], c.want, c.little)
		}
	}
}

func TestReportsThatContradictThemselves(t *testing.T) {
	for _, c := range []struct {
		name    string
		n, conn int
		f       lab.Figures
		want    string
	}{
		{"1000 of 10000 requests", 10000, 1000, lab.Figures{lab.Requests: 1000, lab.DurationS: 0.287, lab.RequestRate: 3485.11}, "invalid"},
		{"concurrency 200 for 2, and a rate of its own", 2000, 2, lab.Figures{lab.Requests: 2000, lab.DurationS: 1.013, lab.RequestRate: 9333.23, lab.Connections: 200}, "invalid"},
		{"the rate alone", 2000, 200, lab.Figures{lab.Requests: 2000, lab.DurationS: 1.013, lab.RequestRate: 9333.23, lab.Connections: 200}, "invalid"},
		{"pages of another length", 100, 10, lab.Figures{lab.Requests: 100, lab.DurationS: 29.32944, lab.RequestRate: 3.44, lab.ErrLength: 42, lab.Failed: 0, lab.Connections: 10}, "quiet"},
	} {
		if f := finding(published("ab", c.n, c.conn, false, c.f), "impossible"); word(f) != c.want {
			t.Errorf("%s: %s: %s", c.name, word(f), f.Evidence)
		}
	}
}
