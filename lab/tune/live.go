package tune

import (
	"strings"

	"ngxlab/lab"
)

// live are the sysctls that the kernel reads each time it uses them, so that a server which already runs is served by
// the new value at once (Linux 6.18). A name ending in "." or "_" is a prefix.
//
//   - netdev_max_backlog, netdev_budget*, dev_weight: net/core/dev.c, enqueue_to_backlog and net_rx_action
//   - rps_sock_flow_entries: the table is replaced under RCU, net/core/sysctl_net_core.c, rps_sock_flow_sysctl
//   - tcp_max_tw_buckets, tcp_tw_reuse: net/ipv4/inet_timewait_sock.c and tcp_ipv4.c, at each TIME_WAIT and connect
//   - tcp_fin_timeout: net/ipv4/tcp.c, tcp_fin_time, at each FIN_WAIT_2 of a socket without TCP_LINGER2
//   - tcp_max_orphans, tcp_mem: net/ipv4/tcp.c, at each orphan and charge
//   - ip_local_port_range, ip_local_reserved_ports: net/ipv4/inet_hashtables.c, at each connect
//   - nf_conntrack_max and time-outs: net/netfilter/nf_conntrack_core.c and _proto_tcp.c, at each new entry and packet
//   - fs.file-max: fs/file_table.c, alloc_empty_file; vm.swappiness, vm.dirty_*: at each reclaim and write
//
// Left out although some are read often: what a listening or accepted socket takes over when it is made (somaxconn
// at listen; tcp_rmem, tcp_wmem, rmem_*, wmem_*, keep-alive times and congestion control at accept, so that
// connections of before keep the old), tcp_max_syn_backlog and tcp_syncookies (read at each SYN, but against the
// backlog of listen), and all that a process takes over at its start.
var live = []string{
	"fs.file-max", "net.core.dev_weight", "net.core.dev_weight_", "net.core.netdev_budget", "net.core.netdev_budget_", "net.core.netdev_max_backlog",
	"net.core.rps_sock_flow_entries", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_max_tw_buckets", "net.ipv4.tcp_mem", "net.ipv4.tcp_tw_reuse",
	"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_tcp_timeout_", "vm.dirty_", "vm.swappiness",
}

// liveFiles are the ends of the names of kernel files that act at once: which CPU handles a packet (net/core/dev.c,
// get_rps_cpu; netif_pick_tx), an interrupt (kernel/irq/manage.c), and at which clock CPUs run.
var liveFiles = []string{"/rps_cpus", "/rps_flow_cnt", "/xps_cpus", "/smp_affinity", "/smp_affinity_list", "/scaling_governor", "/tx_queue_len"}

// Live reports whether a knob takes full effect on a server that already runs: nothing of it is taken over when a
// process starts, listens or accepts. When in doubt it is false, and a fresh server is started.
func Live(k lab.KnobID) bool {
	switch k.Kind {
	case lab.KnobEthtool:
		return true
	case lab.KnobService:
		return k.Name == "irqbalance" // it moves interrupts and nothing else
	case lab.KnobSysfs:
		for _, end := range liveFiles {
			if strings.HasSuffix(k.Name, end) {
				return true
			}
		}
	case lab.KnobSysctl:
		return listed(live, k.Name)
	}
	return false
}
