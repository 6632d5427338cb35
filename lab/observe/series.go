package observe

import (
	"slices"
	"time"

	"ngxlab/lab"
)

// edgeSlack is how far outside the window a sample still counts as within: the grid starts at the release, and a
// sample takes a few milliseconds.
const edgeSlack = 20 * time.Millisecond

// leastSpan is the share of the window that two samples must enclose to stand for it.
const leastSpan = 0.5

// series is the samples of each host by time, and the window on each host's clock.
type series struct {
	of         map[lab.HostName][]lab.Sample
	begin, end map[lab.HostName]lab.Instant
}

func newSeries(in Input) series {
	s := series{of: map[lab.HostName][]lab.Sample{}, begin: map[lab.HostName]lab.Instant{}, end: map[lab.HostName]lab.Instant{}}
	for _, sample := range in.Run.Samples {
		s.of[sample.Host] = append(s.of[sample.Host], sample)
	}
	for host, samples := range s.of {
		slices.SortStableFunc(samples, func(a, b lab.Sample) int { return int(min(max(a.At-b.At, -1), 1)) })
		s.begin[host] = in.Run.Window.Begin.Add(in.Ahead[host])
		s.end[host] = in.Run.Window.End.Add(in.Ahead[host])
	}
	return s
}

// inside returns a host's samples within the window.
func (s series) inside(host lab.HostName) []lab.Sample {
	var out []lab.Sample
	for _, sample := range s.of[host] {
		if sample.At >= s.begin[host].Add(-edgeSlack) && sample.At <= s.end[host].Add(edgeSlack) {
			out = append(out, sample)
		}
	}
	return out
}

// edges returns the samples within the window that which is true of; they must enclose at least half of the window.
func (s series) edges(host lab.HostName, which func(lab.Sample) bool) (span, bool) {
	those, ok := spanOf(s.inside(host), which)
	return those, ok && those.seconds() >= leastSpan*s.end[host].Sub(s.begin[host]).Seconds()
}

// ends returns the samples of all that which is true of, from before the release to after the end.
func (s series) ends(host lab.HostName, which func(lab.Sample) bool) (span, bool) {
	return spanOf(s.of[host], which)
}

// encloses says that nothing of the window lies outside of some samples: only then do their counters hold all of it.
func (s series) encloses(host lab.HostName, those span) bool {
	return those[0].At <= s.begin[host] && those.last().At >= s.end[host]
}

func anySample(lab.Sample) bool { return true }

// counter is the growth of a kernel counter from before the release to after the end.
func (s series) counter(host lab.HostName, name string) Number {
	those, ok := s.ends(host, func(sample lab.Sample) bool {
		_, has := sample.TCP[name]
		return has
	})
	if !ok {
		return Number{}
	}
	return those.grown(func(sample lab.Sample) float64 { return float64(sample.TCP[name]) })
}
