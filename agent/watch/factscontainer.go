package watch

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// The initial namespaces have fixed numbers (include/uapi/linux/nsfs.h, before 6.18 include/linux/proc_ns.h).
const (
	initialUTS = "uts:[4026531838]"
	initialPID = "pid:[4026531836]"
)

// container names what the agent runs in when that shares the kernel with others: docker, podman, lxc, systemd-nspawn,
// kubernetes, or "container" for one that does not say; "" on a machine. Marks alone do not make one: a machine whose
// root file system came from an image has them too. root is where the file system begins.
func (w *Watcher) container(root string) string {
	pid, uts := w.link("self/ns/pid"), w.link("self/ns/uts")
	if pid == initialPID && uts == initialUTS {
		return ""
	}
	for _, find := range []func() string{
		func() string { return marked(root) },
		func() string { return environed(w.line(w.proc("1/environ"))) },
		func() string { return firstWord(w.line(filepath.Join(root, "run/systemd/container"))) },
		func() string { return named(w.line(w.proc("1/cgroup"))) },
		func() string { return named(w.line(w.proc("self/mountinfo"))) },
	} {
		if name := find(); name != "" {
			return name
		}
	}
	if pid != "" && pid != initialPID {
		return "container"
	}
	return ""
}

func (w *Watcher) link(name string) string {
	text, err := os.Readlink(w.proc(name))
	if err != nil {
		return ""
	}
	return text
}

// marked looks for the files that Docker and Podman put into containers.
func marked(root string) string {
	for _, mark := range [][2]string{{".dockerenv", "docker"}, {"run/.containerenv", "podman"}} {
		if _, err := os.Stat(filepath.Join(root, mark[0])); err == nil {
			return mark[1]
		}
	}
	return ""
}

// environed is the value of container= in the environment of process 1 (systemd.io/CONTAINER_INTERFACE).
func environed(environ string) string {
	for _, entry := range strings.Split(environ, "\x00") {
		if value, ok := strings.CutPrefix(entry, "container="); ok {
			return firstWord(value)
		}
	}
	return ""
}

// firstWord: some write "docker (extra words)".
func firstWord(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return words[0]
	}
	return ""
}

// engines are what the paths of control groups and of mounted files show of the engine that made them.
var engines = []struct{ text, name string }{
	{"kubepods", "kubernetes"}, {"/libpod", "podman"}, {"/containers/storage/", "podman"}, {"/docker", "docker"},
	{"/lxc.payload", "lxc"}, {"/lxc/", "lxc"}, {"/machine.slice/", "systemd-nspawn"}, {"io.containerd.", "containerd"},
}

// named looks for an engine in control groups or mounts.
func named(text string) string {
	for _, e := range engines {
		if strings.Contains(text, e.text) {
			return e.name
		}
	}
	return ""
}

// cgroupFacts reads the version of the control groups, and the bounds of the one that the agent is in and of those around
// it: the tightest counts.
func (w *Watcher) cgroupFacts(f *lab.Facts) {
	groups := w.cgroups()
	f.Cgroup = w.cgroupVersion()
	w.eachCPU(groups, func(_ string, quota float64) { tighten(&f.CgroupCPUs, quota) })
	mount, group, bound := "fs/cgroup/memory", groups["memory"], "memory.limit_in_bytes"
	if f.Cgroup == 2 {
		mount, group, bound = "fs/cgroup", groups[""], "memory.max"
	}
	w.each(mount, group, func(dir string) { tighten(&f.CgroupBytes, parseBytesMax(w.line(filepath.Join(dir, bound)))) })
}

func (w *Watcher) cgroups() map[string]string {
	return parseCgroups([]byte(w.line(w.proc("self/cgroup"))))
}

// eachCPU visits the control groups that bound the agent's CPU time, the innermost first, with their quota in CPUs.
func (w *Watcher) eachCPU(groups map[string]string, visit func(dir string, quota float64)) {
	bounded := func(quota float64, dir string) {
		if quota > 0 {
			visit(dir, quota)
		}
	}
	if w.cgroupVersion() == 2 {
		w.each("fs/cgroup", groups[""], func(dir string) { bounded(parseCPUMax(w.line(dir+"/cpu.max")), dir) })
		return
	}
	for _, mount := range []string{"fs/cgroup/cpu", "fs/cgroup/cpu,cpuacct", "fs/cgroup/cpuacct,cpu"} {
		if _, err := os.Stat(w.sys(mount)); err != nil {
			continue
		}
		w.each(mount, groups["cpu"], func(dir string) {
			bounded(parseCPUMax(w.line(dir+"/cpu.cfs_quota_us")+" "+w.line(dir+"/cpu.cfs_period_us")), dir)
		})
		return // the others are names of the same
	}
}

// cgroupVersion is 2 where all controllers are in the one tree of the second version, otherwise 1.
func (w *Watcher) cgroupVersion() int {
	if _, err := os.Stat(w.sys("fs/cgroup/cgroup.controllers")); err == nil {
		return 2
	}
	return 1
}

// each visits a control group and those around it up to the mount. Within a container of the first version, the group's
// path is that outside, and the mount is the group itself.
func (w *Watcher) each(mount, group string, visit func(dir string)) {
	for dir := filepath.Clean("/" + group); ; dir = filepath.Dir(dir) {
		visit(filepath.Join(w.sys(mount), dir))
		if dir == "/" {
			return
		}
	}
}

// parseCgroups reads /proc/PID/cgroup (cgroups(7)): controller → path; "" is that of the second version.
func parseCgroups(text []byte) map[string]string {
	groups := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			groups[controller] = parts[2]
		}
	}
	return groups
}

// parseCPUMax reads "quota period" in µs as CPUs; 0 when there is no bound ("max", or −1 in the first version).
func parseCPUMax(text string) float64 {
	var quota, period float64
	words := strings.Fields(text)
	if len(words) == 2 {
		quota, _ = strconv.ParseFloat(words[0], 64)
		period, _ = strconv.ParseFloat(words[1], 64)
	}
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota / period
}

// noBytes is above every real bound: without one, the first version shows the largest number of whole pages.
const noBytes = 1 << 60

// parseBytesMax reads a bound on memory; 0 when there is none.
func parseBytesMax(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n >= noBytes {
		return 0
	}
	return n
}

// tighten keeps the smaller of two bounds, of which 0 is none.
func tighten[N int64 | float64](bound *N, other N) {
	if other > 0 && (*bound == 0 || other < *bound) {
		*bound = other
	}
}
