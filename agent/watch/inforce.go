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

// inForce is what a server runs under, by the keys of lab.Sample.InForce: the SHA-256 of its configuration file, its
// program (with " (deleted)" when the file is gone), of its workers the soft limits of open files and processes (-1 is
// none, as in lab.Server) and the CPUs that they may use, and the backlog of its listening sockets. Values that differ
// are sorted and joined by commas. What cannot be read is left out, as is a worker that is gone.
func (w *Watcher) inForce(s lab.Server, listeners []lab.Listener) map[string]string {
	all := map[string]string{}
	if text, err := w.files.read(filepath.Join(s.Prefix, "nginx.conf")); err == nil && s.Prefix != "" {
		sum := sha256.Sum256(text)
		all["config"] = hex.EncodeToString(sum[:])
	}
	if target, err := os.Readlink(w.proc(strconv.Itoa(s.Master) + "/exe")); err == nil {
		all["binary"] = target
	}
	var nofile, nproc, cpus, backlogs []string
	for _, pid := range w.workers(s) {
		dir := strconv.Itoa(pid) + "/"
		title, err := w.files.read(w.proc(dir + "cmdline"))
		if err != nil || !bytes.Contains(title, []byte("worker process")) { // helpers of a cache come and go
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
