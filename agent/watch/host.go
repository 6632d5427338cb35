package watch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// ticksPerS is USER_HZ, the unit of /proc/stat: 100 on every architecture that ngxlab has an agent for.
const ticksPerS = 100

func (w *Watcher) cpus() ([]lab.CPUTimes, error) {
	text, err := w.files.read(w.proc("stat"))
	if err != nil {
		return nil, err
	}
	return parseStat(text)
}

// parseStat reads the lines of single CPUs of /proc/stat (proc_stat(5)), ascending.
func parseStat(text []byte) ([]lab.CPUTimes, error) {
	var cpus []lab.CPUTimes
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("cpu")) {
			break // they come first, all together
		}
		if line[3] == ' ' {
			continue // the sum
		}
		c, err := parseCPU(line)
		if err != nil {
			return nil, fmt.Errorf("proc stat: %w", err)
		}
		cpus = append(cpus, c)
	}
	if cpus == nil {
		return nil, fmt.Errorf("proc stat: no CPU in it")
	}
	return cpus, nil
}

func parseCPU(line []byte) (lab.CPUTimes, error) {
	var ticks [8]float64 // user nice system idle iowait irq softirq steal
	cpu, i := 0, -1
	for f := range fields(line) {
		var n uint64
		var err error
		if i == -1 {
			n, err = number(f[3:])
			cpu = int(n)
		} else {
			n, err = number(f)
			ticks[i] = float64(n) / ticksPerS
		}
		if err != nil {
			return lab.CPUTimes{}, err
		}
		if i++; i == len(ticks) {
			break
		}
	}
	if i < 4 {
		return lab.CPUTimes{}, fmt.Errorf("%q is too short", line)
	}
	return lab.CPUTimes{CPU: cpu, UserS: ticks[0] + ticks[1], SystemS: ticks[2], IdleS: ticks[3] + ticks[4],
		IRQS: ticks[5], SoftIRQS: ticks[6], StealS: ticks[7]}, nil
}

func (w *Watcher) memory() (lab.MemorySample, error) {
	text, err := w.files.read(w.proc("meminfo"))
	if err != nil {
		return lab.MemorySample{}, err
	}
	m := parseKeys(text, []string{"MemTotal:", "MemFree:", "MemAvailable:", "Slab:"})
	if m["MemTotal:"] == 0 {
		return lab.MemorySample{}, fmt.Errorf("proc meminfo: no MemTotal in it")
	}
	const kib = 1024
	return lab.MemorySample{TotalBytes: kib * int64(m["MemTotal:"]), FreeBytes: kib * int64(m["MemFree:"]),
		AvailableBytes: kib * int64(m["MemAvailable:"]), SlabBytes: kib * int64(m["Slab:"])}, nil
}

// swapPages is the sum of pages swapped in and out since the boot (/proc/vmstat).
func (w *Watcher) swapPages() uint64 {
	text, err := w.files.read(w.proc("vmstat"))
	if err != nil {
		return 0
	}
	m := parseKeys(text, []string{"pswpin", "pswpout"})
	return m["pswpin"] + m["pswpout"]
}

// parseKeys reads the wanted lines of a file of the shape "key number …"; what cannot be read is left out.
func parseKeys(text []byte, want []string) map[string]uint64 {
	m := make(map[string]uint64, len(want))
	for line := range bytes.Lines(text) {
		key, rest, _ := bytes.Cut(line, []byte(" "))
		i := slices.IndexFunc(want, func(k string) bool { return k == string(key) })
		if i < 0 {
			continue
		}
		for f := range fields(rest) {
			if n, err := number(f); err == nil {
				m[want[i]] = n
			}
			break
		}
		if len(m) == len(want) {
			break
		}
	}
	return m
}

// slabNames are the caches that connections use (METHOD §6); a "*" at the end stands for anything.
var slabNames = []string{"TCP", "TCPv6", "sock_inode_cache", "filp", "dentry", "eventpoll_*", "ep_head", "nf_conntrack",
	"request_sock_TCP", "request_sock_TCPv6", "tw_sock_TCP", "tw_sock_TCPv6", "skbuff_*"}

func (w *Watcher) slabs() map[string]int64 {
	text, err := w.files.read(w.proc("slabinfo"))
	if err != nil {
		return nil // root only
	}
	return parseSlabs(text)
}

// parseSlabs gives active objects × object size in bytes of the named caches of slabinfo 2.1 (slabinfo(5)).
func parseSlabs(text []byte) map[string]int64 {
	m := map[string]int64{}
	for line := range bytes.Lines(text) {
		name, rest, ok := bytes.Cut(line, []byte(" "))
		if !ok || !isNamed(string(name)) {
			continue
		}
		var n [3]uint64 // active objects, objects, object size
		i := 0
		for f := range fields(rest) {
			var err error
			if n[i], err = number(f); err != nil {
				break
			}
			if i++; i == len(n) {
				m[string(name)] = int64(n[0] * n[2])
				break
			}
		}
	}
	return m
}

func isNamed(cache string) bool {
	for _, n := range slabNames {
		prefix, wild := strings.CutSuffix(n, "*")
		if cache == n || wild && strings.HasPrefix(cache, prefix) {
			return true
		}
	}
	return false
}

func (w *Watcher) bootID() string {
	text, err := w.files.read(w.proc("sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}

// self is the CPU time and resident memory of this process.
func (w *Watcher) self() (cpuS float64, rssBytes int64) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		cpuS = float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	text, err := w.files.read(w.proc("self/statm")) // size resident …, in pages
	if err != nil {
		return cpuS, 0
	}
	if f := bytes.Fields(text); len(f) > 1 {
		pages, _ := strconv.ParseInt(string(f[1]), 10, 64)
		rssBytes = pages * int64(os.Getpagesize())
	}
	return cpuS, rssBytes
}
