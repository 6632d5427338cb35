package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"ngxlab/agent"
	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// agentHash is the hash of the agent that tests send.
func agentHash(t testing.TB) string {
	t.Helper()
	content, err := os.ReadFile(testlab.Agent(t))
	if err != nil {
		t.Fatal(err)
	}
	return hashOf(content)
}

// talkDoor is a door behind which talk has one end of every pipe; it must close it.
type talkDoor struct{ talk func(net.Conn) }

func (d talkDoor) Open(context.Context, string, bool) (Pipe, error) {
	near, far := net.Pipe()
	go d.talk(far)
	return talkPipe{near}, nil
}

func (talkDoor) Put(context.Context, string, fs.FileMode, io.Reader) error {
	return errors.ErrUnsupported
}
func (talkDoor) Close() error { return nil }

type talkPipe struct{ net.Conn }

func (talkPipe) Explain() string { return "" }

// options are those of the tests' host.
func options(t testing.TB) Options { return Options{Name: "web", Agent: testlab.Agent(t)} }

// served enters a host whose agent serves in this process, after some noise.
func served(t *testing.T, dir, noise string) *Host { return servedBy(t, dir, noise, nil) }

// servedBy is served by an agent with another wall clock.
func servedBy(t *testing.T, dir, noise string, wall func() time.Time) *Host {
	t.Helper()
	ended := make(chan error, 1)
	o := agent.Options{Dir: dir, Hash: agentHash(t), Exe: testlab.Agent(t), Wall: wall}
	h, err := Enter(t.Context(), talkDoor{func(far net.Conn) {
		_, err := io.WriteString(far, noise)
		ended <- errors.Join(err, agent.Serve(t.Context(), far, o))
	}}, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return h
}

func claimed(t *testing.T, h *Host) *Host {
	t.Helper()
	if err := h.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	return h
}

// talking enters a host on which text is all that comes before the link ends.
func talking(t *testing.T, text string) (*Host, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return Enter(ctx, talkDoor{func(far net.Conn) {
		_, _ = io.WriteString(far, text) // fails when the near end has heard enough
		_ = far.Close()
	}}, options(t))
}

func TestNoiseBeforeTheGreetingIsSkipped(t *testing.T) {
	h := served(t, t.TempDir(), "Welcome to web!\r\n\nmail for you, ")
	if _, err := h.Clock(t.Context()); err != nil {
		t.Error(err)
	}
}

// begin is how the greeting of an agent of this protocol begins.
var begin = fmt.Sprintf("ngxlab-agent/%d ", wire.Protocol)

func TestStreamWithoutAnAgentIsAnErrorWithWhatWasSaid(t *testing.T) {
	hash := agentHash(t)
	for text, want := range map[string]string{
		"bash: ngxlab-agent: not found\n":            "bash: ngxlab-agent: not found",
		strings.Repeat("spam and more spam\n", 5000): "spam and more spam",
		"":                                      "no greeting",
		"ngxlab-agent/99 " + hash + "\n":        fmt.Sprintf("protocol 99, this program %d", wire.Protocol),
		begin + strings.Repeat("cd", 32) + "\n": strings.Repeat("cd", 32),
		"/etc/profile: ok\n" + begin + hash[:60] + "\nx\n": "/etc/profile: ok",
	} {
		_, err := talking(t, text)
		if err == nil || !strings.HasPrefix(err.Error(), "web: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("after %.40q: %.300v", text, err)
		}
	}
}

func TestSilentHostIsGivenUpWithTheContextAndByItself(t *testing.T) {
	silent := talkDoor{func(far net.Conn) { _, _ = far.Read(make([]byte, 1)) }}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Enter(ctx, silent, options(t)); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "web: ") {
		t.Errorf("error %v", err)
	}
	e, err := newEntrance(silent, options(t))
	if err != nil {
		t.Fatal(err)
	}
	e.limit = 50 * time.Millisecond
	if _, err := e.host(t.Context(), "web"); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("error %v", err)
	}
}

func TestStreamThatBreaksAfterTheGreetingIsAnErrorWithTheNoise(t *testing.T) {
	h, err := talking(t, begin+agentHash(t)+"\nkernel: device eth0 entered promiscuous mode\n")
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Pending(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "web: pending: the link to the agent is gone") ||
		!strings.Contains(err.Error(), "entered promiscuous mode") {
		t.Errorf("error %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestPendingCallsFailWithTheLinkAndNameTheHost(t *testing.T) {
	ended, link := make(chan error, 1), make(chan net.Conn, 1)
	o := agent.Options{Dir: t.TempDir(), Hash: agentHash(t)}
	h, err := Enter(t.Context(), talkDoor{func(far net.Conn) {
		link <- far
		ended <- agent.Serve(t.Context(), far, o)
	}}, options(t))
	if err != nil {
		t.Fatal(err)
	}
	calls := make(chan error, 1)
	seen := make(chan bool, 100)
	go func() {
		calls <- h.Watch(t.Context(), lab.Watch{Interval: lab.Seconds(0.01)}, func(lab.Sample) { seen <- true })
	}()
	<-seen
	if err := (<-link).Close(); err != nil {
		t.Error(err)
	}
	if err := <-calls; err == nil || !strings.HasPrefix(err.Error(), "web: watch: the link to the agent is gone") {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(h.Close(), <-ended); err != nil {
		t.Error(err)
	}
}

func TestNothingIsChangedOrStartedWithoutAClaim(t *testing.T) {
	h := served(t, t.TempDir(), "")
	ctx := t.Context()
	_, apply := h.Apply(ctx, "c1", nil)
	_, build := h.Build(ctx, lab.Recipe{}, io.Discard)
	_, serve := h.Serve(ctx, lab.Serving{})
	_, arm := h.Arm(ctx, nil)
	_, fire := h.Fire(ctx, lab.Armed{}, 0)
	_, hold := h.Hold(ctx, lab.Hold{})
	for i, err := range []error{apply, build, serve, arm, fire, hold, h.Install(ctx, nil, io.Discard)} {
		var sent *wire.Error
		if !errors.As(err, &sent) || sent.Kind != wire.KindUnclaimed {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if ps, err := h.Pending(ctx); err != nil || len(ps) > 0 {
		t.Errorf("pending %v, %v", ps, err)
	}
	if rs, err := h.Restore(ctx); err != nil || len(rs) > 0 {
		t.Errorf("restored %v, %v", rs, err)
	}
}

func TestFactsWatchClockAndYardstickAreOfThisHost(t *testing.T) {
	dir := t.TempDir()
	h := served(t, dir, "")
	ctx := t.Context()
	f, err := h.Facts(ctx, lab.FactsQuery{Commands: []string{"sh"}})
	if err != nil || f.Host != "web" || f.Agent != agentHash(t) || f.StateDir != dir || f.Architecture != runtime.GOARCH || f.Commands["sh"] == "" {
		t.Errorf("facts %+v, %v", f, err)
	}
	var at []lab.Instant
	c, err := h.Clock(ctx)
	if err != nil || c.UncertaintyS <= 0 || c.UncertaintyS > 1 {
		t.Errorf("clock %+v, %v", c, err)
	}
	start := c.Instant(time.Now().Add(20 * time.Millisecond))
	err = h.Watch(ctx, lab.Watch{Start: start, Interval: lab.Seconds(0.02), Count: 3}, func(s lab.Sample) {
		if s.Host != "web" {
			t.Errorf("sample of host %q", s.Host)
		}
		at = append(at, s.At)
	})
	if err != nil || len(at) == 0 || at[0] < start {
		t.Errorf("samples at %v, start %v, %v", at, start, err)
	}
	watched, cancel := context.WithCancel(ctx)
	if err := h.Watch(watched, lab.Watch{Interval: lab.Seconds(0.01)}, func(lab.Sample) { cancel() }); err != nil {
		t.Errorf("cancelled watch: %v", err)
	}
	if y, err := h.Yardstick(ctx); err != nil || y.Host != "web" || len(y.CPUS) == 0 {
		t.Errorf("yardstick %+v, %v", y, err)
	}
	values, err := h.Read(ctx, lab.Naming(lab.KnobID{Kind: lab.KnobSysctl, Name: "kernel.ostype"}, lab.KnobID{Kind: lab.KnobSysctl, Name: "no.such"}))
	if err != nil || len(values) != 2 || values[0].Text != "Linux" || !values[1].Absent {
		t.Errorf("read %+v, %v", values, err)
	}
}

// TestHostWhoseWallClockIsTenMinutesOffStartsWithTheOthers tells the offset, and lets processes go by the monotonic clock.
func TestHostWhoseWallClockIsTenMinutesOffStartsWithTheOthers(t *testing.T) {
	const ahead = 10 * time.Minute
	wrong := claimed(t, servedBy(t, t.TempDir(), "", func() time.Time { return time.Now().Add(ahead) }))
	right := claimed(t, served(t, t.TempDir(), ""))
	at := time.Now().Add(500 * time.Millisecond)
	for h, offset := range map[*Host]float64{wrong: ahead.Seconds(), right: 0} {
		f, err := h.Facts(t.Context(), lab.FactsQuery{})
		if err != nil || math.Abs(f.ClockOffsetS-offset) > f.ClockDoubtS+0.001 {
			t.Errorf("offset %v s ± %v, want %v, %v", f.ClockOffsetS, f.ClockDoubtS, offset, err)
		}
		c, err := h.Clock(t.Context())
		if err != nil || math.Abs(c.WallOffsetS-offset) > c.UncertaintyS+0.001 {
			t.Errorf("clock %+v, %v", c, err)
		}
		armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"true"}}})
		if err != nil {
			t.Fatal(err)
		}
		ps, err := h.Fire(t.Context(), armed, c.Instant(at))
		if err != nil || len(ps) != 1 || ps[0].Released < c.Instant(at) || ps[0].Released.Sub(c.Instant(at)) > time.Second {
			t.Errorf("asked for %v, let go %+v, %v", c.Instant(at), ps, err)
		}
		samples := 0
		begin := c.Instant(time.Now().Add(50 * time.Millisecond))
		err = h.Watch(t.Context(), lab.Watch{Start: begin, Interval: lab.Seconds(0.05), Count: 2}, func(s lab.Sample) {
			if late := s.At.Sub(begin); late < 0 || late > time.Second {
				t.Errorf("a sample %v after the begin", late)
			}
			samples++
		})
		if err != nil || samples == 0 {
			t.Errorf("%d samples, %v", samples, err)
		}
		at = at.Add(500 * time.Millisecond)
	}
}
