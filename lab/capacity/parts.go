package capacity

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

// caches are the slab caches that grow with connections (Linux 6.x, /proc/slabinfo): the socket and its inode, dentry
// and file, the epoll item and wake-up source, the connection-tracking entry, a request socket, a TIME_WAIT socket and
// packet buffers. A trailing * stands for any ending. Caches that only happen to grow at the same time stay out.
var caches = []string{
	"TCP", "TCPv6", "sock_inode_cache", "filp", "dentry", "eventpoll_*", "ep_head", "nf_conntrack",
	"request_sock_TCP", "tw_sock_TCP", "skbuff_*",
}

// floorCaches are the caches of the floor.
var floorCaches = []string{"TCP", "TCPv6", "filp", "eventpoll_*", "ep_head"}

func matches(patterns []string, cache string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if stem, any := strings.CutSuffix(p, "*"); any {
			return strings.HasPrefix(cache, stem)
		}
		return p == cache
	})
}

// counted returns the parts that count and that every level has, sorted, and those that some levels lack.
func counted(levels []lab.CapacityLevel) (parts, patchy []string) {
	seen := map[string]int{}
	for _, l := range levels {
		for name := range l.Parts {
			if name == lab.PartServer || name == lab.PartSocketMemory || matches(caches, name) {
				seen[name]++
			}
		}
	}
	for name, n := range seen {
		if n == len(levels) {
			parts = append(parts, name)
			continue
		}
		patchy = append(patchy, name)
	}
	slices.Sort(parts)
	slices.Sort(patchy)
	return parts, patchy
}

// ofOneMeasure returns the parts without the server's when that was measured in two ways, which make no slope, and says
// which way it was.
func ofOneMeasure(kind lab.HoldKind, parts []string, levels []lab.CapacityLevel) (of, notes []string) {
	i := slices.Index(parts, lab.PartServer)
	if i < 0 {
		return parts, nil
	}
	differs := func(l lab.CapacityLevel) bool { return l.Anonymous != levels[0].Anonymous }
	switch {
	case slices.ContainsFunc(levels, differs):
		return slices.Delete(parts, i, i+1), []string{fmt.Sprintf("%s: the server's memory is left out: PSS at some levels, anonymous resident memory at others", kind)}
	case levels[0].Anonymous:
		return parts, []string{fmt.Sprintf("%s: server memory is anonymous resident memory, for PSS cannot be read here: that of another user's processes needs CAP_SYS_PTRACE. "+
			"It leaves out file and shared memory, and counts a page that processes share once for each", kind)}
	}
	return parts, nil
}

// settled is a level with the given parts and their sums. The kernel parts are divided by two when both ends of each
// connection live on this kernel.
func settled(l lab.CapacityLevel, parts []string, shared bool) lab.CapacityLevel {
	was := l.Parts
	l.Parts = map[string]int64{}
	kernel, kernelKnown := int64(0), false
	floor, floorKnown := int64(0), false
	for _, name := range parts {
		bytes := was[name]
		if name == lab.PartServer {
			l.Parts[name] = bytes
			continue
		}
		if shared {
			bytes /= 2
		}
		l.Parts[name] = bytes
		kernel, kernelKnown = kernel+bytes, kernelKnown || name != lab.PartSocketMemory
		if matches(floorCaches, name) {
			floor, floorKnown = floor+bytes, floorKnown || name == "TCP"
		}
	}
	server, serverKnown := l.Parts[lab.PartServer]
	if kernelKnown {
		l.Parts[lab.PartKernel] = kernel
	}
	if floorKnown {
		l.Parts[lab.PartFloor] = floor
	}
	if kernelKnown && serverKnown {
		l.Parts[lab.PartTotal] = server + kernel
	}
	return l
}

// ordered returns the names of a level's parts: the sums and the server first, then the rest by name.
func ordered(parts map[string]int64) []string {
	first := []string{lab.PartTotal, lab.PartServer, lab.PartKernel, lab.PartFloor, lab.PartSocketMemory}
	var names []string
	for _, name := range first {
		if _, known := parts[name]; known {
			names = append(names, name)
		}
	}
	var rest []string
	for name := range parts {
		if !slices.Contains(first, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}
