package hold_test

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"

	"ngxlab/agent/hold"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

func TestNginxIsHeldIdleAndActive(t *testing.T) {
	address := testlab.Serve(t, 4096).Address
	for kind, url := range map[lab.HoldKind]string{lab.HoldIdle: "/", lab.HoldActive: "/sleep"} {
		h := &hold.Holder{Self: testlab.Agent(t)}
		held, err := h.Hold(t.Context(), lab.Hold{Kind: kind, Address: address, URL: url, Connections: 1000, Processes: 2})
		if err != nil || held.Open != 1000 || held.Failed != 0 {
			t.Errorf("%s: held %+v, error %v", kind, held, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkIdle measures 20,000 idle connections in two holders to nginx with two workers: METHOD §6 and the budget of
// 0.8 times ab's rate and 1 KB of user memory each.
func BenchmarkIdle(b *testing.B) {
	address, self := testlab.Serve(b, 4096).Address, testlab.Agent(b)
	for b.Loop() {
		h := &hold.Holder{Self: self}
		few, err := h.Hold(b.Context(), lab.Hold{Kind: lab.HoldIdle, Address: address, URL: "/", Connections: 2, Processes: 2})
		if err != nil {
			b.Fatal(err)
		}
		held, err := h.Hold(b.Context(), lab.Hold{Kind: lab.HoldIdle, Address: address, URL: "/", Connections: 20000, Processes: 2})
		if err != nil || held.Open != 20000 {
			b.Fatalf("held %+v, error %v", held, err)
		}
		b.ReportMetric(20000/held.TookS, "connections/s")
		b.ReportMetric(float64(held.RSSBytes)/20000, "B-rss/connection")
		b.ReportMetric(float64(held.RSSBytes-few.RSSBytes)/20000, "B-grown/connection")
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAgainstAB alternates ab and one holder, each opening 14,000 connections with one request each.
func BenchmarkAgainstAB(b *testing.B) {
	testlab.Require(b, "ab")
	address, self := testlab.Serve(b, 4096).Address, testlab.Agent(b)
	const n = 14000
	var byAB, byHolder float64
	for b.Loop() {
		out, err := exec.CommandContext(b.Context(), "ab", "-q", "-k", "-s", "30", "-c", strconv.Itoa(n), "-n", strconv.Itoa(n), "http://"+address+"/").Output()
		report, parseErr := outputs.ParseAB(bytes.NewReader(out))
		if err != nil || parseErr != nil {
			b.Fatalf("ab: %v, %v", err, parseErr)
		}
		byAB += report.Figures[lab.DurationS]
		h := &hold.Holder{Self: self}
		held, err := h.Hold(b.Context(), lab.Hold{Kind: lab.HoldIdle, Address: address, URL: "/", Connections: n, Processes: 1})
		if err != nil || held.Open != n {
			b.Fatalf("held %+v, error %v", held, err)
		}
		byHolder += held.TookS
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/byAB, "ab-connections/s")
	b.ReportMetric(float64(b.N)*n/byHolder, "connections/s")
}
