package watch

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// serverProcesses reads the server's master and workers. The workers are those that the master has now, which need
// not be those it started with. Anonymous memory is read when a PSS cannot be: then of all, for a sum must be of one kind.
func (w *Watcher) serverProcesses(s lab.Server, memory bool) []lab.ProcessSample {
	var ps []lab.ProcessSample
	add := func(pid int, role lab.ProcessRole) {
		if p, ok := w.process(pid, role); ok {
			ps = append(ps, p)
		}
	}
	add(s.Master, lab.ServerMaster)
	for _, pid := range w.workers(s) {
		add(pid, lab.ServerWorker)
	}
	if memory {
		w.processMemory(ps)
	}
	return ps
}

// processMemory reads the memory of all processes.
func (w *Watcher) processMemory(ps []lab.ProcessSample) {
	hidden := false
	for i, p := range ps {
		ps[i].PSSBytes = w.pss(p.PID)
		hidden = hidden || ps[i].PSSBytes == 0
	}
	for i, p := range ps {
		if hidden {
			ps[i].AnonBytes = w.anonymous(p.PID)
		}
	}
}

// workers are the master's children or, of a server that a command started, all processes below it; what the server was
// started with where the kernel does not list children (CONFIG_PROC_CHILDREN).
func (w *Watcher) workers(s lab.Server) []int {
	master := strconv.Itoa(s.Master)
	pids, known := w.children(master, master)
	if !known {
		return s.Workers
	}
	if !s.Tree {
		return pids
	}
	pids = w.startedBy(master)
	for i := 0; i < len(pids); i++ {
		pids = append(pids, w.startedBy(strconv.Itoa(pids[i]))...)
	}
	return pids
}

// startedBy are the children of all threads of a process.
func (w *Watcher) startedBy(pid string) (pids []int) {
	tasks, err := os.Open(w.proc(pid + "/task"))
	if err != nil {
		return nil // gone meanwhile
	}
	defer tasks.Close() //nolint:errcheck // opened for reading
	names, _ := tasks.Readdirnames(-1)
	for _, tid := range names {
		of, _ := w.children(pid, tid)
		pids = append(pids, of...)
	}
	return pids
}

// children are the processes that a thread of a process has started; an nginx has one.
func (w *Watcher) children(pid, tid string) (pids []int, known bool) {
	text, err := w.files.read(w.proc(pid + "/task/" + tid + "/children"))
	if err != nil {
		return nil, false
	}
	for f := range fields(text) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, true
}

// loadProcesses reads the load processes, with their threads; one that has ended is left out.
func (w *Watcher) loadProcesses(pids []int) []lab.ProcessSample {
	var ps []lab.ProcessSample
	for _, pid := range pids {
		if p, ok := w.process(pid, lab.LoadProcess); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

// process reads what all roles have; false when the process is gone.
func (w *Watcher) process(pid int, role lab.ProcessRole) (lab.ProcessSample, bool) {
	dir := strconv.Itoa(pid) + "/"
	p := lab.ProcessSample{PID: pid, Role: role}
	if role == lab.LoadProcess {
		p.Threads = w.threads(dir)
	}
	cpu, alive := w.cpuTime(pid)
	stat, err := w.files.read(w.proc(dir + "stat"))
	if !alive || err != nil {
		return p, false
	}
	p.CPUS = cpu.Seconds()
	p.Name, p.StartedTicks = parseProcessStat(stat)
	p.FDs = w.descriptors(dir)
	if limits, err := w.files.read(w.proc(dir + "limits")); err == nil {
		p.FDLimit = parseNofile(limits)
	}
	return p, true
}

func (w *Watcher) cpuTime(pid int) (time.Duration, bool) {
	if w.CPUTime != nil {
		return w.CPUTime(pid)
	}
	return processClock(pid)
}

// processClock reads the CPU-time clock of a process in ns (clock_getcpuclockid(3)): what all its threads used, those
// that have ended too, so that it never goes back, also not over exec. Anyone may read it. The sum of the schedstat of
// the living threads falls when one ends. It is false when there is no such process.
func processClock(pid int) (time.Duration, bool) {
	const sched = 2 // CPUCLOCK_SCHED of linux/posix-timers.h: time on a CPU, not in ticks
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|sched, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// parseProcessStat is the name and the start time, in ticks since the boot, of /proc/PID/stat (proc_pid_stat(5)). A name
// may hold anything, ")" too. What cannot be read is "" and 0.
func parseProcessStat(stat []byte) (name string, startedTicks uint64) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return "", 0
	}
	const starttime = 22 - 3 // the first field behind the name is the third
	if f := bytes.Fields(stat[end+1:]); len(f) > starttime {
		startedTicks, _ = number(f[starttime])
	}
	return string(stat[open+1 : end]), startedTicks
}

// threads is the CPU time in seconds of every living thread, from schedstat (first number: ns on a CPU,
// Documentation/scheduler/sched-stats.rst); nil when they cannot be listed.
func (w *Watcher) threads(dir string) map[int]float64 {
	tasks, err := os.Open(w.proc(dir + "task"))
	if err != nil {
		return nil
	}
	defer tasks.Close() //nolint:errcheck // opened for reading
	names, err := tasks.Readdirnames(-1)
	if err != nil {
		return nil
	}
	m := make(map[int]float64, len(names))
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if text, err := w.files.read(w.proc(dir + "task/" + name + "/schedstat")); err == nil {
			first, _, _ := bytes.Cut(text, []byte(" "))
			if ns, err := number(first); err == nil {
				m[tid] = float64(ns) / 1e9
			}
		}
	}
	return m
}

// descriptors counts open files: since Linux 6.2 that is the size of /proc/PID/fd, which anyone may ask; listing 10,000
// takes 9 ms, and another user's needs CAP_SYS_PTRACE. It is 0 when they cannot be counted.
func (w *Watcher) descriptors(dir string) int {
	path := w.proc(dir + "fd")
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Statfs(path, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC && unix.Stat(path, &st) == nil && st.Size > 0 {
		return int(st.Size)
	}
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // opened for reading
	names, _ := f.Readdirnames(-1)
	return len(names)
}

// parseNofile is the soft limit of open files in /proc/PID/limits, 0 when it is not there.
func parseNofile(text []byte) int {
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("Max open files"))
		f := bytes.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		n, _ := strconv.Atoi(string(f[0])) // never "unlimited": the kernel's bound is fs.nr_open
		return n
	}
	return 0
}

// anonymous is the anonymous resident memory in bytes (RssAnon of proc_pid_status(5)); 0 when it is not there.
func (w *Watcher) anonymous(pid int) int64 {
	text, err := w.files.read(w.proc(strconv.Itoa(pid) + "/status"))
	if err != nil {
		return 0
	}
	return parseAnonymous(text)
}

func parseAnonymous(status []byte) int64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			n, _ := number(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))) // 0 when it is no number
			return 1024 * int64(n)
		}
	}
	return 0
}

// pss is the proportional set size in bytes; 0 when it may not be read, as another user's without CAP_SYS_PTRACE.
func (w *Watcher) pss(pid int) int64 {
	text, err := w.files.read(w.proc(strconv.Itoa(pid) + "/smaps_rollup"))
	if err != nil {
		return 0
	}
	return 1024 * int64(parseKeys(text, []string{"Pss:"})["Pss:"])
}
