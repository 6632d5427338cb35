package tune

import (
	"slices"
	"strings"
)

// Touched returns the sysctls that the kernel may change when a sysctl, or the file of the kernel with that path, is
// written, without the written one itself; nil when there are none. interfaces are those of the host's network
// namespace, as below net.ipv4.conf, with or without "all" and "default", a dot in a name written as "/" (eth0/100).
//
// To put them back: write name first, for the kernel changes the rest anew; then write those that still differ from
// their originals, and only those. The table (Linux 6.18; all of net tried in a fresh network namespace):
//
//	vm.dirty_*, vm.overcommit_*   the other half becomes 0 (Halves)
//	net.ipv4.conf.default.X       conf.I.X of each interface that has no address and whose X was never written takes
//	                              the value (net/ipv4/devinet.c, devinet_copy_dflt_conf; ipv4_devconf_setall when an
//	                              address is set). Writing back does the same, except of interfaces that were given
//	                              an address meanwhile. Writing conf.I.X where it need not be cuts it from its default.
//	                              Nobody can read whether default.X was ever written; when it was, an interface made
//	                              later begins as one whose X was written.
//	                              Not forwarding (devinet_sysctl_forward). IPv6 has no such rule.
//	net.ipv4.neigh.default.X      as conf.default (net/core/neighbour.c, neigh_copy_dflt_parms)
//	net.ipv6.conf.all.X           of ignore_routes_with_linkdown, default and every interface; of force_forwarding,
//	                              every interface (net/ipv6/addrconf.c)
//	tcp_congestion_control        the algorithm is added to tcp_allowed_congestion_control (net/ipv4/tcp_cong.c,
//	                              tcp_set_default_congestion_control)
//	nf_conntrack_max              net.nf_conntrack_max is the same number
//	vm.nr_hugepages               vm.nr_hugepages_mempolicy is the same number
//	…/transparent_hugepage/enabled, also below hugepages-*: vm.min_free_kbytes is calculated anew (mm/khugepaged.c,
//	                              set_recommended_min_free_kbytes)
//
// Not here, for writing them touches nothing else that can be read: rmem_max and rmem_default, tcp_rmem and rmem_max,
// conf.all.X of IPv4, somaxconn, default_qdisc, file-max and nr_open, nf_conntrack_buckets, min_free_kbytes,
// watermark_*, numa_balancing, shmmax, shmall, msgmax, msgmnb, swappiness.
func Touched(name string, interfaces []string) []string {
	if other, ok := Halves(name); ok {
		return []string{other}
	}
	if strings.HasPrefix(name, "/sys/kernel/mm/transparent_hugepage/") && strings.HasSuffix(name, "/enabled") {
		return []string{"vm.min_free_kbytes"}
	}
	if same, ok := alsoSet[name]; ok {
		return []string{same}
	}
	return spread(name, interfaces)
}

var alsoSet = map[string]string{
	"net.ipv4.tcp_congestion_control": "net.ipv4.tcp_allowed_congestion_control",
	"net.netfilter.nf_conntrack_max":  "net.nf_conntrack_max",
	"vm.nr_hugepages":                 "vm.nr_hugepages_mempolicy",
	"vm.nr_hugepages_mempolicy":       "vm.nr_hugepages",
}

// spread returns the names of the interfaces that take over a value written for all or for default.
func spread(name string, interfaces []string) []string {
	var touched []string
	of := func(begin, end string) {
		for _, i := range interfaces {
			if i != "all" && i != "default" {
				touched = append(touched, begin+i+end)
			}
		}
	}
	for _, begin := range []string{"net.ipv4.conf.", "net.ipv4.neigh.", "net.ipv6.neigh."} {
		if end, ok := strings.CutPrefix(name, begin+"default"); ok && end != ".forwarding" && !strings.HasPrefix(end, ".gc_") {
			of(begin, end)
		}
	}
	switch name {
	case "net.ipv6.conf.all.ignore_routes_with_linkdown":
		touched = append(touched, "net.ipv6.conf.default.ignore_routes_with_linkdown")
		of("net.ipv6.conf.", ".ignore_routes_with_linkdown")
	case "net.ipv6.conf.all.force_forwarding":
		of("net.ipv6.conf.", ".force_forwarding")
	}
	return touched
}

// Brings returns what a touched sysctl that has a value now becomes when a value is written to name; ok is false when
// only reading it back can tell. An interface may also keep what it has.
func Brings(name, value, now string) (text string, ok bool) {
	switch _, half := Halves(name); {
	case half:
		return "0", true
	case strings.HasPrefix(name, "/"):
		return "", false
	case name != "net.ipv4.tcp_congestion_control":
		return fields(value), len(Touched(name, []string{"lo"})) > 0
	}
	allowed := strings.Fields(now)
	if added := fields(value); !slices.Contains(allowed, added) {
		allowed = append(allowed, added)
	}
	return strings.Join(allowed, " "), true
}
