package watch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// inForce is what a server runs under, by the keys of lab.Sample.InForce: the SHA-256 of its configuration (the files of
// a server that a command started), its program (with " (deleted)" when the file is gone), of its workers, and of the
// first process of such a server, the soft limits of open files and processes (-1 is none, as in lab.Server) and the CPUs
// that they may use, and the backlog of its listening sockets. Values that differ are sorted and joined by commas. What
// cannot be read is left out, as is a worker that is gone.
func (w *Watcher) inForce(s lab.Server, listeners []lab.Listener) map[string]string {
	all := map[string]string{}
	if sum, known := w.configSum(s); known {
		all["config"] = sum
	}
	if target, err := os.Readlink(w.proc(strconv.Itoa(s.Master) + "/exe")); err == nil {
		all["binary"] = target
	}
	var nofile, nproc, cpus, backlogs []string
	pids := w.workers(s)
	if s.Tree {
		pids = append(pids, s.Master)
	}
	for _, pid := range pids {
		dir := strconv.Itoa(pid) + "/"
		title, err := w.files.read(w.proc(dir + "cmdline"))
		if err != nil || !s.Tree && !bytes.Contains(title, []byte("worker process")) { // helpers of a cache come and go
			continue
		}
		if text, err := w.files.read(w.proc(dir + "limits")); err == nil {
			limits, _ := lab.ParseLimits(text) // what cannot be read is left out
			nofile = append(nofile, softLimit(limits, lab.LimitOpenFiles))
			nproc = append(nproc, softLimit(limits, lab.LimitProcesses))
		}
		if status, err := w.files.read(w.proc(dir + "status")); err == nil {
			cpus = append(cpus, allowedList(status))
		}
	}
	for _, l := range listeners {
		if l.Port == s.Port {
			backlogs = append(backlogs, strconv.Itoa(l.Backlog))
		}
	}
	for key, values := range map[string][]string{"nofile": nofile, "nproc": nproc, "cpus": cpus, "backlog": backlogs} {
		if text := distinct(values); text != "" {
			all[key] = text
		}
	}
	return all
}

// configSum is the SHA-256 of what a server is configured by: its nginx.conf, if it is an nginx, and its files.
func (w *Watcher) configSum(s lab.Server) (sum string, known bool) {
	names := s.Files
	if !s.Tree {
		names = append([]string{"nginx.conf"}, names...)
	}
	hash := sha256.New()
	for _, name := range names {
		if text, err := w.files.read(filepath.Join(s.Prefix, name)); err == nil && s.Prefix != "" {
			known = true
			hash.Write(text)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), known
}

// siteListeners are the listeners on the server's port: of those just read when that port was among them.
func siteListeners(s lab.Server, what lab.Watch, read []lab.Listener) []lab.Listener {
	if s.Port == 0 || slices.Contains(what.Ports, s.Port) {
		return read
	}
	return onPorts([]int{s.Port})
}

// softLimit is a limit of a process, "-1" when there is none, "" when it is not known.
func softLimit(limits map[string]lab.Rlimit, name string) string {
	limit, known := limits[name]
	if !known {
		return ""
	}
	return strconv.FormatInt(limit.Soft, 10)
}

// allowedList is the list in /proc/PID/status of the CPUs that a process may use, as "0-3,7" (proc_pid_status(5)).
func allowedList(status []byte) string {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("Cpus_allowed_list:")); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

// distinct joins values by commas, each once, sorted: numbers by their size.
func distinct(values []string) string {
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	slices.SortFunc(values, func(a, b string) int {
		x, wrong := strconv.Atoi(a)
		y, other := strconv.Atoi(b)
		if wrong != nil || other != nil {
			return cmp.Compare(a, b)
		}
		return cmp.Compare(x, y)
	})
	return strings.Join(slices.Compact(values), ",")
}
