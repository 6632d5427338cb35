package tune

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

// halves are the pairs of sysctls of which the kernel uses one: writing either sets the other to 0. The first of each
// cannot be written as 0 (mm/page-writeback.c: dirty_bytes_handler, dirty_ratio_handler; mm/util.c:
// overcommit_kbytes_handler, overcommit_ratio_handler).
var halves = [][2]string{
	{"vm.dirty_bytes", "vm.dirty_ratio"},
	{"vm.dirty_background_bytes", "vm.dirty_background_ratio"},
	{"vm.overcommit_kbytes", "vm.overcommit_ratio"},
}

// Halves returns the sysctl that the kernel sets to 0 when this one is written, and the other way; ok is false when
// there is none.
func Halves(name string) (other string, ok bool) {
	for _, pair := range halves {
		switch name {
		case pair[0]:
			return pair[1], true
		case pair[1]:
			return pair[0], true
		}
	}
	return "", false
}

// Needs returns the knobs whose original values are needed besides those of the knobs given: the other halves, each
// once, in the order of the knobs. nil when there are none.
func Needs(knobs []lab.KnobID) []lab.KnobID {
	known := map[lab.KnobID]bool{}
	for _, k := range knobs {
		known[k] = true
	}
	var needed []lab.KnobID
	for _, k := range knobs {
		other, ok := Halves(k.Name)
		id := lab.KnobID{Kind: lab.KnobSysctl, Name: other}
		if ok && k.Kind == lab.KnobSysctl && !known[id] {
			needed, known[id] = append(needed, id), true
		}
	}
	return needed
}

// obstacle is a sysctl that is never written, and what to do instead.
type obstacle struct{ reason, cure string }

var (
	anAct  = obstacle{"it is an act, not a setting", "leave it out"}
	oneWay = obstacle{"it can be set once and not taken back before the next boot", "leave it out"}
)

// never are sysctls that cannot be put back as they were: because writing one changes what no second write restores,
// because they are acts, or because they go one way (Linux 6.18; tried in a fresh network namespace where they have
// one of their own).
//
//   - ip_forward and conf.*.forwarding of all: net/ipv4/devinet.c, inet_forward_change, sets conf.*.forwarding of all
//     interfaces and default, sets conf.all.accept_redirects to the opposite (a host that had 0 has 1 after there and
//     back), and switches large receive offload off on every interface, which turning it back does not switch on.
//   - IPv6 forwarding and disable_ipv6: net/ipv6/addrconf.c, addrconf_fixup_forwarding forgets the default routes that
//     routers announced, addrconf_ifdown removes the addresses.
//   - unres_qlen is a rounded view of unres_qlen_bytes: 212992 bytes read as 101, and 101 written back are 211090.
//   - shm_rmid_forced: ipc/shm.c, shm_destroy_orphaned.
var never = map[string]obstacle{
	"vm.drop_caches":                   anAct,
	"vm.compact_memory":                anAct,
	"vm.stat_refresh":                  anAct,
	"net.ipv4.route.flush":             anAct,
	"net.ipv6.route.flush":             anAct,
	"kernel.modules_disabled":          oneWay,
	"kernel.kexec_load_disabled":       oneWay,
	"kernel.unprivileged_bpf_disabled": oneWay,
	"kernel.shm_rmid_forced":           {"writing 1 destroys shared memory that nobody uses at present", "leave it out"},
	"net.ipv4.ip_forward":              forwards,
	"net.ipv4.conf.all.forwarding":     forwards,
	"net.ipv6.conf.all.forwarding":     {"writing it sets every net.ipv6.conf.*.forwarding and forgets the routes that routers announced", "leave it out: it does not matter to a server"},
	"net.ipv6.conf.all.disable_ipv6":   {"writing 1 takes away the IPv6 addresses of every interface, and 0 does not bring them back", "leave it out"},
	"net.nf_conntrack_max":             {"it is another name of net.netfilter.nf_conntrack_max", "write net.netfilter.nf_conntrack_max"},
}

var forwards = obstacle{
	"writing it resets every net.ipv4.conf.*.forwarding, sets net.ipv4.conf.all.accept_redirects to the opposite, and switches large receive offload off for good",
	"leave it out: it does not matter to a server",
}

// perInterface are as never, for the names of one interface: by what they begin and end with.
var perInterface = []struct {
	begin, end string
	obstacle
}{
	{"net.ipv6.conf.", ".disable_ipv6", obstacle{"writing 1 takes away the IPv6 addresses of the interface, and 0 does not bring them back", "leave it out"}},
	{"net.ipv6.conf.", ".forwarding", obstacle{"writing 1 forgets the routes that routers announced", "leave it out: it does not matter to a server"}},
	{"net.ipv6.conf.", ".addr_gen_mode", obstacle{"writing it gives the interface another address", "leave it out"}},
	{"net.ipv4.neigh.", ".unres_qlen", unresolved}, {"net.ipv6.neigh.", ".unres_qlen", unresolved},
	{"net.ipv4.conf.", ".forwarding", obstacle{"turning it on switches large receive offload of the interface off for good", "leave it out: it does not matter to a server"}},
}

var unresolved = obstacle{"it is a rounded view of unres_qlen_bytes and does not come back as it was", "write unres_qlen_bytes"}

// A host that has 0 in both halves of the dirty pages cannot have vm.dirty_bytes back: it takes no 0, and vm.dirty_ratio
// makes it 0 only when it is itself changed (mm/page-writeback.c, dirty_ratio_handler), so that a third value would have
// to be in force on the way. vm.dirty_background_ratio = 0 would do it, tried on Linux 6.18; but a transition writes the
// half that differs, and no more. The other way there is nothing in the way: from a ratio the way back to 0 is a write.

// Coupled says why a sysctl cannot be written and put back exactly on a host with these values, and the cure;
// "" when it can.
func Coupled(name string, present map[string]string) (reason, cure string) {
	if o, found := never[name]; found {
		return o.reason, o.cure
	}
	for _, p := range perInterface {
		inner, begins := strings.CutPrefix(name, p.begin)
		if begins && strings.HasSuffix(inner, p.end) && !strings.HasPrefix(inner, "default.") {
			return p.reason, p.cure
		}
	}
	other, half := Halves(name)
	if half && strings.HasPrefix(name, "vm.dirty_") && strings.HasSuffix(name, "bytes") && bothZero(present[name], present[other]) {
		return "this host has 0 in it and in " + other + ", and the kernel does not take 0 when it is written back", "set " + other + " instead"
	}
	return "", ""
}

func bothZero(a, b string) bool { return fields(a) == "0" && fields(b) == "0" }

// Unavailable says what a host with these sysctls does not have ("no congestion control bbr, only reno, cubic") of a value
// that it must know by name, and the cure; "" when it has it, or nothing tells.
func Unavailable(name, value string, present map[string]string) (reason, cure string) {
	known := strings.Fields(present["net.ipv4.tcp_available_congestion_control"])
	if name != "net.ipv4.tcp_congestion_control" || len(known) == 0 || slices.Contains(known, fields(value)) {
		return "", ""
	}
	return fmt.Sprintf("no congestion control %s, only %s", fields(value), strings.Join(known, ", ")),
		"choose one of these, or have the module loaded on the host: modprobe tcp_" + fields(value)
}
