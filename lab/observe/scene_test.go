package observe

import (
	"fmt"
	"time"

	"ngxlab/lab"
)

// scene is a run on one machine of two CPUs: wrk on CPU 1, a master and one worker on CPU 0.
type scene struct {
	d              float64 // seconds
	rate           float64 // requests per second
	worker, client float64 // cores
	foreign        float64 // cores, on CPU 1
	connections    int
	change         func(*Input)
	each           func(i int, s *lab.Sample) // i counts from 0: before the release
}

func quietScene() scene {
	return scene{d: 10, rate: 30000, worker: 0.97, client: 0.77, connections: 100}
}

func at(s float64) lab.Instant { return lab.Instant(1e12).Add(time.Duration(s * 1e9)) }

func (sc scene) input() Input {
	n := sc.rate * sc.d
	in := Input{
		Point:   lab.LoadPoint{Name: "wrk 100", Tool: "wrk", URL: "/1k", Connections: sc.connections, KeepAlive: true, Duration: lab.Seconds(sc.d)},
		Serving: lab.Serving{Port: 8081, CPUs: []int{0}, Config: "events {\n worker_connections 1024;\n}\nhttp {\n keepalive_requests 10000000;\n server {\n listen 8081;\n }\n server {\n listen 8082;\n }\n}\n"},
		Facts:   map[lab.HostName]lab.Facts{"here": {CPUs: []int{0, 1}}}, SharedKernel: true,
		BootIDs: map[lab.HostName]string{"here": "boot"}, MedianYardstickS: map[lab.HostName]float64{"here": 0.010},
	}
	in.Run = lab.Run{Cell: lab.CellID{Target: "here", State: "base", Load: "wrk 100"}, Window: lab.Window{Begin: at(0), End: at(sc.d), DurationS: sc.d, Overlap: 1}}
	in.Run.Server = lab.Server{Master: 10, Workers: []int{11}, Probes: map[string]lab.Probe{"/1k": {Status: 200, HeaderBytes: 238, BodyBytes: 1024}}}
	in.Run.Figures = lab.Figures{lab.Requests: n, lab.DurationS: sc.d, lab.RequestRate: sc.rate, lab.MeanS: 0.95 * float64(sc.connections) / sc.rate,
		lab.P50S: 0.003, lab.P99S: 0.006, lab.MaxS: 0.02, lab.Failed: 0, lab.NonSuccess: 0, lab.Connections: float64(sc.connections),
		lab.BytesRead: n * (238 + 1024), lab.Corrections: 0.005, lab.Goodput: sc.rate}
	in.Run.Processes = []lab.Process{{Host: "here", PID: 20, Command: lab.Command{Tool: "wrk", CPUs: []int{1}}}}
	in.Run.Yardsticks = []lab.Yardstick{{Host: "here", CPUS: []float64{0.010, 0.0102}}, {Host: "here", After: true, CPUS: []float64{0.0101, 0.0101}}}
	sc.samples(&in)
	if sc.change != nil {
		sc.change(&in)
	}
	return in
}

// samples are one before the release, one every half second, one after the end.
func (sc scene) samples(in *Input) {
	times := []float64{-0.1}
	for t := 0.0; t <= sc.d; t += 0.5 {
		times = append(times, t)
	}
	for i, t := range append(times, sc.d+0.1) {
		worked := min(max(t, 0), sc.d)
		polls := uint64(i + 1)
		s := lab.Sample{Host: "here", At: at(t), WallNS: int64((1700000000 + t) * 1e9), BootID: "boot",
			CPUs: []lab.CPUTimes{
				{CPU: 0, UserS: 100 + sc.worker*worked, IdleS: 100 + t - sc.worker*worked},
				{CPU: 1, UserS: 100 + (sc.client+sc.foreign)*worked, IdleS: 100 + t - (sc.client+sc.foreign)*worked},
			},
			Processes: []lab.ProcessSample{
				{PID: 10, Role: lab.ServerMaster, CPUS: 0.01, PSSBytes: 1 << 20},
				{PID: 11, Role: lab.ServerWorker, CPUS: 5 + sc.worker*worked, FDs: 110, FDLimit: 20000, PSSBytes: 5 << 20},
			},
			TCP:       map[string]uint64{"TCPSynRetrans": 7, "ActiveOpens": 1000 + uint64(100*min(1, worked)), "ListenOverflows": 3},
			Listeners: []lab.Listener{{Port: 8081, Backlog: 511, Drops: 2}},
			Status: &lab.ServerStatus{Active: sc.connections + 1, Accepts: 500 + uint64(sc.connections)*min(1, uint64(worked*1000)) + polls, Handled: 500 + uint64(sc.connections)*min(1, uint64(worked*1000)) + polls,
				Requests: 9000 + uint64(sc.rate*worked) + polls, Polls: polls},
		}
		if t >= 0 && t <= sc.d {
			s.Processes = append(s.Processes, lab.ProcessSample{PID: 20, Role: lab.LoadProcess, CPUS: sc.client * worked, Threads: map[int]float64{20: 0.001, 21: sc.client * worked}})
		}
		if sc.each != nil {
			sc.each(i, &s)
		}
		in.Run.Samples = append(in.Run.Samples, s)
	}
}

func (sc scene) observe() Observation { return Observe(sc.input()) }

func finding(o Observation, code string) lab.Finding {
	findings, _ := Judge(o, Rules())
	for _, f := range findings {
		if f.Code == code {
			return f
		}
	}
	panic(fmt.Sprintf("no rule %q", code))
}
