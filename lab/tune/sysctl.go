package tune

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ValueError says that a value is outside what a knob takes.
type ValueError struct {
	Value string
	Want  string // "a number from 0 to 2"
}

// Error says the value and what is wanted instead.
func (e *ValueError) Error() string { return fmt.Sprintf("%q is not %s", e.Value, e.Want) }

// bounds are the numbers that a sysctl takes.
type bounds struct {
	count    int // numbers in the vector
	min, max int64
	rising   bool // each number at least the one before
}

// ranges holds what the kernel refuses, or takes and then cannot work with, such as a vector that falls or a negative
// length (tried on Linux 6.18; net/ipv4/sysctl_net_ipv4.c, net/core/sysctl_net_core.c, fs/file.c).
var ranges = map[string]bounds{
	"fs.file-max":                         {count: 1, min: 1, max: math.MaxInt64},
	"fs.nr_open":                          {count: 1, min: 64, max: math.MaxInt32},
	"net.core.netdev_max_backlog":         {count: 1, max: math.MaxInt32},
	"net.core.rmem_default":               {count: 1, min: 2304, max: math.MaxInt32},
	"net.core.rmem_max":                   {count: 1, min: 2304, max: math.MaxInt32},
	"net.core.somaxconn":                  {count: 1, max: math.MaxInt32},
	"net.core.wmem_default":               {count: 1, min: 4608, max: math.MaxInt32},
	"net.core.wmem_max":                   {count: 1, min: 4608, max: math.MaxInt32},
	"net.ipv4.ip_local_port_range":        {count: 2, min: 1, max: 65535, rising: true},
	"net.ipv4.ip_unprivileged_port_start": {count: 1, max: 65535},
	"net.ipv4.tcp_abort_on_overflow":      {count: 1, max: 255},
	"net.ipv4.tcp_fin_timeout":            {count: 1, min: 1, max: math.MaxInt32 / 1000},
	"net.ipv4.tcp_keepalive_probes":       {count: 1, min: 1, max: 255},
	"net.ipv4.tcp_max_orphans":            {count: 1, max: math.MaxInt32},
	"net.ipv4.tcp_max_syn_backlog":        {count: 1, max: math.MaxInt32},
	"net.ipv4.tcp_max_tw_buckets":         {count: 1, max: math.MaxInt32},
	"net.ipv4.tcp_mem":                    {count: 3, max: math.MaxInt64, rising: true},
	"net.ipv4.tcp_rmem":                   {count: 3, min: 1, max: math.MaxInt32, rising: true},
	"net.ipv4.tcp_syn_retries":            {count: 1, min: 1, max: 127},
	"net.ipv4.tcp_synack_retries":         {count: 1, max: 255},
	"net.ipv4.tcp_syncookies":             {count: 1, max: 255},
	"net.ipv4.tcp_timestamps":             {count: 1, max: 255},
	"net.ipv4.tcp_tw_reuse":               {count: 1, max: 2},
	"net.ipv4.tcp_window_scaling":         {count: 1, max: 255},
	"net.ipv4.tcp_wmem":                   {count: 3, min: 1, max: math.MaxInt32, rising: true},
	"net.netfilter.nf_conntrack_max":      {count: 1, max: math.MaxInt32},
	"vm.overcommit_memory":                {count: 1, max: 2},
	"vm.overcommit_ratio":                 {count: 1, max: math.MaxInt32},
	"vm.swappiness":                       {count: 1, max: 200},
}

// signed reports whether a negative number has a meaning for a sysctl outside the table, as far as is known.
func signed(name string) bool {
	return !strings.HasPrefix(name, "net.") || strings.Contains(name, ".conf.") || name == "net.ipv4.tcp_adv_win_scale"
}

func checkSysctl(name, value string) error {
	if strings.ContainsAny(value, "\n\x00") || fields(value) == "" {
		return &ValueError{Value: value, Want: "a value of one line"}
	}
	b, known := ranges[name]
	if known {
		return b.check(value)
	}
	n, err := strconv.ParseInt(fields(value), 10, 64)
	if err == nil && n < 0 && !signed(name) {
		return &ValueError{Value: value, Want: "a number of at least 0"}
	}
	return nil
}

func (b bounds) check(value string) error {
	numbers := strings.Fields(value)
	wrong := &ValueError{Value: value, Want: b.String()}
	if len(numbers) != b.count {
		return wrong
	}
	last := b.min
	for _, text := range numbers {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < b.min || n > b.max || (b.rising && n < last) {
			return wrong
		}
		last = n
	}
	return nil
}

// String is "a number from 0 to 2", "3 rising numbers of at least 1".
func (b bounds) String() string {
	what := "a number"
	if b.count > 1 {
		what = fmt.Sprintf("%d rising numbers", b.count)
	}
	if b.max >= math.MaxInt32/1000 {
		return fmt.Sprintf("%s of at least %d", what, b.min)
	}
	return fmt.Sprintf("%s from %d to %d", what, b.min, b.max)
}

// obstacle is a sysctl that is never written, and what to do instead.
type obstacle struct{ reason, cure string }

const zeroes = "writing it sets %s to 0, and that 0 could not be put back as it was"

// never are sysctls that cannot be put back exactly, because writing one changes another (Linux 6.18,
// mm/page-writeback.c, mm/util.c) or because they are acts and not settings.
var never = map[string]obstacle{
	"vm.dirty_bytes":            {fmt.Sprintf(zeroes, "vm.dirty_ratio"), "set vm.dirty_ratio instead"},
	"vm.dirty_background_bytes": {fmt.Sprintf(zeroes, "vm.dirty_background_ratio"), "set vm.dirty_background_ratio instead"},
	"vm.overcommit_kbytes":      {fmt.Sprintf(zeroes, "vm.overcommit_ratio"), "set vm.overcommit_ratio instead"},
	"vm.drop_caches":            {"it is an act, not a setting", "leave it out"},
	"vm.compact_memory":         {"it is an act, not a setting", "leave it out"},
	"net.ipv4.route.flush":      {"it is an act, not a setting", "leave it out"},
	"net.ipv4.ip_forward":       {"writing it resets every net.ipv4.conf.*.forwarding", "leave it out: it does not matter to a server"},
	"net.nf_conntrack_max":      {"it is another name of net.netfilter.nf_conntrack_max", "write net.netfilter.nf_conntrack_max"},
}

// partner names the sysctl whose non-zero value forbids writing this one: writing the ratio sets the bytes to 0.
var partner = map[string]string{
	"vm.dirty_ratio":            "vm.dirty_bytes",
	"vm.dirty_background_ratio": "vm.dirty_background_bytes",
	"vm.overcommit_ratio":       "vm.overcommit_kbytes",
}

// Coupled says why a sysctl cannot be written and put back exactly on a host with these values, and the cure;
// "" when it can.
func Coupled(name string, present map[string]string) (reason, cure string) {
	if o, found := never[name]; found {
		return o.reason, o.cure
	}
	other := partner[name]
	if value, set := present[other]; set && fields(value) != "0" {
		return fmt.Sprintf("this host uses %s = %s, which writing %s would set to 0", other, fields(value), name),
			"leave it out, or set " + other + " to 0 on the host first"
	}
	return "", ""
}

// gone are sysctls that Linux no longer has: the version that lost them, and what to do instead.
var gone = map[string]struct {
	major, minor int
	cure         string
}{
	"net.ipv4.tcp_tw_recycle":             {4, 12, "leave it out; net.ipv4.tcp_tw_reuse covers the client side"},
	"net.ipv4.tcp_frto_response":          {3, 10, "leave it out"},
	"net.ipv4.tcp_max_ssthresh":           {3, 10, "leave it out"},
	"net.ipv4.tcp_abc":                    {3, 9, "leave it out"},
	"net.ipv4.ip_conntrack_max":           {3, 0, "write net.netfilter.nf_conntrack_max"},
	"net.ipv4.netfilter.ip_conntrack_max": {4, 9, "write net.netfilter.nf_conntrack_max"},
	"kernel.sched_min_granularity_ns":     {5, 13, "leave it out; it moved to debugfs"},
	"kernel.sched_wakeup_granularity_ns":  {5, 13, "leave it out; it moved to debugfs"},
	"kernel.sched_migration_cost_ns":      {5, 13, "leave it out; it moved to debugfs"},
	"kernel.sched_latency_ns":             {5, 13, "leave it out; it moved to debugfs"},
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
