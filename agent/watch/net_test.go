package watch

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// statusServer answers every connection with the recorded answer, or never when silent.
func statusServer(t *testing.T, silent bool) (port int) {
	t.Helper()
	answer, err := os.ReadFile("testdata/status.txt")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 512)
			if n, _ := c.Read(buf); n > 0 && !silent {
				_, _ = c.Write(answer)
				_ = c.Close()
			} else {
				defer c.Close() //nolint:errcheck // kept open until the end
			}
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestStatusCountsItsOwnPollsPerServer(t *testing.T) {
	w := fixture(t)
	port := statusServer(t, false)
	master := 100
	w.Server = func() (lab.Server, bool) { return lab.Server{Master: master}, true }
	for want := uint64(1); want <= 2; want++ {
		s := once(t, w, lab.Watch{Server: true, StatusPort: port}).Status
		if s == nil || *s != (lab.ServerStatus{Active: 737, Accepts: 31070, Handled: 31069, Requests: 152003, Reading: 1, Writing: 4, Waiting: 732, Polls: want}) {
			t.Fatalf("poll %d: %+v", want, s)
		}
	}
	master = 300
	if s := once(t, w, lab.Watch{Server: true, StatusPort: port}).Status; s.Polls != 1 {
		t.Errorf("polls of a new server: %d, want 1", s.Polls)
	}
}

func TestPollThatIsNotAnsweredIsAbsentButCounted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p := poller{}
	if s := p.poll(ctx, 1, statusServer(t, true)); s != nil || p.polls != 1 {
		t.Errorf("status %+v, polls %d", s, p.polls)
	}
	if s := p.poll(t.Context(), 1, 1); s != nil || p.polls != 0 {
		t.Errorf("refused poll: %+v, polls %d (of another port)", s, p.polls)
	}
}

func TestStatusOfAnythingElseIsAnError(t *testing.T) {
	for _, text := range []string{"", "HTTP/1.1 404 Not Found\r\n\r\nActive connections: 1 \n", "HTTP/1.1 200 OK\r\n\r\nhello", "garbage\r\n\r\n"} {
		if s, err := parseStatus([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

// narrow listens with room for two connections (the kernel allows backlog + 1).
func narrow(t *testing.T) (port int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return sa.(*unix.SockaddrInet4).Port
}

func TestListenersShowQueueBacklogAndDrops(t *testing.T) {
	port := narrow(t)
	address := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	for range 8 { // more than have room; none is accepted
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd) //nolint:errcheck // the test is over
		if err := unix.Connect(fd, address); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
	ls := once(t, fixture(t), lab.Watch{Ports: []int{port}}).Listeners
	if len(ls) != 1 || ls[0].Port != port || ls[0].Queue != 2 || ls[0].Backlog != 1 || ls[0].Drops == 0 {
		t.Errorf("listeners %+v", ls)
	}
	ports, err := portsInUse()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range ports {
		if p == port {
			found++
		}
	}
	if found != 1 {
		t.Errorf("port %d is %d times in %v", port, found, ports)
	}
}

func TestListenersOfBothFamilies(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	port := l.Addr().(*net.TCPAddr).Port
	if ls := onPorts([]int{port}); len(ls) != 1 || ls[0].Backlog == 0 {
		t.Errorf("listeners %+v", ls)
	}
}

func fuzzSeeds(f *testing.F, names ...string) {
	for _, name := range names {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
}

func FuzzProc(f *testing.F) {
	fuzzSeeds(f, "proc/stat", "proc/meminfo", "proc/vmstat", "proc/slabinfo", "proc/net/snmp", "proc/net/netstat",
		"proc/net/sockstat", "proc/net/stat/nf_conntrack", "proc/100/limits", "proc/101/smaps_rollup")
	f.Fuzz(func(t *testing.T, text []byte) {
		if cpus, err := parseStat(text); err == nil && len(cpus) == 0 {
			t.Error("no CPUs and no error")
		}
		parseKeys(text, []string{"MemTotal:", "Pss:"})
		for name := range parseSlabs(text) {
			if !isNamed(name) {
				t.Errorf("slab %q", name)
			}
		}
		parseCounters(text, map[string]uint64{})
		parseSockstat(text, "TCP:", "tcp_")
		parseConntrack(text)
		parseNofile(text)
		parseMayRaise(text)
		parseDistribution(text)
	})
}

func FuzzStatus(f *testing.F) {
	fuzzSeeds(f, "status.txt")
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := parseStatus(text); err == nil && s.Polls != 0 {
			t.Errorf("polls %d out of nowhere", s.Polls)
		}
	})
}

func FuzzListener(f *testing.F) {
	f.Add(make([]byte, messageSize))
	f.Add(append([]byte{2, tcpListen}, make([]byte, messageSize+40)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, ok := parseListener(data); ok && (l.Port < 0 || l.Port > 65535) {
			t.Errorf("listener %+v", l)
		}
	})
}
