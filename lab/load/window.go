package load

import (
	"slices"
	"sort"
	"time"

	"ngxlab/lab"
)

// interval is a stretch of the target's clock.
type interval struct{ begin, end lab.Instant }

func (i interval) seconds() float64 { return max(i.end.Sub(i.begin).Seconds(), 0) }

// as returns the window w with these edges.
func (i interval) as(w lab.Window) lab.Window {
	w.Begin, w.End, w.DurationS = i.begin, i.end, i.seconds()
	return w
}

// life is a process from its release to its end, on the target's clock.
func life(p lab.Process, ahead map[lab.HostName]time.Duration) interval {
	return interval{p.Released.Add(-ahead[p.Host]), p.Ended.Add(-ahead[p.Host])}
}

// measured is the window of one process on the target's clock: from its release, as long as the tool says it measured.
// Both tools start their clock before they connect; loading takes a few milliseconds before, writing results some after.
func measured(p lab.Process, ahead map[lab.HostName]time.Duration) interval {
	w := life(p, ahead)
	if s := p.Report.Figures[lab.DurationS]; s > 0 {
		w.end = min(w.end, w.begin.Add(time.Duration(s*float64(time.Second))))
	}
	return w
}

// edges returns the common part and the union of the process windows.
func edges(ps []lab.Process, ahead map[lab.HostName]time.Duration) (common, union interval) {
	for i, p := range ps {
		w := measured(p, ahead)
		if i == 0 {
			common, union = w, w
			continue
		}
		common = interval{max(common.begin, w.begin), min(common.end, w.end)}
		union = interval{min(union.begin, w.begin), max(union.end, w.end)}
	}
	return common, union
}

// window is the union of the process windows, with overlap and skew.
func window(ps []lab.Process, ahead map[lab.HostName]time.Duration) lab.Window {
	if len(ps) == 0 {
		return lab.Window{}
	}
	common, union := edges(ps, ahead)
	w := union.as(lab.Window{})
	if w.DurationS > 0 {
		w.Overlap = common.seconds() / w.DurationS
	}
	first, last := measured(ps[0], ahead).begin, measured(ps[0], ahead).begin
	for _, p := range ps {
		begin := measured(p, ahead).begin
		first, last = min(first, begin), max(last, begin)
	}
	w.SkewS = last.Sub(first).Seconds()
	return w
}

// servedInCommon is what the server counted in the common part of the process windows, between its readings
// interpolated; unknown when the readings do not enclose it.
func (g merging) servedInCommon() (float64, interval, bool) {
	common, _ := edges(g.ps, g.in.Ahead)
	served := g.asked()
	from, ok1 := servedAt(served, common.begin)
	to, ok2 := servedAt(served, common.end)
	return to - from, common, ok1 && ok2 && common.seconds() > 0
}

// startUp is what a tool may take from its release to its first request: its window lies that much later than measured
// says.
const startUp = 10 * time.Millisecond

// asked are the server's readings while there was load. Nothing is asked for before the first process is let go nor after
// the last one's end, so a reading from before or after is put to that instant: interpolated over the quiet time, it
// would take requests out of the window.
func (g merging) asked() []Served {
	var from, to lab.Instant
	for i, p := range g.ps {
		whole := life(p, g.in.Ahead)
		end := min(whole.end, measured(p, g.in.Ahead).end.Add(startUp))
		if i == 0 {
			from, to = whole.begin, end
		}
		from, to = min(from, whole.begin), max(to, end)
	}
	served := slices.Clone(g.in.Served)
	for i := range served {
		served[i].At = min(max(served[i].At, from), to)
	}
	return served
}

// servedAt interpolates the cumulative count at an instant.
func servedAt(s []Served, at lab.Instant) (float64, bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].At >= at })
	switch {
	case i == len(s):
		return 0, false
	case s[i].At == at:
		return s[i].Requests, true
	case i == 0:
		return 0, false
	}
	a, b := s[i-1], s[i]
	share := float64(at-a.At) / float64(b.At-a.At)
	return a.Requests + share*(b.Requests-a.Requests), true
}
