package tune

import (
	"strings"

	"ngxlab/lab"
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
	for _, wide := range machineWide {
		prefix := strings.HasSuffix(wide, ".") || strings.HasSuffix(wide, "_")
		if name == wide || prefix && strings.HasPrefix(name, wide) {
			return false
		}
	}
	return true
}

// weak are values that trade safety for speed, with what is lost.
var weak = []struct{ name, value, loss string }{
	{"net.ipv4.tcp_syncookies", "0", "weakens security: no defence against SYN floods"},
	{"net.ipv4.tcp_rfc1337", "0", "weakens security: TIME_WAIT may be ended by a stray reset"},
	{"net.ipv4.tcp_timestamps", "0", "no protection against wrapped sequence numbers"},
	{"net.ipv4.conf.all.rp_filter", "0", "weakens security: forged source addresses are accepted"},
	{"net.ipv4.conf.default.rp_filter", "0", "weakens security: forged source addresses are accepted"},
	{"kernel.randomize_va_space", "0", "weakens security: no address space randomisation"},
	{"vm.overcommit_memory", "1", "memory may run out without a refused allocation"},
}

// inert are sysctls that are still there and do nothing (Linux: 3.6 route cache, 4.14 prequeue, 4.15 FACK).
var inert = map[string]string{
	"net.ipv4.tcp_low_latency": "has no effect since Linux 4.14",
	"net.ipv4.tcp_fack":        "has no effect since Linux 4.15",
	"net.ipv4.route.max_size":  "has no effect on IPv4 since Linux 3.6",
	"net.ipv4.route.gc_thresh": "has no effect on IPv4 since Linux 3.6",
}

// Note says what a person should know of a knob at a value, "" when nothing: what it weakens, that it does nothing,
// what it leaves behind.
func Note(k lab.KnobID, value string) string {
	if k.Kind != lab.KnobSysctl {
		return ""
	}
	for _, w := range weak {
		if w.name == k.Name && w.value == fields(value) {
			return w.loss
		}
	}
	if k.Name == "net.ipv4.tcp_congestion_control" {
		return "stays in net.ipv4.tcp_allowed_congestion_control until the next boot, and so does a module loaded for it"
	}
	return inert[k.Name]
}
