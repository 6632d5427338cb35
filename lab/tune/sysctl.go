package tune

import (
	"fmt"
	"math"
	"slices"
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
	"net.ipv4.udp_mem":                    {count: 3, max: math.MaxInt64, rising: true},
	"vm.dirty_background_bytes":           {count: 1, min: 1, max: math.MaxInt64},
	"vm.dirty_background_ratio":           {count: 1, max: 100},
	"vm.dirty_bytes":                      {count: 1, min: 2 * 4096, max: math.MaxInt64},
	"vm.dirty_ratio":                      {count: 1, max: 100},
	"vm.overcommit_kbytes":                {count: 1, max: math.MaxInt64},
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
	if other, half := Halves(name); half && fields(value) == "0" {
		return &ValueError{Value: value, Want: "a number of at least 1: 0 means that " + other + " is used, so set that instead"}
	}
	if name == reservedPorts {
		return checkPorts(value)
	}
	if err := checkDecimal(name, value); err != nil {
		return err
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
	if b.max == math.MaxInt64 {
		return fmt.Sprintf("%s of at least %d", what, b.min)
	}
	return fmt.Sprintf("%s from %d to %d", what, b.min, b.max)
}

// reservedPorts is a set of ports that the kernel writes as rising ranges (kernel/sysctl.c, proc_do_large_bitmap).
const reservedPorts = "net.ipv4.ip_local_reserved_ports"

// allowedControls is a set of names, which the kernel shows in the order in which it came to know them.
const allowedControls = "net.ipv4.tcp_allowed_congestion_control"

// normaliseSysctl collapses white space: the kernel separates the numbers of a vector with tabs, people with spaces.
// A set of ports becomes rising ranges, a set of names is sorted.
func normaliseSysctl(name, value string) string {
	text := fields(value)
	if name == allowedControls {
		return strings.Join(slices.Sorted(slices.Values(strings.Fields(text))), " ")
	}
	if name != reservedPorts {
		return text
	}
	ports := map[int]bool{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || low < 0 || high > 65535 || low > high {
			return text
		}
		for p := low; p <= high; p++ {
			ports[p] = true
		}
	}
	return portRanges(ports)
}

func portRanges(ports map[int]bool) string {
	var ranges []string
	for p := 0; p <= 65535; p++ {
		if !ports[p] {
			continue
		}
		first := p
		for ports[p+1] {
			p++
		}
		if part := strconv.Itoa(first); p == first {
			ranges = append(ranges, part)
		} else {
			ranges = append(ranges, part+"-"+strconv.Itoa(p))
		}
	}
	return strings.Join(ranges, ",")
}
