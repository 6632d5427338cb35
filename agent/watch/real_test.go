package watch

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"ngxlab/agent/hold"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

const config = `daemon off; worker_processes 2; worker_rlimit_nofile 18000; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 15000; }
http { access_log off; keepalive_timeout 3600s; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
server { listen 127.0.0.1:%[2]d backlog=300 reuseport; location / { return 200 "hello\n"; } }
server { listen 127.0.0.1:%[3]d; location = /status { stub_status; } } }
`

// nginx starts the real server and returns a watcher of it, and its port; the status port is the next one.
func nginx(t testing.TB) (*Watcher, int) {
	t.Helper()
	binary, port, dir := testlab.Nginx(t).Binary, testlab.FreePort(t), t.TempDir()
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, config, dir, port, port+1), 0o644); err != nil {
		t.Fatal(err)
	}
	// Ended by the clean-up: were the master killed with the context, its workers would stay.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt) })
	for end := time.Now().Add(10 * time.Second); ; {
		if _, _, err := ask(t.Context(), port+1); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return &Watcher{
		Server:   func() (lab.Server, bool) { return lab.Server{Master: cmd.Process.Pid}, true },
		ErrorLog: func() string { return filepath.Join(dir, "error.log") },
	}, port
}

func TestRealServerIsSampled(t *testing.T) {
	w, port := nginx(t)
	what := lab.Watch{Server: true, StatusPort: port + 1, Ports: []int{port}, Slabs: true}
	first := once(t, w, what)
	for range 10 {
		if _, _, err := ask(t.Context(), port); err != nil {
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
	if len(second.Listeners) != 2 || second.Listeners[0].Backlog != 300 {
		t.Errorf("listeners %+v, want one per worker", second.Listeners)
	}
	roles := map[lab.ProcessRole]int{}
	for _, p := range second.Processes {
		roles[p.Role]++
		if p.CPUS <= 0 || p.PSSBytes < 100<<10 || p.FDs < 5 || p.Name != "nginx" || p.FDLimit <= 0 {
			t.Errorf("process %+v", p)
		}
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
				w, port := nginx(b)
				h := &hold.Holder{Self: testlab.Agent(b)}
				defer h.Close() //nolint:errcheck // the benchmark is over
				address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
				held, err := h.Hold(context.Background(), lab.Hold{Kind: lab.HoldIdle, Address: address, URL: "/", Connections: connections, Processes: 2})
				if err != nil || held.Open != connections {
					b.Fatalf("held %+v, error %v", held, err)
				}
				what := lab.Watch{Server: true, StatusPort: port + 1, Ports: []int{port}, Slabs: slabs}
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
