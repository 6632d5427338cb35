package outputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"ngxlab/lab"
)

// correctedAbove is the share of back-filled counts above which a wrk histogram is called corrected
// (rule latency-corrected: 0.2 to 1 % in quiet runs, 2 to 14 % under foreign load).
const correctedAbove = 0.02

// wrkHookPrefix begins the line that the lab's Lua hook prints.
const wrkHookPrefix = "NGXLAB-WRK "

// The units of wrk's src/units.c. Counts go by 1000, bytes by 1024.
var (
	wrkTimes  = []unit{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}
	wrkCounts = []unit{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"", 1}}
	wrkBytes  = []unit{{"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1 << 40}, {"B", 1}}
)

var (
	wrkShape    = regexp.MustCompile(`^\s*(\d+) threads? and (\d+) connections?$`)
	wrkTotals   = regexp.MustCompile(`^\s*(\d+) requests in ([\d.]+)([a-z]+), ([\d.]+[KMGTB]*) read$`)
	wrkErrors   = regexp.MustCompile(`^\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`)
	wrkStatuses = regexp.MustCompile(`^\s*Non-2xx or 3xx responses: (\d+)$`)
	wrkQuantile = regexp.MustCompile(`^\s*([\d.]+)%\s+(\S+)\s*$`)
)

// ParseWrk reads the text that wrk 4.x prints, with the line of the lab's hook when it is there: exact integers of
// that line win over the rounded text, and give a histogram whose counts sum to the requests. Connections are as
// asked, not as opened. A latency without a unit is left out with a warning, the rest kept. Without a sample ("-nan",
// all 0.00us) there are no latency figures. An output without the totals is an error. Format: src/wrk.c, 4.1.0.
func ParseWrk(r io.Reader) (lab.Report, error) {
	lines, err := allLines(r)
	if err != nil {
		return lab.Report{}, fmt.Errorf("parse wrk: %w", err)
	}
	w := wrkReport{Report: lab.Report{Tool: "wrk", LoopModel: lab.ClosedLoop, Figures: lab.Figures{}}}
	hook := ""
	for _, line := range lines {
		if rest, found := strings.CutPrefix(line, wrkHookPrefix); found {
			hook = rest
			continue
		}
		w.line(line)
	}
	if err := w.finish(lines); err != nil {
		return lab.Report{}, err
	}
	if hook != "" {
		w.hook(hook)
	}
	w.judgeCorrection()
	return w.Report, nil
}

// wrkReport is a report being read.
type wrkReport struct {
	lab.Report
	distribution bool // inside "Latency Distribution"
	totals       bool // "N requests in D" was seen
	noSamples    bool // the latency line ends with -nan%
	connections  float64
	quantiles    []lab.Quantile
}

func (w *wrkReport) warn(format string, args ...any) {
	w.Warnings = append(w.Warnings, fmt.Sprintf(format, args...))
}

func (w *wrkReport) line(line string) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return
	}
	if w.distribution {
		if m := wrkQuantile.FindStringSubmatch(line); m != nil {
			w.quantile(m[1], m[2])
			return
		}
		w.distribution = false
	}
	switch {
	case fields[0] == "Latency" && len(fields) == 5 && strings.HasSuffix(fields[4], "%"):
		w.latency(fields[1:])
	case strings.HasPrefix(strings.TrimSpace(line), "Latency Distribution"):
		w.distribution = len(w.quantiles) == 0 // wrk2 -U prints an uncorrected second block
	case fields[0] == "Requests/sec:" && len(fields) == 2:
		w.set(lab.RequestRate, fields[1], wrkCounts)
	case fields[0] == "Transfer/sec:" && len(fields) == 2:
		w.set(lab.BytesRate, fields[1], wrkBytes)
	default:
		w.counts(line)
	}
}

func (w *wrkReport) set(m lab.Metric, text string, units []unit) {
	if v, ok := withUnit(text, units); ok {
		w.Figures[m] = v
	} else {
		w.warn("%s: %q is not understood", m, text)
	}
}

func (w *wrkReport) latency(fields []string) {
	if strings.Contains(fields[3], "nan") {
		w.noSamples = true
		return
	}
	for i, m := range []lab.Metric{lab.MeanS, lab.StdevS, lab.MaxS} {
		w.time(m, fields[i])
	}
}

// time sets a figure from a latency; a number without its unit cannot be trusted (a known fault of old versions).
func (w *wrkReport) time(m lab.Metric, text string) {
	if v, ok := withUnit(text, wrkTimes); ok {
		w.Figures[m] = v
		return
	}
	w.warn("%s: latency %q has no unit and is left out", m, text)
}

func (w *wrkReport) quantile(percent, text string) {
	p, ok := number(percent)
	v, timed := withUnit(text, wrkTimes)
	if !ok || p > 100 || !timed {
		w.warn("latency distribution: %q has no unit and is left out", percent+"% "+text)
		return
	}
	w.quantiles = append(w.quantiles, lab.Quantile{Q: p / 100, S: v})
}

func (w *wrkReport) counts(line string) {
	if m := wrkShape.FindStringSubmatch(line); m != nil {
		w.connections, _ = count(m[2])
		w.Figures[lab.Connections] = w.connections
	} else if m := wrkTotals.FindStringSubmatch(line); m != nil {
		w.total(m)
	} else if m := wrkErrors.FindStringSubmatch(line); m != nil {
		w.errors(m[1:])
	} else if m := wrkStatuses.FindStringSubmatch(line); m != nil {
		w.Figures[lab.NonSuccess], _ = count(m[1])
	}
}

func (w *wrkReport) total(m []string) {
	n, ok := count(m[1])
	d, timed := withUnit(m[2]+m[3], wrkTimes)
	if !ok || !timed {
		return
	}
	w.totals = true
	w.Figures[lab.Requests], w.Figures[lab.DurationS] = n, d
	w.set(lab.BytesRead, m[4], wrkBytes)
}

func (w *wrkReport) errors(fields []string) {
	sum := 0.0
	for i, m := range []lab.Metric{lab.ErrConnect, lab.ErrRead, lab.ErrWrite, lab.ErrTimeout} {
		v, _ := count(fields[i])
		w.Figures[m] = v
		sum += v
	}
	w.Figures[lab.Failed] = sum
}

// finish checks that the report is whole and fills what its grammar implies.
func (w *wrkReport) finish(lines []string) error {
	if !w.totals {
		return fmt.Errorf("parse wrk: no report%s", lastWords(lines))
	}
	if d, rate := w.Figures[lab.DurationS], w.Figures[lab.RequestRate]; d > 60 && rate > 0 {
		w.Figures[lab.DurationS] = w.Figures[lab.Requests] / rate // printed in 1/100 of a minute or hour
	}
	if _, complete := w.Figures[lab.RequestRate]; complete {
		// wrk prints these lines only when a count is above zero.
		w.zero(lab.Failed)
		w.zero(lab.NonSuccess)
	}
	if w.noSamples || w.Figures[lab.Requests] == 0 {
		w.dropLatency()
	}
	for _, q := range w.quantiles {
		w.setQuantile(q)
	}
	return nil
}

func (w *wrkReport) zero(m lab.Metric) {
	if _, known := w.Figures[m]; !known {
		w.Figures[m] = 0
	}
}

func (w *wrkReport) dropLatency() {
	w.quantiles = nil
	for _, m := range []lab.Metric{lab.MeanS, lab.StdevS, lab.MinS, lab.MaxS} {
		delete(w.Figures, m)
	}
	w.warn("no latency was recorded")
}

func (w *wrkReport) setQuantile(q lab.Quantile) {
	for _, p := range percentiles {
		if math.Abs(p.q-q.Q) < 1e-9 {
			w.Figures[p.metric] = q.S
		}
	}
}

// wrkHook is the JSON of the hook: µs, percents, counts.
type wrkHook struct {
	DurationUS *float64     `json:"duration_us"`
	Requests   *float64     `json:"requests"`
	Bytes      *float64     `json:"bytes"`
	Errors     *wrkHookErrs `json:"errors"`
	wrkHookErrs
	Counts    *float64     `json:"counts"`
	MinUS     *float64     `json:"min_us"`
	MaxUS     *float64     `json:"max_us"`
	MeanUS    *float64     `json:"mean_us"`
	StdevUS   *float64     `json:"stdev_us"`
	Quantiles [][2]float64 `json:"quantiles"` // share in percent (or from 0 to 1), µs
}

type wrkHookErrs struct {
	Connect *float64 `json:"connect"`
	Read    *float64 `json:"read"`
	Write   *float64 `json:"write"`
	Status  *float64 `json:"status"`
	Timeout *float64 `json:"timeout"`
}

// nans are what C prints in place of a number; JSON has none.
var nans = regexp.MustCompile(`:\s*-?(nan|inf)\b`)

func (w *wrkReport) hook(text string) {
	var h wrkHook
	if err := json.Unmarshal([]byte(nans.ReplaceAllString(text, ":null")), &h); err != nil {
		w.warn("the line of the hook is not understood: %v", err)
		return
	}
	if h.Errors == nil {
		h.Errors = &h.wrkHookErrs
	}
	w.hookCounts(h)
	if h.MinUS == nil || len(h.Quantiles) == 0 || w.Figures[lab.Requests] == 0 {
		return
	}
	if err := w.hookLatency(h); err != nil {
		w.warn("the latencies of the hook are left out: %v", err)
	}
}

func (w *wrkReport) hookCounts(h wrkHook) {
	w.exact(lab.DurationS, h.DurationUS, 1e-6)
	w.exact(lab.Requests, h.Requests, 1)
	w.exact(lab.BytesRead, h.Bytes, 1)
	e := h.Errors
	w.exact(lab.NonSuccess, e.Status, 1)
	sum, known := 0.0, false
	for m, v := range map[lab.Metric]*float64{lab.ErrConnect: e.Connect, lab.ErrRead: e.Read, lab.ErrWrite: e.Write, lab.ErrTimeout: e.Timeout} {
		w.exact(m, v, 1)
		if v != nil && *v >= 0 {
			sum, known = sum+*v, true
		}
	}
	if known {
		w.Figures[lab.Failed] = sum
	}
}

func (w *wrkReport) exact(m lab.Metric, v *float64, factor float64) {
	if v != nil && *v >= 0 {
		w.Figures[m] = *v * factor
	}
}

func (w *wrkReport) hookLatency(h wrkHook) error {
	scale := 1.0
	for _, q := range h.Quantiles {
		if q[0] > 1 {
			scale = 100
		}
	}
	w.quantiles = nil
	last := lab.Quantile{}
	for _, q := range h.Quantiles {
		next := lab.Quantile{Q: q[0] / scale, S: q[1] / 1e6}
		if !(next.Q > last.Q && next.Q <= 1 && next.S >= last.S) {
			return errors.New("its quantiles do not ascend")
		}
		w.quantiles, last = append(w.quantiles, next), next
	}
	return w.hookHistogram(h)
}

func (w *wrkReport) hookHistogram(h wrkHook) error {
	maxS := 0.0
	if h.MaxUS != nil {
		maxS = *h.MaxUS / 1e6
	}
	histogram, err := HistogramFromQuantiles(int64(w.Figures[lab.Requests]), w.quantiles, maxS)
	if err != nil {
		return err
	}
	if w.Histogram, err = histogram.Encode(); err != nil {
		return err
	}
	if err := setPercentiles(w.Figures, w.Histogram); err != nil {
		return err
	}
	for _, q := range w.quantiles { // exact, where the histogram rounds to three digits
		w.setQuantile(q)
	}
	w.exact(lab.MinS, h.MinUS, 1e-6)
	w.exact(lab.MaxS, h.MaxUS, 1e-6)
	w.exact(lab.MeanS, h.MeanUS, 1e-6)
	w.exact(lab.StdevS, h.StdevUS, 1e-6)
	if h.Counts != nil && *h.Counts > 0 {
		w.Figures[lab.Corrections] = *h.Counts/w.Figures[lab.Requests] - 1
	} else if excess, ok := w.excess(); ok {
		w.Figures[lab.Corrections] = excess
	}
	return nil
}

// excess returns the share of counts that wrk back-filled, from the quantiles alone. stats_correct (src/stats.c)
// adds to the count at m those at m+E, m+2E … for m > E, E being the time between two requests of a connection; so
// the counts up to 2E sum to exactly the latencies recorded, and 1/F(2E) is all counts over recorded ones.
func (w *wrkReport) excess() (float64, bool) {
	twice, ok := w.twiceInterval()
	if !ok || len(w.quantiles) == 0 {
		return 0, false
	}
	below := lab.Quantile{}
	for _, q := range w.quantiles {
		if q.S > twice {
			share := below.Q + (q.Q-below.Q)*(twice-below.S)/(q.S-below.S)
			return 1/share - 1, share > 0
		}
		below = q
	}
	return 0, true
}

// twiceInterval is 2E in seconds; false where wrk corrects nothing (fewer requests than connections).
func (w *wrkReport) twiceInterval() (float64, bool) {
	if w.connections == 0 {
		return 0, false
	}
	perConnection := math.Floor(w.Figures[lab.Requests] / w.connections)
	if perConnection < 1 {
		return 0, false
	}
	return 2 * math.Floor(w.Figures[lab.DurationS]*1e6/perConnection) / 1e6, true
}

// judgeCorrection marks the report as corrected: by the excess where it is known, else where the printed
// percentiles prove that it is large.
func (w *wrkReport) judgeCorrection() {
	if excess, known := w.Figures[lab.Corrections]; known {
		w.Corrected = excess > correctedAbove
		return
	}
	twice, ok := w.twiceInterval()
	for _, q := range w.quantiles {
		if ok && q.S > twice {
			w.Corrected = 1/q.Q-1 > correctedAbove
			return
		}
	}
}

// lastWords quotes what a tool said in place of a report.
func lastWords(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if text := strings.TrimSpace(lines[i]); text != "" {
			return fmt.Sprintf("; the last line is %q", text[:min(len(text), 200)])
		}
	}
	return "; the output is empty"
}
