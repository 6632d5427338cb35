package tune

import (
	"math/bits"
	"strconv"
)

// pageBytes is the page of the architectures that the agent is built for, as far as sizes are rounded to it here.
const pageBytes = 4096

// Clamped returns what the kernel makes of a value that it takes but rounds, and why; "" when it keeps the value as
// far as is known. What it refuses instead is Check's. A vector is never rounded (tried on Linux 6.18: tcp_rmem takes
// 1 1 1, somaxconn 2147483647).
func Clamped(name, value string) (to, why string) {
	n, err := strconv.ParseUint(fields(value), 10, 31)
	if err != nil || n == 0 {
		return "", ""
	}
	rounded := n
	switch name {
	case "net.core.rps_sock_flow_entries": // net/core/sysctl_net_core.c, rps_sock_flow_sysctl
		rounded, why = powerOfTwo(n), "rounded up to a power of two"
	case "fs.pipe-max-size": // fs/pipe.c, round_pipe_size
		rounded, why = powerOfTwo(max(n, pageBytes)), "rounded up to a power of two of at least a page"
	case "net.netfilter.nf_conntrack_buckets": // net/netfilter/nf_conntrack_core.c, nf_ct_alloc_hashtable
		const perPage = pageBytes / 8
		rounded, why = (n+perPage-1)/perPage*perPage, "rounded up to whole pages of 512"
	}
	if rounded == n {
		return "", ""
	}
	return strconv.FormatUint(rounded, 10), why
}

// powerOfTwo is the smallest power of two of at least n, which is positive.
func powerOfTwo(n uint64) uint64 { return 1 << bits.Len64(n-1) }
