package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"ngxlab/lab"
)

// progress shows the events of a campaign; event may be called from several goroutines, finish once after the last.
type progress interface {
	event(e lab.Event)
	finish() error
}

// newProgress picks the way to show progress: events as JSON on stdout, bars on a terminal, else plain lines.
func (a *app) newProgress(pl lab.Plan, asJSON bool) progress {
	switch {
	case asJSON:
		return &jsonProgress{enc: json.NewEncoder(jsonOut{a.out})}
	case a.terminal:
		return newBars(a.err, pl)
	}
	return &lines{w: a.err, several: severalTargets(pl.Experiment)}
}

// jsonProgress prints one event per line.
type jsonProgress struct {
	mu  sync.Mutex
	enc *json.Encoder
	err error
}

func (j *jsonProgress) event(e lab.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.At.IsZero() { // a line of a build's log
		e.At = time.Now().UTC()
	}
	if err := j.enc.Encode(e); err != nil && j.err == nil {
		j.err = fmt.Errorf("write events: %w", err)
	}
}

func (j *jsonProgress) finish() error { return j.err }

// lines prints one line per event that tells something, with the time since the first.
type lines struct {
	mu      sync.Mutex
	w       io.Writer
	several bool // targets
	began   time.Time
	err     error
}

func (l *lines) event(e lab.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.IsZero() {
		l.began = e.At
	}
	if text := eventText(e, l.several); text != "" && l.err == nil {
		since := max(0, e.At.Sub(l.began))
		_, l.err = fmt.Fprintf(l.w, "%5d s  %s\n", int(since.Seconds()), text)
	}
}

func (l *lines) finish() error { return l.err }

// eventText is an event in one line, which names the target when there are several; "" for those that a later one tells
// better.
func eventText(e lab.Event, several bool) string {
	host := ""
	if e.Host != "" {
		host = string(e.Host) + ": "
	}
	e.Text = lab.Printable(e.Text)
	switch e.Kind {
	case lab.EventBegin:
		return fmt.Sprintf("campaign %s", e.Campaign)
	case lab.EventInstall:
		return host + "installing " + e.Text
	case lab.EventBuild:
		if e.At.IsZero() { // a line of the build's log
			return ""
		}
		return host + "building " + e.Text
	case lab.EventBuilt:
		return host + "built " + e.Text
	case lab.EventChange:
		return host + "set " + e.Text
	case lab.EventRunDone:
		return runText(e, several)
	case lab.EventRetry:
		return "repeating " + e.Text
	case lab.EventRound:
		return fmt.Sprintf("%s; %d of %d runs, about %s left", e.Text, e.Done, e.Total, span(e.Left.Duration))
	case lab.EventStop:
		return "no more rounds: " + e.Text
	case lab.EventRestore, lab.EventRestored:
		return host + e.Text
	case lab.EventProblem:
		return host + "problem: " + e.Text
	case lab.EventCapacity, lab.EventWait, lab.EventSplit:
		return host + e.Text
	case lab.EventEnd: // the reason is told after it
		status, _, _ := strings.Cut(e.Text, ":")
		return status
	}
	return ""
}

// runText is a finished run in one line: its place, its figures, and what marks it.
func runText(e lab.Event, several bool) string {
	text := e.Text
	if e.Cell != nil {
		text = fmt.Sprintf("[%d/%d] %s, %s", e.Done, e.Total, stateOf(*e.Cell, several), e.Cell.Load)
	}
	text += ": " + figuresText(e.Figures)
	if e.Validity != "" && e.Validity != lab.Clean {
		text += "; " + string(e.Validity)
	}
	if len(e.Findings) > 0 {
		text += " (" + strings.Join(e.Findings, ", ") + ")"
	}
	return text
}

// figuresText is the two headline figures, as far as they are known.
func figuresText(f lab.Figures) string {
	var parts []string
	if v, ok := f[lab.Goodput]; ok {
		parts = append(parts, figure(lab.Goodput, v))
	}
	if v, ok := f[lab.CPUPerRequest]; ok {
		parts = append(parts, seconds(v)+" CPU per request")
	}
	if len(parts) == 0 {
		return "no figures"
	}
	return strings.Join(parts, ", ")
}

// bars shows one line per host, and a bar for the campaign with the time left, the current cell and the last figures.
// What should stay readable (findings, problems, changes) scrolls by above.
type bars struct {
	container *mpb.Progress
	campaign  *mpb.Bar
	mu        sync.Mutex
	hosts     map[lab.HostName]string
	cell      string
	last      string
	left      time.Duration
	done      int // runs
	total     int
	err       error
	all       []*mpb.Bar
	several   bool // targets
}

func newBars(w io.Writer, pl lab.Plan) *bars {
	b := &bars{container: mpb.New(mpb.WithOutput(w), mpb.WithWidth(30), mpb.WithAutoRefresh()), hosts: map[lab.HostName]string{}, several: severalTargets(pl.Experiment)}
	for _, h := range pl.Experiment.Hosts {
		text := func() string { return fmt.Sprintf("%s: %s", h.Name, b.hosts[h.Name]) }
		b.all = append(b.all, b.container.New(1, mpb.NopStyle(), mpb.PrependDecorators(b.decorator(text))))
	}
	total := int64(max(1, pl.Experiment.Repeat.Min*len(pl.Cells)))
	b.campaign = b.container.AddBar(total,
		mpb.PrependDecorators(b.decorator(func() string { return fmt.Sprintf("%d/%d runs ", b.done, b.total) })),
		mpb.AppendDecorators(b.decorator(func() string { return fmt.Sprintf(" %s left  %s  %s", span(b.left), b.cell, b.last) })))
	b.all = append(b.all, b.campaign)
	return b
}

// decorator shows what text returns, read under the lock.
func (b *bars) decorator(text func() string) decor.Decorator {
	return decor.Any(func(decor.Statistics) string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return text()
	})
}

func (b *bars) event(e lab.Event) {
	b.note(e)
	if e.Total > 0 {
		b.campaign.SetTotal(int64(e.Total), false)
		b.campaign.SetCurrent(min(int64(e.Done), int64(e.Total)-1)) // a full bar would be taken for a finished campaign
	}
	if text := eventText(e, b.several); text != "" && stays(e) {
		if _, err := fmt.Fprintln(b.container, text); err != nil {
			b.fail(err)
		}
	}
}

// note keeps what the decorators show.
func (b *bars) note(e lab.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Host != "" {
		b.hosts[e.Host] = string(e.Kind) + " " + firstLine(lab.Printable(e.Text))
	}
	if e.Cell != nil {
		b.cell = stateOf(*e.Cell, b.several) + ", " + e.Cell.Load
	}
	if e.Kind == lab.EventRunDone {
		b.last = figuresText(e.Figures)
	}
	if e.Total > 0 {
		b.done, b.total, b.left = e.Done, e.Total, e.Left.Duration
	}
}

func (b *bars) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = errors.Join(b.err, fmt.Errorf("show progress: %w", err))
}

// stays reports whether an event is kept on the screen.
func stays(e lab.Event) bool {
	switch e.Kind {
	case lab.EventRunDone:
		return e.Validity != lab.Clean
	case lab.EventBegin, lab.EventInstall, lab.EventBuilt, lab.EventChange, lab.EventRetry, lab.EventStop, lab.EventCapacity,
		lab.EventRestore, lab.EventRestored, lab.EventProblem, lab.EventSplit, lab.EventEnd:
		return true
	}
	return false
}

// firstLine cuts a text to what fits on a line beside a host's name.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if r := []rune(text); len(r) > 70 {
		return string(r[:69]) + "…"
	}
	return text
}

func (b *bars) finish() error {
	for _, bar := range b.all {
		bar.Abort(true)
	}
	b.container.Wait()
	return b.err
}
