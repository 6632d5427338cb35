// Package watch reads the monitors of the host it runs on: samples of its counters, the facts that do not change
// during a campaign, and the yardstick that tells how fast its cores are now.
//
// Readings that a host does not offer (an old kernel, no privilege) are absent from a sample, never zero. Their cost
// is in facts/findings.md §6; nothing here lists sockets other than listening ones.
package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ngxlab/lab"
)

// Watcher takes samples of one host. Its fields are set before the first use and not changed; its methods may be
// called at the same time. It remembers between watches how often it polled a server and what it read of its log.
type Watcher struct {
	Host lab.HostName // put into samples and facts

	Server   func() (lab.Server, bool) // the running server, if any
	ErrorLog func() string             // path of the running server's error log, "" when there is none
	LoadPIDs func() []int              // armed and running load processes

	Proc string // where proc is mounted, "" = /proc
	Sys  string // where sysfs is mounted, "" = /sys

	Agent    string // version of the agent, for Facts
	StateDir string // of the agent, for Facts

	Wall    func() time.Time                    // the wall clock, nil = CLOCK_REALTIME
	CPUTime func(pid int) (time.Duration, bool) // of a process, false when it is gone; nil = its CPU-time clock

	mu       sync.Mutex  // one sample at a time
	memoryAt lab.Instant // when the memory of the server was read last
	files    reader
	poller   poller
	counter  counter
	log      follower
}

func (w *Watcher) proc(path string) string { return or(w.Proc, "/proc") + "/" + path }
func (w *Watcher) sys(path string) string  { return or(w.Sys, "/sys") + "/" + path }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Watch calls each with a sample taken at Start (0 = now) and then at every whole Interval after Start, Count times or until
// ctx is cancelled, which is no error; or once, at once. An instant that passes while the sample before is still
// being taken is left out, but for the last. It fails when the host's CPU times or memory cannot be read.
func (w *Watcher) Watch(ctx context.Context, what lab.Watch, each func(lab.Sample)) error {
	if what.Once {
		what.Start, what.Interval, what.Count = now(), lab.Seconds(1), 1
	}
	if what.Start == 0 {
		what.Start = now()
	}
	if what.Interval.Duration <= 0 {
		return fmt.Errorf("watch: interval %v is not positive", what.Interval.Duration)
	}
	t, err := newTimer()
	if err != nil {
		return err
	}
	defer t.close()
	defer keepOff(what.Avoid)()
	for i := int64(0); what.Count == 0 || i < int64(what.Count); i = next(what, i, now()) {
		if err := t.wait(ctx, what.Start.Add(time.Duration(i)*what.Interval.Duration)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		s, err := w.sample(ctx, what)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		each(s)
	}
	return nil
}

// next is the number of the first instant of the grid after the ith that has not passed, or of the last.
func next(what lab.Watch, i int64, now lab.Instant) int64 {
	interval := what.Interval.Duration
	ahead := int64((now.Sub(what.Start) + interval - 1) / interval)
	if what.Count > 0 {
		ahead = min(ahead, int64(what.Count)-1)
	}
	return max(i+1, ahead)
}

// memoryInterval is the least time between two readings of the server's memory while a run is watched: a PSS walks the
// process's pages, a third of a sample's cost, and changes slowly.
const memoryInterval = time.Second

// remembers reports whether a sample begun now reads the server's memory: single samples and those of capacity do.
func (w *Watcher) remembers(what lab.Watch, begun lab.Instant) bool {
	if !what.Once && !what.Slabs && begun.Sub(w.memoryAt) < memoryInterval {
		return false
	}
	w.memoryAt = begun
	return true
}

// sample takes one sample. The server is asked first and its processes are read right after, so that requests
// counted and CPU time spent belong together; At is between the two.
func (w *Watcher) sample(ctx context.Context, what lab.Watch) (lab.Sample, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := now()
	s := lab.Sample{Host: w.Host}
	server, running := w.server(what)
	if running && what.StatusPort > 0 {
		s.Status = w.poller.poll(ctx, server.Master, what.StatusPort)
	}
	if running && what.ServedBy != nil {
		s.Served = w.counter.count(ctx, server, what)
	}
	s.At, s.WallNS = now(), w.wall()
	if running {
		s.Processes = w.serverProcesses(server, w.remembers(what, begun))
	}
	if what.Load && w.LoadPIDs != nil {
		s.Processes = append(s.Processes, w.loadProcesses(w.LoadPIDs())...)
	}
	if err := w.host(&s); err != nil {
		return s, err
	}
	if len(what.Ports) > 0 {
		s.Listeners = onPorts(what.Ports)
	}
	if running && what.Once {
		s.InForce = w.inForce(server, siteListeners(server, what, s.Listeners))
	}
	if what.Slabs {
		s.Slabs = w.slabs()
	}
	if running && w.ErrorLog != nil {
		s.ErrorLog = w.log.lines(w.ErrorLog())
	}
	s.AgentCPUS, s.AgentRSSBytes = w.self()
	s.TookS = now().Sub(begun).Seconds()
	return s, nil
}

func (w *Watcher) server(what lab.Watch) (lab.Server, bool) {
	if !what.Server || w.Server == nil {
		return lab.Server{}, false
	}
	return w.Server()
}

// host reads the counters of the host as a whole.
func (w *Watcher) host(s *lab.Sample) (err error) {
	if s.CPUs, err = w.cpus(); err != nil {
		return err
	}
	if s.Memory, err = w.memory(); err != nil {
		return err
	}
	s.TCP = w.tcpCounters()
	s.Sockets = w.sockets()
	s.Conntrack = w.conntrack()
	s.SwapPages = w.swapPages()
	s.Throttle = w.throttle()
	s.BootID = w.bootID()
	return nil
}
