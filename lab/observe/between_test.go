package observe

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// atTheEnd changes the last sample within the window and the one after it.
func atTheEnd(change func(*lab.Sample)) func(int, *lab.Sample) {
	return func(i int, s *lab.Sample) {
		if i >= 21 {
			change(s)
		}
	}
}

func process(s *lab.Sample, pid int) *lab.ProcessSample {
	i := slices.IndexFunc(s.Processes, func(p lab.ProcessSample) bool { return p.PID == pid })
	if i < 0 {
		return &lab.ProcessSample{}
	}
	return &s.Processes[i]
}

// A counter that went down began anew. What was counted until then is not known, and gives neither a figure nor a verdict.
func TestCountersThatWentDownAreNotEvaluated(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*lab.Sample)
		rules   []string
		figures []lab.Metric
	}{
		"a generator's time": {func(s *lab.Sample) { process(s, 20).CPUS = 0.0083 }, []string{"foreign-cpu"},
			[]lab.Metric{lab.ClientCPU, lab.ClientCPUPerReq, lab.ForeignCPU}},
		"a worker's time": {func(s *lab.Sample) { process(s, 11).CPUS = 4 }, []string{"server-cpu", "foreign-cpu", "latency-bound"},
			[]lab.Metric{lab.ServerCPU, lab.ServerCPUWorker, lab.ForeignCPU}},
		"a worker's number given again": {func(s *lab.Sample) { process(s, 11).StartedTicks = 77 }, []string{"server-cpu"},
			[]lab.Metric{lab.ServerCPU, lab.ServerCPUWorker, lab.CPUPerRequest}},
		"a worker replaced": {func(s *lab.Sample) { process(s, 11).PID = 12 }, []string{"server-cpu"},
			[]lab.Metric{lab.ServerCPU, lab.ServerCPUWorker, lab.CPUPerRequest}},
		"a CPU's idle time": {func(s *lab.Sample) { s.CPUs[1].IdleS = 50 }, []string{"client-cpu", "foreign-cpu", "cpu-steal"},
			[]lab.Metric{lab.ClientBusy, lab.ForeignCPU, lab.ServerBusy}},
		"the agent's time":  {func(s *lab.Sample) { s.AgentCPUS = -1 }, []string{"foreign-cpu"}, []lab.Metric{lab.ForeignCPU}},
		"pages swapped":     {func(s *lab.Sample) { s.SwapPages = 0 }, []string{"swap"}, nil},
		"counters of TCP":   {func(s *lab.Sample) { s.TCP["TCPSynRetrans"], s.TCP["ActiveOpens"] = 0, 0 }, []string{"syn-retransmit"}, nil},
		"drops of a socket": {func(s *lab.Sample) { s.Listeners[0].Drops = 1; s.TCP["ListenOverflows"] = 0 }, []string{"listen-overflow"}, nil},
		"a socket more": {func(s *lab.Sample) {
			s.Listeners = append(s.Listeners, lab.Listener{Port: 8081, Drops: 9})
			s.TCP["ListenOverflows"] = 0
		}, []string{"listen-overflow"}, nil},
		"the server's count": {func(s *lab.Sample) { s.Status.Requests = 5 }, []string{"count-mismatch", "server-stalled"}, []lab.Metric{lab.ServerRequests, lab.CPUPerRequest}},
		"the lab's polls":    {func(s *lab.Sample) { s.Status.Polls = 0 }, []string{"count-mismatch", "server-stalled", "keepalive-ineffective"}, []lab.Metric{lab.ServerRequests, lab.ServerAccepts, lab.CPUPerRequest}},
		"time of a quota":    {func(s *lab.Sample) { s.Throttle = &lab.Throttle{QuotaCPUs: 1, Periods: 1} }, []string{"cpu-throttled"}, []lab.Metric{lab.ClientThrottledS, lab.ServerThrottledS}},
	} {
		sc := quietScene()
		sc.each = func(i int, s *lab.Sample) {
			s.SwapPages, s.Throttle = 9, &lab.Throttle{QuotaCPUs: 1, Periods: 10 + uint64(i), PeriodsThrottled: 1, ThrottledS: 1}
			atTheEnd(c.change)(i, s)
		}
		o := sc.observe()
		for _, code := range c.rules {
			if f := finding(o, code); f.Outcome != lab.NotEvaluated {
				t.Errorf("%s: %s is %s: %s", name, code, word(f), f.Evidence)
			}
		}
		for _, m := range c.figures {
			if v, known := o.Figures[m]; known {
				t.Errorf("%s: %s = %v", name, m, v)
			}
		}
	}
}

// The numbers are those of a wrk of two threads whose second one was joined before the last sample.
func TestAThreadThatEndedDoesNotTakeItsTimeAlong(t *testing.T) {
	sc := quietScene()
	sc.each = atTheEnd(func(s *lab.Sample) { delete(process(s, 20).Threads, 21) })
	o := sc.observe()
	wantFigure(t, o.Figures, lab.ClientCPU, 0.77)
	wantFigure(t, o.Figures, lab.ClientThreadMax, 0.77)
	sc.each = func(_ int, s *lab.Sample) { process(s, 20).Threads = nil }
	if f := finding(sc.observe(), "client-single-thread"); f.Outcome != lab.NotEvaluated {
		t.Errorf("threads not read: %+v", f)
	}
}

func TestThreadsAreFollowedOverExec(t *testing.T) {
	p := func(s float64, threads map[int]float64) lab.Sample {
		return lab.Sample{At: at(s), Processes: []lab.ProcessSample{{PID: 20, Threads: threads}}}
	}
	got := threads([]lab.Sample{
		p(0, map[int]float64{20: 0.003, 22: 0.001}), p(1, map[int]float64{20: 0.002, 31: 0.5}), p(2, map[int]float64{20: 0.004, 31: 1.5}), p(3, map[int]float64{20: 0.006}),
	}, []int{20})
	for number, want := range map[int]thread{20: {at(1), at(3), 0.002, 0.006}, 22: {at(0), at(0), 0.001, 0.001}, 31: {at(0), at(2), 0, 1.5}} {
		if got := got[threadID{20, number}]; got == nil || *got != want {
			t.Errorf("thread %d: %+v, want %+v", number, got, want)
		}
	}
}

// onTwoHosts is the scene with its generator on two hosts of a kernel each, of which change may alter the second's samples.
func onTwoHosts(sc scene, change func(*lab.Sample)) Input {
	in := inContainers(sc)
	second := in.Run.Processes[0]
	second.Host = "gen2"
	in.Run.Processes = append(in.Run.Processes, second)
	for _, s := range slices.Clone(in.Run.Samples) {
		if s.Host == "gen" {
			s.Host, s.CPUs, s.Processes = "gen2", slices.Clone(s.CPUs), slices.Clone(s.Processes)
			change(&s)
			in.Run.Samples = append(in.Run.Samples, s)
		}
	}
	for _, host := range []lab.HostName{"here", "gen", "gen2"} {
		in.Facts[host] = lab.Facts{CPUs: []int{0, 1}, Cores: 2, BootID: string(host)}
	}
	in.SharedKernel, in.BootIDs = false, nil
	return in
}

func TestAFigureOfSeveralLoadHostsIsOfAllOrOfNone(t *testing.T) {
	o := Observe(onTwoHosts(quietScene(), func(*lab.Sample) {}))
	wantFigure(t, o.Figures, lab.ClientCPU, 2*0.77)
	wantFigure(t, o.Figures, lab.ClientBusy, 0.77)
	if o.Client.ActiveOpens.Value != 200 {
		t.Errorf("connections opened: %+v", o.Client.ActiveOpens)
	}
	unseen := func(s *lab.Sample) { s.Processes, s.TCP = nil, nil }
	o = Observe(onTwoHosts(quietScene(), unseen))
	for _, m := range []lab.Metric{lab.ClientCPU, lab.ClientCPUPerReq, lab.ClientBusy, lab.ClientThreadMax} {
		if v, known := o.Figures[m]; known {
			t.Errorf("%s = %v of one host of two", m, v)
		}
	}
	for _, code := range []string{"client-cpu", "client-single-thread", "syn-retransmit", "latency-bound"} {
		if f := finding(o, code); f.Outcome != lab.NotEvaluated {
			t.Errorf("%s is %s: %s", code, word(f), f.Evidence)
		}
	}
	if f := finding(o, "client-cpu"); !strings.HasSuffix(f.Evidence, ": gen2") {
		t.Errorf("which host it was: %q", f.Evidence)
	}
	sc := quietScene()
	sc.client, sc.worker = 0.97, 0.88
	if f := finding(Observe(onTwoHosts(sc, unseen)), "client-cpu"); f.Consequence != lab.LowerBound {
		t.Errorf("one of them at its limit: %s: %s", word(f), f.Evidence)
	}
}

// throttled puts quotas into the scene of two containers: of gen, and of the target.
func throttledScene(gen, target func(i int) *lab.Throttle) Input {
	sc := quietScene()
	sc.client, sc.worker = 0.088, 0.16
	in := inContainers(sc)
	count := map[lab.HostName]int{}
	for i := range in.Run.Samples {
		s := &in.Run.Samples[i]
		if s.Throttle = target(count[s.Host]); s.Host == "gen" {
			s.Throttle = gen(count[s.Host])
		}
		count[s.Host]++
	}
	return in
}

// held is a quota that holds back in some of every five periods of 100 ms, for as many times 70 ms.
func held(quota float64, of5 int) func(int) *lab.Throttle {
	return func(i int) *lab.Throttle {
		return &lab.Throttle{QuotaCPUs: quota, Periods: uint64(5 * i), PeriodsThrottled: uint64(of5 * i), ThrottledS: 0.07 * float64(of5*i)}
	}
}

func TestAQuotaThatHoldsTheTargetBackIsItsLimitAndOneOfTheGeneratorMakesTheRunInvalid(t *testing.T) {
	none := func(int) *lab.Throttle { return nil }
	for _, c := range []struct {
		name        string
		gen, target func(int) *lab.Throttle
		client, cpu string
		limit       string
		validity    lab.Validity
	}{
		{"neither", none, none, "quiet", "quiet", LimitNotIdentified, lab.Clean},
		{"quotas that suffice", held(0.1, 0), held(1, 0), "quiet", "quiet", LimitNotIdentified, lab.Clean},
		{"the generator's", held(0.1, 3), held(1, 0), "invalid", "quiet", LimitNotIdentified, lab.Invalid},
		{"the target's", none, held(0.2, 4), "quiet", "limit", "cpu-throttled", lab.Clean},
		{"both", held(0.1, 3), held(0.2, 4), "invalid", "limit", "cpu-throttled", lab.Invalid},
	} {
		in := throttledScene(c.gen, c.target)
		in.Run.Figures[lab.MeanS] *= 0.7
		o := Observe(in)
		findings, validity := Judge(o, Rules())
		client, cpu := finding(o, "client-throttled"), finding(o, "cpu-throttled")
		if word(client) != c.client || word(cpu) != c.cpu || Limiting(findings) != c.limit || validity != c.validity {
			t.Errorf("%s: %s (%s), %s (%s), limit %q, %s", c.name, word(client), client.Evidence, word(cpu), cpu.Evidence, Limiting(findings), validity)
		}
	}
	o := Observe(throttledScene(held(0.1, 3), held(0.2, 4)))
	wantFigure(t, o.Figures, lab.ClientThrottled, 0.6)
	wantFigure(t, o.Figures, lab.ServerThrottled, 0.8)
	wantFigure(t, o.Figures, lab.ClientThrottledS, 20*3*0.07)
	wantFigure(t, o.Figures, lab.ServerThrottledS, 20*4*0.07)
	const says = "the CPU quota of gen, 0.1 CPUs, was used up in 60 of 100 periods (60%) and held its processes back for 4.2 s of 10 s, summed over CPUs (limit 0.01 of the time)"
	if f := finding(o, "client-throttled"); f.Evidence != says || math.Abs(f.Values["throttled_ratio"]-0.42) > 1e-9 {
		t.Errorf("%q, %v", f.Evidence, f.Values)
	}
}

func TestAQuotaWhoseUseWasNotReadIsNotPassed(t *testing.T) {
	in := throttledScene(func(int) *lab.Throttle { return nil }, held(1, 0))
	facts := in.Facts["gen"]
	facts.CgroupCPUs = 0.1
	in.Facts["gen"] = facts
	if f := finding(Observe(in), "client-throttled"); f.Outcome != lab.NotEvaluated || !strings.Contains(f.Evidence, "gen") {
		t.Errorf("%+v", f)
	}
	delete(in.Facts, "gen")
	if f := finding(Observe(in), "client-throttled"); f.Outcome != lab.NotEvaluated {
		t.Errorf("without facts: %+v", f)
	}
}
