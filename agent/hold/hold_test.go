package hold

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// TestMain makes the test's own binary the agent: its command "hold" is Main, and "parent" holds until it is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		if err := Main(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "parent" {
		h := Holder{Self: os.Args[0]}
		held, err := h.Hold(context.Background(), lab.Hold{Kind: lab.HoldIdle, Address: os.Args[2], URL: "/", Connections: 20, Processes: 2})
		_, _ = fmt.Fprintln(os.Stdout, held.Open, h.holders[0].cmd.Process.Pid, h.holders[1].cmd.Process.Pid, err)
		select {}
	}
	m.Run()
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) }

// newHolder has holders that do not sleep a second at their end, as the race detector lets a process do.
func newHolder(t *testing.T) *Holder {
	h := &Holder{Self: "/usr/bin/env", Args: []string{"GORACE=atexit_sleep_ms=0", os.Args[0]}}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func hold(t *testing.T, h *Holder, want lab.Hold) lab.Held {
	t.Helper()
	held, err := h.Hold(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func TestIdleConnectionsAreSplitExactlyAndAnswered(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	h := newHolder(t)
	held := hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 2001, Processes: 2})
	if held.Open != 2001 || held.Answered != 2001 || held.Failed != 0 || held.Error != "" || held.RSSBytes <= 0 || held.TookS <= 0 {
		t.Errorf("held %+v", held)
	}
	s.await(http.StateIdle, 2001)
	by := map[byte]int{}
	s.mu.Lock()
	for c := range s.conns {
		by[c.RemoteAddr().(*net.TCPAddr).IP.To4()[2]]++
	}
	s.mu.Unlock()
	if len(by) != 2 || by[1] != 1001 || by[2] != 1000 {
		t.Errorf("connections by holder: %v", by)
	}
}

func TestAnswerOnAConnectionThatTheServerThenClosesCounts(t *testing.T) {
	s := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		hello(w, r)
	})
	h := newHolder(t)
	for range 2 {
		held := hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 1, Processes: 1})
		if held.Answered != 1 {
			t.Errorf("held %+v", held)
		}
		hold(t, h, lab.Hold{}) // the close may not have come yet: then there would be nothing to open
	}
}

func TestHoldIsAbsoluteAndZeroEndsTheHolders(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	h := newHolder(t)
	want := lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Processes: 2}
	for _, n := range []int{100, 300, 300, 40} {
		want.Connections = n
		if held := hold(t, h, want); held.Open != n || held.Failed != 0 {
			t.Errorf("asked for %d: %+v", n, held)
		}
		s.await(http.StateIdle, n)
	}
	if s.opened != 300 {
		t.Errorf("%d connections were opened, want the differences only: 300", s.opened)
	}
	pids := []int{h.holders[0].cmd.Process.Pid, h.holders[1].cmd.Process.Pid}
	want.Connections = 0
	if held := hold(t, h, want); held.Open != 0 {
		t.Errorf("held %+v", held)
	}
	s.await(http.StateIdle, 0)
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
			t.Errorf("holder %d still there: %v", pid, err)
		}
	}
}

func TestActiveConnectionsHaveARequestInProgress(t *testing.T) {
	s := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/sleep" {
			t.Errorf("path %s", r.URL.Path)
		}
		<-r.Context().Done()
	})
	h := newHolder(t)
	held := hold(t, h, lab.Hold{Kind: lab.HoldActive, Address: s.address, URL: "/sleep", Connections: 50, Processes: 1})
	if held.Open != 50 || held.Failed != 0 {
		t.Errorf("held %+v", held)
	}
	s.await(http.StateActive, 50)
}

func TestAnsweredActiveConnectionAsksAgain(t *testing.T) {
	requests := make(chan string, 1000)
	s := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		requests <- r.RemoteAddr
		if len(requests) > 5 {
			<-r.Context().Done()
		}
		hello(w, r)
	})
	h := newHolder(t)
	hold(t, h, lab.Hold{Kind: lab.HoldActive, Address: s.address, URL: "/", Connections: 1, Processes: 1})
	first := <-requests
	for range 3 {
		if next := <-requests; next != first {
			t.Errorf("request from %s, want the same connection %s", next, first)
		}
	}
}

func TestConnectionsClosedByTheServerAreNoticedAndOpenedAgain(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	h := newHolder(t)
	want := lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 30, Processes: 2}
	hold(t, h, want)
	s.await(http.StateIdle, 30)
	s.mu.Lock()
	n := 0
	for c := range s.conns {
		if n++; n > 7 {
			break
		}
		_ = c.Close()
	}
	s.mu.Unlock()
	held := hold(t, h, want)
	if held.Open != 30 || held.Failed != 7 || held.Error != errClosed.Error() {
		t.Errorf("held %+v, want 30 open after 7 were lost", held)
	}
}

func TestFailuresAreCountedWithTheFirstReason(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	refuse := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	h := newHolder(t)
	for address, reason := range map[string]string{closed: "refused", refuse.address: "status 503"} {
		held := hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: address, URL: "/", Connections: 11, Processes: 2})
		if held.Open != 0 || held.Failed != 11 || !strings.Contains(held.Error, reason) {
			t.Errorf("held %+v, want 11 failed: %s", held, reason)
		}
	}
}

func TestFewDescriptorsAreAFailureNotADeadlock(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	h := &Holder{Self: "/bin/sh", Args: []string{"-c", `ulimit -n 64; exec "$0" "$@"`, os.Args[0]}}
	defer h.Close() //nolint:errcheck // the test is over
	held := hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 100, Processes: 1})
	if held.Open < 40 || held.Open+held.Failed != 100 || !strings.Contains(held.Error, "too many open files") {
		t.Errorf("held %+v", held)
	}
}

func TestKilledHolderIsAnErrorAndEndsTheOthers(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	h := newHolder(t)
	want := lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 20, Processes: 2}
	hold(t, h, want)
	if err := h.holders[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if held, err := h.Hold(t.Context(), want); err == nil {
		t.Errorf("held %+v", held)
	}
	s.await(http.StateIdle, 0)
	if held := hold(t, h, want); held.Open != 20 {
		t.Errorf("anew: %+v", held)
	}
}

func TestHoldersEndWithTheirParent(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "parent", s.address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if text, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(text, "20 ") {
		t.Errorf("parent said %q, %v", text, err)
	}
	s.await(http.StateIdle, 20)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s.await(http.StateIdle, 0)
}

func TestCancelledHoldEndsTheHolders(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{}, 100)
	s := serve(t, "127.0.0.1:0", func(_ http.ResponseWriter, r *http.Request) { begun <- struct{}{}; <-r.Context().Done() })
	h := newHolder(t)
	go func() { <-begun; cancel() }()
	if held, err := h.Hold(ctx, lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 10, Processes: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("held %+v, error %v", held, err)
	}
	s.await(http.StateIdle, 0)
}

func TestIPv6AndNamesAreReached(t *testing.T) {
	s := serve(t, "[::1]:0", hello)
	h := newHolder(t)
	if held := hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 20, Processes: 2}); held.Open != 20 {
		t.Errorf("held %+v", held)
	}
	s = serve(t, "127.0.0.1:0", hello)
	_, number, _ := net.SplitHostPort(s.address)
	held := hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: "localhost:" + number, URL: "/", Connections: 20, Processes: 2})
	if held.Open+held.Failed != 20 {
		t.Errorf("held %+v", held)
	}
}

func TestGivenSourcesAreUsed(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	h := newHolder(t)
	hold(t, h, lab.Hold{Kind: lab.HoldIdle, Address: s.address, URL: "/", Connections: 20, Processes: 2, Sources: []string{"127.9.9.9"}})
	s.await(http.StateIdle, 20)
	seen := map[string]bool{}
	s.mu.Lock()
	for c := range s.conns {
		seen[c.RemoteAddr().(*net.TCPAddr).IP.String()] = true
	}
	s.mu.Unlock()
	if len(seen) != 1 || !seen["127.9.9.9"] {
		t.Errorf("sources %v", seen)
	}
}

func TestHolderThatCannotStartIsAnError(t *testing.T) {
	want := lab.Hold{Kind: lab.HoldIdle, Address: "127.0.0.1:1", URL: "/", Connections: 2, Processes: 2}
	if _, err := (&Holder{Self: "/no/such/agent"}).Hold(t.Context(), want); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	want.Kind = "sleeping"
	if _, err := (&Holder{Self: os.Args[0]}).Hold(t.Context(), want); err == nil || !strings.Contains(err.Error(), `unknown kind "sleeping"`) {
		t.Errorf("error %v", err)
	}
	want.Kind, want.Sources = lab.HoldIdle, []string{"::1"}
	if _, err := (&Holder{Self: os.Args[0]}).Hold(t.Context(), want); err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("error %v", err)
	}
}

func TestHoldersNeverShareASourcePort(t *testing.T) {
	server := netip.MustParseAddrPort("10.1.2.3:80")
	seen := map[int]int{}
	for part := range 3 {
		p, err := newPorts(server, "10.1.2.4,10.1.2.5", part, 3)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; p.source == 0; n++ {
			if other, ok := seen[p.port]; ok {
				t.Fatalf("port %d is of holders %d and %d", p.port, other, part)
			}
			seen[p.port] = part
			p.advance()
		}
		if p.source != 1 || p.port != p.first {
			t.Errorf("after the last port: source %d, port %d", p.source, p.port)
		}
	}
}

// TestMainAnswersEachDemand runs a holder inside the test.
func TestMainAnswersEachDemand(t *testing.T) {
	s := serve(t, "127.0.0.1:0", hello)
	in, demands := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error)
	go func() { done <- Main([]string{"-server", s.address, "-host", "x", "-part", "3"}, in, out) }()
	replies := json.NewDecoder(answers)
	for _, n := range []int{500, 10, 600, 0, 5} {
		if err := json.NewEncoder(demands).Encode(demand{Connections: n}); err != nil {
			t.Fatal(err)
		}
		var r reply
		if err := replies.Decode(&r); err != nil || r.Open != n || r.Failed != 0 || r.RSSBytes == 0 {
			t.Errorf("asked for %d: %+v, %v", n, r, err)
		}
		s.await(http.StateIdle, n)
	}
	if err := demands.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.await(http.StateIdle, 0)
}

func TestProcessesFollowTheLimitWhenNoneAreAsked(t *testing.T) {
	if n := processes(lab.Hold{Connections: 1}); n != 1 {
		t.Errorf("%d holders for one connection", n)
	}
	if n := processes(lab.Hold{Connections: 1 << 40}); n < 2 {
		t.Errorf("%d holders for very many", n)
	}
}
