package load

import (
	"fmt"
	"math"
	"strings"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

// Served is how many requests the server had counted at one instant of the target's clock, the lab's own polls
// subtracted. It is cumulative.
type Served struct {
	At       lab.Instant
	Requests float64
}

// MergeInput is what Merge needs besides the processes.
type MergeInput struct {
	Point lab.LoadPoint
	Probe lab.Probe // what every response is held against
	// Served are the server's counts, ascending: the first before the release, the last after the end. Empty when the
	// server does not count.
	Served []Served
	// Ahead is how far each load host's clock is ahead of the target's; hosts on the target's clock may be missing.
	Ahead map[lab.HostName]time.Duration
}

// Merged is one run made of its processes.
type Merged struct {
	Figures   lab.Figures
	Histogram []byte // merged, as lab.Report.Histogram; nil unless every process has one
	Grade     lab.Grade
	LoopModel lab.LoopModel
	Window    lab.Window
	Problem   string // why there are no figures: what is wrong with each process that is not well
}

// Fewest requests from which a far percentile is shown (findings: short-run).
const (
	fewestForP99  = 10_000
	fewestForP999 = 100_000
)

// Merge makes one result of the processes of a run, as METHOD §2 says. All processes are of one tool and have been
// through Parse; when one of them has a problem, or there is none, there are no figures.
//
//	goodput, one process      good ÷ the tool's own duration
//	goodput, several          requests the server counted between the edges of the common window × Σgood/Σn ÷ that window;
//	                          without the server's count Σgood ÷ the union of the process windows
//	latency                   mean weighted by count, standard deviation pooled, percentiles from merged histograms only
//
// Good is never more than the server counted. NonSuccess are the responses of another status than the probe's.
func Merge(ps []lab.Process, in MergeInput) Merged {
	m := Merged{Figures: lab.Figures{}, Window: window(ps, in.Ahead), Problem: together(ps)}
	if m.Problem != "" {
		return m
	}
	tool, _ := Named(ps[0].Report.Tool)
	g := merging{tool: tool, ps: ps, in: in, f: m.Figures}
	g.sums()
	total := g.outcomes()
	g.rates(total, &m.Window)
	g.latency()
	m.Histogram = g.percentiles()
	m.Grade, m.LoopModel = g.grade(total), ps[0].Report.LoopModel
	return m
}

// together lists what is wrong with the processes.
func together(ps []lab.Process) string {
	var wrong []string
	for i, p := range ps {
		if p.Problem != "" && len(ps) > 1 {
			wrong = append(wrong, fmt.Sprintf("process %d of %d on %s: %s", i+1, len(ps), p.Host, p.Problem))
		} else if p.Problem != "" {
			wrong = append(wrong, p.Problem)
		}
	}
	if len(ps) == 0 {
		return "no load process ran"
	}
	return strings.Join(wrong, "; ")
}

// merging is one merge at work.
type merging struct {
	tool Tool
	ps   []lab.Process
	in   MergeInput
	f    lab.Figures
}

// summed are the figures that add up over processes; one is known only when every process knows it.
var summed = []lab.Metric{
	lab.Requests, lab.Connections, lab.BytesRead, lab.BodyBytes, lab.KeptAlive,
	lab.ErrConnect, lab.ErrRead, lab.ErrWrite, lab.ErrTimeout, lab.ErrLength, lab.ErrException,
}

func (g merging) sums() {
	for _, metric := range summed {
		if sum, known := g.sum(metric); known {
			g.f[metric] = sum
		}
	}
	for _, p := range g.ps {
		if length, known := p.Report.Figures[lab.DocumentBytes]; known {
			g.f[lab.DocumentBytes] = max(g.f[lab.DocumentBytes], length)
		}
	}
}

// sum adds a figure up. An error class that only some processes print is zero in the others.
func (g merging) sum(metric lab.Metric) (float64, bool) {
	sum, knowing := 0.0, 0
	for _, p := range g.ps {
		if v, known := p.Report.Figures[metric]; known {
			sum += v
			knowing++
		}
	}
	isError := strings.HasPrefix(string(metric), "errors_")
	return sum, knowing == len(g.ps) || isError && knowing > 0
}

// outcomes sums the outcomes of the processes and fills the figures made of them.
func (g merging) outcomes() outcome {
	var total outcome
	for _, p := range g.ps {
		o := g.tool.counts(p.Report.Figures, g.unexpected(p.Report.Figures))
		total.good += o.good
		total.broken += o.broken
		total.unexpected += o.unexpected
		total.bad += o.bad
		total.attempts += o.attempts
	}
	if g.nothingOfTheBody() {
		total.bad += total.good
		total.good = 0
	}
	if counted, known := g.served(); known {
		g.f[lab.ServerRequests] = counted
		total.good = min(total.good, counted)
	}
	g.f[lab.Failed], g.f[lab.NonSuccess] = total.broken, total.unexpected
	if total.attempts > 0 {
		g.f[lab.ErrorRatio] = min(total.bad/total.attempts, 1)
	}
	return total
}

// unexpected is the number of responses of another status than the probe's, as far as the tool's two classes tell.
func (g merging) unexpected(f lab.Figures) float64 {
	if g.in.Probe.Status != 0 && g.tool.refused(g.in.Probe.Status) {
		return max(f[lab.Requests]-f[lab.NonSuccess], 0)
	}
	return f[lab.NonSuccess]
}

// nothingOfTheBody: not one byte of body was read where the probe had one. ab calls such requests complete.
func (g merging) nothingOfTheBody() bool {
	read, known := g.f[lab.BodyBytes]
	return known && read == 0 && g.in.Probe.BodyBytes > 0
}

// served is what the server counted from before the release to after the end; unknown when its readings do not reach
// from the one to the other, or fall: then it was restarted.
func (g merging) served() (float64, bool) {
	s := g.in.Served
	if len(s) < 2 || s[len(s)-1].Requests < s[0].Requests {
		return 0, false
	}
	first, last := s[0], s[len(s)-1]
	for _, p := range g.ps {
		if whole := life(p, g.in.Ahead); first.At > whole.begin || last.At < whole.end {
			return 0, false
		}
	}
	return last.Requests - first.Requests, true
}

func (g merging) rates(total outcome, w *lab.Window) {
	if len(g.ps) == 1 {
		g.single(total, w)
		return
	}
	good := total.good
	if served, common, known := g.servedInCommon(); known && g.f[lab.Requests] > 0 {
		*w = common.as(*w)
		good = served * total.good / g.f[lab.Requests]
		if read, known := g.f[lab.BytesRead]; known {
			g.f[lab.BytesRate] = read / g.f[lab.Requests] * served / w.DurationS
		}
	} else if read, known := g.f[lab.BytesRead]; known && w.DurationS > 0 {
		g.f[lab.BytesRate] = read / w.DurationS
	}
	g.f[lab.DurationS] = w.DurationS
	if w.DurationS > 0 {
		g.f[lab.Goodput] = good / w.DurationS
	}
}

// single: the tool's own duration is the window.
func (g merging) single(total outcome, w *lab.Window) {
	f := g.ps[0].Report.Figures
	w.DurationS = f[lab.DurationS]
	for _, metric := range []lab.Metric{lab.DurationS, lab.RequestRate, lab.BytesRate} {
		if v, known := f[metric]; known {
			g.f[metric] = v
		}
	}
	if w.DurationS > 0 {
		g.f[lab.Goodput] = total.good / w.DurationS
	}
}

// latency fills what can be had exactly from the figures of several processes.
func (g merging) latency() {
	g.weighted(lab.MeanS)
	g.weighted(lab.ConnectMeanS)
	g.weighted(lab.WaitMeanS)
	g.weighted(lab.Corrections) // Σcounts ÷ Σn − 1
	g.pooled()
	g.extremes()
}

// weighted is the mean of a figure, each process by its requests.
func (g merging) weighted(metric lab.Metric) {
	sum, n := 0.0, 0.0
	for _, p := range g.ps {
		v, known := p.Report.Figures[metric]
		if !known {
			return
		}
		sum += v * p.Report.Figures[lab.Requests]
		n += p.Report.Figures[lab.Requests]
	}
	if n > 0 {
		g.f[metric] = sum / n
	}
}

// pooled is the standard deviation of all latencies together: of the squares about the common mean, with n − 1.
func (g merging) pooled() {
	mean, known := g.f[lab.MeanS]
	squares, n := 0.0, 0.0
	for _, p := range g.ps {
		f := p.Report.Figures
		sd, given := f[lab.StdevS]
		if known = known && given; !known {
			return
		}
		squares += (f[lab.Requests]-1)*sd*sd + f[lab.Requests]*(f[lab.MeanS]-mean)*(f[lab.MeanS]-mean)
		n += f[lab.Requests]
	}
	if n > 1 {
		g.f[lab.StdevS] = math.Sqrt(squares / (n - 1))
	}
}

func (g merging) extremes() {
	low, high, lows, highs := math.Inf(1), 0.0, 0, 0
	for _, p := range g.ps {
		if v, known := p.Report.Figures[lab.MinS]; known {
			low, lows = min(low, v), lows+1
		}
		if v, known := p.Report.Figures[lab.MaxS]; known {
			high, highs = max(high, v), highs+1
		}
	}
	if lows == len(g.ps) {
		g.f[lab.MinS] = low
	}
	if highs == len(g.ps) {
		g.f[lab.MaxS] = high
	}
}

// quantiles are the percentiles that a run shows, with the fewest requests that carry them.
var quantiles = []struct {
	metric lab.Metric
	q      float64
	fewest float64
}{
	{lab.P50S, 0.5, 0}, {lab.P75S, 0.75, 0}, {lab.P90S, 0.9, 0}, {lab.P95S, 0.95, 0},
	{lab.P99S, 0.99, fewestForP99}, {lab.P999S, 0.999, fewestForP999},
}

// percentiles fills the percentiles: of one process as it gives them, of several from the merged histogram, which it
// returns.
func (g merging) percentiles() []byte {
	histogram := g.histogram()
	for _, q := range quantiles {
		if g.f[lab.Requests] < q.fewest {
			continue
		}
		if v, known := g.ps[0].Report.Figures[q.metric]; known && len(g.ps) == 1 {
			g.f[q.metric] = v
		} else if v, err := outputs.Percentile(histogram, q.q); err == nil {
			g.f[q.metric] = v
		}
	}
	return histogram
}

// histogram merges the histograms; nil unless every process has one.
func (g merging) histogram() []byte {
	all := make([][]byte, len(g.ps))
	for i, p := range g.ps {
		if all[i] = p.Report.Histogram; len(all[i]) == 0 {
			return nil
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	merged, err := outputs.MergeHistograms(all)
	if err != nil {
		return nil
	}
	return merged
}

// grade says how well the good responses are evidenced (METHOD §2).
func (g merging) grade(total outcome) lab.Grade {
	if _, known := g.ps[0].Report.Figures[lab.NonSuccess]; !known {
		return lab.GradeD
	}
	if total.bad > 0 || g.in.Probe.Status == 0 || g.tool.refused(g.in.Probe.Status) {
		return lab.GradeC
	}
	b := g.tool.bytes(g.f, g.in.Probe, g.in.Point.KeepAlive)
	if b.known && math.Abs(b.excess) <= g.connections()*b.perReply+b.slack {
		return lab.GradeB
	}
	return lab.GradeC
}

func (g merging) connections() float64 {
	asked := 0
	for _, p := range g.ps {
		asked += p.Command.Share.Connections
	}
	return float64(asked)
}
