package conduct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"ngxlab/lab"
)

var errInjected = errors.New("injected fault")

// fakeHost is one strict host in memory. It keeps count of its calls, refuses what a real host would refuse, and
// calls before with the number and name of each call; an error from there is what the call returns.
type fakeHost struct {
	t      *testing.T
	before func(n int, call string) error

	mu       sync.Mutex
	calls    []string
	knobs    map[lab.KnobID]string
	journal  map[lab.KnobID]string // originals of what is not restored
	writes   []string
	foreign  bool   // someone else has changed every knob when it comes to be restored
	clamp    string // what a write of 65535 reads back, "" for 65535
	serving  string // state served, "" when none
	stopped  chan struct{}
	served   []string
	builds   map[string]bool // imported
	armed    map[string][]lab.Command
	held     int
	boot     time.Time
	ended    lab.Instant // of what was fired last, until a sample has been taken after it
	requests uint64      // served so far
	base     uint64      // … when the set was armed
	polls    uint64
	cpuS     float64 // of the worker
	baseCPUS float64
	nothing  func(fired int) bool // the tool measures nothing at this fire
	fired    int
	seen     func(*lab.Sample) // changes every sample, when not nil
}

func newFakeHost(t *testing.T) *fakeHost {
	return &fakeHost{
		t: t, boot: time.Now(), knobs: map[lab.KnobID]string{somaxconn: "4096"}, journal: map[lab.KnobID]string{},
		armed: map[string][]lab.Command{}, before: func(int, string) error { return nil },
	}
}

func (f *fakeHost) machine() Machine { return Machine{Tuner: f, Builder: f, Runner: f, Watcher: f} }

func (f *fakeHost) call(ctx context.Context, name string) error {
	f.mu.Lock()
	f.calls = append(f.calls, name)
	n := len(f.calls)
	f.mu.Unlock()
	if err := f.before(n, name); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return ctx.Err()
}

func (f *fakeHost) Read(ctx context.Context, ks []lab.KnobID) ([]lab.Value, error) {
	if err := f.call(ctx, "read"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	values := make([]lab.Value, len(ks))
	for i, k := range ks {
		text, ok := f.knobs[k]
		values[i] = lab.Value{Text: text, Absent: !ok}
	}
	return values, nil
}

func (f *fakeHost) Apply(ctx context.Context, _ lab.CampaignID, cs []lab.Change) ([]lab.Applied, error) {
	if err := f.call(ctx, "apply"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var applied []lab.Applied
	for _, c := range cs {
		if f.knobs[c.Knob] != c.From.Text {
			return applied, fmt.Errorf("%s: expected %q, found %q", c.Knob, c.From.Text, f.knobs[c.Knob])
		}
		if _, ok := f.journal[c.Knob]; !ok {
			f.journal[c.Knob] = c.From.Text
		}
		back := c.To
		if f.clamp != "" && c.To.Text == "65535" {
			back.Text = f.clamp
		}
		f.knobs[c.Knob] = back.Text
		f.writes = append(f.writes, c.Knob.Name+"="+back.Text)
		applied = append(applied, lab.Applied{Change: c, ReadBack: back, Differs: back != c.To})
	}
	return applied, nil
}

func (f *fakeHost) Restore(ctx context.Context) ([]lab.Restored, error) {
	if err := f.call(ctx, "restore"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	stopping := f.stopped
	f.mu.Unlock()
	if stopping != nil {
		<-stopping
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var restored []lab.Restored
	for k, text := range f.journal {
		r := lab.Restored{Knob: k, Original: lab.Value{Text: text}, Outcome: lab.RestoreDone}
		if f.foreign {
			r.Outcome = lab.RestoreForeign
		} else {
			f.knobs[k] = text
		}
		restored = append(restored, r)
		delete(f.journal, k)
	}
	return restored, nil
}

func (f *fakeHost) Install(ctx context.Context, _ []string, _ io.Writer) error {
	return f.call(ctx, "install")
}

func (f *fakeHost) Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error) {
	if err := f.call(ctx, "build"); err != nil {
		return lab.Build{}, err
	}
	_, err := io.WriteString(log, "configured\ncompiled\n")
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
	if s.Build.Binary == "" {
		f.t.Errorf("serve %q without a build", s.State)
	}
	gone := make(chan struct{})
	f.serving, f.stopped, f.requests, f.polls = s.State, gone, 0, 0
	f.served = append(f.served, s.State)
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		f.serving = ""
		f.mu.Unlock()
		close(gone)
	})
	return lab.Server{
		Serving: s.State, Master: 100, Workers: []int{101}, NofileSoft: 1024, Backlog: 511,
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
	f.armed[id], f.base, f.baseCPUS, f.ended = cs, f.requests, f.cpuS, 0
	return lab.Armed{ID: id, PIDs: []int{200}}, nil
}

// fakeRequests is what every fake measurement completes in 2 s.
const fakeRequests = 40000

// fakeCPUS is the CPU time in seconds that the worker needs for it: the server is the limit.
const fakeCPUS = 1.96

func (f *fakeHost) Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error) {
	if err := f.call(ctx, "fire"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serving == "" {
		f.t.Errorf("load was fired without a server")
	}
	f.fired++
	var processes []lab.Process
	set := f.armed[a.ID]
	delete(f.armed, a.ID)
	for _, c := range set {
		p := lab.Process{Command: c, PID: 200, Asked: at, Released: at, Ended: at.Add(2 * time.Second), Stdout: wrkPrints(fakeRequests)}
		if f.nothing != nil && f.nothing(f.fired) {
			p.Stdout = wrkPrints(0)
		}
		f.requests += fakeRequests
		f.cpuS += fakeCPUS
		f.ended = p.Ended
		processes = append(processes, p)
	}
	return processes, nil
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

func (f *fakeHost) Hold(_ context.Context, h lab.Hold) (lab.Held, error) {
	name := "hold"
	if h.Connections == 0 {
		name = "release"
	}
	f.mu.Lock()
	f.calls = append(f.calls, name)
	n := len(f.calls)
	f.mu.Unlock()
	if err := f.before(n, name); err != nil && h.Connections > 0 {
		return lab.Held{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = h.Connections
	return lab.Held{Open: h.Connections, Answered: h.Connections}, nil
}

// Watch gives one sample at once, or those of a run's grid, without waiting for their instants.
func (f *fakeHost) Watch(ctx context.Context, w lab.Watch, each func(lab.Sample)) error {
	if err := f.call(ctx, "watch"); err != nil {
		if !w.Once && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	if w.Once {
		each(f.now(w))
		return nil
	}
	for i := 0; i < w.Count; i++ {
		each(f.during(w, i))
	}
	return nil
}

// now is a sample between runs: before the first fire of a pair by the true clock, after it 2.1 s behind its instant.
func (f *fakeHost) now(w lab.Watch) lab.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.clock()
	if f.ended > 0 {
		at, f.ended = f.ended.Add(100*time.Millisecond), 0
	}
	return f.sampleAt(w, at, float64(f.requests), f.cpuS)
}

// during is a sample of the grid: requests and CPU time grow evenly over the run.
func (f *fakeHost) during(w lab.Watch, i int) lab.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	share := float64(i) / float64(max(1, w.Count-1))
	at := w.Start.Add(time.Duration(i) * w.Interval.Duration)
	return f.sampleAt(w, at, float64(f.base)+share*fakeRequests, f.baseCPUS+share*fakeCPUS)
}

func (f *fakeHost) sampleAt(w lab.Watch, at lab.Instant, requests, cpuS float64) lab.Sample {
	f.polls++
	s := lab.Sample{
		At: at, WallNS: int64(at), BootID: "boot",
		CPUs: []lab.CPUTimes{{CPU: 0, UserS: cpuS}, {CPU: 1, UserS: cpuS / 2}},
		Processes: []lab.ProcessSample{
			{PID: 100, Role: lab.ServerMaster, PSSBytes: 1 << 20}, {PID: 101, Role: lab.ServerWorker, CPUS: cpuS, PSSBytes: 2 << 20},
			{PID: 200, Role: lab.LoadProcess, CPUS: cpuS / 2, Threads: map[int]float64{200: cpuS / 2}},
		},
		Sockets: map[string]int64{"tcp_mem_pages": 10},
		Slabs:   map[string]int64{"TCP": int64(f.held) * 2000},
	}
	if w.Server {
		s.Status = &lab.ServerStatus{
			Active: 11 + f.held, Accepts: uint64(requests)/fakeRequests*10 + 10 + f.polls, Handled: uint64(requests)/fakeRequests*10 + 10 + f.polls, Requests: uint64(requests) + f.polls, Polls: f.polls,
		}
		if f.held > 0 {
			s.Status.Active = 1 + f.held
		}
	}
	if f.seen != nil {
		f.seen(&s)
	}
	return s
}

// clock is the host's monotonic clock.
func (f *fakeHost) clock() lab.Instant { return lab.Instant(time.Second).Add(time.Since(f.boot)) }

func (f *fakeHost) Clock(ctx context.Context) (lab.Clock, error) {
	at := time.Now()
	return lab.Clock{At: at, Host: lab.Instant(time.Second).Add(at.Sub(f.boot))}, f.call(ctx, "clock")
}

func (f *fakeHost) Yardstick(ctx context.Context) (lab.Yardstick, error) {
	return lab.Yardstick{CPUS: []float64{0.01, 0.01}, WallS: 0.01}, f.call(ctx, "yardstick")
}

// mustBeAsBefore fails the test when anything of the campaign is left on the host.
func (f *fakeHost) mustBeAsBefore() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.knobs[somaxconn]; got != "4096" {
		f.t.Errorf("somaxconn is %q after the campaign, it was 4096", got)
	}
	if len(f.journal) > 0 || f.serving != "" || f.held != 0 || len(f.armed) > 0 {
		f.t.Errorf("left on the host: journal %v, serving %q, %d connections held, %d sets armed", f.journal, f.serving, f.held, len(f.armed))
	}
}

// fakeStore keeps what is committed; before may refuse, like a full disk.
type fakeStore struct {
	mu     sync.Mutex
	done   lab.Done
	runs   []lab.Run
	levels []lab.CapacityLevel
	ends   []lab.Outcome
	firsts []lab.Change
	before func(what string) error
}

func (s *fakeStore) refuse(what string) error {
	if s.before == nil {
		return nil
	}
	return s.before(what)
}

func (s *fakeStore) Begin(context.Context, lab.CampaignID, lab.Plan) (lab.Done, error) {
	return s.done, s.refuse("begin")
}

func (s *fakeStore) Originals(_ context.Context, _ lab.CampaignID, _ lab.HostName, cs []lab.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firsts = append(s.firsts, cs...)
	return s.refuse("originals")
}

func (s *fakeStore) Commit(_ context.Context, _ lab.CampaignID, r lab.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse("commit"); err != nil {
		return err
	}
	switch {
	case r.Run != nil:
		s.runs = append(s.runs, *r.Run)
	case r.Level != nil:
		s.levels = append(s.levels, *r.Level)
	case r.Outcome != nil:
		s.ends = append(s.ends, *r.Outcome)
	}
	return nil
}

func (s *fakeStore) Event(context.Context, lab.CampaignID, lab.Event) error { return s.refuse("event") }
