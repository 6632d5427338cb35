package outputs

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"ngxlab/lab"
)

var (
	abVersion    = regexp.MustCompile(`This is ApacheBench, Version (\S+)(?: <\$Revision: ([\d.]+) \$>)?`)
	abFailures   = regexp.MustCompile(`\((Connect: .*)\)`)
	abProgress   = regexp.MustCompile(`^(Completed|Finished) \d+ requests`)
	abPercentile = regexp.MustCompile(`^\s*(\d+)%\s+(\d+)(?: \(longest request\))?\s*$`)
)

// abFields are the lines "name: value unit" that become figures as they are.
var abFields = map[string]struct {
	metric lab.Metric
	factor float64
}{
	"Document Length":      {lab.DocumentBytes, 1},
	"Concurrency Level":    {lab.Connections, 1},
	"Time taken for tests": {lab.DurationS, 1},
	"Complete requests":    {lab.Requests, 1},
	"Write errors":         {lab.ErrWrite, 1},
	"Non-2xx responses":    {lab.NonSuccess, 1},
	"Keep-Alive requests":  {lab.KeptAlive, 1},
	"Total transferred":    {lab.BytesRead, 1},
	"HTML transferred":     {lab.BodyBytes, 1},
	"Requests per second":  {lab.RequestRate, 1},
}

// abClasses are the kinds of failures that ab lists.
var abClasses = map[string]lab.Metric{
	"Connect": lab.ErrConnect, "Receive": lab.ErrRead, "Length": lab.ErrLength, "Exceptions": lab.ErrException,
}

// ParseAB reads the text that ab prints, from 2.0.40 to 2.5-dev, standard error mixed in or not. Latencies are those
// of the Connection Times table (whole milliseconds); the line "Time per request" is a quotient and is not used.
// Failed counts requests that broke: one broken request shows up in several of ab's classes, so the largest of
// Connect, Receive and Exceptions is taken; a length unlike the first response's is ErrLength and may be a broken
// request, an unexpected status or a page that changes. Interrupted is set when the output proves it. An output
// without a report is an error that quotes ab's last words. Source: support/ab.c of 2.4.71 and trunk.
func ParseAB(r io.Reader) (lab.Report, error) {
	lines, err := allLines(r)
	if err != nil {
		return lab.Report{}, fmt.Errorf("parse ab: %w", err)
	}
	a := abReport{Report: lab.Report{Tool: "ab", LoopModel: lab.ClosedLoop, Figures: lab.Figures{}}}
	preamble, body := splitAB(lines)
	a.readPreamble(preamble)
	for _, line := range body {
		a.line(line)
	}
	if err := a.finish(lines); err != nil {
		return lab.Report{}, err
	}
	return a.Report, nil
}

// splitAB cuts at the last "Server Software:" line: what is before it may hold bodies of responses (-v).
func splitAB(lines []string) (preamble, body []string) {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "Server Software:") {
			return lines[:i], lines[i:]
		}
	}
	return lines, nil
}

// abReport is a report being read.
type abReport struct {
	lab.Report
	section     string // "", "times", "percentiles"
	failedAsked float64
	failedKnown bool
	classes     bool
}

func (a *abReport) warn(format string, args ...any) {
	a.Warnings = append(a.Warnings, fmt.Sprintf(format, args...))
}

// readPreamble finds the version and the marks of an interruption: with -q or few requests, "..." is not followed
// by "..done"; otherwise progress lines (standard error, when mixed in) do not end in "Finished".
func (a *abReport) readPreamble(lines []string) {
	began, done, completed, finished := false, false, false, false
	for _, line := range lines {
		if m := abVersion.FindStringSubmatch(line); m != nil {
			a.Version = strings.TrimSpace(m[1] + " " + m[2])
		}
		began = began || strings.Contains(line, "(be patient)...")
		done = done || strings.HasSuffix(line, "..done")
		completed = completed || strings.HasPrefix(line, "Completed ")
		finished = finished || strings.HasPrefix(line, "Finished ")
		a.Interrupted = a.Interrupted || strings.HasSuffix(line, "..interrupted")
	}
	a.Interrupted = a.Interrupted || began && !done || completed && !finished
}

func (a *abReport) line(line string) {
	switch {
	case abProgress.MatchString(line):
		a.Interrupted = a.Interrupted && !strings.HasPrefix(line, "Finished")
	case strings.HasPrefix(line, "Connection Times"):
		a.section = "times"
	case strings.HasPrefix(line, "Percentage of the requests"):
		a.section = "percentiles"
	case a.section == "percentiles":
		a.percentile(line)
	case a.section == "times" && a.times(line):
	default:
		a.field(line)
	}
}

func (a *abReport) field(line string) {
	if m := abFailures.FindStringSubmatch(line); m != nil {
		a.failures(m[1])
		return
	}
	name, value, found := strings.Cut(line, ":")
	words := strings.Fields(value)
	if !found || len(words) == 0 {
		return
	}
	v, ok := number(words[0])
	if !ok || v < 0 {
		return
	}
	switch {
	case name == "Failed requests":
		a.failedAsked, a.failedKnown = v, true
	case name == "Transfer rate" && strings.HasSuffix(value, "received"):
		a.Figures[lab.BytesRate] = v * 1024 // ab's Kbytes are 1024 bytes
	default:
		if f, known := abFields[name]; known {
			a.Figures[f.metric] = v * f.factor
		}
	}
}

// failures reads "Connect: 0, Receive: 0, Length: 64, Exceptions: 64"; 2.0.x has no Receive.
func (a *abReport) failures(text string) {
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), ":")
		v, ok := count(strings.TrimSpace(value))
		if m, known := abClasses[name]; known && ok {
			a.Figures[m], a.classes = v, true
		}
	}
}

// times reads a row of the Connection Times table: min mean sd median max, or min avg max with -S.
func (a *abReport) times(line string) bool {
	name, value, found := strings.Cut(line, ":")
	words := strings.Fields(value)
	if !found || len(words) != 5 && len(words) != 3 {
		return false
	}
	var row []float64
	for _, word := range words {
		ms, ok := number(word)
		if !ok || ms < 0 {
			return false
		}
		row = append(row, ms/1000)
	}
	switch name {
	case "Connect":
		a.Figures[lab.ConnectMeanS] = row[1]
	case "Waiting":
		a.Figures[lab.WaitMeanS] = row[1]
	case "Total":
		a.total(row)
	}
	return true
}

func (a *abReport) total(row []float64) {
	a.Figures[lab.MinS], a.Figures[lab.MeanS], a.Figures[lab.MaxS] = row[0], row[1], row[len(row)-1]
	if len(row) == 5 {
		a.Figures[lab.StdevS], a.Figures[lab.P50S] = row[2], row[3]
	}
}

func (a *abReport) percentile(line string) {
	m := abPercentile.FindStringSubmatch(line)
	if m == nil {
		return
	}
	ms, _ := count(m[2])
	metric, known := map[string]lab.Metric{"50": lab.P50S, "75": lab.P75S, "90": lab.P90S, "95": lab.P95S, "99": lab.P99S, "100": lab.MaxS}[m[1]]
	if known {
		a.Figures[metric] = ms / 1000
	}
}

// finish checks that there is a report and settles the failures.
func (a *abReport) finish(lines []string) error {
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "<table") {
			return errors.New("parse ab: the report is an HTML table; run ab without -w")
		}
	}
	n, known := a.Figures[lab.Requests]
	if !known {
		return fmt.Errorf("parse ab: no report%s", lastWords(lines))
	}
	if _, whole := a.Figures[lab.DurationS]; !whole {
		return fmt.Errorf("parse ab: the report has no duration%s", lastWords(lines))
	}
	if _, printed := a.Figures[lab.NonSuccess]; !printed && a.failedKnown {
		a.Figures[lab.NonSuccess] = 0 // printed only when above zero
	}
	if n == 0 {
		a.warn("no request was completed")
	}
	if received, printed := a.Figures[lab.BytesRead]; printed && received == 0 && n > 0 {
		a.warn("%g requests count as complete, but nothing was received", n)
	}
	a.settleFailures()
	return nil
}

func (a *abReport) settleFailures() {
	if !a.failedKnown {
		return
	}
	if !a.classes {
		a.Figures[lab.Failed] = a.failedAsked
		return
	}
	broken := max(a.Figures[lab.ErrConnect], a.Figures[lab.ErrRead], a.Figures[lab.ErrException])
	a.Figures[lab.Failed] = broken
	if lengths := a.Figures[lab.ErrLength]; lengths > broken+a.Figures[lab.NonSuccess] {
		a.warn("%g responses have another length than the first; a page that changes needs -l", lengths)
	}
}
