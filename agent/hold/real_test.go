package hold_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ngxlab/agent/hold"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

const config = `daemon off; master_process on; worker_processes 2; worker_rlimit_nofile 18000; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 15000; }
http { access_log off; keepalive_timeout 3600s; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
server { listen 127.0.0.1:%[2]d backlog=4096 reuseport; location /sleep { echo_sleep 3600; } location / { return 200 "hello\n"; } } }
`

// nginx starts the real server and returns its address.
func nginx(t testing.TB) string {
	t.Helper()
	binary, port, dir := testlab.Nginx(t).Binary, testlab.FreePort(t), t.TempDir()
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, config, dir, port), 0o644); err != nil {
		t.Fatal(err)
	}
	// Ended by the clean-up: were the master killed with the context, its workers would stay.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt) })
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
			return address
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestNginxIsHeldIdleAndActive(t *testing.T) {
	address := nginx(t)
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
	address, self := nginx(b), testlab.Agent(b)
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
	address, self := nginx(b), testlab.Agent(b)
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
