package process

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// refuses fails the test when a server starts, or is refused in other words.
func refuses(t *testing.T, r *Runner, s lab.Serving, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := r.Serve(ctx, s, func(lab.Server) { t.Error("told as started"); cancel() })
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

func TestModulesLibrariesAndUserAreReadFromTheRunningServer(t *testing.T) {
	r := serverRunner(t)
	asked := 0
	r.Versions = func(_ context.Context, paths []string) map[string]string {
		asked++
		return map[string]string{paths[0]: "1.2-3"}
	}
	s := servingOf(t, input(t, "hello"))
	for range 2 {
		started, stop := serve(t, r, s)
		for _, want := range []string{"ngx_http_stub_status_module", "ngx_http_echo_module", "ngx_core_module"} {
			if !slices.Contains(started.Modules, want) {
				t.Errorf("no %s among %v", want, started.Modules)
			}
		}
		versions := 0
		for _, l := range started.Libraries {
			if real, err := filepath.EvalSymlinks(l.Path); err != nil || real != l.Path || !strings.Contains(l.Name, ".so") {
				t.Errorf("library %+v, really %s, %v", l, real, err)
			}
			if l.Version == "1.2-3" {
				versions++
			}
		}
		if versions != 1 || started.Build != s.Build.ID {
			t.Errorf("libraries %+v, build %s", started.Libraries, started.Build)
		}
		if want := "nobody"; os.Geteuid() == 0 && started.User != want {
			t.Errorf("its workers run as %s, not %s", started.User, want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if asked != 1 {
		t.Errorf("versions asked for %d times", asked)
	}
}

func TestStrippedBinaryIsAskedForItsModules(t *testing.T) {
	testlab.Require(t, "strip")
	r := serverRunner(t)
	s := servingOf(t, input(t, "hello"))
	binary := filepath.Join(testlab.StateDir(t), "nginx")
	if err := copyFile(s.Build.Binary, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Run(t.Context(), lab.Command{Argv: []string{"strip", "--strip-all", binary}}, nil); err != nil || p.Exit != 0 {
		t.Fatalf("strip: %+v, %v", p, err)
	}
	s.Build.Binary, s.Build.Modules = binary, []string{"as the build says"}
	started, _ := serve(t, r, s)
	if !slices.Contains(started.Modules, "ngx_http_stub_status_module") || slices.Contains(started.Modules, "as the build says") {
		t.Errorf("modules %v", started.Modules)
	}
}

func TestWorkersOfAnotherUserThanAskedAreAnError(t *testing.T) {
	s := servingOf(t, input(t, "hello"))
	s.User = "daemon" // the configuration says nothing of it
	refuses(t, serverRunner(t), s, " of the server runs as ")
}

func TestTryTellsWhatTheBuildThinksAndLeavesNothing(t *testing.T) {
	r := serverRunner(t)
	s := servingOf(t, input(t, "hello"))
	if refused, err := r.Try(t.Context(), s); err != nil || refused != "" {
		t.Errorf("refused %q, %v", refused, err)
	}
	s.Config = strings.Replace(s.Config, "sendfile", "sendfil", 1)
	if refused, err := r.Try(t.Context(), s); err != nil || !strings.Contains(refused, `unknown directive "sendfil" in {prefix}/nginx.conf:`) {
		t.Errorf("refused %q, %v", refused, err)
	}
	s.Build.Binary = "/nowhere/nginx"
	if refused, err := r.Try(t.Context(), s); err == nil || refused != "" {
		t.Errorf("refused %q, %v", refused, err)
	}
	if refused, err := r.Try(t.Context(), substituteServing(t, "crash")); err != nil || refused != "" {
		t.Errorf("of a command: %q, %v", refused, err)
	}
}

func TestDirectivesOfIncludedFilesAreFound(t *testing.T) {
	s := servingOf(t, input(t, "hello"))
	s.Template, s.StatusPort = true, 0
	s.Config = `daemon off; pid {prefix}/nginx.pid; error_log logs/error.log; include parts/main.conf; events {}
http { access_log off; client_body_temp_path {prefix}/b; include parts/sites/*.conf; }`
	s.Files = map[string]string{
		"parts/main.conf":    "worker_processes 2;",
		"parts/sites/a.conf": "server { listen 127.0.0.1:1; gzip off; }",
		"parts/sites/b.conf": "server { listen 127.0.0.1:{port}; include parts/locations.conf; gzip on; }",
		"parts/locations.conf": `location / { return 404; }
			location /hello { types {} default_type text/x; return 200 hello; }`,
	}
	s.URLs = []string{"/hello"}
	s.Expect = []lab.Setting{nginx("main.worker_processes", "2"), nginx("server.gzip", "on"), nginx("location.default_type", "text/x")}
	started, _ := serve(t, serverRunner(t), s)
	if len(started.Workers) != 2 || len(started.Files) != 4 || len(started.ReadBack) != 3 {
		t.Errorf("workers %v, files %v, read back %+v", started.Workers, started.Files, started.ReadBack)
	}
	if n := strings.Count(started.Effective, fileHeading+"{prefix}/"); n != 5 {
		t.Errorf("%d files in\n%s", n, started.Effective)
	}
}

// BenchmarkStart measures a start to the moment that it is told.
func BenchmarkStart(b *testing.B) {
	r := &Runner{Dir: testlab.StateDir(b)}
	s, err := server.Serving(server.Input{
		Spec:   lab.ServerSpec{Port: testlab.FreePort(b), Site: "hello"},
		State:  lab.State{Name: "baseline"},
		Target: lab.Host{Name: "here", Local: true}, Recipe: testlab.Recipe(),
	})
	if err != nil {
		b.Fatal(err)
	}
	s.Build = testlab.Nginx(b)
	var took time.Duration
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		began := time.Now()
		if err := r.Serve(ctx, s, func(lab.Server) { took += time.Since(began); cancel() }); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/start")
}

func TestHungWorkerIsKilledWithinTheDeadline(t *testing.T) {
	s := servingOf(t, input(t, "hello"))
	started, stop := serve(t, serverRunner(t), s)
	if err := syscall.Kill(started.Workers[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > killGrace+time.Second {
		t.Errorf("stopped in %v", took)
	}
	gone(t, s.Port, started.Master, started.Workers[0])
}

func TestWorkersThatEndAgainAndAgainAreAnError(t *testing.T) {
	r := serverRunner(t)
	s := servingOf(t, input(t, "hello"))
	sv, err := r.newServing(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sv.prefix) })
	for line, ends := range map[string]bool{
		"2026/12/01 04:00:00 [alert] 1#1: worker process 2 exited on signal 11 (core dumped)":                          true,
		"2026/12/01 04:00:00 [alert] 1#1: worker process 2 exited with fatal code 2 and cannot be respawned":           true,
		"2026/12/01 04:00:00 [notice] 1#1: worker process 2 exited with code 1":                                        true,
		"2026/12/01 04:00:00 [notice] 1#1: worker process 2 exited with code 0":                                        false,
		"2026/12/01 04:00:00 [error] 2#2: *1 open() \"/html/a process 1 exited with code 1\" failed (2: No such file)": false,
	} {
		if err := writeFiles(sv.prefix, map[string]string{errorLog: line + "\n"}); err != nil {
			t.Fatal(err)
		}
		if err := sv.steady(t.Context()); (err != nil) != ends {
			t.Errorf("%s: %v", line, err)
		}
	}
}
