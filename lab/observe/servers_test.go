package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// commandScene is the quiet scene with a server that a command started, which counts its requests itself: each poll adds
// perPoll to them.
func commandScene(perPoll uint64) scene {
	sc := quietScene()
	sc.each = func(i int, s *lab.Sample) {
		n := s.Status.Requests - s.Status.Polls
		polls := uint64(i + 1)
		s.Status, s.Served = nil, &lab.Served{Requests: n + polls*perPoll, Polls: polls, PerPoll: perPoll}
	}
	sc.change = func(in *Input) {
		in.Serving.Config, in.Serving.Command = "", &lab.ServerCommand{Start: []string{"/srv/server"}}
		in.Run.Server.Tree, in.Run.Server.Workers = true, nil
	}
	return sc
}

func TestServerThatCountsItselfIsHeldAgainstTheTool(t *testing.T) {
	for name, c := range map[string]struct {
		perPoll uint64
		each    func(int, *lab.Sample)
		want    string
	}{
		"at a URL that counts its own polls":  {1, nil, "quiet"},
		"in a log without them":               {0, nil, "quiet"},
		"another client asks":                 {1, func(i int, s *lab.Sample) { s.Served.Requests += uint64(i) * 1000 }, "invalid"},
		"requests of the tool are not served": {0, func(i int, s *lab.Sample) { s.Served.Requests -= s.Served.Requests / 20 }, "invalid"},
		"a poll's own share is learned":       {1, func(i int, s *lab.Sample) { s.Served.PerPoll = uint64(min(i, 1)) }, "quiet"},
		"no answer":                           {1, func(_ int, s *lab.Sample) { s.Served = nil }, "not evaluated"},
	} {
		sc := commandScene(c.perPoll)
		if first := sc.each; c.each != nil {
			sc.each = func(i int, s *lab.Sample) { first(i, s); c.each(i, s) }
		}
		if f := finding(sc.observe(), "count-mismatch"); word(f) != c.want {
			t.Errorf("%s: %s: %s", name, word(f), f.Evidence)
		}
	}
}

func TestRulesOfNginxAreNotEvaluatedOfACommand(t *testing.T) {
	o := commandScene(1).observe()
	for _, code := range []string{"worker-connections", "fewer-connections", "keepalive-ineffective"} {
		if f := finding(o, code); f.Outcome != lab.NotEvaluated {
			t.Errorf("%s: %s: %s", code, word(f), f.Evidence)
		}
	}
	if f := finding(o, "server-cpu"); f.Outcome != lab.Fired || !strings.Contains(f.Evidence, "0.97 of 1 cores") {
		t.Errorf("server-cpu: %s: %s", word(f), f.Evidence)
	}
	if got, want := o.Figures[lab.CPUPerRequest], quietScene().observe().Figures[lab.CPUPerRequest]; got <= 0 || got/want > 1.001 || want/got > 1.001 {
		t.Errorf("%g s of CPU per request, want %g", got, want)
	}
	if _, known := o.Figures[lab.ServerAccepts]; known {
		t.Error("connections are counted that nobody counted")
	}
}

func TestThreadsOfACommandMayUseEveryCPU(t *testing.T) {
	sc := commandScene(0)
	change := sc.change
	sc.change = func(in *Input) { change(in); in.Serving.CPUs = []int{0, 1} }
	if f := finding(sc.observe(), "server-cpu"); f.Outcome != lab.Quiet || !strings.Contains(f.Evidence, "0.97 of 2 cores") {
		t.Errorf("%s: %s", word(f), f.Evidence)
	}
}

func TestProcessesOfACommandComeAndGo(t *testing.T) {
	for name, c := range map[string]struct {
		gone lab.ProcessRole
		want string
	}{"a worker": {lab.ServerWorker, "quiet"}, "the first process": {lab.ServerMaster, "invalid"}} {
		sc := commandScene(1)
		first := sc.each
		sc.each = func(i int, s *lab.Sample) {
			if first(i, s); i > 10 {
				s.Processes = slices.DeleteFunc(s.Processes, func(p lab.ProcessSample) bool { return p.Role == c.gone })
			}
		}
		if f := finding(sc.observe(), "server-restarted"); word(f) != c.want {
			t.Errorf("%s: %s: %s", name, word(f), f.Evidence)
		}
	}
}

// proxyScene is the quiet scene with an upstream on a machine of its own.
func proxyScene(each func(i int, s *lab.Sample)) scene {
	sc := quietScene()
	sc.change = func(in *Input) {
		in.Serving.Upstream = &lab.Serving{Target: "back", Port: 8090}
		in.Run.Server.Upstream = &lab.Server{Master: 30, Workers: []int{31}}
		in.Facts["back"] = lab.Facts{CPUs: []int{0, 1}, BootID: "other"}
		for i, s := range slices.Clone(in.Run.Samples) {
			s.Host, s.Status, s.Listeners, s.CPUs = "back", nil, nil, slices.Clone(s.CPUs)
			s.Processes = []lab.ProcessSample{{PID: 30, Role: lab.ServerMaster}, {PID: 31, Role: lab.ServerWorker, CPUS: s.CPUs[0].UserS + s.CPUs[1].UserS}}
			each(i, &s)
			in.Run.Samples = append(in.Run.Samples, s)
		}
	}
	return sc
}

func TestUpstreamIsWatchedAsTheTargetIs(t *testing.T) {
	for name, c := range map[string]struct {
		each func(int, *lab.Sample)
		code string
		want string
		says string
	}{
		"quiet": {func(int, *lab.Sample) {}, "server-restarted", "quiet", ""},
		"died": {func(i int, s *lab.Sample) {
			if i > 10 {
				s.Processes = nil
			}
		}, "server-restarted", "invalid", "the upstream on back: its processes are gone"},
		"began anew": {func(i int, s *lab.Sample) {
			if i > 10 {
				s.Processes[0].PID = 40
			}
		}, "server-restarted", "invalid", "the upstream on back: its processes were 30 31 and are 31 40"},
		"others work there": {func(i int, s *lab.Sample) { s.CPUs[0].UserS += 0.5 * float64(i) }, "foreign-cpu", "invalid", "of back"},
		"swaps":             {func(i int, s *lab.Sample) { s.SwapPages = uint64(i) }, "swap", "warned", "back swapped"},
	} {
		f := finding(proxyScene(c.each).observe(), c.code)
		if word(f) != c.want || !strings.Contains(f.Evidence, c.says) {
			t.Errorf("%s: %s: %s", name, word(f), f.Evidence)
		}
	}
}

// waiting is a run whose requests wait by design, so that a server of next to no work answers c/delay per second.
func waiting(tool string, delay float64) scene {
	const c, d = 1000, 20
	sc := scene{d: d, rate: c / delay, worker: 0.01, client: 0.01, connections: c}
	sc.change = func(in *Input) {
		in.Point.URL, in.Point.Tool = "/1k", tool
		in.Serving.Config = strings.Replace(in.Serving.Config, "1024", "4096", 1)
		n := in.Run.Figures[lab.Requests]
		if tool == "wrk" { // what is in flight at the end is not counted
			n -= c
			in.Run.Figures[lab.Requests], in.Run.Figures[lab.RequestRate] = n, n/d
			in.Run.Figures[lab.BytesRead] = n * (238 + 1024)
		} else {
			in.Point.Duration, in.Point.Requests = lab.Duration{}, int(n)
			in.Run.Figures[lab.BodyBytes] = n * 1024
			delete(in.Run.Figures, lab.Corrections)
		}
		for m, v := range map[lab.Metric]float64{lab.MeanS: delay + 0.003, lab.P50S: delay + 0.002, lab.P99S: delay + 0.01, lab.MaxS: delay + 0.05} {
			in.Run.Figures[m] = v
		}
		in.Run.Processes[0].Command.Tool = tool
	}
	return sc
}

func TestRequestsThatWaitByDesignAreNoFault(t *testing.T) {
	for _, tool := range []string{"wrk", "ab"} {
		for _, delay := range []float64{1, 2} {
			o := waiting(tool, delay).observe()
			findings, _ := Judge(o, Rules())
			for _, f := range findings {
				short := f.Code == "short-run" && tool == "ab" // so few requests per connection are few, whatever they wait for
				if f.Outcome == lab.Fired && f.Consequence != lab.Limit && f.Consequence != lab.Note && !short {
					t.Errorf("%s, %g s: %s: %s: %s", tool, delay, f.Code, word(f), f.Evidence)
				}
			}
			if l := finding(o, "latency-bound"); l.Outcome != lab.Fired {
				t.Errorf("%s, %g s: %s", tool, delay, fmt.Sprint(l))
			}
		}
	}
}

func TestFixedCountOfLongRequestsHasNoStraggler(t *testing.T) {
	sc := waiting("ab", 2)
	change := sc.change
	for name, c := range map[string]struct {
		mean float64
		want string
	}{"all take as long": {2.003, "quiet"}, "one takes ten times as long": {0.2, "warned"}} {
		sc.change = func(in *Input) {
			change(in)
			in.Run.Figures[lab.DurationS], in.Run.Figures[lab.MeanS], in.Run.Figures[lab.MaxS] = 4.1, c.mean, 2.01
		}
		if f := finding(sc.observe(), "straggler"); word(f) != c.want {
			t.Errorf("%s: %s: %s", name, word(f), f.Evidence)
		}
	}
}
