package watch

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/agent/hold"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// watched starts the real server and returns it and a watcher of it.
func watched(t testing.TB, backlog int) (*Watcher, testlab.Server) {
	t.Helper()
	s := testlab.Serve(t, backlog)
	return &Watcher{
		Server:   func() (lab.Server, bool) { return lab.Server{Master: s.Master}, true },
		ErrorLog: func() string { return s.ErrorLog },
	}, s
}

func TestRealServerIsSampled(t *testing.T) {
	const backlog = 300
	w, s := watched(t, backlog)
	what := lab.Watch{Server: true, StatusPort: s.StatusPort, Ports: []int{s.Port}, Slabs: true}
	var first lab.Sample
	testlab.Eventually(t, "the workers have taken up the connection by which the server was found listening", func() bool {
		first = once(t, w, what)
		return first.Status != nil && first.Status.Accepts == first.Status.Polls+1
	})
	for range 10 {
		if _, _, err := ask(t.Context(), s.Port); err != nil {
			t.Fatal(err)
		}
	}
	second := once(t, w, what)
	if first.Status == nil || second.Status == nil {
		t.Fatal("stub_status was not read")
	}
	own := second.Status.Polls - first.Status.Polls
	if requests := second.Status.Requests - first.Status.Requests - own; own != 1 || requests != 10 {
		t.Errorf("%d requests besides %d polls, want 10 besides 1", requests, own)
	}
	if accepts := second.Status.Accepts - first.Status.Accepts; accepts != 11 || second.Status.Active != 1 {
		t.Errorf("%d accepts, want as many as requests with the poll; active %d", accepts, second.Status.Active)
	}
	if len(second.Listeners) != 2 || second.Listeners[0].Backlog != backlog {
		t.Errorf("listeners %+v, want one per worker", second.Listeners)
	}
	roles := map[lab.ProcessRole]int{}
	for _, p := range second.Processes {
		roles[p.Role]++
		if p.CPUS <= 0 || max(p.PSSBytes, p.AnonBytes) < 100<<10 || p.FDs < 5 || p.Name != "nginx" || p.FDLimit <= 0 {
			t.Errorf("process %+v", p)
		}
	}
	// Workers of root's nginx are another user's.
	_, anonymous, known := second.ServerMemory()
	if want := os.Geteuid() == 0 && !testlab.Capable(t, unix.CAP_SYS_PTRACE); !known || anonymous != want {
		t.Errorf("server memory: known %v, anonymous %v, want %v", known, anonymous, want)
	}
	if roles[lab.ServerMaster] != 1 || roles[lab.ServerWorker] != 2 {
		t.Errorf("roles %v", roles)
	}
}

// BenchmarkSample measures what one sample costs at connections held open to a real server; the budget is 5 ms of CPU
// (0.5 % of a core at one sample a second).
func BenchmarkSample(b *testing.B) {
	for _, connections := range []int{0, 10000} {
		for _, slabs := range []bool{false, true} {
			b.Run(fmt.Sprintf("connections=%d/slabs=%v", connections, slabs), func(b *testing.B) {
				w, s := watched(b, 4096)
				h := &hold.Holder{Self: testlab.Agent(b)}
				defer h.Close() //nolint:errcheck // the benchmark is over
				held, err := h.Hold(context.Background(), lab.Hold{Kind: lab.HoldIdle, Address: s.Address, URL: "/", Connections: connections, Processes: 2})
				if err != nil || held.Open != connections {
					b.Fatalf("held %+v, error %v", held, err)
				}
				what := lab.Watch{Server: true, StatusPort: s.StatusPort, Ports: []int{s.Port}, Slabs: slabs}
				before, _ := w.self()
				var took []float64
				for b.Loop() {
					s, err := w.sample(b.Context(), what)
					if err != nil || s.Status == nil {
						b.Fatalf("sample %+v, error %v", s, err)
					}
					took = append(took, s.TookS)
				}
				after, _ := w.self()
				slices.Sort(took)
				b.ReportMetric(1000*(after-before)/float64(len(took)), "cpu-ms/sample")
				b.ReportMetric(1000*took[len(took)/2], "p50-ms")
			})
		}
	}
}
