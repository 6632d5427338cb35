package tune

import (
	"slices"
	"strings"
)

// machineWide lists the sysctls below net. that exist once per machine although a network namespace has its own
// net. tree; every other net. name is per namespace. It was found by comparing the writable names of a fresh
// namespace with those of the first one on Linux 6.18 (net/core/sysctl_net_core.c: net_core_table against
// netns_core_table; net/ipv4/sysctl_net_ipv4.c: ipv4_table against ipv4_net_table;
// net/netfilter/nf_conntrack_standalone.c: read-only outside the first namespace). A name ending in "." or "_" is a
// prefix.
var machineWide = []string{
	"net.core.bpf_jit_", "net.core.busy_", "net.core.default_qdisc", "net.core.dev_weight", "net.core.dev_weight_", "net.core.devconf_inherit_init_net",
	"net.core.fb_tunnels_only_for_init_net", "net.core.flow_limit_", "net.core.gro_normal_batch", "net.core.high_order_alloc_disable",
	"net.core.max_skb_frags", "net.core.mem_pcpu_rsv", "net.core.message_", "net.core.netdev_", "net.core.rmem_",
	"net.core.rps_sock_flow_entries", "net.core.skb_defer_max", "net.core.warnings", "net.core.wmem_",
	"net.ipv4.cipso_", "net.ipv4.fib_sync_mem", "net.ipv4.inet_peer_", "net.ipv4.ipfrag_secret_interval",
	"net.ipv4.neigh.default.gc_", "net.ipv6.neigh.default.gc_",
	"net.ipv4.route.error_", "net.ipv4.route.gc_", "net.ipv4.route.max_size", "net.ipv4.route.redirect_",
	"net.ipv4.tcp_allowed_congestion_control", "net.ipv4.tcp_low_latency", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_mem",
	"net.ipv4.udp_mem",
	"net.netfilter.nf_conntrack_buckets", "net.netfilter.nf_conntrack_expect_max", "net.netfilter.nf_conntrack_max",
	"net.netfilter.nf_hooks_lwtunnel", "net.netfilter.nf_log_all_netns", "net.nf_conntrack_max",
}

// Namespaced reports whether a sysctl belongs to the network namespace, so that a container with its own may set it
// without changing the machine.
func Namespaced(name string) bool {
	if !strings.HasPrefix(name, "net.") {
		return false
	}
	return !listed(machineWide, name)
}

// listed reports whether a name is in a list, in which a name ending in "." or "_" is a prefix.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix := strings.HasSuffix(entry, ".") || strings.HasSuffix(entry, "_")
		return name == entry || prefix && strings.HasPrefix(name, entry)
	})
}
