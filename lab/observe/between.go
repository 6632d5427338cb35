package observe

import "ngxlab/lab"

// span is samples of one host by time, two at least. Differences are taken between its first and its last one, and are
// unknown when they are for any step in between: a counter that went down and up again may end above where it began.
type span []lab.Sample

// spanOf are the samples that which is true of; false when they are not two at different times.
func spanOf(samples []lab.Sample, which func(lab.Sample) bool) (span, bool) {
	var those span
	for _, sample := range samples {
		if which(sample) {
			those = append(those, sample)
		}
	}
	return those, len(those) > 1 && those.seconds() > 0
}

func (s span) last() lab.Sample { return s[len(s)-1] }

func (s span) seconds() float64 { return seconds(s[0], s.last()) }

// difference is that of the first and the last sample.
func (s span) difference(of func(a, b lab.Sample) Number) Number {
	for i := 1; i < len(s); i++ {
		if !of(s[i-1], s[i]).Known {
			return Number{}
		}
	}
	return of(s[0], s.last())
}

// grown is by how much a counter grew.
func (s span) grown(read func(lab.Sample) float64) Number {
	return s.difference(func(a, b lab.Sample) Number { return grown(read(a), read(b)) })
}

// cpuSeconds is what the processes that which is true of used.
func (s span) cpuSeconds(which func(lab.ProcessSample) bool) Number {
	return s.difference(func(a, b lab.Sample) Number {
		used, ok := b.CPUSince(a, which)
		return Number{used, ok}
	})
}

// cores spreads seconds of CPU over the time.
func (s span) cores(cpuS Number) Number {
	return Number{cpuS.Value / s.seconds(), cpuS.Known}
}

// counted is by how much one of the server's counters grew without the lab's polls, each of which is one of all three.
func (s span) counted(counter func(lab.ServerStatus) uint64) Number {
	return s.difference(func(a, b lab.Sample) Number { return counted(a, b, counter) })
}

// served is by how much the server's count of requests grew without the lab's polls.
func (s span) served() Number { return s.difference(servedBetween) }

// cpus is what the CPUs did, those that the first and the last sample show; false when the times of one went down, or
// there are none.
func (s span) cpus() ([]lab.CPUTimes, bool) {
	for i := 1; i < len(s); i++ {
		if _, ok := cpusBetween(s[i-1], s[i]); !ok {
			return nil, false
		}
	}
	return cpusBetween(s[0], s.last())
}

// grown is by how much a counter grew; unknown when it went down.
func grown(before, after float64) Number {
	by, ok := lab.Grown(before, after)
	return Number{by, ok}
}

// minus is a − b, unknown when either is.
func minus(a, b Number) Number {
	if !a.Known || !b.Known {
		return Number{}
	}
	return known(a.Value - b.Value)
}

// total is the sum, unknown when one of them is or there are none: a part of it would pass for a small number.
func total(all []Number) Number {
	sum := 0.0
	for _, n := range all {
		if !n.Known {
			return Number{}
		}
		sum += n.Value
	}
	return Number{sum, len(all) > 0}
}

func cpusBetween(a, b lab.Sample) ([]lab.CPUTimes, bool) {
	var all []lab.CPUTimes
	for _, after := range b.CPUs {
		for _, before := range a.CPUs {
			if before.CPU != after.CPU {
				continue
			}
			spent, ok := after.Since(before)
			if !ok {
				return nil, false
			}
			all = append(all, spent)
		}
	}
	return all, len(all) > 0
}

func counted(a, b lab.Sample, counter func(lab.ServerStatus) uint64) Number {
	polls := grown(float64(a.Status.Polls), float64(b.Status.Polls))
	return minus(grown(float64(counter(*a.Status)), float64(counter(*b.Status))), polls)
}

// servedBetween goes by the status where there is one, else by the server's own count. What a poll adds to that is known
// from the second one on.
func servedBetween(a, b lab.Sample) Number {
	switch {
	case a.Status != nil && b.Status != nil:
		return counted(a, b, requestsOf)
	case a.Served == nil || b.Served == nil:
		return Number{}
	}
	polls := grown(float64(a.Served.Polls), float64(b.Served.Polls))
	own := Number{polls.Value * float64(max(a.Served.PerPoll, b.Served.PerPoll)), polls.Known}
	return minus(grown(float64(a.Served.Requests), float64(b.Served.Requests)), own)
}

// Requests is how many requests the server of a sample has served so far without the lab's own, by its status or its own
// count; false when it tells neither.
func Requests(s lab.Sample) (n float64, known bool) {
	switch {
	case s.Status != nil:
		return float64(s.Status.Requests) - float64(s.Status.Polls), true
	case s.Served != nil:
		return float64(s.Served.Requests) - float64(s.Served.Polls*s.Served.PerPoll), true
	}
	return 0, false
}

func requestsOf(s lab.ServerStatus) uint64 { return s.Requests }
func acceptsOf(s lab.ServerStatus) uint64  { return s.Accepts }
func handledOf(s lab.ServerStatus) uint64  { return s.Handled }

// dropped is how many connections the listening sockets of a port dropped; unknown when there are more or fewer of them
// than before, for each has a count of its own.
func (s span) dropped(port int) Number {
	return s.difference(func(a, b lab.Sample) Number {
		before, sockets := drops(a, port)
		after, now := drops(b, port)
		if sockets != now {
			return Number{}
		}
		return grown(before, after)
	})
}

func drops(s lab.Sample, port int) (sum float64, sockets int) {
	for _, l := range s.Listeners {
		if l.Port == port {
			sum += float64(l.Drops)
			sockets++
		}
	}
	return sum, sockets
}

func seconds(a, b lab.Sample) float64 { return b.At.Sub(a.At).Seconds() }
