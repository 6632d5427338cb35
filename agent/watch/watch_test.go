package watch

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func fixture(t *testing.T) *Watcher {
	t.Helper()
	return &Watcher{
		Host:     "web",
		Proc:     "testdata/proc",
		Server:   func() (lab.Server, bool) { return lab.Server{Master: 100, Workers: []int{101, 999}}, true },
		LoadPIDs: func() []int { return []int{200, 201} },
		ErrorLog: func() string { return "" },
		CPUTime: func(pid int) (time.Duration, bool) {
			used, alive := map[int]time.Duration{100: 5 * time.Millisecond, 101: 1500 * time.Millisecond, 102: time.Second, 200: 1501000001}[pid]
			return used, alive
		},
	}
}

// once takes one sample.
func once(t *testing.T, w *Watcher, what lab.Watch) lab.Sample {
	t.Helper()
	what.Once = true
	var got []lab.Sample
	if err := w.Watch(t.Context(), what, func(s lab.Sample) { got = append(got, s) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Fatalf("%d samples, want one", len(got))
	}
	return got[0]
}

func TestSampleHoldsTheCountersOfTheHost(t *testing.T) {
	s := once(t, fixture(t), lab.Watch{Slabs: true})
	if len(s.CPUs) != 2 || s.CPUs[1].CPU != 1 || s.CPUs[0].IdleS < 100 || s.CPUs[0].BusyS() <= 0 {
		t.Errorf("CPUs %+v", s.CPUs)
	}
	if s.Memory.TotalBytes != 25276510208 || s.Memory.AvailableBytes == 0 || s.Memory.SlabBytes == 0 {
		t.Errorf("memory %+v", s.Memory)
	}
	if s.SwapPages != 42 || s.BootID != "0f0e0d0c-1111-2222-3333-444455556666" || s.Host != "web" {
		t.Errorf("swap %d, boot %q, host %q", s.SwapPages, s.BootID, s.Host)
	}
	if c := s.Conntrack; c == nil || c.Count != 1234 || c.Max != 262144 || c.Drops != 27 {
		t.Errorf("conntrack %+v", c)
	}
	for _, name := range []string{"ListenOverflows", "ListenDrops", "TCPSynRetrans", "ActiveOpens", "PassiveOpens", "RetransSegs",
		"SyncookiesSent", "TCPTimeWaitOverflow", "TCPMemoryPressures", "EstabResets", "OutRsts"} {
		if _, ok := s.TCP[name]; !ok {
			t.Errorf("counter %s is missing", name)
		}
	}
	if s.Sockets["tcp_mem_pages"] != 369 || s.Sockets["tcp_tw"] != 2 || s.Sockets["tcp_inuse"] != 1 {
		t.Errorf("sockets %v", s.Sockets)
	}
	if s.Slabs["TCP"] == 0 || s.Slabs["eventpoll_epi"] == 0 || s.Slabs["kmalloc-64"] != 0 {
		t.Errorf("slabs %v", s.Slabs)
	}
	if s.Processes != nil || s.Listeners != nil || s.Status != nil || s.ErrorLog != nil {
		t.Errorf("what was not asked for: %+v", s)
	}
	if s.At == 0 || s.WallNS == 0 || s.TookS <= 0 || s.AgentCPUS <= 0 || s.AgentRSSBytes <= 0 {
		t.Errorf("clocks and agent: %+v", s)
	}
}

func TestSampleHoldsTheProcessesOfServerAndLoad(t *testing.T) {
	s := once(t, fixture(t), lab.Watch{Server: true, Load: true})
	if len(s.Processes) != 4 {
		t.Fatalf("processes %+v, want master, the two workers it has now, and the load process that lives", s.Processes)
	}
	master, worker, load := s.Processes[0], s.Processes[1], s.Processes[3]
	if master.Role != lab.ServerMaster || master.CPUS != 0.005 || master.PSSBytes != 530*1024 || master.FDs != 3 || master.FDLimit != 20000 {
		t.Errorf("master %+v", master)
	}
	if worker.PID != 101 || worker.Role != lab.ServerWorker || worker.CPUS != 1.5 || worker.PSSBytes != 2<<20 || worker.FDs != 4 || worker.Threads != nil {
		t.Errorf("worker %+v", worker)
	}
	if s.Processes[2].PID != 102 {
		t.Errorf("second worker %+v", s.Processes[2])
	}
	if master.Name != "nginx" || master.StartedTicks != 4100 || load.StartedTicks != 5200 {
		t.Errorf("names and starts: %+v, %+v", master, load)
	}
	if load.Role != lab.LoadProcess || load.Name != "wrk" || load.CPUS != 1.501000001 || load.Threads[201] != 0.7 || len(load.Threads) != 3 || load.PSSBytes != 0 {
		t.Errorf("load %+v", load)
	}
}

func TestWithoutAServerNothingOfAServerIsRead(t *testing.T) {
	w := fixture(t)
	w.Server = func() (lab.Server, bool) { return lab.Server{}, false }
	if s := once(t, w, lab.Watch{Server: true, StatusPort: 1}); s.Processes != nil || s.Status != nil {
		t.Errorf("sample %+v", s)
	}
}

func TestHostWithoutReadingsIsAnError(t *testing.T) {
	w := &Watcher{Proc: t.TempDir()}
	if err := w.Watch(t.Context(), lab.Watch{Once: true}, func(lab.Sample) {}); err == nil {
		t.Error("no error")
	}
}

func TestSamplesKeepToTheGridAndEndWithItsLastInstant(t *testing.T) {
	w := fixture(t)
	what := lab.Watch{Start: now().Add(20 * time.Millisecond), Interval: lab.Seconds(0.01), Count: 20}
	var got []lab.Sample
	if err := w.Watch(t.Context(), what, func(s lab.Sample) { got = append(got, s) }); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for _, s := range got {
		n := int64(s.At.Sub(what.Start) / what.Interval.Duration)
		if s.At < what.Start || seen[n] && n < int64(what.Count)-1 {
			t.Errorf("sample at %v after the start: before it, or a second one in its interval", s.At.Sub(what.Start))
		}
		seen[n] = true
	}
	if last := got[len(got)-1]; last.At < what.Start.Add(19*what.Interval.Duration) {
		t.Errorf("last sample %v after the start, want the last instant of the grid", last.At.Sub(what.Start))
	}
}

func TestInstantsThatPassedAreLeftOutButTheLastIsNot(t *testing.T) {
	what := lab.Watch{Start: 1000, Interval: lab.Duration{Duration: 100}, Count: 10}
	for _, c := range []struct {
		i    int64
		now  lab.Instant
		want int64
	}{{0, 1050, 1}, {0, 1100, 1}, {0, 1250, 3}, {2, 1210, 3}, {3, 5000, 9}, {9, 5000, 10}} {
		if got := next(what, c.i, c.now); got != c.want {
			t.Errorf("after instant %d at %d: %d, want %d", c.i, c.now, got, c.want)
		}
	}
	what.Count = 0
	if got := next(what, 3, 5000); got != 40 {
		t.Errorf("endless watch: %d, want 40", got)
	}
}

// TestAnonymousMemoryStandsInForAPSSThatCannotBeRead: that of another user's process needs CAP_SYS_PTRACE.
func TestAnonymousMemoryStandsInForAPSSThatCannotBeRead(t *testing.T) {
	w := fixture(t)
	w.Proc = t.TempDir()
	if err := os.CopyFS(w.Proc, os.DirFS("testdata/proc")); err != nil {
		t.Fatal(err)
	}
	read := func() (bytes int64, anonymous, known bool) {
		return once(t, w, lab.Watch{Server: true}).ServerMemory()
	}
	if bytes, anonymous, known := read(); bytes != 530<<10+2*2<<20 || anonymous || !known {
		t.Errorf("all readable: %d bytes, anonymous %v, known %v", bytes, anonymous, known)
	}
	if err := os.Remove(filepath.Join(w.Proc, "102/smaps_rollup")); err != nil {
		t.Fatal(err)
	}
	if bytes, anonymous, known := read(); known {
		t.Errorf("neither readable of one: %d bytes, anonymous %v", bytes, anonymous)
	}
	for pid, kib := range map[string]string{"100": "116", "101": "1000", "102": "2000"} {
		if err := os.WriteFile(filepath.Join(w.Proc, pid, "status"), []byte("Name:\tnginx\nVmRSS:\t    9000 kB\nRssAnon:\t    "+kib+" kB\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if bytes, anonymous, known := read(); bytes != 3116<<10 || !anonymous || !known {
		t.Errorf("a PSS hidden: %d bytes, anonymous %v, known %v", bytes, anonymous, known)
	}
}

func TestCancelledWatchEndsWithoutError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := fixture(t).Watch(ctx, lab.Watch{Start: now(), Interval: lab.Seconds(3600)}, func(lab.Sample) { n++; cancel() })
	if err != nil || n != 1 {
		t.Errorf("%d samples, error %v", n, err)
	}
}

func TestIntervalMustBePositive(t *testing.T) {
	if err := fixture(t).Watch(t.Context(), lab.Watch{}, func(lab.Sample) {}); err == nil {
		t.Error("no error")
	}
}

func TestThisProcessIsReadAsALoadProcess(t *testing.T) {
	w := &Watcher{LoadPIDs: func() []int { return []int{os.Getpid()} }}
	before := once(t, w, lab.Watch{Load: true}).Processes
	if work(work(1)) == 0 {
		t.Log("by chance")
	}
	after := once(t, w, lab.Watch{Load: true}).Processes
	if len(before) != 1 || len(after) != 1 {
		t.Fatalf("processes %v, %v", before, after)
	}
	if spent := after[0].CPUS - before[0].CPUS; spent < 0.005 || spent > 10 {
		t.Errorf("CPU time %v s for two pieces of work", spent)
	}
	if after[0].FDs < 3 || after[0].FDLimit <= 0 || len(after[0].Threads) < 2 {
		t.Errorf("process %+v", after[0])
	}
}

// TestTheTimeOfEndedThreadsStaysWithTheProcess reads another process while its threads end and it becomes another program.
func TestTheTimeOfEndedThreadsStaysWithTheProcess(t *testing.T) {
	if os.Getenv(ending) != "" {
		endThreads(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), ending+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &Watcher{LoadPIDs: func() []int { return []int{cmd.Process.Pid} }}
	var before lab.ProcessSample
	testlab.Eventually(t, "it has become cat", func() bool {
		ps := once(t, w, lab.Watch{Load: true}).Processes
		if len(ps) != 1 {
			t.Fatalf("processes %+v", ps)
		}
		if ps[0].CPUS < before.CPUS || before.PID != 0 && ps[0].StartedTicks != before.StartedTicks {
			t.Errorf("%+v, before %+v", ps[0], before)
		}
		before = ps[0]
		return ps[0].Name == "cat"
	})
	if before.CPUS-living(before) < 0.005 {
		t.Errorf("%.4f s, %.4f of living threads: no thread ended, nothing was shown", before.CPUS, living(before))
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	if ps := once(t, w, lab.Watch{Load: true}).Processes; ps != nil {
		t.Errorf("after its end: %+v", ps)
	}
}

// ending is set for the copy of this program whose threads end.
const ending = "NGXLAB_TEST_ENDING"

// endThreads works on other threads than the first and becomes cat, which ends them.
func endThreads(t *testing.T) {
	done := make(chan uint64)
	for range 2 {
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			done <- work(work(1))
		}()
	}
	if <-done+<-done == 0 {
		t.Log("by chance")
	}
	path, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // it reads for ever
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(int(r.Fd()), 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	t.Fatal(syscall.Exec(path, []string{"cat"}, os.Environ()))
}

func living(p lab.ProcessSample) (s float64) {
	for _, thread := range p.Threads {
		s += thread
	}
	return s
}

func TestNamesOfProcessesMayHoldAnything(t *testing.T) {
	tail := strings.Repeat(" 0", 18) + " 4711 0 0"
	for stat, want := range map[string]string{"1 (wrk) S" + tail: "wrk", "1 (a) S 1 (b)) R" + tail: "a) S 1 (b)", "1 () S" + tail: ""} {
		if name, started := parseProcessStat([]byte(stat)); name != want || started != 4711 {
			t.Errorf("%q: name %q, started %d", stat, name, started)
		}
	}
	for _, broken := range []string{"", "1", "1 )x(", "1 (x"} {
		if name, started := parseProcessStat([]byte(broken)); name != "" || started != 0 {
			t.Errorf("%q: name %q, started %d", broken, name, started)
		}
	}
}

func TestDescriptorsAreCountedAlsoWhereTheDirectoryHasNoSize(t *testing.T) {
	dir := t.TempDir()
	w := &Watcher{Proc: dir}
	for _, name := range []string{"0", "1", "7"} {
		if err := os.MkdirAll(filepath.Join(dir, "9/fd", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.descriptors("9/"); n != 3 {
		t.Errorf("%d descriptors, want 3", n)
	}
}

func TestNewLinesOfTheErrorLogAreGivenOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "error.log")
	w := fixture(t)
	w.ErrorLog = func() string { return path }
	lines := func() []string { return once(t, w, lab.Watch{Server: true}).ErrorLog }
	if got := lines(); got != nil {
		t.Errorf("before there is a log: %q", got)
	}
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
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
	write("one\ntwo\nthr")
	if got := lines(); len(got) != 2 || got[1] != "two" {
		t.Errorf("first lines %q", got)
	}
	if got := lines(); got != nil {
		t.Errorf("half a line %q", got)
	}
	write("ee\n")
	if got := lines(); len(got) != 1 || got[0] != "three" {
		t.Errorf("the whole line %q", got)
	}
	for range 20_000 {
		write("x\n")
	}
	if got := lines(); len(got) > maxLogLines || len(got) == 0 {
		t.Errorf("%d lines of a flood", len(got))
	}
	if got := lines(); got != nil {
		t.Errorf("after a flood %q", got)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write("new\n")
	if got := lines(); len(got) != 1 || got[0] != "new" {
		t.Errorf("after truncation %q", got)
	}
}
