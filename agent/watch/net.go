package watch

import (
	"bytes"
	"slices"
	"strconv"

	"ngxlab/lab"
)

// tcpNames are the counters of /proc/net/snmp (Tcp) and /proc/net/netstat (TcpExt) that go into a sample, by the
// kernel's names (net/ipv4/proc.c).
var tcpNames = map[string][]string{
	"Tcp:": {"ActiveOpens", "PassiveOpens", "AttemptFails", "EstabResets", "CurrEstab", "InSegs", "OutSegs",
		"RetransSegs", "InErrs", "OutRsts"},
	"TcpExt:": {"SyncookiesSent", "SyncookiesRecv", "SyncookiesFailed", "ListenOverflows", "ListenDrops", "TW",
		"TCPTimeouts", "TCPSynRetrans", "TCPTimeWaitOverflow", "TCPMemoryPressures", "TCPAbortOnMemory",
		"TCPAbortOnData", "TCPBacklogDrop", "TCPReqQFullDrop", "TCPReqQFullDoCookies", "TCPRcvQDrop"},
}

// tcpCounters are the selected counters of this process's network namespace.
func (w *Watcher) tcpCounters() map[string]uint64 {
	m := map[string]uint64{}
	for _, file := range []string{"net/snmp", "net/netstat"} {
		if text, err := w.files.read(w.proc(file)); err == nil {
			parseCounters(text, m)
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// parseCounters adds the selected counters of a file in which each group has a line of names and one of values.
func parseCounters(text []byte, into map[string]uint64) {
	var names []byte
	for line := range bytes.Lines(text) {
		group, rest, _ := bytes.Cut(line, []byte(" "))
		want, ok := tcpNames[string(group)]
		switch {
		case !ok:
			names = nil
		case names == nil:
			names = rest
		default:
			pair(names, rest, want, into)
			names = nil
		}
	}
}

func pair(names, values []byte, want []string, into map[string]uint64) {
	value := bytes.Fields(values)
	i := 0
	for name := range fields(names) {
		if i < len(value) && slices.Contains(want, string(name)) {
			if n, err := number(value[i]); err == nil { // a few of Tcp are negative; none selected
				into[string(name)] = n
			}
		}
		i++
	}
}

// sockets is the TCP line of /proc/net/sockstat, and the IPv6 sockets of sockstat6.
func (w *Watcher) sockets() map[string]int64 {
	text, err := w.files.read(w.proc("net/sockstat"))
	if err != nil {
		return nil
	}
	m := parseSockstat(text, "TCP:", "tcp_")
	if pages, ok := m["tcp_mem"]; ok {
		delete(m, "tcp_mem")
		m["tcp_mem_pages"] = pages
	}
	if text, err := w.files.read(w.proc("net/sockstat6")); err == nil {
		for k, n := range parseSockstat(text, "TCP6:", "tcp6_") {
			m[k] = n
		}
	}
	return m
}

func parseSockstat(text []byte, group, prefix string) map[string]int64 {
	m := map[string]int64{}
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) == 0 || string(f[0]) != group {
			continue
		}
		for i := 1; i+1 < len(f); i += 2 {
			if n, err := strconv.ParseInt(string(f[i+1]), 10, 64); err == nil {
				m[prefix+string(f[i])] = n
			}
		}
	}
	return m
}

// conntrack is the state of the connection-tracking table; nil where there is none.
func (w *Watcher) conntrack() *lab.Conntrack {
	count, ok := w.integer("sys/net/netfilter/nf_conntrack_count")
	if !ok {
		return nil
	}
	limit, _ := w.integer("sys/net/netfilter/nf_conntrack_max")
	c := &lab.Conntrack{Count: count, Max: limit}
	if text, err := w.files.read(w.proc("net/stat/nf_conntrack")); err == nil {
		c.Drops = parseConntrack(text)
	}
	return c
}

func (w *Watcher) integer(path string) (int64, bool) {
	text, err := w.files.read(w.proc(path))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// parseConntrack is drop + early_drop over all CPUs (net/netfilter/nf_conntrack_standalone.c: one line per CPU, in
// hexadecimal, below a line of names).
func parseConntrack(text []byte) (drops uint64) {
	var columns []int
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if columns == nil {
			columns = []int{index(f, "drop"), index(f, "early_drop")}
			continue
		}
		for _, c := range columns {
			if c >= 0 && c < len(f) {
				n, _ := strconv.ParseUint(string(f[c]), 16, 64)
				drops += n
			}
		}
	}
	return drops
}

func index(words [][]byte, word string) int {
	return slices.IndexFunc(words, func(w []byte) bool { return string(w) == word })
}
