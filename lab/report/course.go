package report

import (
	"fmt"
	"io"
	"math"
	"slices"

	"ngxlab/lab"
	"ngxlab/plots"
	"ngxlab/templates"
)

// courseOfOneRun shows the first run that came with its samples, as an example of what was watched. Reports are
// usually made without samples and have none.
func (s *study) courseOfOneRun() ([]templates.Block, error) {
	for _, r := range s.Runs {
		series := runSeries(r)
		if r.Validity == lab.Invalid || len(series.Strips) == 0 {
			continue
		}
		caption := "The course of one run: requests by the server's own count, and CPU of both sides."
		return s.figure("course", caption, func(w io.Writer, f plots.Format) error { return plots.DrawSeries(w, f, series) })
	}
	return nil, nil
}

// runSeries makes the time series of a run from its samples: requests per second as the server counted them, CPU of
// server and load processes, connections open. Strips without two readings are left out; none are left when the run
// has no samples.
func runSeries(r lab.Run) plots.Series {
	series := plots.Series{Title: fmt.Sprintf("%s at %s, round %d", r.Cell.State, r.Cell.Load, r.Round)}
	if r.Validity != lab.Clean {
		series.Title += " (" + string(r.Validity) + ")"
	}
	var requests, open, server, load line
	for host, samples := range samplesByHost(r.Samples) {
		begin := beginOf(r, samples, host)
		for i, now := range samples {
			t := now.At.Sub(begin).Seconds()
			if now.Status != nil {
				open.add(t, float64(now.Status.Active-1)) // less our own poll
			}
			if i == 0 {
				continue
			}
			was := samples[i-1]
			requests.addRate(t, was, now, countedRequests)
			server.addCPU(t, was, now, lab.ServerWorker, lab.ServerMaster)
			load.addCPU(t, was, now, lab.LoadProcess)
		}
	}
	add := func(name string, unit plots.Unit, lines ...plots.Line) {
		strip := plots.Strip{Name: name, Unit: unit}
		for _, l := range lines {
			if len(l.TimesS) > 1 {
				strip.Lines = append(strip.Lines, l)
			}
		}
		if len(strip.Lines) > 0 {
			series.Strips = append(series.Strips, strip)
		}
	}
	add("requests counted by the server", plots.PerSecond, requests.named("requests"))
	add("CPU", plots.Cores, server.named("server processes"), load.named("load processes"))
	add("connections open at the server", plots.Count, open.named("connections"))
	return series
}

func samplesByHost(samples []lab.Sample) map[lab.HostName][]lab.Sample {
	byHost := map[lab.HostName][]lab.Sample{}
	for _, x := range samples {
		byHost[x.Host] = append(byHost[x.Host], x)
	}
	return byHost
}

// beginOf is the beginning of the window on the host's own clock: the window's for the target, else the first sample.
func beginOf(r lab.Run, samples []lab.Sample, host lab.HostName) lab.Instant {
	if host == r.Cell.Target && r.Window.Begin > 0 {
		return r.Window.Begin
	}
	return samples[0].At
}

// line gathers values over time.
type line struct{ times, values []float64 }

func (l *line) add(t, v float64) { l.times, l.values = append(l.times, t), append(l.values, v) }

// addRate adds the rate of a counter between two samples; a gap when either reading is missing, nothing when both are.
func (l *line) addRate(t float64, was, now lab.Sample, read func(lab.Sample) (float64, bool)) {
	before, knownBefore := read(was)
	after, knownAfter := read(now)
	if !knownBefore && !knownAfter {
		return
	}
	by, known := lab.Grown(before, after)
	l.addPerSecond(t, was, now, by, known && knownBefore && knownAfter)
}

// addCPU adds the cores that the processes of some roles used between two samples; a gap when one of them came or went,
// nothing when there are none.
func (l *line) addCPU(t float64, was, now lab.Sample, roles ...lab.ProcessRole) {
	which := func(p lab.ProcessSample) bool { return slices.Contains(roles, p.Role) }
	before, after := slices.ContainsFunc(was.Processes, which), slices.ContainsFunc(now.Processes, which)
	if !before && !after {
		return
	}
	cpuS, known := now.CPUSince(was, which)
	l.addPerSecond(t, was, now, cpuS, known && before && after)
}

func (l *line) addPerSecond(t float64, was, now lab.Sample, v float64, known bool) {
	span := now.At.Sub(was.At).Seconds()
	switch {
	case span <= 0:
	case !known:
		l.add(t, math.NaN())
	default:
		l.add(t, v/span)
	}
}

func (l *line) named(name string) plots.Line {
	return plots.Line{Name: name, TimesS: l.times, Values: l.values}
}

// countedRequests is the server's count less the lab's own polls.
func countedRequests(x lab.Sample) (float64, bool) {
	if x.Status == nil {
		return 0, false
	}
	return float64(x.Status.Requests) - float64(x.Status.Polls), true
}
