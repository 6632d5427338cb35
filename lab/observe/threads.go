package observe

import (
	"slices"

	"ngxlab/lab"
)

// thread is what was read of one thread: threads end before their process, and are then gone.
type thread struct {
	from, to   lab.Instant
	fromS, toS float64 // CPU time at these instants
}

type threadID struct{ pid, thread int }

// busiestThread is how many cores the busiest thread of the load processes used, each from its beginning to its last
// reading within the window. Threads that were there for less than half of the window cannot have been what limited it.
// It is unknown when no other was seen.
func busiestThread(s series, host lab.HostName, pids []int) Number {
	busiest := Number{}
	least := leastSpan * s.end[host].Sub(s.begin[host]).Seconds()
	for _, t := range threads(s.inside(host), pids) {
		if span := t.to.Sub(t.from).Seconds(); span > 0 && span >= least {
			busiest = larger(busiest, known((t.toS-t.fromS)/span))
		}
	}
	return busiest
}

// threads follows the threads of some processes. One that was not there in the sample before began with nothing then. One
// whose time went down is another one with its number, as after exec: it is followed from there on.
func threads(samples []lab.Sample, pids []int) map[threadID]*thread {
	all := map[threadID]*thread{}
	seen := map[int]lab.Instant{} // process → its last sample
	for _, s := range samples {
		for _, p := range s.Processes {
			if !slices.Contains(pids, p.PID) {
				continue
			}
			for number, cpuS := range p.Threads {
				follow(all, threadID{p.PID, number}, s.At, cpuS, seen[p.PID])
			}
			seen[p.PID] = s.At
		}
	}
	return all
}

// follow adds a reading of a thread; before is the instant of the sample before of its process, 0 when there is none.
func follow(all map[threadID]*thread, id threadID, at lab.Instant, cpuS float64, before lab.Instant) {
	t := all[id]
	switch {
	case t == nil && before > 0:
		all[id] = &thread{from: before, to: at, toS: cpuS}
	case t == nil:
		all[id] = &thread{from: at, to: at, fromS: cpuS, toS: cpuS}
	case !grown(t.toS, cpuS).Known:
		*t = thread{from: at, to: at, fromS: cpuS, toS: cpuS}
	default:
		t.to, t.toS = at, cpuS
	}
}
