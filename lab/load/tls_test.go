package load

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// overTLS is a site that speaks TLS.
func overTLS(t *testing.T, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		handler(w, r)
	}))
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestURLsOfASiteWithTLSAreHTTPS(t *testing.T) {
	target := web
	target.TLS = true
	for _, tool := range []string{"wrk", "ab"} {
		d, err := Drive(point(tool, 1), target, able("a"))
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []map[lab.HostName][]lab.Command{d.First, d.Warmup, d.Measured} {
			if got := line(set["a"][0]); !strings.HasSuffix(got, " https://10.0.0.10:8081/x") {
				t.Error(got)
			}
		}
	}
}

// TestRealToolsCountPlaintextOverTLS: what both tools call bytes read is what came out of the decryption, so that responses
// over TLS can be held against the probe as others are.
func TestRealToolsCountPlaintextOverTLS(t *testing.T) {
	testlab.Require(t, "wrk", "ab")
	asked := probe(t, serving(t, body), "/x")
	for _, tool := range []string{"wrk", "ab"} {
		s := overTLS(t, body)
		target := s.target(t)
		target.TLS = true
		p := point(tool, 4)
		p.Duration = lab.Seconds(1)
		d, err := Drive(p, target, able("a"))
		if err != nil {
			t.Fatal(err)
		}
		process := Parse(run(t, d.Measured["a"][0]))
		m := Merge([]lab.Process{process}, MergeInput{Point: p, Probe: asked, Served: []Served{{-1, 0}, {process.Ended + 1, float64(s.served.Load())}}})
		if process.Problem != "" || m.Problem != "" {
			t.Fatalf("%s: problem %q; it said %s%s", tool, process.Problem, process.Stdout, process.Stderr)
		}
		n := m.Figures[lab.Requests]
		if d := m.Figures[lab.ServerRequests] - n; d < 0 || d > 4 {
			t.Errorf("%s: %g requests, the server counted %g more", tool, n, d)
		}
		read, each := m.Figures[lab.BodyBytes], float64(asked.BodyBytes)
		if tool == "wrk" {
			read, each = m.Figures[lab.BytesRead], each+float64(asked.HeaderBytes)
		}
		if off := math.Abs(read/n - each); off > 0.01*each {
			t.Errorf("%s: %g bytes per response, the plaintext has %g", tool, read/n, each)
		}
		if m.Grade != lab.GradeB {
			t.Errorf("%s: grade %s", tool, m.Grade)
		}
	}
}
