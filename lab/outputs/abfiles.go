package outputs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"ngxlab/lab"
)

// ParseABQuantiles reads the file of ab -e: 101 rows "percent,milliseconds" with µs resolution. It returns them as
// Quantiles, and as MaxS, MinS and percentiles. Rows that are smaller than one before them are left out with a
// warning: with few requests ab reads past its data (index round(n·i/100) ≥ n). How many requests there were is not
// in this file; CombineAB, which knows, discards every row the fault can reach. Source: support/ab.c, output_results.
func ParseABQuantiles(r io.Reader) (lab.Report, error) {
	p := abQuantiles{}
	if err := eachLine(r, p.line); err != nil {
		return lab.Report{}, fmt.Errorf("parse ab -e: %w", err)
	}
	if len(p.rows) == 0 {
		return lab.Report{}, errors.New("parse ab -e: no rows")
	}
	report := lab.Report{Tool: "ab", LoopModel: lab.ClosedLoop, Figures: lab.Figures{}}
	report.Quantiles, report.Warnings = p.ascending()
	fillQuantiles(report.Figures, report.Quantiles)
	return report, nil
}

type abQuantiles struct {
	header bool
	rows   []lab.Quantile
}

func (p *abQuantiles) line(line string) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	if !p.header {
		p.header = true
		if strings.HasPrefix(line, "Percentage served,") {
			return nil
		}
		return fmt.Errorf("it begins with %q", line[:min(len(line), 60)])
	}
	percent, ms, _ := strings.Cut(line, ",")
	i, ok := count(percent)
	v, timed := number(ms)
	if !ok || !timed || i > 100 || v < 0 {
		return fmt.Errorf("row %d is %q", len(p.rows)+1, line[:min(len(line), 60)])
	}
	if n := len(p.rows); n > 0 && i/100 <= p.rows[n-1].Q {
		return fmt.Errorf("row %d: %g %% comes after %g %%", n+1, i, p.rows[n-1].Q*100)
	}
	p.rows = append(p.rows, lab.Quantile{Q: i / 100, S: v / 1000})
	return nil
}

// ascending leaves out what cannot be true: a value above the maximum (the row of 100 %), or below one before it.
func (p *abQuantiles) ascending() ([]lab.Quantile, []string) {
	highest := math.Inf(1)
	if last := p.rows[len(p.rows)-1]; last.Q == 1 {
		highest = last.S
	}
	var kept []lab.Quantile
	for _, q := range p.rows {
		if q.S <= highest && (len(kept) == 0 || q.S >= kept[len(kept)-1].S) {
			kept = append(kept, q)
		}
	}
	if lost := len(p.rows) - len(kept); lost > 0 {
		return kept, []string{fmt.Sprintf("%d rows are left out: they are not in ascending order", lost)}
	}
	return kept, nil
}

// fillQuantiles sets the figures that stand in the quantiles themselves; nothing is interpolated.
func fillQuantiles(f lab.Figures, quantiles []lab.Quantile) {
	for _, q := range quantiles {
		if q.Q == 0 {
			f[lab.MinS] = q.S
		}
		if q.Q == 1 {
			f[lab.MaxS] = q.S
		}
		for _, p := range percentiles {
			if math.Abs(p.q-q.Q) < 1e-9 {
				f[p.metric] = q.S
			}
		}
	}
}

// maxSpanS bounds the seconds between the first and the last request of a -g file.
const maxSpanS = 7 * 24 * 3600

// ParseABRequests reads the file of ab -g, one row per request (failed ones too), as a stream: its size does not
// matter. It returns the number of rows as Requests, mean, min and max, a Histogram, and PerSecond: completions in
// each second since the second of the first start. Latencies are whole milliseconds and starts whole seconds, so a
// completion may count one second early. Rows come sorted by latency, which is not relied on.
func ParseABRequests(r io.Reader) (lab.Report, error) {
	p := abRequests{histogram: NewHistogram(), ends: map[int64]float64{}, min: math.Inf(1)}
	if err := eachLine(r, p.line); err != nil {
		return lab.Report{}, fmt.Errorf("parse ab -g: %w", err)
	}
	if p.n == 0 {
		return lab.Report{}, errors.New("parse ab -g: no requests")
	}
	return p.report()
}

type abRequests struct {
	header         bool
	n              int64
	sum, min, max  float64 // ms
	first, last    int64   // seconds of the epoch: earliest start, latest end
	ends           map[int64]float64
	histogram      Histogram
	sumConnect     float64
	sumWait        float64
	malformedAfter bool
}

func (p *abRequests) line(line string) error {
	if !p.header {
		p.header = true
		if strings.HasPrefix(line, "starttime\t") {
			return nil
		}
		return fmt.Errorf("it begins with %q", line[:min(len(line), 60)])
	}
	if line == "" {
		return nil
	}
	if p.malformedAfter {
		return fmt.Errorf("row %d is broken", p.n+1)
	}
	start, connect, total, wait, ok := abRow(line)
	if !ok {
		p.malformedAfter = true // the last row of a cut file
		return nil
	}
	return p.add(start, connect, total, wait)
}

// abRow splits "starttime seconds ctime dtime ttime wait".
func abRow(line string) (start int64, connect, total, wait float64, ok bool) {
	fields := strings.Split(line, "\t")
	if len(fields) != 6 {
		return 0, 0, 0, 0, false
	}
	s, ok1 := count(fields[1])
	connect, ok2 := count(fields[2])
	total, ok3 := count(fields[4])
	wait, ok4 := count(fields[5])
	return int64(s), connect, total, wait, ok1 && ok2 && ok3 && ok4 && s < 1e12 && total < 1e12
}

func (p *abRequests) add(start int64, connect, total, wait float64) error {
	end := start + int64(total/1000)
	if p.n == 0 {
		p.first, p.last = start, end
	}
	p.first, p.last = min(p.first, start), max(p.last, end)
	if p.last-p.first > maxSpanS {
		return fmt.Errorf("row %d: %d s lie between the first and the last request", p.n+1, p.last-p.first)
	}
	p.n++
	p.ends[end]++
	p.sum, p.min, p.max = p.sum+total, min(p.min, total), max(p.max, total)
	p.sumConnect, p.sumWait = p.sumConnect+connect, p.sumWait+wait
	p.histogram.Record(int64(total)*1000, 1)
	return nil
}

func (p *abRequests) report() (lab.Report, error) {
	n := float64(p.n)
	report := lab.Report{Tool: "ab", LoopModel: lab.ClosedLoop, Figures: lab.Figures{
		lab.Requests: n, lab.MeanS: p.sum / n / 1000, lab.MinS: p.min / 1000, lab.MaxS: p.max / 1000,
		lab.ConnectMeanS: p.sumConnect / n / 1000, lab.WaitMeanS: p.sumWait / n / 1000,
	}}
	report.PerSecond = make([]float64, p.last-p.first+1)
	for second, ended := range p.ends {
		report.PerSecond[second-p.first] = ended
	}
	if p.malformedAfter {
		report.Warnings = append(report.Warnings, "the last row is incomplete and left out")
	}
	var err error
	if report.Histogram, err = p.histogram.Encode(); err != nil {
		return lab.Report{}, fmt.Errorf("parse ab -g: %w", err)
	}
	return report, setPercentiles(report.Figures, report.Histogram)
}

// CombineAB returns ab's report with what its files say better: latencies and a histogram in µs from the quantiles
// of -e (less the rows that ab's fault can reach with that many requests), completions per second and the tail above the
// last quantile from the rows of -g, whose mean and histogram (whole ms) serve when there are no quantiles. Either file may be nil; what is too short for
// the whole milliseconds that remain is left out.
func CombineAB(text lab.Report, quantiles, requests *lab.Report) (lab.Report, error) {
	out := text
	out.Figures = lab.Figures{}
	for m, v := range text.Figures {
		out.Figures[m] = v
	}
	out.Warnings = append([]string(nil), text.Warnings...)
	if requests != nil {
		combineRequests(&out, *requests)
	}
	if quantiles != nil {
		if err := combineQuantiles(&out, *quantiles); err != nil {
			return text, fmt.Errorf("combine ab -e with its report: %w", err)
		}
	}
	dropCoarse(&out, quantiles != nil)
	return out, nil
}

// combineRequests takes mean and percentiles of the rows only when there are as many as the report says.
func combineRequests(out *lab.Report, requests lab.Report) {
	out.PerSecond = requests.PerSecond
	out.Warnings = append(out.Warnings, requests.Warnings...)
	rows, n := requests.Figures[lab.Requests], out.Figures[lab.Requests]
	if rows != n {
		out.Warnings = append(out.Warnings, fmt.Sprintf("ab -g has %g rows for %g complete requests", rows, n))
		return
	}
	out.Histogram = requests.Histogram
	for _, m := range []lab.Metric{lab.MeanS, lab.ConnectMeanS, lab.WaitMeanS, lab.P999S} {
		if v, known := requests.Figures[m]; known {
			out.Figures[m] = v
		}
	}
}

// combineQuantiles builds the histogram from -e up to its last row below 100 %; what is above comes from the rows of
// -g when they are there (out.Histogram), else counts at the maximum.
func combineQuantiles(out *lab.Report, quantiles lab.Report) error {
	n := int64(out.Figures[lab.Requests])
	usable, lost := usableQuantiles(n, quantiles.Quantiles)
	out.Warnings = append(out.Warnings, quantiles.Warnings...)
	if lost > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d rows of ab -e are left out: with %d requests ab reads them past its data", lost, n))
	}
	if n <= 0 || len(usable) == 0 {
		return errors.New("no completed requests")
	}
	points := ranks(n, usable)
	tail := len(points)
	if len(out.Histogram) > 0 {
		var err error
		if points, tail, err = tailPoints(n, points, out.Histogram); err != nil {
			return err
		}
	}
	fineMoments(out.Figures, points, tail)
	histogram, err := fromRanks(n, points, 0)
	if err != nil {
		return err
	}
	if out.Histogram, err = histogram.Encode(); err != nil {
		return err
	}
	fillQuantiles(out.Figures, usable)
	return nil
}

// tailPoints replaces the step from the last quantile to the maximum by the rows of -g that lie above it, and returns
// where those begin.
func tailPoints(n int64, points []rankedUS, rows []byte) (all []rankedUS, tail int, err error) {
	h, err := DecodeHistogram(rows)
	if err != nil {
		return nil, 0, err
	}
	if len(points) < 2 || h.Count() != n {
		return points, len(points), nil
	}
	maximum := points[len(points)-1]
	points = points[:len(points)-1]
	tail = len(points)
	from, rank := points[len(points)-1], int64(0)
	for _, bar := range h.h.Distribution() {
		rank += bar.Count
		if bar.Count > 0 && rank > from.rank {
			points = append(points, rankedUS{rank, min(max(bar.From, from.us), maximum.us)})
		}
	}
	points[len(points)-1].us = maximum.us
	return points, tail, nil
}

// abIndex is the index of the request, in ascending order of latency, that ab prints for a share.
func abIndex(n int64, q float64) int64 { return int64(0.5 + float64(n)*q) }

func usableQuantiles(n int64, quantiles []lab.Quantile) (usable []lab.Quantile, lost int) {
	for _, q := range quantiles {
		if q.Q > 0 && q.Q < 1 && abIndex(n, q.Q) >= n {
			lost++
			continue
		}
		usable = append(usable, q)
	}
	return usable, lost
}

func ranks(n int64, quantiles []lab.Quantile) []rankedUS {
	points := make([]rankedUS, 0, len(quantiles))
	for _, q := range quantiles {
		rank := min(abIndex(n, q.Q)+1, n)
		points = append(points, rankedUS{rank, microseconds(q.S)})
	}
	return points
}
