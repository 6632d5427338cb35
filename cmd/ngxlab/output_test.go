package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

func TestNumbersAreReadable(t *testing.T) {
	for want, got := range map[string]string{
		"1,234,567": number(1234567), "26.6": number(26.6), "0.1235": number(0.12345), "-12,000": number(-12000), "0": number(0), "999": number(999),
		"26.6 µs": seconds(26.6e-6), "2.1 ms": seconds(0.0021), "2 s": seconds(2), "8 GiB": size(8 << 30), "512 B": size(512),
		"30,513/s": figure(lab.Goodput, 30513.2), "33 µs": figure(lab.CPUPerRequest, 33e-6), "1 KiB": figure(lab.BodyBytes, 1024),
		"90 s": span(90 * time.Second), "7 min": span(7 * time.Minute), "4 h 5 min": span(4*time.Hour + 5*time.Minute),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCommandLineIsQuotedForReading(t *testing.T) {
	got := commandLine([]string{"ab", "-H", "Cookie: a=b; it's", "-e", "{work}/e.csv", "http://127.0.0.1/?a=1&b=2", ""})
	want := `ab -H 'Cookie: a=b; it'\''s' -e {work}/e.csv 'http://127.0.0.1/?a=1&b=2' ''`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestColumnsAreAsWideAsTheirWidestCell(t *testing.T) {
	var b bytes.Buffer
	tab := newTable([]int{1}, "state", "n")
	tab.row("größer", "1,000")
	p := &page{w: &b}
	p.table("  ", tab)
	if want := "  state       n\n  größer  1,000\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// events are a campaign as progress sees it.
func events() []lab.Event {
	cell := lab.CellID{Target: "here", State: "log off", Load: "wrk 10"}
	return []lab.Event{
		{At: at, Kind: lab.EventBegin, Campaign: "small-1", Total: 4},
		{At: at.Add(time.Second), Kind: lab.EventBuild, Host: "here", Text: "nginx", Total: 4},
		{Kind: lab.EventBuild, Host: "here", Text: "cc -c a.c"},
		{At: at.Add(9 * time.Second), Kind: lab.EventBuilt, Host: "here", Text: "nginx 1.22.1 in 8.0 s", Total: 4},
		{At: at.Add(10 * time.Second), Kind: lab.EventState, Host: "here", Text: "log off", Total: 4},
		{At: at.Add(11 * time.Second), Kind: lab.EventChange, Host: "here", Text: "sysctl a: 1 → 2", Total: 4},
		{At: at.Add(12 * time.Second), Kind: lab.EventRun, Host: "here", Cell: &cell, Total: 4},
		{At: at.Add(14 * time.Second), Kind: lab.EventRunDone, Host: "here", Cell: &cell, Done: 1, Total: 4, Validity: lab.Warned, Findings: []string{"host-speed"},
			Figures: lab.Figures{lab.Goodput: 30513, lab.CPUPerRequest: 26.6e-6}, Left: lab.Seconds(30)},
		{At: at.Add(15 * time.Second), Kind: lab.EventRound, Round: 1, Done: 1, Total: 4, Text: "round 1 is complete", Left: lab.Seconds(30)},
		{At: at.Add(16 * time.Second), Kind: lab.EventRestore, Host: "here", Text: "put back sysctl a: 1 (restored)", Done: 1, Total: 4},
		{At: at.Add(17 * time.Second), Kind: lab.EventEnd, Text: "done", Done: 4, Total: 4},
	}
}

func TestPlainProgressIsOneLinePerEventThatTellsSomething(t *testing.T) {
	c := newCommand(t)
	p := c.newProgress(lab.Plan{}, false)
	for _, e := range events() {
		p.event(e)
	}
	must(t, p.finish())
	c.golden("progress-lines", 0)
}

func TestJSONProgressIsOneEventPerLine(t *testing.T) {
	c := newCommand(t)
	p := c.newProgress(lab.Plan{}, true)
	for _, e := range events() {
		p.event(e)
	}
	must(t, p.finish())
	lines := strings.Split(strings.TrimSpace(c.out.String()), "\n")
	if len(lines) != len(events()) || !strings.Contains(lines[7], `"server_cpu_per_request_s":0.0000266`) {
		t.Errorf("got %d lines:\n%s", len(lines), c.out)
	}
}

func TestBarsEndCleanlyAndKeepFindingsOnTheScreen(t *testing.T) {
	var b bytes.Buffer
	p := newBars(&b, lab.Plan{Experiment: lab.Experiment{Hosts: []lab.Host{{Name: "here"}}, Repeat: lab.Repeat{Min: 2}}, Cells: make([]lab.Cell, 2)})
	for _, e := range events() {
		p.event(e)
	}
	must(t, p.finish())
	for _, want := range []string{"host-speed", "set sysctl a: 1 → 2", "put back"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in %q", want, b.String())
		}
	}
}
