package testlab

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Server is a real nginx with two workers on 127.0.0.1: / says hello, /sleep answers after an hour, and at its own port
// every path is stub_status.
type Server struct {
	Address    string // host:port of the site
	Port       int
	StatusPort int
	Master     int // pid
	ErrorLog   string
}

const serverConfig = `daemon off; worker_processes 2; worker_rlimit_nofile 18000; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 15000; }
http { access_log off; keepalive_timeout 3600s; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
server { listen 127.0.0.1:%[2]d backlog=%[4]d reuseport; location /sleep { echo_sleep 3600; } location / { return 200 "hello\n"; } }
server { listen 127.0.0.1:%[3]d; location / { stub_status; } } }
`

// Serve starts the server of Nginx and ends it with the test; it answers when Serve returns.
func Serve(t testing.TB, backlog int) Server {
	t.Helper()
	dir, port := t.TempDir(), FreePort(t)
	s := Server{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port, StatusPort: port + 1,
		ErrorLog: filepath.Join(dir, "error.log"),
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, serverConfig, dir, s.Port, s.StatusPort, backlog), 0o644); err != nil {
		t.Fatal(err)
	}
	// Ended by the clean-up: were the master killed with the context, its workers would stay.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), Nginx(t).Binary, "-p", dir, "-e", s.ErrorLog, "-c", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.Master = cmd.Process.Pid
	t.Cleanup(func() { _ = cmd.Wait() })
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt) })
	Eventually(t, "nginx listens", func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return s
}
