package observe

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

// want is an outcome, or the consequence of a rule that fired.
type ruleCase struct {
	code   string
	change func(*Observation)
	want   string
	says   string // part of the evidence
}

func word(f lab.Finding) string {
	if f.Outcome == lab.Fired {
		return string(f.Consequence)
	}
	return string(f.Outcome)
}

func set(f lab.Figures, m lab.Metric, v float64) func(*Observation) {
	return func(o *Observation) { o.Figures[m] = v }
}

// fixed makes the run one of a fixed count.
func fixed(tool string, n, c int, figures lab.Figures) func(*Observation) {
	return func(o *Observation) {
		o.Point = lab.LoadPoint{Tool: tool, Connections: c, Requests: n}
		o.Figures = figures
	}
}

func TestRulesAroundTheirThresholds(t *testing.T) {
	cases := []ruleCase{
		{"client-cpu", func(o *Observation) { o.Client.Busy = known(0.899) }, "quiet", "0.90"},
		{"client-cpu", func(o *Observation) {
			o.Client.Busy = known(0.90)
			o.Server.Workers, o.Server.Cores = []float64{0.88}, known(0.88)
		}, "lower-bound", "0.90"},
		{"client-cpu", func(o *Observation) { o.Client.Busy = Number{} }, "not evaluated", ""},
		{"client-single-thread", func(o *Observation) { o.Client.ThreadMax = known(0.949) }, "quiet", ""},
		{"client-single-thread", func(o *Observation) { o.Client.ThreadMax = known(0.95); o.Server.Workers = []float64{0.5} }, "lower-bound", "0.95"},
		{"client-fds", func(o *Observation) { o.Run.Processes[0].Stderr = []byte("socket: Too many open files (24)\n") }, "invalid", "Too many"},
		{"client-fds", func(o *Observation) { o.Figures[lab.ErrConnect] = 141 }, "invalid", "141"},
		{"client-fds", func(o *Observation) { o.Figures[lab.ErrConnect] = 141; o.Counts.ListenDrops = known(141) }, "quiet", ""},
		{"fewer-connections", func(o *Observation) { o.Counts.ActiveMedian = known(99) }, "quiet", ""},
		{"fewer-connections", func(o *Observation) { o.Counts.ActiveMedian = known(98) }, "warned", "98 of 100"},
		{"fewer-connections", func(o *Observation) { o.Counts.ActiveMedian = known(94) }, "invalid", ""},
		{"fewer-connections", func(o *Observation) { o.Counts.Accepts = known(73) }, "invalid", "73 of 100"},
		{"fewer-connections", func(o *Observation) { o.Counts.ActiveMedian = known(60); o.Counts.ListenDrops = known(40) }, "warned", "turned"},
		{"fewer-connections", func(o *Observation) {
			o.Counts.ActiveMedian, o.Point.Connections, o.Figures[lab.Failed] = known(938), 1000, 2080
		}, "warned", "turned"},
		{"fewer-connections", func(o *Observation) { o.Point.KeepAlive = false }, "not evaluated", ""},
		{"short-run", set(nil, lab.DurationS, 2.0), "quiet", ""},
		{"short-run", set(nil, lab.DurationS, 1.95), "warned", ""},
		{"short-run", set(nil, lab.DurationS, 0.98), "invalid", ""},
		{"short-run", fixed("ab", 2000, 100, lab.Figures{lab.DurationS: 5, lab.Requests: 2000}), "quiet", "20 requests per connection"},
		{"short-run", fixed("ab", 1999, 100, lab.Figures{lab.DurationS: 5, lab.Requests: 1999}), "warned", ""},
		{"short-run", fixed("ab", 499, 100, lab.Figures{lab.DurationS: 5, lab.Requests: 499}), "invalid", ""},
		{"straggler", func(*Observation) {}, "not evaluated", "timed"},
		{"straggler", fixed("ab", 1000, 10, lab.Figures{lab.DurationS: 10, lab.Requests: 1000, lab.MaxS: 2.4}), "quiet", ""},
		{"straggler", fixed("ab", 1000, 10, lab.Figures{lab.DurationS: 10, lab.Requests: 1000, lab.MaxS: 2.5, lab.P99S: 0.1}), "warned", "130 and 132"},
		{"straggler", fixed("ab", 1000, 10, lab.Figures{lab.DurationS: 10, lab.Requests: 1000, lab.MaxS: 5}), "invalid", "cannot be recovered"},
		{"start-skew", func(*Observation) {}, "quiet", "one process"},
		{"start-skew", two(func(o *Observation) { o.Run.Window.SkewS = 0.1 }), "quiet", ""},
		{"start-skew", two(func(o *Observation) { o.Run.Window.SkewS = 0.11 }), "warned", ""},
		{"start-skew", two(func(o *Observation) { o.Run.Window.SkewS = 0.51 }), "invalid", ""},
		{"uneven-end", two(func(o *Observation) { o.Run.Window.Overlap = 0.95 }), "quiet", ""},
		{"uneven-end", two(func(o *Observation) { o.Run.Window.Overlap = 173.0 / 187 }), "warned", "0.93"},
		{"uneven-end", two(func(o *Observation) { o.Run.Window.Overlap = 0.79 }), "invalid", ""},
		{"keepalive-ineffective", func(o *Observation) { o.Counts.Accepts = known(100 + 0.0099*300000) }, "quiet", ""},
		{"keepalive-ineffective", func(o *Observation) { o.Counts.Accepts = known(100 + 0.011*300000) }, "warned", ""},
		{"keepalive-ineffective", func(o *Observation) { o.Counts.Accepts = known(300000) }, "invalid", ""},
		{"keepalive-ineffective", func(o *Observation) { o.Counts.Accepts, o.Counts.ListenDrops = known(300000), known(1) }, "warned", ""},
		{"keepalive-ineffective", func(o *Observation) { o.Server.KeepAliveRequests = 100; o.Counts.Accepts = known(100 + 0.019*300000) }, "quiet", ""},
		{"keepalive-ineffective", set(nil, lab.KeptAlive, 0.97*300000), "warned", "ab kept"},
		{"keepalive-ineffective", func(o *Observation) { o.Point.KeepAlive = false }, "not evaluated", ""},

		{"tool-failed", func(o *Observation) { o.Run.Problem = "wrk gave no report" }, "invalid", "no report"},
		{"tool-failed", set(nil, lab.Requests, 0), "invalid", "no request"},
		{"tool-failed", func(o *Observation) { o.Run.Processes[0].Problem = "exit status 104" }, "invalid", "104"},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(300100) }, "quiet", ""},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(300101) }, "note", ""},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(300401) }, "warned", ""},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(303101) }, "invalid", ""},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(299936) }, "warned", "-64"},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(296000) }, "invalid", ""},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(296000); o.Figures[lab.Failed] = 4000 }, "warned", "4000 failed"},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(292000); o.Figures[lab.Failed] = 4000 }, "invalid", ""},
		{"count-mismatch", func(o *Observation) { o.Counts.Requests = known(300400); o.Figures[lab.Failed] = 300 }, "quiet", ""},
		{"littles-law", set(nil, lab.LittleRatio, 0.40), "quiet", ""},
		{"littles-law", set(nil, lab.LittleRatio, 0.39), "warned", ""},
		{"littles-law", set(nil, lab.LittleRatio, 1.26), "warned", ""},
		{"littles-law", func(o *Observation) { o.Figures[lab.LittleRatio] = 0.1; o.Figures[lab.Corrections] = 0.05 }, "not evaluated", "back-filled"},
		{"littles-law", func(o *Observation) { o.Figures[lab.LittleRatio] = 0.1; o.Point.KeepAlive = false }, "not evaluated", "connect"},
		{"littles-law", func(o *Observation) { o.Figures[lab.LittleRatio] = 1.4; o.Point.Connections = 1 }, "not evaluated", "fewer"},
		{"littles-law", func(o *Observation) {
			o.Point.Tool = "ab"
			o.Figures[lab.LittleRatio], o.Figures[lab.MeanS] = 0.74, 0.010
		}, "warned", ""},
		{"littles-law", func(o *Observation) {
			o.Point.Tool = "ab"
			o.Figures[lab.LittleRatio], o.Figures[lab.MeanS] = 0.77, 0.010
		}, "quiet", ""},
		{"littles-law", func(o *Observation) {
			o.Point.Tool = "ab"
			o.Figures[lab.LittleRatio], o.Figures[lab.MeanS] = 0.1, 0.009
		}, "not evaluated", "whole milliseconds"},
		{"latency-corrected", set(nil, lab.Corrections, 0.02), "quiet", ""},
		{"latency-corrected", set(nil, lab.Corrections, 0.021), "warned", ""},
		{"latency-corrected", func(o *Observation) { delete(o.Figures, lab.Corrections); o.Run.Processes[0].Report.Corrected = true }, "warned", ""},
		{"latency-corrected", func(o *Observation) { delete(o.Figures, lab.Corrections) }, "not evaluated", ""},
		{"errors", set(nil, lab.Failed, 0), "quiet", ""},
		{"errors", set(nil, lab.Failed, 1), "note", ""},
		{"errors", set(nil, lab.Failed, 301), "warned", ""},
		{"errors", set(nil, lab.Failed, 15001), "warned", "not compared"},
		{"errors", func(o *Observation) { delete(o.Figures, lab.Failed) }, "not evaluated", ""},
		{"non-2xx", set(nil, lab.NonSuccess, 300), "note", ""},
		{"non-2xx", set(nil, lab.NonSuccess, 300000), "warned", "100%"},
		{"length-mismatch", set(nil, lab.BytesRead, 300000*(1262+38)), "quiet", ""},
		{"length-mismatch", set(nil, lab.BytesRead, 300000*(1262+60)), "warned", ""},
		{"length-mismatch", set(nil, lab.BytesRead, 300000*400), "invalid", ""},
		{"length-mismatch", func(o *Observation) { o.Point.KeepAlive = false; o.Figures[lab.BytesRead] = 300000 * (1262 - 5) }, "quiet", ""},
		{"length-mismatch", func(o *Observation) { o.Point.KeepAlive = false; o.Figures[lab.BytesRead] = 300000 * 2000 }, "invalid", ""},
		{"length-mismatch", func(o *Observation) { o.Point.Tool = "ab"; o.Figures[lab.BodyBytes] = 300000 * 1024 }, "quiet", ""},
		{"length-mismatch", func(o *Observation) { o.Point.Tool = "ab"; o.Figures[lab.BodyBytes] = 0 }, "invalid", ""},
		{"impossible", set(nil, lab.RequestRate, 30330), "invalid", "30330"},
		{"impossible", set(nil, lab.RequestRate, 30290), "quiet", ""},
		{"impossible", set(nil, lab.P99S, 0.001), "invalid", "below"},
		{"impossible", set(nil, lab.MeanS, 0.022), "invalid", "mean"},
		{"impossible", set(nil, lab.MaxS, 10.11), "invalid", "longest"},
		{"impossible", set(nil, lab.Failed, 300001), "invalid", "failed"},
		{"impossible", set(nil, lab.Connections, 200), "invalid", "asked for 100 connections"},
		{"impossible", set(nil, lab.CPUPerRequest, 0.4e-6), "invalid", "CPU"},

		{"server-cpu", func(o *Observation) { o.Server.Workers = []float64{0.949} }, "quiet", ""},
		{"server-cpu", func(o *Observation) { o.Server.Workers = []float64{0.95} }, "limit", ""},
		{"server-cpu", func(o *Observation) { o.Server.CPUs, o.Server.Workers = 4, []float64{0.96, 0.4} }, "limit", ""},
		{"server-cpu", func(o *Observation) { o.Server.CPUs, o.Server.Workers = 4, []float64{0.96, 0.8} }, "quiet", ""},
		{"listen-overflow", func(*Observation) {}, "quiet", ""},
		{"listen-overflow", func(o *Observation) { o.Counts.ListenDrops = known(1); o.Counts.Accepts = known(100000) }, "limit", ""},
		{"listen-overflow", func(o *Observation) { o.Counts.ListenDrops = known(172); o.Counts.Accepts = known(100000) }, "warned", "172"},
		{"listen-overflow", func(o *Observation) {
			o.Counts.ListenDrops = Number{}
			o.Counts.ListenOverflows = known(5)
			o.Counts.Accepts = Number{}
		}, "limit", "others"},
		{"listen-overflow", func(o *Observation) { o.Counts.ListenDrops, o.Counts.ListenOverflows = Number{}, Number{} }, "not evaluated", ""},
		{"syn-retransmit", syn(10, 10000, 0), "quiet", ""},
		{"syn-retransmit", syn(11, 10000, 0), "warned", "path"},
		{"syn-retransmit", syn(172, 10000, 138), "limit", ""},
		{"syn-retransmit", syn(172, 10000, 137), "warned", ""},
		{"syn-retransmit", syn(1, 0, 0), "not evaluated", ""},
		{"worker-connections", func(o *Observation) {
			o.ErrorLog = []string{"[warn] 7#7: 1024 worker_connections are not enough, reusing connections"}
		}, "limit", "not enough"},
		{"worker-connections", func(o *Observation) { o.Counts.Unhandled = known(1) }, "limit", ""},
		{"worker-connections", func(o *Observation) { o.Point.Connections = 957; o.Figures[lab.Failed] = 64 }, "limit", "956 of worker_connections 1024"},
		{"worker-connections", func(o *Observation) { o.Point.Connections = 956; o.Figures[lab.Failed] = 64 }, "quiet", ""},
		{"worker-connections", func(o *Observation) { o.Server.WorkerConnections = Number{} }, "not evaluated", ""},
		{"server-fds", func(o *Observation) { o.ErrorLog = []string{"accept4() failed (24: Too many open files)"} }, "limit", ""},
		{"server-fds", func(o *Observation) { o.Server.FDs, o.Server.FDLimit = known(950), known(1000) }, "quiet", ""},
		{"server-fds", func(o *Observation) { o.Server.FDs, o.Server.FDLimit = known(951), known(1000) }, "limit", ""},
		{"latency-bound", idle(0.79, 0.79, 0.80), "limit", "per second"},
		{"latency-bound", func(o *Observation) { idle(0.5, 0.5, 5)(o); o.Figures[lab.Corrections] = 0.05 }, "not evaluated", "back-filled"},
		{"latency-bound", idle(0.80, 0.79, 0.80), "quiet", ""},
		{"latency-bound", idle(0.79, 0.80, 0.80), "quiet", ""},
		{"latency-bound", idle(0.79, 0.79, 0.79), "quiet", ""},
		{"latency-bound", func(o *Observation) { idle(0.5, 0.5, 0.9)(o); o.Client.ThreadMax = known(0.97) }, "quiet", ""},
		{"latency-bound", func(o *Observation) { idle(0.5, 0.5, 0.9)(o); o.Counts.ListenDrops = known(9) }, "quiet", "listen-overflow"},

		{"foreign-cpu", host(func(h *HostView) { h.Foreign = known(0.079) }), "quiet", ""},
		{"foreign-cpu", host(func(h *HostView) { h.Foreign = known(0.08) }), "warned", "0.08"},
		{"foreign-cpu", host(func(h *HostView) { h.Foreign = known(0.20) }), "invalid", ""},
		{"foreign-cpu", host(func(h *HostView) { h.Foreign = known(0.4); h.Cores = 16 }), "quiet", "0.48"},
		{"host-speed", host(func(h *HostView) { h.YardBefore, h.YardAfter, h.YardMedian = known(0.010), known(0.0114), Number{} }), "quiet", ""},
		{"host-speed", host(func(h *HostView) { h.YardBefore, h.YardAfter = known(0.010), known(0.0116) }), "warned", ""},
		{"host-speed", host(func(h *HostView) { h.YardBefore, h.YardAfter = known(0.0126), known(0.010) }), "invalid", ""},
		{"host-speed", host(func(h *HostView) { h.YardBefore, h.YardAfter = known(0.0112), known(0.0112) }), "note", "median"},
		{"host-speed", host(func(h *HostView) { h.YardAfter = Number{} }), "not evaluated", ""},
		{"cpu-steal", host(func(h *HostView) { h.Steal = known(0.011) }), "warned", ""},
		{"cpu-steal", host(func(h *HostView) { h.Steal = known(0.051) }), "invalid", ""},
		{"swap", host(func(h *HostView) { h.SwapPages = known(1) }), "warned", ""},
		{"swap", host(func(h *HostView) { h.SwapPages = known(257 * h.SpanS) }), "invalid", ""},
		{"shared-cpu", func(o *Observation) { o.Client.SharedCPUs = []int{0, 1} }, "warned", "CPU 0 1"},
		{"shared-kernel", func(o *Observation) { o.SharedKernel = false }, "quiet", ""},
		{"knob-drift", func(o *Observation) { o.Drifted = []string{`web: sysctl net.core.somaxconn was "128", is "4096"`} }, "invalid", "somaxconn"},
		{"server-restarted", func(o *Observation) { o.Server.Restarted = "its counters went down" }, "invalid", ""},
		{"server-restarted", host(func(h *HostView) { h.Rebooted = true }), "invalid", "boot id"},
		{"clock-step", host(func(h *HostView) { h.ClockStepS = known(-0.004) }), "quiet", ""},
		{"clock-step", host(func(h *HostView) { h.ClockStepS = known(-0.006) }), "warned", ""},
		{"clock-step", host(func(h *HostView) { h.ClockStepS = known(0.2) }), "invalid", ""},
	}
	for _, c := range cases {
		o := quietScene().observe()
		c.change(&o)
		f := finding(o, c.code)
		if word(f) != c.want || !strings.Contains(f.Evidence+f.Advice, c.says) {
			t.Errorf("%s: %s, want %s saying %q: %s", c.code, word(f), c.want, c.says, f.Evidence)
		}
	}
}

func two(change func(*Observation)) func(*Observation) {
	return func(o *Observation) {
		o.Run.Processes = append(o.Run.Processes, o.Run.Processes[0])
		change(o)
	}
}

func syn(lost, opened, drops float64) func(*Observation) {
	return func(o *Observation) {
		o.Client.SynRetrans, o.Client.ActiveOpens, o.Counts.ListenDrops = known(lost), known(opened), known(drops)
	}
}

func idle(client, server, little float64) func(*Observation) {
	return func(o *Observation) {
		o.Client.Busy, o.Client.ThreadMax = known(client), Number{}
		o.Server.Cores, o.Server.Workers = known(server), []float64{server}
		o.Figures[lab.LittleRatio] = little
	}
}

func host(change func(*HostView)) func(*Observation) {
	return func(o *Observation) { change(&o.Hosts[0]) }
}

func TestEveryRuleHasACaseThatFires(t *testing.T) {
	want := "client-cpu client-single-thread client-throttled cpu-throttled client-fds server-cpu latency-bound foreign-cpu host-speed shared-cpu shared-kernel non-2xx errors count-mismatch littles-law " +
		"latency-corrected straggler short-run syn-retransmit listen-overflow worker-connections server-fds fewer-connections tool-failed impossible knob-drift server-restarted"
	have := map[string]bool{}
	for _, r := range Rules() {
		if have[r.Code] {
			t.Errorf("two rules %s", r.Code)
		}
		have[r.Code] = true
	}
	for _, code := range strings.Fields(want) {
		if !have[code] {
			t.Errorf("no rule %s", code)
		}
	}
}

// Whatever limits the target is the result being studied.
func TestTheTargetNeverInvalidatesARun(t *testing.T) {
	o := quietScene().observe()
	rule := Rule{"server-cpu", Target, func(Observation) lab.Finding { return found(lab.Invalidate, "", "") }}
	if findings, validity := Judge(o, []Rule{rule}); validity == lab.Invalid {
		t.Errorf("%+v", findings)
	}
}

func TestTieBetweenGeneratorAndServer(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		keepAlive  bool
		little     float64
		want       lab.Consequence
		limit      string
		validity   lab.Validity
	}{
		{"connections wait in wrk", "wrk", true, 0.55, lab.LowerBound, LimitGenerator, lab.Warned},
		{"the server keeps them", "wrk", true, 0.99, lab.Limit, "server-cpu", lab.Clean},
		{"wrk without keep-alive cannot tell", "wrk", false, 0.40, lab.Limit, "server-cpu", lab.Clean},
		{"ab cannot tell", "ab", true, 0.55, lab.Limit, "server-cpu", lab.Clean},
	} {
		o := quietScene().observe()
		o.Client.Busy, o.Client.ThreadMax = known(0.97), known(0.97)
		o.Point.Tool, o.Point.KeepAlive = c.tool, c.keepAlive
		o.Figures[lab.LittleRatio] = c.little
		o.Figures[lab.BodyBytes] = 300000 * 1024
		findings, validity := Judge(o, Rules())
		for _, f := range findings {
			if (f.Code == "client-cpu" || f.Code == "client-single-thread") && f.Consequence != c.want {
				t.Errorf("%s: %s is %s", c.name, f.Code, f.Consequence)
			}
		}
		if limit := Limiting(findings); limit != c.limit || validity != c.validity {
			t.Errorf("%s: limit %q, %s; want %q, %s", c.name, limit, validity, c.limit, c.validity)
		}
	}
}

func TestFindingsOnLatencyAloneSayThatTheyAre(t *testing.T) {
	o := quietScene().observe()
	o.Figures[lab.Corrections] = 0.05
	o.Counts.ListenDrops, o.Counts.Accepts = known(172), known(100000)
	o.Figures[lab.NonSuccess] = 1000
	for code, want := range map[string]bool{"latency-corrected": true, "listen-overflow": true, "non-2xx": false} {
		if f := finding(o, code); f.Outcome != lab.Fired || f.Concerns(lab.P99S) != true || f.Concerns(lab.Goodput) == want {
			t.Errorf("%s: %+v", code, f)
		}
	}
}

func TestGeneratorAloneAtItsLimitGivesALowerBound(t *testing.T) {
	sc := quietScene()
	sc.client, sc.worker = 0.97, 0.88
	findings, validity := Judge(sc.observe(), Rules())
	if validity != lab.Warned || Limiting(findings) != LimitGenerator {
		t.Errorf("%s, limit %q", validity, Limiting(findings))
	}
}

func TestNothingAtItsLimitIsSaid(t *testing.T) {
	if limit := Limiting(nil); limit != LimitNotIdentified {
		t.Errorf("%q", limit)
	}
}

func TestKnobThatAnotherProgramSetInvalidates(t *testing.T) {
	sc := quietScene()
	sc.change = func(in *Input) {
		in.Knobs = []KnobReading{
			{Host: "here", Knob: "sysctl net.core.somaxconn", Should: "4096", Found: "none", When: AfterRun, Drifted: true},
			{Host: "here", Knob: "sysctl net.core.rmem_max", Should: "1", Found: "1", When: AfterRun},
			{Host: "here", Knob: "the server's open-file limit", Server: true, Should: "1024", Found: "512", When: BeforeRun, Drifted: true},
		}
	}
	f := finding(sc.observe(), "knob-drift")
	want := "here: sysctl net.core.somaxconn should be 4096, was none after the run; here: the server's open-file limit should be 1024, was 512 before the run"
	if word(f) != "invalid" || f.Evidence != want {
		t.Errorf("%s: %s", word(f), f.Evidence)
	}
}

func TestDriftIsNotEvaluatedWithoutTheServersKnobs(t *testing.T) {
	for want, readings := range map[string][]KnobReading{
		"not evaluated": {{Host: "here", Knob: "sysctl net.core.somaxconn"}},
		"quiet":         {{Host: "here", Knob: "the server's program", Server: true}},
	} {
		sc := quietScene()
		sc.change = func(in *Input) { in.Knobs = readings }
		if f := finding(sc.observe(), "knob-drift"); word(f) != want {
			t.Errorf("with %v: %s: %s", readings, word(f), f.Evidence)
		}
	}
}

func TestRestartsAreSeenInProcessesCountersAndBoot(t *testing.T) {
	for name, each := range map[string]func(int, *lab.Sample){
		"another worker": func(i int, s *lab.Sample) { s.Processes[1].PID += i / 10 },
		"no process":     func(i int, s *lab.Sample) { s.Processes = s.Processes[min(2, i/10*2):] },
		"counters":       func(i int, s *lab.Sample) { s.Status.Requests -= uint64(i/10) * 200000 },
		"boot":           func(i int, s *lab.Sample) { s.BootID = map[bool]string{true: "boot", false: "other"}[i < 10] },
	} {
		sc := quietScene()
		sc.each = each
		if f := finding(sc.observe(), "server-restarted"); word(f) != "invalid" {
			t.Errorf("%s: %s: %s", name, word(f), f.Evidence)
		}
	}
}

func TestStepsToTryAreGivenWhereAKnobCures(t *testing.T) {
	o := quietScene().observe()
	o.Counts.ListenDrops, o.Counts.Unhandled = known(5), known(3)
	o.Server.FDs, o.Server.FDLimit = known(999), known(1000)
	for _, code := range []string{"listen-overflow", "worker-connections", "server-fds"} {
		if f := finding(o, code); !strings.HasPrefix(f.Step, "- {name: ") || !strings.HasSuffix(f.Step, "}\n") {
			t.Errorf("%s: step %q", code, f.Step)
		}
	}
}
