package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

// site answers like the lab's nginx: every response alike, "Connection: keep-alive" said aloud. It counts requests.
type site struct {
	*httptest.Server
	served atomic.Int64
}

func serving(t *testing.T, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) target(t *testing.T) Target {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return Target{Host: "web", Address: host, Port: n}
}

// run executes a command as the agent would, as far as the tools are concerned.
func run(t *testing.T, c lab.Command) lab.Process {
	t.Helper()
	work := t.TempDir()
	for name, text := range c.Files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var argv []string
	for _, a := range c.Argv {
		argv = append(argv, strings.ReplaceAll(a, "{work}", work))
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.Deadline.Duration)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	p := lab.Process{Host: "a", Command: c, Exit: cmd.ProcessState.ExitCode(), TimedOut: ctx.Err() != nil, Stdout: out.Bytes(), Stderr: errs.Bytes(),
		Released: 0, Ended: lab.Instant(time.Since(began)), Reductions: map[string]lab.Report{}}
	for name, kind := range c.Collect {
		f, err := os.Open(filepath.Join(work, name))
		if err != nil {
			continue
		}
		if p.Reductions[name], err = outputs.Reduce(kind, f); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	return p
}

// probe asks once, with keep-alive, and measures the response.
func probe(t *testing.T, s *site, path string) lab.Probe {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 8192)
	n := 0
	for end := -1; end < 0 || n < end; {
		read, err := c.Read(buffer[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += read
		if head := bytes.Index(buffer[:n], []byte("\r\n\r\n")); head >= 0 {
			end = head + 4 + bodySize
		}
	}
	return lab.Probe{Status: 200, HeaderBytes: n - bodySize, BodyBytes: bodySize}
}

const bodySize = 1024

func body(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "keep-alive")
	_, _ = w.Write(make([]byte, bodySize))
}

func TestRealToolsMeasureWhatTheServerServed(t *testing.T) {
	testlab.Require(t, "wrk", "ab")
	for _, c := range []struct {
		tool      string
		keepAlive bool
		requests  int
	}{{"wrk", true, 0}, {"wrk", false, 0}, {"ab", true, 0}, {"ab", false, 0}, {"ab", true, 3000}} {
		t.Run(fmt.Sprint(c.tool, c.keepAlive, c.requests), func(t *testing.T) {
			s := serving(t, body)
			p := point(c.tool, 8)
			p.KeepAlive, p.Requests, p.Duration = c.keepAlive, c.requests, lab.Seconds(1)
			if c.requests > 0 {
				p.Duration = lab.Duration{}
			}
			asked := probe(t, s, "/x")
			before := float64(s.served.Load())
			d, err := Drive(p, s.target(t), able("a"))
			if err != nil {
				t.Fatal(err)
			}
			process := Parse(run(t, d.Measured["a"][0]))
			m := Merge([]lab.Process{process}, MergeInput{Point: p, Probe: asked,
				Served: []Served{{-1, before}, {process.Ended + 1, float64(s.served.Load())}}})
			if process.Problem != "" || m.Problem != "" {
				t.Fatalf("problem %q; it said %s%s", process.Problem, process.Stdout, process.Stderr)
			}
			n, served := m.Figures[lab.Requests], m.Figures[lab.ServerRequests]
			if d := served - n; d < 0 || d > 8 {
				t.Errorf("%g requests, the server counted %g", n, served)
			}
			near(t, "goodput", m.Figures[lab.Goodput], n/m.Figures[lab.DurationS], 1e-9)
			if c.tool == "ab" && m.Grade != lab.GradeB || c.tool == "wrk" && c.keepAlive && m.Grade != lab.GradeB {
				t.Errorf("grade %s: %g bytes, %g of bodies, probe %+v", m.Grade, m.Figures[lab.BytesRead], m.Figures[lab.BodyBytes], asked)
			}
			for _, metric := range []lab.Metric{lab.MeanS, lab.P50S, lab.P90S, lab.MaxS} {
				if v := m.Figures[metric]; v <= 0 || v > 5 {
					t.Errorf("%s is %g", metric, v)
				}
			}
			shownLatencies(t, process, m)
			if len(m.Histogram) == 0 {
				t.Error("no histogram")
			}
			if excess, known := m.Figures[lab.Corrections]; c.tool == "wrk" && (!known || excess < 0) {
				t.Errorf("excess of wrk's histogram %g, known: %v", excess, known)
			}
		})
	}
}

// shownLatencies holds what is shown against what the tool itself says: wrk's own percentiles, as exact as it prints them,
// and for ab the mean that connections and rate allow (a fixed count ends with waiting connections).
func shownLatencies(t *testing.T, p lab.Process, m Merged) {
	t.Helper()
	if p.Command.Tool == "wrk" {
		text, _, hooked := bytes.Cut(p.Stdout, []byte("NGXLAB-WRK ")) // the hook's line is the last
		if !hooked {
			t.Fatalf("no line of the hook in %s", p.Stdout)
		}
		own, err := outputs.ParseWrk(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []lab.Metric{lab.P50S, lab.P75S, lab.P90S, lab.P99S} {
			if want, known := own.Figures[metric]; known && m.Figures[lab.Requests] >= fewestForP99 {
				near(t, "wrk's "+string(metric), m.Figures[metric], want, 0.006)
			}
		}
		return
	}
	near(t, "mean latency × rate", m.Figures[lab.MeanS]*m.Figures[lab.Requests]/m.Figures[lab.DurationS], 8, 0.1)
}

// wrk back-fills latencies after a stall; the hook must find the number of counts without walking the histogram.
func TestHookFindsTheSizeOfABackFilledHistogram(t *testing.T) {
	testlab.Require(t, "wrk")
	var n atomic.Int64
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%500 == 0 {
			<-time.After(100 * time.Millisecond)
		}
		body(w, r)
	})
	p := point("wrk", 4)
	p.Duration = lab.Seconds(1)
	d, err := Drive(p, s.target(t), able("a"))
	if err != nil {
		t.Fatal(err)
	}
	c := d.Measured["a"][0]
	c.Files["hook.lua"] += `
local hooked = done
function done(summary, latency, requests)
  hooked(summary, latency, requests)
  local n = 0
  for i = 1, #latency do
    local _, count = latency(i)
    n = n + count
  end
  io.write(string.format("WALKED %.0f\n", n))
end
`
	process := Parse(run(t, c))
	if process.Problem != "" {
		t.Fatal(process.Problem)
	}
	_, rest, _ := strings.Cut(string(process.Stdout), "WALKED ")
	walked, err := strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
	if err != nil {
		t.Fatalf("%v in %s", err, process.Stdout)
	}
	f := process.Report.Figures
	near(t, "counts of the histogram", (f[lab.Corrections]+1)*f[lab.Requests], walked, 1e-9)
	if f[lab.Corrections] < 0.02 || !process.Report.Corrected {
		t.Errorf("excess %g, corrected %v: the stalls were not back-filled", f[lab.Corrections], process.Report.Corrected)
	}
}

func TestRealWarmUpOfAFractionIsInterrupted(t *testing.T) {
	testlab.Require(t, "wrk", "ab")
	for _, tool := range []string{"wrk", "ab"} {
		s := serving(t, body)
		p := point(tool, 4)
		p.WarmupFirst = lab.Seconds(0.4)
		d, err := Drive(p, s.target(t), able("a"))
		if err != nil {
			t.Fatal(err)
		}
		process := run(t, d.First["a"][0])
		if !process.TimedOut || process.Ended > lab.Instant(950*time.Millisecond) {
			t.Errorf("%s: timed out %v after %v", tool, process.TimedOut, time.Duration(process.Ended))
		}
		if s.served.Load() == 0 {
			t.Errorf("%s warmed nothing", tool)
		}
	}
}

// Two processes at once, over real tools: exact split, merged percentiles, the server's count in the common window.
func TestRealProcessesTogetherAreMerged(t *testing.T) {
	testlab.Require(t, "ab")
	s := serving(t, body)
	p := point("ab", 7)
	p.Processes, p.Duration = 2, lab.Seconds(1)
	asked := probe(t, s, "/x")
	d, err := Drive(p, s.target(t), able("a"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	served := []Served{{-1, float64(s.served.Load())}}
	done := make(chan lab.Process)
	for _, c := range d.Measured["a"] {
		go func() { done <- Parse(run(t, c)) }()
	}
	ps := make([]lab.Process, 0, 2)
	deadline := time.After(time.Minute)
	for len(ps) < 2 {
		select {
		case p := <-done:
			ps = append(ps, p)
		case <-deadline:
			t.Fatal("ab does not end")
		case <-time.After(50 * time.Millisecond):
			served = append(served, Served{lab.Instant(time.Since(began)), float64(s.served.Load())})
		}
	}
	served = append(served, Served{lab.Instant(time.Since(began)), float64(s.served.Load())})
	m := Merge(ps, MergeInput{Point: p, Probe: asked, Served: served})
	if m.Problem != "" {
		t.Fatal(m.Problem)
	}
	if m.Figures[lab.Connections] != 7 || m.Grade != lab.GradeB || len(m.Histogram) == 0 || m.Figures[lab.P50S] <= 0 {
		t.Errorf("grade %s, figures %v", m.Grade, m.Figures)
	}
	near(t, "goodput against the server's own rate", m.Figures[lab.Goodput], m.Figures[lab.ServerRequests]/m.Window.DurationS, 0.15)
	if m.Window.Overlap < 0.8 {
		t.Errorf("window %+v", m.Window)
	}
}
