package conduct

import (
	"slices"
	"strings"

	"ngxlab/lab"
)

// live reports whether a knob takes effect on a server that already runs. What is not known to does not: a listening
// socket keeps the backlog, the buffer sizes and the congestion control of its making.
func live(k lab.KnobID) bool {
	return k.Kind == lab.KnobSysctl && (slices.Contains(liveSysctls, k.Name) || strings.HasPrefix(k.Name, "net.netfilter."))
}

// liveSysctls are read by the kernel at each use.
var liveSysctls = []string{
	"net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog",
	"net.ipv4.ip_local_port_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_max_syn_backlog",
	"net.ipv4.tcp_max_tw_buckets", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_tw_reuse",
	"vm.dirty_background_ratio", "vm.dirty_ratio", "vm.swappiness",
}
