package watch

import (
	"bytes"
	"os"
	"strconv"

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

// workers are the master's children; what the server was started with where the kernel does not list children
// (CONFIG_PROC_CHILDREN).
func (w *Watcher) workers(s lab.Server) []int {
	master := strconv.Itoa(s.Master)
	text, err := w.files.read(w.proc(master + "/task/" + master + "/children"))
	if err != nil {
		return s.Workers
	}
	var pids []int
	for f := range fields(text) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
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
	threads, err := w.threads(dir)
	if err != nil || len(threads) == 0 {
		return p, false
	}
	for _, s := range threads {
		p.CPUS += s
	}
	if role == lab.LoadProcess {
		p.Threads = threads
	}
	if name, err := w.files.read(w.proc(dir + "comm")); err == nil {
		p.Name = string(bytes.TrimSpace(name))
	}
	p.FDs = w.descriptors(dir)
	if limits, err := w.files.read(w.proc(dir + "limits")); err == nil {
		p.FDLimit = parseNofile(limits)
	}
	return p, true
}

// threads is the CPU time in seconds of every living thread, from schedstat (first number: ns on a CPU,
// Documentation/scheduler/sched-stats.rst).
func (w *Watcher) threads(dir string) (map[int]float64, error) {
	tasks, err := os.Open(w.proc(dir + "task"))
	if err != nil {
		return nil, err
	}
	defer tasks.Close() //nolint:errcheck // opened for reading
	names, err := tasks.Readdirnames(-1)
	if err != nil {
		return nil, err
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
	return m, nil
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
