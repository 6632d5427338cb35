package outputs

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"ngxlab/lab"
)

const wrkText = `Running 2s test @ http://127.0.0.1:18001/1k.txt
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   699.25us    1.33ms  24.93ms   89.58%
    Req/Sec    15.77k     7.03k   27.84k    52.50%
  62881 requests in 2.01s, 75.80MB read
Requests/sec:  31339.40
Transfer/sec:     37.78MB
`

func parseWrk(t *testing.T, text string) lab.Report {
	t.Helper()
	report, err := ParseWrk(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func wantFigure(t *testing.T, f lab.Figures, m lab.Metric, want float64) {
	t.Helper()
	if got, known := f[m]; !known || math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s = %v (known %v), want %v", m, got, known, want)
	}
}

func wantAbsent(t *testing.T, f lab.Figures, metrics ...lab.Metric) {
	t.Helper()
	for _, m := range metrics {
		if v, known := f[m]; known {
			t.Errorf("%s = %v, want none", m, v)
		}
	}
}

func TestHookLineWinsOverRoundedText(t *testing.T) {
	hook := `NGXLAB-WRK {"duration_us":2006452,"requests":62881,"bytes":79481584,"connect":1,"read":2,"write":3,"status":4,"timeout":5,` +
		`"counts":64000,"min_us":32,"max_us":24933,"mean_us":699.25,"stdev_us":-nan,"quantiles":[[50,276],[90,2170],[99,5970],[99.9,9001]]}`
	r := parseWrk(t, hook+"\n"+wrkText)
	wantFigure(t, r.Figures, lab.DurationS, 2.006452)
	wantFigure(t, r.Figures, lab.BytesRead, 79481584)
	wantFigure(t, r.Figures, lab.Failed, 11)
	wantFigure(t, r.Figures, lab.NonSuccess, 4)
	wantFigure(t, r.Figures, lab.P999S, 0.009001)
	wantFigure(t, r.Figures, lab.MaxS, 0.024933)
	wantFigure(t, r.Figures, lab.Corrections, 64000.0/62881-1)
	h, err := DecodeHistogram(r.Histogram)
	if err != nil || h.Count() != 62881 {
		t.Errorf("histogram of %d latencies, %v; want one per request", h.Count(), err)
	}
	if r.Corrected {
		t.Error("1.8 % of excess counts as corrected")
	}
}

func TestNestedErrorsAndSharesBelowOneAreUnderstood(t *testing.T) {
	hook := `NGXLAB-WRK {"duration_us":2000000,"requests":100,"bytes":5,"errors":{"connect":0,"read":7,"write":0,"status":1,"timeout":0},` +
		`"min_us":1,"max_us":30,"mean_us":10,"stdev_us":2,"quantiles":[[0.5,10],[0.99,20]]}`
	r := parseWrk(t, wrkText+hook+"\n")
	wantFigure(t, r.Figures, lab.Failed, 7)
	wantFigure(t, r.Figures, lab.P99S, 20e-6)
}

func TestBrokenHookLineLeavesTheText(t *testing.T) {
	for _, hook := range []string{"{", `{"requests":"x"}`, `{"min_us":1,"quantiles":[[50,9],[40,10]]}`, `{"min_us":1,"quantiles":[[50,9],[60,1]]}`} {
		r := parseWrk(t, wrkText+wrkHookPrefix+hook+"\n")
		wantFigure(t, r.Figures, lab.Requests, 62881)
		if len(r.Warnings) == 0 || r.Histogram != nil {
			t.Errorf("%s: warnings %v, histogram of %d bytes", hook, r.Warnings, len(r.Histogram))
		}
	}
}

// wg/wrk#77: a version that printed latencies without units.
func TestUnitlessLatencyIsLeftOutAndTheRestKept(t *testing.T) {
	r := parseWrk(t, strings.Replace(wrkText, "Latency   699.25us    1.33ms  24.93ms   89.58%", "Latency   1531867 122203062 30744573 84.20%", 1))
	wantAbsent(t, r.Figures, lab.MeanS, lab.StdevS, lab.MaxS)
	wantFigure(t, r.Figures, lab.RequestRate, 31339.40)
	if len(r.Warnings) != 3 {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestDurationInMinutesComesFromTheRate(t *testing.T) {
	r := parseWrk(t, strings.Replace(strings.Replace(wrkText, "62881 requests in 2.01s", "2546 requests in 1.08m", 1), "31339.40", "39.16", 1))
	wantFigure(t, r.Figures, lab.DurationS, 2546/39.16)
}

func TestOutputWithoutTotalsIsAnError(t *testing.T) {
	for _, text := range []string{"", "unable to connect to 127.0.0.1:1 Connection refused\n", wrkText[:200]} {
		if _, err := ParseWrk(strings.NewReader(text)); err == nil {
			t.Errorf("%q parses", text)
		}
	}
}

// The recorded histograms hold every count, so that the excess can be checked against the quantiles.
func TestBackFilledShareIsFoundFromQuantilesAlone(t *testing.T) {
	for name, connections := range map[string]string{"wrk/lua_done_stall.out": "4", "wrk/lua_done.out": "10"} {
		text := string(sample(t, name))
		_, line, _ := strings.Cut(text, "DONE ")
		var done struct {
			DurationUS, Requests float64
			Hist                 [][2]float64
		}
		line = strings.ReplaceAll(line, "duration_us", "durationus")
		if err := json.Unmarshal([]byte(line), &done); err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, b := range done.Hist {
			total += b[1]
		}
		var q [][2]float64
		below := 0.0
		for _, b := range done.Hist {
			below += b[1]
			if at := math.Floor(below / total * 200); len(q) == 0 || at/2 > q[len(q)-1][0] {
				if at > 0 && at < 200 {
					q = append(q, [2]float64{at / 2, b[0]})
				}
			}
		}
		quantiles, _ := json.Marshal(q)
		hook, _ := json.Marshal(map[string]any{"duration_us": done.DurationUS, "requests": done.Requests, "min_us": 1, "max_us": 2e6, "quantiles": json.RawMessage(quantiles)})
		r := parseWrk(t, text+wrkHookPrefix+string(hook)+"\n")
		want := total/done.Requests - 1
		if got := r.Figures[lab.Corrections]; math.Abs(got-want) > 0.02*(1+want) || !r.Corrected {
			t.Errorf("%s (%s connections): excess %.4f, corrected %v; want %.4f", name, connections, got, r.Corrected, want)
		}
	}
}

func FuzzParseWrk(f *testing.F) {
	f.Add([]byte(wrkText))
	f.Add([]byte(wrkText + wrkHookPrefix + `{"requests":10,"min_us":1,"quantiles":[[50,9],[99,10]]}`))
	f.Add(sample(f, "wrk/timeout_all.out"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseWrk(bytes.NewReader(text))
		checkReport(t, r, err)
	})
}

// checkReport holds what is true of every report.
func checkReport(t *testing.T, r lab.Report, err error) {
	t.Helper()
	if err != nil {
		return
	}
	for m, v := range r.Figures {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && m != lab.Corrections {
			t.Errorf("%s = %v", m, v)
		}
	}
	if len(r.Histogram) > 0 {
		if _, err := DecodeHistogram(r.Histogram); err != nil {
			t.Error(err)
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}
