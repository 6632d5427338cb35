package conduct

import (
	"context"
	"errors"
	"maps"
	"time"

	"ngxlab/lab"
)

// Watch gives one sample at once, or those of a run's grid, without waiting for their instants.
func (f *fakeHost) Watch(ctx context.Context, w lab.Watch, each func(lab.Sample)) error {
	if w.Once && len(w.Ports) > 0 && !w.Server {
		return f.listeners(ctx, each)
	}
	if err := f.call(ctx, "watch"); err != nil {
		if !w.Once && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	if w.Once {
		each(f.now(w))
		return nil
	}
	for i := 0; i < w.Count; i++ {
		each(f.during(w, i))
	}
	return nil
}

// listeners is a sample of the listening sockets alone, as it is asked for after a server was stopped.
func (f *fakeHost) listeners(ctx context.Context, each func(lab.Sample)) error {
	if err := f.call(ctx, "ended"); err != nil {
		return err
	}
	f.mu.Lock()
	stopping := f.stopped
	f.mu.Unlock()
	if stopping != nil && f.lingers <= 0 {
		<-stopping
	}
	s := lab.Sample{}
	if f.lingers > 0 {
		f.lingers--
		s.Listeners = []lab.Listener{{Port: 8081, Backlog: fakeBacklog}}
	}
	each(s)
	return nil
}

// now is a sample between runs: before the first fire of a pair by the true clock, after it 2.1 s behind its instant.
func (f *fakeHost) now(w lab.Watch) lab.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.clock()
	if f.ended > 0 {
		at, f.ended = f.ended.Add(100*time.Millisecond), 0
	}
	return f.sampleAt(w, at, float64(f.requests), f.cpuS)
}

// during is a sample of the grid: requests and CPU time grow evenly over the run.
func (f *fakeHost) during(w lab.Watch, i int) lab.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	share := float64(i) / float64(max(1, w.Count-1))
	at := w.Start.Add(time.Duration(i) * w.Interval.Duration)
	return f.sampleAt(w, at, float64(f.base)+share*fakeRequests*float64(max(1, f.loaders)), f.baseCPUS+share*fakeCPUS)
}

func (f *fakeHost) sampleAt(w lab.Watch, at lab.Instant, requests, cpuS float64) lab.Sample {
	f.polls++
	s := lab.Sample{
		At: at, WallNS: int64(at), BootID: "boot",
		CPUs:    []lab.CPUTimes{{CPU: 0}, {CPU: 1}},
		Sockets: map[string]int64{"tcp_mem_pages": 10},
		Slabs:   map[string]int64{"TCP": int64(f.heldHere) * 2000},
	}
	if w.Server {
		s.CPUs[0].UserS = cpuS
		s.Processes = append(s.Processes, lab.ProcessSample{PID: 100, Role: lab.ServerMaster, PSSBytes: 1 << 20},
			lab.ProcessSample{PID: 101, Role: lab.ServerWorker, CPUS: cpuS, PSSBytes: 2 << 20})
		s.Status = &lab.ServerStatus{
			Active: 1 + 10*max(1, f.loaders), Accepts: uint64(requests)/fakeRequests*10 + 10 + f.polls, Handled: uint64(requests)/fakeRequests*10 + 10 + f.polls, Requests: uint64(requests) + f.polls, Polls: f.polls,
		}
		if f.heldHere > 0 {
			s.Status.Active = 1 + f.heldHere
		}
		if w.StatusPort == 0 {
			s.Status = nil
		}
		if w.ServedBy != nil {
			s.Served = &lab.Served{Requests: uint64(requests) + f.polls, Polls: f.polls, PerPoll: 1}
		}
		f.asked = w
	}
	if w.Once && w.Server {
		s.InForce = maps.Clone(f.inForce)
	}
	if w.Load {
		s.CPUs[1].UserS = cpuS / 2
		s.Processes = append(s.Processes, lab.ProcessSample{PID: 200, Role: lab.LoadProcess, CPUS: cpuS / 2, Threads: map[int]float64{200: cpuS / 2}})
	}
	if f.seen != nil {
		f.seen(&s)
	}
	return s
}
