package conduct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"time"

	"ngxlab/lab"
)

var errInjected = errors.New("injected fault")

// fakeHost is one strict host in memory. It keeps count of its calls, refuses what a real host would refuse, and
// calls before with the number and name of each call; an error from there is what the call returns.
type fakeHost struct {
	t       *testing.T
	name    lab.HostName  // "" = not told in errors
	loads   *fakeHost     // the target that it loads, nil = itself
	loaders int           // how many hosts load it, 0 = 1
	behind  *fakeHost     // its upstream, nil = none
	latency time.Duration // of the link, one way
	before  func(n int, call string) error
	silent  func(n int, call string) bool // from such a call on nothing is answered; nil = never
	lost    bool                          // nothing is, any more

	mu          sync.Mutex
	calls       []string
	knobs       map[lab.KnobID]string // those that are not there have no value
	original    map[lab.KnobID]string // as they were before the campaign
	journal     map[lab.KnobID]*fakeEntry
	writes      []string
	live        bool // knobs may be changed under a running server
	foreign     bool // someone else has changed every knob when it comes to be restored
	meddled     bool // someone else has changed meddledKnob
	meddledKnob lab.KnobID
	stuck       func(lab.KnobID) bool // cannot be put back at this attempt; nil = none
	clamp       string                // what a write of 65535 reads back, "" for 65535
	serving     string                // state served, "" when none
	stopped     chan struct{}
	served      []string
	lingers     int               // so many times a server that was stopped still listens
	inForce     map[string]string // what the server runs under; nil = not told
	builds      map[string]bool   // imported
	version     string            // of the server that is installed
	until       context.Context   // what ends the server
	asked       lab.Watch         // last one that was asked of it with Server
	armed       map[string][]lab.Command
	held        int    // by it
	heldHere    int    // at its server
	deaf        string // why it reaches no target, "" when it does
	boot        time.Time
	ended       lab.Instant // of what was fired last, until a sample has been taken after it
	requests    uint64      // served so far
	base        uint64      // … when the set was armed
	polls       uint64
	cpuS        float64 // of the worker
	baseCPUS    float64
	nothing     func(fired int) bool // the tool measures nothing at this fire
	fired       int
	firedArgv   [][]string
	seen        func(*lab.Sample) // changes every sample, when not nil
}

func newFakeHost(t *testing.T) *fakeHost {
	return &fakeHost{
		t: t, boot: time.Now(), knobs: map[lab.KnobID]string{somaxconn: "4096"}, original: map[lab.KnobID]string{somaxconn: "4096"},
		journal: map[lab.KnobID]*fakeEntry{},
		armed:   map[string][]lab.Command{}, before: func(int, string) error { return nil },
	}
}

func (f *fakeHost) machine() Machine { return Machine{Tuner: f, Builder: f, Runner: f, Watcher: f} }

func (f *fakeHost) call(ctx context.Context, name string) error {
	f.mu.Lock()
	f.calls = append(f.calls, name)
	n := len(f.calls)
	f.lost = f.lost || f.silent != nil && f.silent(n, name)
	lost := f.lost
	f.mu.Unlock()
	if lost {
		<-ctx.Done()
		return fmt.Errorf("%s%s: %w", f.named(), name, context.Cause(ctx)) // as hosts do
	}
	if f.latency > 0 {
		<-time.After(f.latency)
	}
	if err := f.before(n, name); err != nil {
		return fmt.Errorf("%s%s: %w", f.named(), name, err)
	}
	return ctx.Err()
}

func (f *fakeHost) named() string {
	if f.name == "" {
		return ""
	}
	return string(f.name) + ": "
}

// target is the host that it loads.
func (f *fakeHost) target() *fakeHost {
	if f.loads == nil {
		return f
	}
	return f.loads
}

func (f *fakeHost) Install(ctx context.Context, _ []string, _ io.Writer) error {
	return f.call(ctx, "install")
}

func (f *fakeHost) Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error) {
	if err := f.call(ctx, "build"); err != nil {
		return lab.Build{}, err
	}
	_, err := io.WriteString(log, "configured\ncompiled\n")
	if r.Installed != "" {
		return lab.Build{ID: "i-" + f.version, Recipe: r.Name, Binary: r.Installed, Version: f.version}, err
	}
	return lab.Build{ID: "b1", Recipe: r.Name, Binary: "/fake/nginx", Version: "1.22.1"}, err
}

// Export and Import carry the name of the build, as a host without a compiler would need it.
func (f *fakeHost) Export(ctx context.Context, b lab.Build, w io.Writer) error {
	if err := f.call(ctx, "export"); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.ID)
	return err
}

func (f *fakeHost) Import(ctx context.Context, b lab.Build, r io.Reader) (lab.Build, error) {
	text, readErr := io.ReadAll(r)
	name := "import"
	if len(text) == 0 && readErr == nil {
		name = "ask"
	}
	if err := errors.Join(f.call(ctx, name), readErr); err != nil {
		return lab.Build{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b.Cached = f.builds[b.ID]
	if !b.Cached && string(text) != b.ID {
		return lab.Build{}, fmt.Errorf("import: the copy is not whole: %q", text)
	}
	if f.builds == nil {
		f.builds = map[string]bool{}
	}
	f.builds[b.ID] = true
	return b, nil
}

// Serve refuses a second server at once, as a busy port would after the wait.
func (f *fakeHost) Serve(ctx context.Context, s lab.Serving) (lab.Server, error) {
	if err := f.call(ctx, "serve"); err != nil {
		return lab.Server{}, err
	}
	f.mu.Lock()
	previous := f.stopped
	f.mu.Unlock()
	if previous != nil {
		<-previous
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if bound := f.knobs[nrOpen]; bound != "" && s.Nofile > number(bound) {
		return lab.Server{}, fmt.Errorf("%sserve: open-file limit: operation not permitted", f.named())
	}
	if s.Build.Binary == "" {
		f.t.Errorf("serve %q without a build", s.State)
	}
	gone := make(chan struct{})
	f.serving, f.stopped, f.requests, f.polls, f.until = s.State, gone, 0, 0, ctx
	f.served = append(f.served, s.State)
	f.inForce = map[string]string{"config": sha256Hex(s.Config), "binary": s.Build.Binary, "nofile": "1024", "cpus": "0", "backlog": "511"}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		f.serving = ""
		f.mu.Unlock()
		close(gone)
	})
	if s.Command != nil {
		delete(f.inForce, "config")
		return lab.Server{Serving: s.State, Master: 100, Tree: true, Probes: map[string]lab.Probe{"/": {Status: 200, HeaderBytes: 240, BodyBytes: 1024}}}, nil
	}
	return lab.Server{
		Serving: s.State, Master: 100, Workers: []int{101}, NofileSoft: 1024, Backlog: fakeBacklog,
		Probes: map[string]lab.Probe{"/": {Status: 200, HeaderBytes: 240, BodyBytes: 1024}},
	}, nil
}

func (f *fakeHost) Arm(ctx context.Context, cs []lab.Command) (lab.Armed, error) {
	name := "arm"
	if len(cs) == 0 {
		name = "disarm"
	}
	if err := f.call(ctx, name); err != nil {
		return lab.Armed{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(cs) == 0 {
		clear(f.armed)
		return lab.Armed{}, nil
	}
	id := fmt.Sprint(len(f.calls))
	f.armed[id] = cs
	f.onTarget(func(t *fakeHost) { t.base, t.baseCPUS, t.ended = t.requests, t.cpuS, 0; t.behindEnded(0) })
	return lab.Armed{ID: id, PIDs: []int{200}}, nil
}

const fakeBacklog = 511

// fakeRequests is what every fake measurement completes in 2 s.
const fakeRequests = 40000

// fakeCPUS is the CPU time in seconds that the worker needs for it: the server is the limit.
const fakeCPUS = 1.96

// endsSoon reports whether ctx is ending: what hangs on one that is cancelled ends in no order.
func endsSoon(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(time.Second):
		return false
	}
}

func (f *fakeHost) Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error) {
	if err := f.call(ctx, "fire"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onTarget(func(t *fakeHost) {
		if t.serving == "" && !endsSoon(ctx) { // a campaign that is cancelled ends its server meanwhile
			t.t.Errorf("load was fired without a server")
		}
	})
	if now := f.clock(); f.latency > 0 && now > at {
		f.t.Errorf("told %v after the common start", now.Sub(at))
	}
	f.fired++
	var processes []lab.Process
	set := f.armed[a.ID]
	delete(f.armed, a.ID)
	for _, c := range set {
		f.firedArgv = append(f.firedArgv, c.Argv)
		p := lab.Process{Command: c, PID: 200, Asked: at, Released: at, Ended: at.Add(2 * time.Second), Stdout: wrkPrints(fakeRequests)}
		if f.nothing != nil && f.nothing(f.fired) {
			p.Stdout = wrkPrints(0)
		}
		f.onTarget(func(t *fakeHost) {
			t.requests += fakeRequests
			t.cpuS += fakeCPUS / float64(max(1, t.loaders))
			t.ended = p.Ended.Add(t.clock().Sub(f.clock()))
			t.behindEnded(p.Ended.Add(t.clock().Sub(f.clock())))
		})
		processes = append(processes, p)
	}
	return processes, nil
}

// behindEnded tells its upstream when, by its own clock, what was fired last has ended.
func (f *fakeHost) behindEnded(at lab.Instant) {
	if f.behind == nil {
		return
	}
	f.behind.mu.Lock()
	defer f.behind.mu.Unlock()
	if f.behind.ended = 0; at > 0 {
		f.behind.ended = at.Add(f.behind.clock().Sub(f.clock()))
	}
}

// onTarget changes the target of the load; f is locked.
func (f *fakeHost) onTarget(do func(*fakeHost)) {
	if t := f.target(); t != f {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	do(f.target())
}

// wrkPrints is the output of wrk 4.1.0 for n requests in 2 s.
func wrkPrints(n int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Running 2s test @ http://127.0.0.1:1/\n  1 threads and 10 connections\n")
	fmt.Fprintf(&b, "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n")
	fmt.Fprintf(&b, "    Latency   450.00us  100.00us   2.00ms   90.00%%\n    Req/Sec    20.00k     1.00k   21.00k    70.00%%\n")
	fmt.Fprintf(&b, "  %d requests in 2.00s, %.2fMB read\nRequests/sec:  %.2f\nTransfer/sec:     24.00MB\n",
		n, float64(n)*1264/(1<<20), float64(n)/2)
	return b.Bytes()
}

func (f *fakeHost) Hold(ctx context.Context, h lab.Hold) (lab.Held, error) {
	name := "hold"
	if h.Connections == 0 {
		name = "release"
	}
	if err := f.call(ctx, name); err != nil {
		return lab.Held{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = h.Connections
	f.onTarget(func(t *fakeHost) { t.heldHere = h.Connections * max(1, t.loaders) })
	if f.deaf != "" && h.Connections > 0 {
		return lab.Held{Failed: h.Connections, Error: f.deaf}, nil
	}
	return lab.Held{Open: h.Connections, Answered: h.Connections}, nil
}

// clock is the host's monotonic clock.
func (f *fakeHost) clock() lab.Instant { return lab.Instant(time.Second).Add(time.Since(f.boot)) }

func (f *fakeHost) Clock(ctx context.Context) (lab.Clock, error) {
	err := f.call(ctx, "clock")
	at := time.Now()
	return lab.Clock{At: at, Host: lab.Instant(time.Second).Add(at.Sub(f.boot)), UncertaintyS: f.latency.Seconds()}, err
}

func (f *fakeHost) Yardstick(ctx context.Context) (lab.Yardstick, error) {
	return lab.Yardstick{CPUS: []float64{0.01, 0.01}, WallS: 0.01}, f.call(ctx, "yardstick")
}

// mustBeAsBefore fails the test when anything of the campaign is left on the host.
func (f *fakeHost) mustBeAsBefore() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !maps.Equal(f.knobs, f.original) {
		f.t.Errorf("after the campaign the knobs are %v, they were %v", f.knobs, f.original)
	}
	if len(f.journal) > 0 || f.serving != "" || f.held != 0 || len(f.armed) > 0 {
		f.t.Errorf("left on the host: journal %v, serving %q, %d connections held, %d sets armed", f.journal, f.serving, f.held, len(f.armed))
	}
}
