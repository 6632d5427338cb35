package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// counting is a server that tells at /vars how many requests it has had, those for /vars too when it counts polls.
func counting(t *testing.T, polls, secure bool) (*Watcher, lab.Watch, *atomic.Int64) {
	t.Helper()
	var served atomic.Int64
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/down":
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path != "/vars" || polls:
			served.Add(1)
		}
		_, _ = fmt.Fprintf(w, "version 7\nserved %d\n", served.Load())
	}))
	if secure {
		h.StartTLS()
	} else {
		h.Start()
	}
	t.Cleanup(h.Close)
	address, err := url.Parse(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	s := lab.Server{Master: os.Getpid(), Port: port}
	w := &Watcher{Server: func() (lab.Server, bool) { return s, true }}
	return w, lab.Watch{Server: true, Port: port, TLS: secure, ServedBy: &lab.Count{URL: "/vars", Pattern: `served (\d+)`}}, &served
}

func TestServerTellsItsRequestsAtAURL(t *testing.T) {
	for _, c := range []struct {
		polls, secure bool
		perPoll       uint64
	}{{false, false, 0}, {true, false, 1}, {true, true, 1}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			w, what, served := counting(t, c.polls, c.secure)
			first := once(t, w, what).Served
			served.Add(1000)
			second := once(t, w, what).Served
			if first == nil || second == nil || first.PerPoll != c.perPoll || first.Polls != 2 || second.Polls != 3 {
				t.Fatalf("served %+v, then %+v", first, second)
			}
			if n := second.Requests - first.Requests - (second.Polls-first.Polls)*second.PerPoll; n != 1000 {
				t.Errorf("%d requests between them, want 1000", n)
			}
		})
	}
}

func TestCountThatCannotBeHadIsAbsent(t *testing.T) {
	w, what, _ := counting(t, false, false)
	for _, by := range []lab.Count{{URL: "/down"}, {URL: "/vars", Pattern: "nothing (like) this"}, {URL: "/vars", Pattern: "("}, {URL: "/vars", Pattern: "version"}, {Log: "no/such.log"}} {
		what.ServedBy = &by
		if s := once(t, w, what); s.Served != nil || len(s.CPUs) == 0 {
			t.Errorf("%+v: served %+v", by, s.Served)
		}
	}
	what.ServedBy = &lab.Count{URL: "/vars"}
	if s := once(t, w, what).Served; s == nil || s.Requests != 7 {
		t.Errorf("the first number: %+v", s)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // only listened
	what.Port = silent.Addr().(*net.TCPAddr).Port
	if s := once(t, w, what); s.Served != nil || s.TookS < 0.9 || s.TookS > 2 {
		t.Errorf("a server that does not answer: served %+v in %v s", s.Served, s.TookS)
	}
}

func TestServerTellsItsRequestsInALog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "access.log")
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := lab.Server{Master: os.Getpid(), Prefix: dir}
	w := &Watcher{Server: func() (lab.Server, bool) { return s, true }}
	what := lab.Watch{Server: true, ServedBy: &lab.Count{Log: "access.log", Pattern: `^GET `}}
	reads := func(want uint64) {
		t.Helper()
		if got := once(t, w, what).Served; got == nil || got.Requests != want || got.PerPoll != 0 {
			t.Errorf("served %+v, want %d", got, want)
		}
	}
	add("GET / 200\nPOST / 200\nGET / 2")
	reads(1)
	add("00\n" + strings.Repeat("GET /x 200\n", 20000))
	reads(20002)
	add("GET /" + strings.Repeat("x", 200000) + "\nPOST /" + strings.Repeat("GET ", 50000) + "\nGET /\n") // longer than a buffer
	reads(20004)
	reads(20004)
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := once(t, w, what).Served; got != nil {
			t.Errorf("an emptied log still tells: %+v", got)
		}
		add(strings.Repeat("GET / 200\n", 100000)) // longer than it was
	}
	other := exec.Command("sleep", "1000") // another server, with the same log
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	s.Master = other.Process.Pid
	what.ServedBy.Pattern = ""
	reads(200001 - 1)
	add("x\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	add(strings.Repeat("GET / 200\n", 300000))
	if got := once(t, w, what).Served; got != nil {
		t.Errorf("a rotated log still tells: %+v", got)
	}
}

// shellTree is a server by a command: a shell with a child and a grandchild in a session of its own.
func shellTree(t *testing.T) lab.Server {
	t.Helper()
	testlab.Require(t, "setsid")
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", "sleep 1000 & setsid sh -c 'echo $$ >"+dir+"/pid; sleep 1000; true' & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	leader := testlab.PIDIn(t, dir+"/pid")
	t.Cleanup(func() {
		_ = syscall.Kill(-leader, syscall.SIGKILL)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	for name, text := range map[string]string{"a.conf": "a\n", "b.conf": "b\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return lab.Server{Master: cmd.Process.Pid, Tree: true, Prefix: dir, Files: []string{"a.conf", "b.conf"}}
}

func TestProcessesOfAServerByCommandAreAllBelowItsFirst(t *testing.T) {
	s := shellTree(t)
	w := &Watcher{Server: func() (lab.Server, bool) { return s, true }}
	var sample lab.Sample
	testlab.Eventually(t, "the whole tree runs", func() bool {
		sample = once(t, w, lab.Watch{Server: true})
		return len(sample.Processes) == 4
	})
	for i, p := range sample.Processes {
		if (p.Role == lab.ServerMaster) != (i == 0) || p.FDs == 0 || p.FDLimit == 0 {
			t.Errorf("process %d: %+v", i, p)
		}
	}
	if bytes, _, known := sample.ServerMemory(); !known || bytes <= 0 {
		t.Errorf("memory %d, known %v", bytes, known)
	}
	sum := sha256.Sum256([]byte("a\nb\n"))
	if f := sample.InForce; f["config"] != hex.EncodeToString(sum[:]) || f["binary"] == "" || f["cpus"] == "" || f["nofile"] == "" || f["nproc"] == "" {
		t.Errorf("in force: %v", f)
	}
	last := sample.Processes[slices.IndexFunc(sample.Processes, func(p lab.ProcessSample) bool { return p.Name == "sleep" })]
	if err := syscall.Kill(last.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testlab.Eventually(t, "one less is sampled", func() bool { return len(once(t, w, lab.Watch{Server: true}).Processes) == 3 })
}

// BenchmarkServed measures what a sample of a busy log costs: 50,000 lines since the one before.
func BenchmarkServed(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log")
	line := `127.0.0.1 - - [01/Dec/2026:04:00:00 +0000] "GET / HTTP/1.1" 200 612 "-" "wrk"` + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 50000)), 0o644); err != nil {
		b.Fatal(err)
	}
	for _, pattern := range []string{"", `" 200 `} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				var c counter
				if got := c.byLog(lab.Server{Prefix: filepath.Dir(path)}, lab.Count{Log: "log", Pattern: pattern}); got == nil || got.Requests != 50000 {
					b.Fatalf("served %+v", got)
				}
			}
		})
	}
}
