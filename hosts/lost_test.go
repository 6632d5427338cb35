package hosts

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ngxlab/agent"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// iceDoor is a door to an agent in this process whose pipe freezes: then nothing comes or goes, and nothing returns, as
// on a cut link over which a process cannot be ended either.
type iceDoor struct {
	talkDoor
	ice chan struct{} // closed: frozen
	end chan struct{} // closed: the test is over
}

func (d iceDoor) Open(ctx context.Context, script string, tty bool) (Pipe, error) {
	p, err := d.talkDoor.Open(ctx, script, tty)
	return icePipe{p, d}, err
}

type icePipe struct {
	Pipe
	door iceDoor
}

func (p icePipe) wait() bool {
	select {
	case <-p.door.ice:
		<-p.door.end
		return true
	default:
		return false
	}
}

func (p icePipe) Read(b []byte) (int, error) {
	n, err := p.Pipe.Read(b)
	if p.wait() {
		return 0, io.EOF
	}
	return n, err
}

func (p icePipe) Write(b []byte) (int, error) {
	if p.wait() {
		return 0, io.ErrClosedPipe
	}
	return p.Pipe.Write(b)
}

func (p icePipe) Close() error {
	p.wait()
	return p.Pipe.Close()
}

func (icePipe) Explain() string { return "the agent last said: disk trouble" }

// frozen enters a host in this process and returns what freezes its link.
func frozen(t *testing.T) (h *Host, freeze func()) {
	t.Helper()
	d := iceDoor{ice: make(chan struct{}), end: make(chan struct{})}
	o := agent.Options{Dir: t.TempDir(), Hash: agentHash(t), Exe: testlab.Agent(t)}
	ended := make(chan error, 1)
	d.talk = func(far net.Conn) { ended <- agent.Serve(t.Context(), far, o) }
	h, err := Enter(t.Context(), d, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(d.end)
		if err := errors.Join(h.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return h, sync.OnceFunc(func() { close(d.ice) })
}

func TestEveryCallOverALostLinkEndsInTime(t *testing.T) {
	h, freeze := frozen(t)
	claimed(t, h)
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sleep", "1000"}}})
	if err != nil {
		t.Fatal(err)
	}
	fired := make(chan bool, 1)
	calls := map[string]func(context.Context) error{
		"pending": func(ctx context.Context) error { _, err := h.Pending(ctx); return err },
		"clock":   func(ctx context.Context) error { _, err := h.Clock(ctx); return err },
		"fire":    func(ctx context.Context) error { _, err := h.Fire(ctx, armed, 0); return err },
		"watch": func(ctx context.Context) error {
			return h.Watch(ctx, lab.Watch{Interval: lab.Seconds(0.01)}, func(lab.Sample) {
				select {
				case fired <- true:
				default:
				}
			})
		},
	}
	type outcome struct {
		call string
		err  error
	}
	ended := make(chan outcome, len(calls))
	begin := func(names ...string) {
		for _, name := range names {
			go func() { ended <- outcome{name, calls[name](t.Context())} }()
		}
	}
	begin("fire", "watch") // under way when the link is lost
	<-fired
	freeze()
	lost := time.Now()
	begin("pending", "clock")
	for range calls {
		o := <-ended
		if took := time.Since(lost); took > 4500*time.Millisecond {
			t.Errorf("%s ended after %v", o.call, took)
		}
		if !errors.Is(o.err, lab.ErrLost) || !strings.HasPrefix(o.err.Error(), "web: "+o.call+": the link to the agent is gone: ") ||
			!strings.HasSuffix(o.err.Error(), "; the agent last said: disk trouble") {
			t.Errorf("%s: %v", o.call, o.err)
		}
	}
	after := time.Now()
	if _, err := h.Read(t.Context(), nil); !errors.Is(err, lab.ErrLost) || time.Since(after) > time.Second {
		t.Errorf("a call over a link known to be lost: %v after %v", err, time.Since(after))
	}
}

func TestAgentWhoseWallClockIsWrongIsMeasured(t *testing.T) {
	o := agent.Options{Dir: t.TempDir(), Hash: agentHash(t), Wall: func() time.Time { return time.Now().Add(10 * time.Minute) }}
	ended := make(chan error, 1)
	h, err := Enter(t.Context(), talkDoor{func(far net.Conn) { ended <- agent.Serve(t.Context(), far, o) }}, options(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.Clock(t.Context())
	if off := c.WallOffsetS - 600; err != nil || off > 2*c.UncertaintyS || off < -2*c.UncertaintyS {
		t.Errorf("clock %+v, %v", c, err)
	}
	if early := c.Instant(time.Now()).Sub(c.Host); early < 0 || early > 10*time.Second {
		t.Errorf("the monotonic clock is off by %v", early)
	}
	f, err := h.Facts(t.Context(), lab.FactsQuery{})
	if err != nil || f.ClockOffsetS < 599 || f.ClockOffsetS > 601 || f.ClockDoubtS <= 0 || f.ClockDoubtS > 1 {
		t.Errorf("facts say %v ± %v s, %v", f.ClockOffsetS, f.ClockDoubtS, err)
	}
	if err := errors.Join(h.Close(), <-ended); err != nil {
		t.Error(err)
	}
}

// kept counts what this process keeps: goroutines, descriptors, and files in the directory for temporary ones.
func kept(t *testing.T, temporary string) (goroutines, descriptors, files int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(temporary, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.NumGoroutine(), len(fds), len(left)
}

func TestThousandConnectsLeaveNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	o := agent.Options{Dir: t.TempDir(), Hash: agentHash(t)}
	ended := make(chan error, 1)
	e, err := newEntrance(talkDoor{func(far net.Conn) { ended <- agent.Serve(t.Context(), far, o) }}, options(t))
	if err != nil {
		t.Fatal(err)
	}
	connect := func() {
		again := *e
		h, err := again.host(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Pending(t.Context())
		if err := errors.Join(err, h.Close(), <-ended); err != nil {
			t.Fatal(err)
		}
	}
	connect()
	goroutines, descriptors, files := kept(t, temporary)
	for range 1000 {
		connect()
	}
	testlab.Eventually(t, "all goroutines are gone", func() bool { return runtime.NumGoroutine() <= goroutines })
	if _, d, f := kept(t, temporary); d > descriptors || f > files {
		t.Errorf("%d descriptors and %d files, %d and %d before", d, f, descriptors, files)
	}
}

func TestHostNeedsFewGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	const hosts = 5
	for range hosts {
		h := local(t, t.TempDir())
		for range 3 {
			if _, err := h.Facts(t.Context(), lab.FactsQuery{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if each := (runtime.NumGoroutine() - before) / hosts; each > 15 {
		t.Errorf("%d goroutines for each host", each)
	} else {
		t.Logf("%d goroutines for each host", each)
	}
}
