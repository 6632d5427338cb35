package observe

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// inContainers is the scene on one machine with target and generator in containers of their own: each sees the CPU times
// of the whole machine and its own processes.
func inContainers(sc scene) Input {
	in := sc.input()
	var samples []lab.Sample
	for _, s := range in.Run.Samples {
		web, gen := s, s
		isLoad := func(p lab.ProcessSample) bool { return p.Role == lab.LoadProcess }
		gen.Host, gen.Status, gen.Listeners = "gen", nil, nil
		gen.Processes = slices.DeleteFunc(slices.Clone(s.Processes), func(p lab.ProcessSample) bool { return !isLoad(p) })
		web.Processes = slices.DeleteFunc(slices.Clone(s.Processes), isLoad)
		samples = append(samples, web, gen)
	}
	in.Run.Samples = samples
	in.Run.Processes[0].Host = "gen"
	in.Facts = map[lab.HostName]lab.Facts{
		"here": {CPUs: []int{0, 1}, Cores: 2, BootID: "boot", Container: "docker"}, "gen": {CPUs: []int{0, 1}, Cores: 2, BootID: "boot", Container: "docker"},
	}
	return in
}

func TestContainersOfOneMachineAreNotForeignToEachOther(t *testing.T) {
	o := Observe(inContainers(quietScene()))
	for _, h := range o.Hosts {
		if !h.Foreign.Known || math.Abs(h.Foreign.Value) > 0.005 {
			t.Errorf("%s: foreign %+v, want none", h.Name, h.Foreign)
		}
	}
	if f := finding(o, "foreign-cpu"); f.Outcome != lab.Quiet {
		t.Errorf("foreign-cpu %+v", f)
	}
	sc := quietScene()
	sc.foreign, sc.client = 0.22, 0.70
	if f := finding(Observe(inContainers(sc)), "foreign-cpu"); f.Consequence != lab.Invalidate || !strings.Contains(f.Evidence, "0.220 cores") {
		t.Errorf("a compiler on the machine: %+v", f)
	}
}

func TestForeignCPUIsUnknownWhereAHostOfTheKernelWasNotSeen(t *testing.T) {
	in := inContainers(quietScene())
	in.Run.Samples = slices.DeleteFunc(in.Run.Samples, func(s lab.Sample) bool { return s.Host == "gen" })
	if f := finding(Observe(in), "foreign-cpu"); f.Outcome != lab.NotEvaluated {
		t.Errorf("foreign-cpu %+v", f)
	}
}

func TestSoftInterruptsAreLeftOutWhereTheNetworkIsReal(t *testing.T) {
	sc := quietScene()
	sc.each = func(i int, s *lab.Sample) {
		soft := 0.1 * float64(i)
		s.CPUs[1].SoftIRQS, s.CPUs[1].IdleS = soft, s.CPUs[1].IdleS-soft
	}
	one := inContainers(sc)
	if h := Observe(one).Hosts[0]; h.Foreign.Value < 0.15 {
		t.Errorf("on one kernel: %+v", h.Foreign)
	}
	two := inContainers(sc)
	for _, host := range []lab.HostName{"here", "gen"} {
		f := two.Facts[host]
		f.BootID = string(host)
		two.Facts[host] = f
	}
	two.SharedKernel, two.BootIDs = false, nil
	alone := func(processes func(lab.ProcessSample) bool) func(*lab.Sample) { // each machine has one side's work alone
		return func(s *lab.Sample) {
			cpu := &s.CPUs[0]
			if processes(lab.ProcessSample{Role: lab.LoadProcess}) {
				cpu = &s.CPUs[1]
			}
			other := lab.CPUTimes{CPU: 1 - cpu.CPU, IdleS: 100 + s.At.Sub(at(0)).Seconds()}
			other.SoftIRQS = cpu.SoftIRQS
			s.CPUs = []lab.CPUTimes{*cpu, other}
		}
	}
	for i := range two.Run.Samples {
		s := &two.Run.Samples[i]
		alone(func(p lab.ProcessSample) bool { return (s.Host == "gen") == (p.Role == lab.LoadProcess) })(s)
	}
	for _, h := range Observe(two).Hosts {
		if !h.Foreign.Known || math.Abs(h.Foreign.Value) > 0.005 {
			t.Errorf("%s over a network: %+v", h.Name, h.Foreign)
		}
	}
}

func TestGeneratorsOnTheServersCPUsShareThemAcrossContainers(t *testing.T) {
	in := inContainers(quietScene())
	if o := Observe(in); !o.Client.SharedKnown || len(o.Client.SharedCPUs) > 0 {
		t.Errorf("pinned apart: %+v", o.Client)
	}
	in.Run.Processes[0].Command.CPUs = nil
	if o := Observe(in); !slices.Equal(o.Client.SharedCPUs, []int{0}) {
		t.Errorf("not pinned: %+v", o.Client)
	}
	f := in.Facts["gen"]
	f.BootID = "another"
	in.Facts["gen"] = f
	if o := Observe(in); len(o.Client.SharedCPUs) > 0 {
		t.Errorf("on another machine: %+v", o.Client)
	}
}

func TestQuotasBoundServerAndGenerator(t *testing.T) {
	in := inContainers(quietScene())
	web, gen := in.Facts["here"], in.Facts["gen"]
	web.CgroupCPUs, gen.CgroupCPUs = 0.98, 0.8
	in.Facts["here"], in.Facts["gen"] = web, gen
	in.Serving.CPUs = nil
	in.Run.Processes[0].Command.CPUs = nil
	o := Observe(in)
	if math.Abs(o.Client.Busy.Value-0.77/0.8) > 0.01 {
		t.Errorf("generator busy %+v, want its quota's share", o.Client.Busy)
	}
	o.Server.Workers = []float64{0.5, 0.46}
	if f := finding(o, "server-cpu"); f.Outcome != lab.Fired || !strings.Contains(f.Evidence, "of 0.98 cores") {
		t.Errorf("server at its quota: %+v", f)
	}
	o.Server.Quota = 0
	if f := finding(o, "server-cpu"); f.Outcome != lab.Quiet {
		t.Errorf("without a quota: %+v", f)
	}
}

func TestStartsOnSeveralHostsSayHowWellTheirClocksAreKnown(t *testing.T) {
	in := inContainers(quietScene())
	in.Run.Processes = append(in.Run.Processes, in.Run.Processes[0])
	in.ClockDoubt = map[lab.HostName]time.Duration{"gen": 340 * time.Microsecond}
	if f := finding(Observe(in), "start-skew"); !strings.Contains(f.Evidence, "known to ±0.34 ms") {
		t.Errorf("evidence %q", f.Evidence)
	}
	in.ClockDoubt = nil
	if f := finding(Observe(in), "start-skew"); strings.Contains(f.Evidence, "clocks") {
		t.Errorf("evidence %q", f.Evidence)
	}
}
