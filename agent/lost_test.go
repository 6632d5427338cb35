package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"ngxlab/agent/process"
	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// realAgent is an agent of its own on this machine, spoken to over two pipes; argv stands before it ("sudo -n").
type realAgent struct {
	asker
	dir     string
	cmd     *exec.Cmd
	in, out *os.File
	ended   chan struct{}
}

func startAgent(t *testing.T, argv ...string) *realAgent {
	t.Helper()
	a := &realAgent{dir: testlab.StateDir(t), ended: make(chan struct{})}
	agentIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, agentOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	argv = append(argv, testlab.Agent(t), "serve", "--dir", a.dir)
	a.in, a.out, a.cmd = in, out, exec.Command(argv[0], argv[1:]...)
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr, a.cmd.SysProcAttr = agentIn, agentOut, os.Stderr, &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(a.cmd.Start(), agentIn.Close(), agentOut.Close()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.ended)
		_ = a.cmd.Wait() // how it ended is not the matter
	}()
	t.Cleanup(func() {
		_, _ = a.in.Close(), a.out.Close() // again, for a test that did
		<-a.ended
	})
	if _, _, err := wire.ReadGreeting(a.out); err != nil {
		t.Fatal(err)
	}
	return a
}

// ask begins the session over r and w.
func (a *realAgent) ask(t *testing.T, r io.Reader, w io.WriteCloser) {
	t.Helper()
	session, err := yamux.Client(struct {
		io.Reader
		io.WriteCloser
	}{r, w}, wire.Session(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() }) // again, for a test that did
	dial := func(context.Context, string, string) (net.Conn, error) { return session.Open() }
	a.asker = asker{Client: &http.Client{Transport: &http.Transport{DialContext: dial}}, session: session}
	a.post(t, wire.PathClaim, `{"campaign":"c1","owner":"ana"}`)
}

// begin sends a request whose answer is not waited for.
func (a *realAgent) begin(t *testing.T, path string, request any) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if answer, err := a.Post("http://agent"+path, "", bytes.NewReader(body)); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // until it is cut off
			_ = answer.Body.Close()                 // only read
		}
	}()
	t.Cleanup(func() { <-done })
}

// busy has the agent do everything at once: compile, serve, load, wait armed, hold connections.
func (a *realAgent) busy(t *testing.T) {
	t.Helper()
	source := t.TempDir()
	configure := "#!/bin/sh\nprintf 'all:\\n\\tsleep 1001\\n' >Makefile\n"
	if err := os.WriteFile(filepath.Join(source, "configure"), []byte(configure), 0o755); err != nil {
		t.Fatal(err)
	}
	a.begin(t, wire.PathBuild, lab.Recipe{Name: "slow", Flavor: lab.FlavorNginx, Binary: "objs/nginx", Sources: []lab.BuildSource{{Path: source}}})
	s, err := server.Serving(server.Input{
		Spec: lab.ServerSpec{Port: testlab.FreePort(t), Site: "file", BodyBytes: 1 << 10}, State: lab.State{Name: "baseline"},
		Target: lab.Host{Name: "here", Local: true}, Recipe: testlab.Recipe(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Build = testlab.Nginx(t)
	a.begin(t, wire.PathServe, s)
	a.post(t, wire.PathArm, `[{"argv":["sleep","1002"]}]`)
	a.begin(t, wire.PathFire, wire.Fire{Armed: lab.Armed{ID: "1"}})
	a.post(t, wire.PathArm, `[{"argv":["sleep","1003"]}]`)
	a.post(t, wire.PathHold, fmt.Sprintf(`{"kind":"idle","address":%q,"url":"/","connections":10,"processes":1}`, testlab.Serve(t, 511).Address))
}

// running are the command lines of what runs below the agent, by pid.
func (a *realAgent) running(t *testing.T) map[int]string {
	t.Helper()
	pids, err := process.Descendants(a.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]string{}
	for _, pid := range pids {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
			all[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return all
}

// whole waits until each of the words is in a command line below the agent, and returns all of its pids.
func (a *realAgent) whole(t *testing.T, words ...string) []int {
	t.Helper()
	var pids []int
	testlab.Eventually(t, fmt.Sprintf("%q run", words), func() bool {
		pids = nil
		lines := ""
		for pid, line := range a.running(t) {
			pids, lines = append(pids, pid), lines+line+"\n"
		}
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(lines, word) })
	})
	return append(pids, a.cmd.Process.Pid)
}

// everything is what busy starts.
var everything = []string{"sleep 1001", "nginx: worker", "sleep 1002", "sleep 1003", "hold -kind idle"}

// gone fails the test when one of the processes lives five seconds after the link was cut, or the lock is not free.
func (a *realAgent) gone(t *testing.T, cut time.Time, pids []int) {
	t.Helper()
	testlab.Eventually(t, "every process is gone", func() bool { return !slices.ContainsFunc(pids, testlab.Alive) })
	if took := time.Since(cut); took > 5*time.Second {
		t.Errorf("gone after %v only", took)
	}
	if err := lockIn(t, a.dir).claim(wire.Claim{Owner: "ben", Campaign: "c2"}); err != nil {
		t.Errorf("the host is not free: %v", err)
	}
}

func TestEverythingIsGoneWithinFiveSecondsOfACutLink(t *testing.T) {
	for name, test := range map[string]struct {
		before []string // the agent
		cut    func(*testing.T, *realAgent)
	}{
		"input closed":  {nil, func(t *testing.T, a *realAgent) { closeAll(t, a.in, a.out) }},
		"output closed": {nil, func(t *testing.T, a *realAgent) { closeAll(t, a.out) }},
		"under sudo":    {[]string{"sudo", "-n"}, func(t *testing.T, a *realAgent) { closeAll(t, a.in, a.out) }},
		"sudo hung up": {[]string{"sudo", "-n"}, func(t *testing.T, a *realAgent) {
			if err := a.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}},
		"sudo killed": {[]string{"sudo", "-n"}, func(t *testing.T, a *realAgent) {
			if err := a.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			closeAll(t, a.in, a.out)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(test.before) > 0 {
				testlab.Require(t, test.before[0])
				if err := exec.Command("sudo", "-n", "true").Run(); err != nil {
					t.Skipf("SKIPPED: sudo -n: %v", err)
				}
			}
			a := startAgent(t, test.before...)
			a.ask(t, a.out, a.in)
			a.busy(t)
			pids := a.whole(t, everything...)
			cut := time.Now()
			test.cut(t, a)
			a.gone(t, cut, pids)
		})
	}
}

func closeAll(t *testing.T, files ...*os.File) {
	t.Helper()
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoppedPeerIsGivenUp puts cat(1) between, which is then stopped as a program by Ctrl-Z: no end of the stream comes.
func TestStoppedPeerIsGivenUp(t *testing.T) {
	a := startAgent(t)
	between := exec.Command("cat")
	between.Stdout = a.in
	in, err := between.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := between.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = between.Process.Kill(), between.Wait() })
	a.ask(t, a.out, in)
	a.busy(t)
	pids := a.whole(t, everything...)
	cut := time.Now()
	if err := between.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.gone(t, cut, pids)
}

// TestPackageManagerIsNotInterruptedByACutLink has an apt-get of its own that takes two seconds.
func TestPackageManagerIsNotInterruptedByACutLink(t *testing.T) {
	bin, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	for name, script := range map[string]string{
		"apt-get": "echo begun >" + done + ".begun; sleep 2; echo configured; echo whole >" + done, "dpkg-query": "exit 1", "apt-cache": "exit 0",
		"sudo": "[ \"$1\" != true ] && shift; exec \"$@\"",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	a := startAgent(t)
	a.ask(t, a.out, a.in)
	a.begin(t, wire.PathInstall, wire.Install{Packages: []string{"nothing"}})
	testlab.Eventually(t, "apt-get runs", func() bool { _, err := os.Stat(done + ".begun"); return err == nil })
	a.post(t, wire.PathArm, `[{"argv":["sleep","1003"]}]`)
	waiting := slices.DeleteFunc(a.whole(t, "sleep 1003"), func(pid int) bool { return !strings.Contains(a.running(t)[pid], "sleep 1003") })
	closeAll(t, a.in, a.out)
	testlab.Eventually(t, "the rest is gone", func() bool { return !slices.ContainsFunc(waiting, testlab.Alive) })
	if _, err := os.Stat(done); err == nil {
		t.Error("what else ran was ended only after the package manager")
	}
	if err := lockIn(t, a.dir).claim(wire.Claim{Owner: "ben", Campaign: "c2"}); err == nil {
		t.Error("the host was free while the package manager ran")
	}
	<-a.ended
	if _, err := os.Stat(done); err != nil {
		t.Errorf("the package manager was interrupted: %v", err)
	}
	if err := lockIn(t, a.dir).claim(wire.Claim{Owner: "ben", Campaign: "c2"}); err != nil {
		t.Errorf("the host is not free: %v", err)
	}
}
