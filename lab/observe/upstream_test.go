package observe

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

// TestConnectionsThatWaitForABusyUpstreamAreNotBoundByTheirNumber has a proxy and generators that are hardly busy.
func TestConnectionsThatWaitForABusyUpstreamAreNotBoundByTheirNumber(t *testing.T) {
	for busy, want := range map[float64]string{0.2: "limit", 0.97: "quiet"} {
		began := 0
		sc := proxyScene(func(i int, s *lab.Sample) {
			if began == 0 {
				began = int(s.At)
			}
			s.Processes[1].CPUS = busy * float64(int(s.At)-began) / 1e9 // of one worker
		})
		sc.worker, sc.client = 0.3, 0.3
		f := finding(sc.observe(), "latency-bound")
		if word(f) != want || want == "quiet" && !strings.Contains(f.Evidence, "the upstream on back used 0.97 of the cores") {
			t.Errorf("upstream %g busy: %s: %s", busy, word(f), f.Evidence)
		}
	}
}
