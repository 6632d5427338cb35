package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// serverRunner is a runner whose directory the workers of a root-run nginx can enter.
func serverRunner(t *testing.T) *Runner {
	t.Helper()
	r := runner(t)
	r.Dir = testlab.StateDir(t)
	return r
}

// input is a site on free ports.
func input(t *testing.T, site string, settings ...lab.Setting) server.Input {
	t.Helper()
	return server.Input{
		Spec:   lab.ServerSpec{Port: testlab.FreePort(t), Site: site, BodyBytes: 1 << 10, SleepS: 0.05},
		State:  lab.State{Name: "baseline", Settings: map[lab.HostName][]lab.Setting{"here": settings}},
		Target: lab.Host{Name: "here", Local: true}, Recipe: testlab.Recipe(),
	}
}

func nginx(name, value string) lab.Setting {
	return lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: name}, Value: value}
}

// serving makes a serving of the real nginx.
func servingOf(t *testing.T, in server.Input) lab.Serving {
	t.Helper()
	s, err := server.Serving(in)
	if err != nil {
		t.Fatal(err)
	}
	s.Build = testlab.Nginx(t)
	return s
}

// serve runs a server until the test ends; stop ends it and returns what Serve returned.
func serve(t *testing.T, r *Runner, s lab.Serving) (lab.Server, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	begun, ended := make(chan lab.Server, 1), make(chan error, 1)
	go func() { ended <- r.Serve(ctx, s, func(started lab.Server) { begun <- started }) }()
	stop := func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case started := <-begun:
		return started, stop
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return lab.Server{}, nil
}

func TestEverySiteIsServedAndProbed(t *testing.T) {
	sizes := map[string]int64{"empty-gif": 43, "hello": 6, "echo": 6, "sleep": 6, "file": 1024}
	for site, size := range sizes {
		t.Run(site, func(t *testing.T) {
			r := serverRunner(t)
			in := input(t, site)
			s, stop := serve(t, r, servingOf(t, in))
			p := s.Probes[server.DefaultURL(site)]
			if p.Status != 200 || p.BodyBytes != size || p.HeaderBytes < 100 || p.HeaderBytes > 400 || len(p.BodySHA256) != 64 {
				t.Errorf("probe: %+v", p)
			}
			if len(s.Workers) != 1 || s.NofileSoft < 100 || s.Backlog != 511 || s.StartedS <= 0 || s.StartedS > 10 {
				t.Errorf("server: workers %v, nofile %d, backlog %d, started in %v s", s.Workers, s.NofileSoft, s.Backlog, s.StartedS)
			}
			resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/status", in.Spec.Port+1))
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("stub_status: %v, %v", resp, err)
			} else {
				_ = resp.Body.Close()
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if testlab.Alive(s.Master) || testlab.Alive(s.Workers[0]) {
				t.Error("the server outlives its end")
			}
			if _, err := os.Stat(s.Prefix); !os.IsNotExist(err) {
				t.Errorf("its directory is still there: %v", err)
			}
		})
	}
}

func TestBodiesAreTheSameInEveryServer(t *testing.T) {
	in := input(t, "file")
	in.URLs = []string{"/1k.bin", "/sub/", "/?x=1"}
	first, stop := serve(t, serverRunner(t), servingOf(t, in))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	in.Spec.Port = testlab.FreePort(t)
	second, _ := serve(t, serverRunner(t), servingOf(t, in))
	for _, url := range in.URLs {
		a, b := first.Probes[url], second.Probes[url]
		if a.BodyBytes != 1024 || a.BodySHA256 != b.BodySHA256 || b.BodySHA256 == "" {
			t.Errorf("%s: %+v and %+v", url, a, b)
		}
	}
}

func TestServersThatCannotBeAreExplained(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	tests := []struct {
		name   string
		change func(*lab.Serving)
		want   string
	}{
		{"refused configuration", func(s *lab.Serving) { s.Config = "worker_processes x;" }, `"worker_processes" directive invalid value in {prefix}/nginx.conf:1`},
		{"unknown directive", func(s *lab.Serving) { s.Config = strings.Replace(s.Config, "sendfile", "sendfil", 1) }, `unknown directive "sendfil" in {prefix}/nginx.conf:`},
		{"port in use", func(s *lab.Serving) { s.Port = port }, fmt.Sprintf("port %d is in use by process %d (", port, os.Getpid())},
		{"directive not in force", func(s *lab.Serving) { s.Expect = append(s.Expect, nginx("http.gzip", "on")) }, `nginx http.gzip is not in force: asked "on", found nothing`},
		{"directive of another value", func(s *lab.Serving) { s.Expect = append(s.Expect, nginx("http.sendfile", "off")) }, `nginx http.sendfile is not in force: asked "off", found "on"`},
		{"path that is not there", func(s *lab.Serving) { s.URLs = []string{"/nowhere"} }, "probe /nowhere: status 404"},
		{"no answer", func(s *lab.Serving) { s.StatusPort, s.Deadline = 1, lab.Seconds(0.3) }, "not ready within 300ms"},
		{"file outside", func(s *lab.Serving) { s.Files = map[string]string{"../x": ""} }, "outside its directory"},
		{"body outside", func(s *lab.Serving) { s.Bodies = map[string]lab.Body{"/x": {Bytes: 1}} }, "outside the server's directory"},
		{"no binary", func(s *lab.Serving) { s.Build.Binary = "/nowhere/nginx" }, "/nowhere/nginx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := serverRunner(t)
			s := servingOf(t, input(t, "hello"))
			test.change(&s)
			err := r.Serve(t.Context(), s, func(lab.Server) { t.Error("told as started") })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
			left, err := os.ReadDir(filepath.Join(r.Dir, "work"))
			if err != nil || len(left) > 0 {
				t.Errorf("left in the work directory: %v, %v", left, err)
			}
			if _, ok := r.Current(); ok {
				t.Error("a server is current")
			}
		})
	}
}

func TestServerThatDiesIsAnErrorWithItsLog(t *testing.T) {
	r := serverRunner(t)
	ended := make(chan error, 1)
	begun := make(chan lab.Server, 1)
	s := servingOf(t, input(t, "hello"))
	go func() { ended <- r.Serve(t.Context(), s, func(started lab.Server) { begun <- started }) }()
	var started lab.Server
	select {
	case started = <-begun:
	case err := <-ended:
		t.Fatal(err)
	}
	if got, want := r.ErrorLog(), filepath.Join(started.Prefix, "logs/error.log"); got != want {
		t.Errorf("error log %s, want %s", got, want)
	}
	if err := os.WriteFile(r.ErrorLog(), []byte("[alert] something went wrong\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(started.Master, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the server died (signal: killed); its error log ends:\n[alert] something went wrong") {
			t.Errorf("error: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("its death is not noticed")
	}
	testlab.Eventually(t, "its worker ended", func() bool { return !testlab.Alive(started.Workers[0]) })
	if r.ErrorLog() != "" {
		t.Error("a server is current")
	}
}

func TestHeldLocationAnswersItsProbeAtOnce(t *testing.T) {
	for kind, url := range map[lab.HoldKind]string{lab.HoldIdle: "/hello", lab.HoldActive: server.HoldURL} {
		s, err := server.CapacityServing(input(t, "hello"), kind, map[string]string{"worker_processes": "2"})
		if err != nil {
			t.Fatal(err)
		}
		s.Build = testlab.Nginx(t)
		started, _ := serve(t, serverRunner(t), s)
		if p := started.Probes[url]; p.Status != 200 || len(started.Workers) != 2 {
			t.Errorf("%s: probe %+v, workers %v", kind, p, started.Workers)
		}
	}
}

func TestWorkersReachTheirFilesWhateverTheUmask(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: not root, so the workers are the same user")
	}
	s := servingOf(t, input(t, "file"))
	r := serverRunner(t)
	if err := os.Chmod(r.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	started, stop := serve(t, r, s)
	if p := started.Probes["/file"]; p.Status != 200 {
		t.Errorf("probe: %+v", p)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	closed := filepath.Dir(r.Dir)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	err := r.Serve(t.Context(), s, func(lab.Server) {})
	if err == nil || !strings.Contains(err.Error(), "cannot enter "+closed+" (mode -rwx------); chmod o+x it") {
		t.Errorf("error: %v", err)
	}
}

func TestOneServerAtATime(t *testing.T) {
	r := runner(t)
	free, err := r.occupy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.occupy(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	second := make(chan error, 1)
	go func() {
		free, err := r.occupy(t.Context())
		if err == nil {
			free()
		}
		second <- err
	}()
	free()
	if err := <-second; err != nil {
		t.Error(err)
	}
}
