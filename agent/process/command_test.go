package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// fetched is the body of a path of a server of this host.
func fetched(t *testing.T, port int, path string) string {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// gone fails the test when a process lives or the port is still taken.
func gone(t *testing.T, port int, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if testlab.Alive(pid) {
			t.Errorf("process %d outlives the server", pid)
		}
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = l.Close()
}

func TestServerByCommandIsReadBack(t *testing.T) {
	r := serverRunner(t)
	s := substituteServing(t, "fork")
	s.Nofile, s.CPUs = 1234, []int{0}
	s.Build.Dir, s.Build.Env = "/build", []string{"LD_LIBRARY_PATH={build}/lib"}
	s.Command.Files = map[string]string{"conf/app.conf": "port {port} in {prefix}\n"}
	s.Command.Env["CONF"] = "{prefix}/conf/app.conf"
	s.Expect = []lab.Setting{{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: "1234"}}
	started, stop := serve(t, r, s)
	if len(started.Workers) != 1 || !started.Tree || started.NofileSoft != 1234 || started.Backlog <= 0 || started.StartedS <= 0 || started.Build != "abc" {
		t.Errorf("read back: %+v", started)
	}
	if p := started.Probes["/"]; p.Status != 200 || p.BodyBytes != 10 {
		t.Errorf("probe: %+v", p)
	}
	for _, want := range []string{"# command: {binary} " + substitute, "conf/app.conf:\nport {port} in {prefix}"} {
		if !strings.Contains(started.Effective, want) {
			t.Errorf("no %q in what is in force:\n%s", want, started.Effective)
		}
	}
	env := fetched(t, s.Port, "/env")
	for _, want := range []string{"LD_LIBRARY_PATH=/build/lib\n", "CONF=" + started.Prefix + "/conf/app.conf\n", "PORT=" + strconv.Itoa(s.Port) + "\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in the environment:\n%s", want, env)
		}
	}
	text, err := os.ReadFile(filepath.Join(started.Prefix, "conf/app.conf"))
	if want := fmt.Sprintf("port %d in %s\n", s.Port, started.Prefix); err != nil || string(text) != want {
		t.Errorf("file %q, want %q, %v", text, want, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	gone(t, s.Port, append(started.Workers, started.Master)...)
}

func TestServerInTheBackgroundIsKnownByItsPIDFile(t *testing.T) {
	for _, modes := range []string{"foreground", "daemonise", "daemonise,setsid", "daemonise,setsid,fork"} {
		t.Run(modes, func(t *testing.T) {
			r := serverRunner(t)
			s := substituteServing(t, modes)
			s.Command.PIDFile, s.Command.Env["PIDFILE"] = "{prefix}/run.pid", "{prefix}/run.pid"
			started, stop := serve(t, r, s)
			if text, err := os.ReadFile(filepath.Join(started.Prefix, "run.pid")); err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(started.Master) {
				t.Errorf("first process %d, pid file %q, %v", started.Master, text, err)
			}
			if log, err := os.ReadFile(r.ErrorLog()); err != nil || !strings.Contains(string(log), "stands in") {
				t.Errorf("what it says on stderr is not in its log: %q, %v", log, err)
			}
			if strings.Contains(modes, "fork") != (len(started.Workers) == 1) {
				t.Errorf("workers %v", started.Workers)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			gone(t, s.Port, append(started.Workers, started.Master)...)
			if table, err := processes(); err != nil || table[started.Master].dead {
				t.Errorf("it is left as a zombie, %v", err)
			}
		})
	}
}

func TestServerThatIsDeafIsKilledAfterItsGrace(t *testing.T) {
	s := substituteServing(t, "deaf,fork")
	s.Command.Grace = lab.Seconds(0.3)
	started, stop := serve(t, serverRunner(t), s)
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 300*time.Millisecond || took > 5*time.Second {
		t.Errorf("stopped in %v", took)
	}
	gone(t, s.Port, append(started.Workers, started.Master)...)
}

func TestServerIsStoppedByItsOwnCommandOrSignal(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	s := substituteServing(t, "deaf")
	s.Command.PIDFile, s.Command.Env["PIDFILE"] = "{prefix}/run.pid", "{prefix}/run.pid"
	s.Command.Start[2] = "daemonise,deaf"
	s.Command.Stop = []string{"/bin/sh", "-c", "echo {port} >" + told + "; kill -QUIT $(cat {prefix}/run.pid)"}
	started, stop := serve(t, serverRunner(t), s)
	if err := stop(); err != nil {
		t.Error(err)
	}
	gone(t, s.Port, started.Master)
	if text, err := os.ReadFile(told); err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(s.Port) {
		t.Errorf("told %q, %v", text, err)
	}
	s = substituteServing(t, "deaf")
	s.Command.Signal = "SIGINT"
	started, stop = serve(t, serverRunner(t), s)
	began := time.Now()
	if err := stop(); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("stopped in %v, %v", time.Since(began), err)
	}
	gone(t, s.Port, started.Master)
}

func TestServersByCommandThatCannotBeAreExplained(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	file := filepath.Join(t.TempDir(), "pid")
	withPID := func(pid int) func(*lab.Serving) {
		return func(s *lab.Serving) {
			if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0o644); err != nil {
				t.Fatal(err)
			}
			s.Command.PIDFile, s.Command.Start[2], s.Command.Within = file, "daemonise", lab.Seconds(0.5)
		}
	}
	tests := []struct {
		name, modes string
		change      func(*lab.Serving)
		want        string
	}{
		{"crash", "crash", nil, "the server died (exit 1; "},
		{"crash, in its words", "crash", nil, "nothing to live for"},
		{"into the background without a pid file", "daemonise,setsid", nil, "pid_file"},
		{"never ready", "unready", func(s *lab.Serving) { s.Command.Within = lab.Seconds(0.5) }, "not ready within 500ms: /: status 503"},
		{"stale pid file", "", withPID(1 << 22), "is stale: there is no process"},
		{"pid file of another server", "", withPID(other.Process.Pid), "is none of this server"},
		{"pid file without a number", "", withPID(1), "is no process number"},
		{"no pid file", "daemonise", func(s *lab.Serving) {
			s.Command.PIDFile, s.Command.Within = "{prefix}/never.pid", lab.Seconds(0.5)
		}, "never.pid: no such file"},
		{"unknown user", "", func(s *lab.Serving) { s.User = "no-such-user" }, `there is no user "no-such-user"`},
		{"limit not in force", "", func(s *lab.Serving) {
			s.Expect = []lab.Setting{{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: "77"}}
		}, `is not in force: asked "77"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := serverRunner(t)
			s := substituteServing(t, test.modes)
			if test.change != nil {
				test.change(&s)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := r.Serve(ctx, s, func(lab.Server) { t.Error("told as started"); cancel() })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v\nwant %s", err, test.want)
			}
			gone(t, s.Port)
		})
	}
}

func TestServerByCommandRunsAsItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: not root, so no other user can be become")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	s := substituteServing(t, "fork")
	s.User = "nobody"
	s.Command.Start = []string{"/bin/sh", "-c", "touch {prefix}/mine && exec {binary} " + substitute + " {user},fork"}
	started, stop := serve(t, serverRunner(t), s)
	if started.User != "nobody" {
		t.Errorf("user %q", started.User)
	}
	lines := strings.Split(strings.TrimSpace(fetched(t, s.Port, "/env")), "\n")
	if got := lines[len(lines)-1]; got != nobody.Uid+" "+nobody.Gid || !slices.Contains(lines, "USER=nobody") {
		t.Errorf("it sees itself as %s, environment %v", got, lines)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	gone(t, s.Port, append(started.Workers, started.Master)...)
}

func TestCommandRunsAsAnotherUserWithItsGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: not root, so no other user can be become")
	}
	if _, err := user.Lookup("nobody"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	testlab.Require(t, "id")
	r := serverRunner(t)
	c := sh("id -un; id -Gn; id -Gn nobody; nice; echo x >file && echo written")
	c.User, c.Nice = "nobody", 7
	p, err := r.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(p.Stdout)), "\n")
	if len(lines) != 5 || lines[0] != "nobody" || lines[1] != lines[2] || lines[3] != "7" || lines[4] != "written" {
		t.Errorf("said %q, %s", lines, p.Stderr)
	}
	c.User = "no-such-user"
	if _, err := r.Run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), `there is no user "no-such-user" on this host`) {
		t.Errorf("error: %v", err)
	}
}
