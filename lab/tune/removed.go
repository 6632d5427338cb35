package tune

import "fmt"

const (
	debugfs          = "leave it out; it moved to debugfs"
	conntrack        = "write net.netfilter.nf_conntrack_max"
	conntrackTimeout = "write net.netfilter.nf_conntrack_tcp_timeout_"
)

// gone are sysctls that Linux no longer has: the version that lost them, and what to do instead.
var gone = map[string]struct {
	major, minor int
	cure         string
}{
	"net.ipv4.tcp_tw_recycle":                                 {4, 12, "leave it out; net.ipv4.tcp_tw_reuse covers the client side"},
	"net.ipv4.tcp_frto_response":                              {3, 10, "leave it out"},
	"net.ipv4.tcp_max_ssthresh":                               {3, 10, "leave it out"},
	"net.ipv4.tcp_cookie_size":                                {3, 10, "leave it out"},
	"net.ipv4.tcp_abc":                                        {3, 9, "leave it out"},
	"net.ipv4.tcp_dma_copybreak":                              {3, 18, "leave it out"},
	"net.ipv4.ip_conntrack_max":                               {4, 9, conntrack},
	"net.ipv4.netfilter.ip_conntrack_max":                     {4, 9, conntrack},
	"net.ipv4.netfilter.ip_conntrack_tcp_timeout_established": {4, 9, conntrackTimeout + "established"},
	"net.ipv4.netfilter.ip_conntrack_tcp_timeout_time_wait":   {4, 9, conntrackTimeout + "time_wait"},
	"net.ipv4.netfilter.ip_conntrack_tcp_timeout_close_wait":  {4, 9, conntrackTimeout + "close_wait"},
	"net.ipv4.netfilter.ip_conntrack_tcp_timeout_fin_wait":    {4, 9, conntrackTimeout + "fin_wait"},
	"kernel.sched_min_granularity_ns":                         {5, 13, debugfs},
	"kernel.sched_wakeup_granularity_ns":                      {5, 13, debugfs},
	"kernel.sched_migration_cost_ns":                          {5, 13, debugfs},
	"kernel.sched_latency_ns":                                 {5, 13, debugfs},
	"kernel.sched_nr_migrate":                                 {5, 13, debugfs},
	"kernel.sched_tunable_scaling":                            {5, 13, debugfs},
}

// Removed says since which version of Linux a sysctl is gone, when the kernel release given is not older, and the
// cure; "" otherwise.
func Removed(name, kernel string) (since, cure string) {
	g, found := gone[name]
	major, minor, ok := release(kernel)
	if !found || (ok && (major < g.major || major == g.major && minor < g.minor)) {
		return "", ""
	}
	return fmt.Sprintf("%d.%d", g.major, g.minor), g.cure
}

// release reads the two first numbers of a uname release, "6.18.44-amd64".
func release(kernel string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(kernel, "%d.%d", &major, &minor)
	return major, minor, n == 2
}
