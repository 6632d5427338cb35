package observe

import (
	"math"
	"slices"
	"testing"
	"time"

	"ngxlab/lab"
)

func wantFigure(t *testing.T, f lab.Figures, m lab.Metric, want float64) {
	t.Helper()
	if got, known := f[m]; !known || math.Abs(got-want) > 1e-3*math.Max(math.Abs(want), 1e-6) {
		t.Errorf("%s = %v (known %v), want %v", m, got, known, want)
	}
}

func TestFiguresAreDifferencesOverTheWindow(t *testing.T) {
	o := quietScene().observe()
	f := o.Figures
	wantFigure(t, f, lab.ServerCPU, 0.97)
	wantFigure(t, f, lab.ServerCPUWorker, 0.97)
	wantFigure(t, f, lab.ServerBusy, 0.97)
	wantFigure(t, f, lab.CPUPerRequest, 0.97/30000)
	wantFigure(t, f, lab.ClientCPU, 0.77)
	wantFigure(t, f, lab.ClientThreadMax, 0.77)
	wantFigure(t, f, lab.ClientBusy, 0.77)
	wantFigure(t, f, lab.ClientCPUPerReq, 0.77/30000)
	wantFigure(t, f, lab.ServerRequests, 300000) // the polls are not among them
	wantFigure(t, f, lab.ServerAccepts, 100)
	wantFigure(t, f, lab.LittleRatio, 0.95)
	wantFigure(t, f, lab.ServerPSS, 6<<20)
	wantFigure(t, f, lab.YardstickS, 0.0101)
	if foreign := f[lab.ForeignCPU]; math.Abs(foreign) > 0.005 {
		t.Errorf("foreign CPU %.4f cores, want none", foreign)
	}
}

func TestQuietServerLimitedRunIsClean(t *testing.T) {
	findings, validity := Judge(quietScene().observe(), Rules())
	if validity != lab.Clean {
		t.Errorf("validity %s", validity)
	}
	var codes []string
	for _, f := range findings {
		if f.Outcome == lab.Fired {
			codes = append(codes, f.Code)
		}
		if f.Evidence == "" {
			t.Errorf("%s (%s) gives no evidence", f.Code, f.Outcome)
		}
		if f.Outcome == lab.Fired && f.Advice == "" {
			t.Errorf("%s gives no advice", f.Code)
		}
	}
	if !slices.Equal(codes, []string{"server-cpu", "shared-kernel"}) {
		t.Errorf("fired: %q", codes)
	}
	if limit := Limiting(findings); limit != "server-cpu" {
		t.Errorf("limit %q", limit)
	}
}

func TestForeignLoadShowsOnlyAsForeign(t *testing.T) {
	sc := quietScene()
	sc.foreign = 0.15
	o := sc.observe()
	wantFigure(t, o.Figures, lab.ForeignCPU, 0.15)
	wantFigure(t, o.Figures, lab.ClientCPU, 0.77)
	wantFigure(t, o.Figures, lab.ClientBusy, 0.92)
}

func TestTheAgentIsNotForeign(t *testing.T) {
	sc := quietScene()
	sc.foreign = 0.15
	sc.each = func(i int, s *lab.Sample) { s.AgentCPUS = 0.05 * float64(i) / 2 }
	wantFigure(t, sc.observe().Figures, lab.ForeignCPU, 0.10)
}

func TestSoftInterruptsOfARemoteLoadAreNotForeign(t *testing.T) {
	sc := quietScene()
	sc.each = func(i int, s *lab.Sample) { s.CPUs[0].SoftIRQS = 0.3 * float64(i) / 2 }
	sc.change = func(in *Input) { in.SharedKernel = false }
	if f := sc.observe().Figures[lab.ForeignCPU]; math.Abs(f) > 0.02 {
		t.Errorf("foreign CPU %.3f", f)
	}
	sc.change = nil
	if f := sc.observe().Figures[lab.ForeignCPU]; f < 0.25 {
		t.Errorf("on one kernel the same time is %.3f", f)
	}
}

func TestMissingPollIsNotZero(t *testing.T) {
	sc := quietScene()
	sc.each = func(i int, s *lab.Sample) {
		if i != 0 && i != 22 {
			s.Status = nil
		}
	}
	o := sc.observe()
	if o.Counts.ActiveMedian.Known {
		t.Error("a median of no readings")
	}
	wantFigure(t, o.Figures, lab.CPUPerRequest, 0.97/30000) // from the readings around the window
	sc.each = func(i int, s *lab.Sample) {
		if i > 20 {
			s.Status = nil
		}
	}
	if o := sc.observe(); o.Counts.Requests.Known || finding(o, "count-mismatch").Outcome != lab.NotEvaluated {
		t.Error("without the last reading the server's count is partial, and must not be compared")
	}
}

func TestNothingSeenIsNothingEvaluated(t *testing.T) {
	o := Observe(Input{Run: lab.Run{Cell: lab.CellID{Target: "web"}, Figures: lab.Figures{lab.Requests: 10}}})
	if n := len(o.Figures); n != 1 {
		t.Errorf("%d figures out of nothing besides the run's own: %v", n-1, o.Figures)
	}
	for _, code := range []string{"client-cpu", "client-single-thread", "client-fds", "fewer-connections", "short-run", "straggler", "start-skew",
		"count-mismatch", "littles-law", "latency-corrected", "errors", "non-2xx", "length-mismatch", "server-cpu", "listen-overflow", "syn-retransmit",
		"worker-connections", "server-fds", "latency-bound", "foreign-cpu", "host-speed", "cpu-steal", "swap", "shared-cpu", "server-restarted", "clock-step",
		"keepalive-ineffective", "uneven-end", "client-throttled", "cpu-throttled"} {
		if f := finding(o, code); f.Outcome != lab.NotEvaluated {
			t.Errorf("%s is %s: %s", code, f.Outcome, f.Evidence)
		}
	}
}

func TestClocksOfLoadHostsAreSetOff(t *testing.T) {
	sc := quietScene()
	sc.change = func(in *Input) {
		in.Ahead = map[lab.HostName]time.Duration{"load": 1000 * time.Second}
		in.Run.Processes[0].Host = "load"
		for _, s := range slices.Clone(in.Run.Samples) {
			s.Host, s.At = "load", s.At.Add(1000*time.Second)
			in.Run.Samples = append(in.Run.Samples, s)
		}
	}
	wantFigure(t, sc.observe().Figures, lab.ClientCPU, 0.77)
}
