package tune

import (
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

const (
	weakens   = "weakens security: "
	forged    = weakens + "forged source addresses are accepted"
	noServer  = "has no effect on a server's throughput: "
	opens     = "acts on connections that this host opens, not on those it accepts"
	forIPC    = noServer + "it bounds System V messages and shared memory, which nginx does not use"
	newOnly   = "applies to queues made after it: those of the interfaces there are keep theirs"
	newIfaces = "also changes the interfaces that have no address yet; one made later no longer follows it"
)

// remark is what a person should know of a sysctl at a value; value "" stands for every value.
type remark struct{ value, text string }

// remarks hold, by name, what a value trades for speed, or that it does nothing here (Linux 6.18,
// Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl).
var remarks = map[string][]remark{
	"net.ipv4.tcp_syncookies":                   {{"0", weakens + "no defence against SYN floods"}},
	"net.ipv4.tcp_rfc1337":                      {{"0", weakens + "TIME_WAIT may be ended by a stray reset"}},
	"net.ipv4.tcp_timestamps":                   {{"0", "no protection against wrapped sequence numbers, and tcp_tw_reuse does nothing without"}},
	"net.ipv4.tcp_tw_reuse":                     {{"1", opens}},
	"net.ipv4.tcp_tw_recycle":                   {{"1", "drops clients behind one address (NAT)"}},
	"net.ipv4.conf.all.rp_filter":               {{"0", forged}},
	"net.ipv4.conf.default.rp_filter":           {{"0", forged + "; " + newIfaces}, {"", newIfaces}},
	"net.ipv4.conf.all.accept_source_route":     {{"1", weakens + "senders choose the way of their packets"}},
	"net.ipv4.conf.default.accept_source_route": {{"1", weakens + "senders choose the way of their packets; " + newIfaces}, {"", newIfaces}},
	"net.ipv4.conf.all.accept_redirects":        {{"1", weakens + "others may redirect routes"}},
	"net.ipv4.ip_forward":                       {{"1", weakens + "the host forwards packets of others"}},
	"net.ipv4.tcp_abort_on_overflow":            {{"1", "clients are refused at once where they would have tried again"}},
	"net.ipv4.tcp_synack_retries":               {{"1", "clients on a bad line are given up early"}, {"0", "clients on a bad line are given up at once"}},
	"net.ipv4.tcp_syn_retries":                  {{"", opens}},
	"net.ipv4.tcp_max_tw_buckets":               {{"0", "no TIME_WAIT at all: late packets may reach a new connection"}},
	"net.ipv4.tcp_fack":                         {{"", "has no effect since Linux 4.15"}},
	"net.ipv4.tcp_low_latency":                  {{"", "has no effect since Linux 4.14"}},
	"net.ipv4.route.max_size":                   {{"", "has no effect on IPv4 since Linux 3.6"}},
	"net.ipv4.route.gc_thresh":                  {{"", "has no effect on IPv4 since Linux 3.6"}},
	"net.ipv4.tcp_congestion_control":           {{"", "is added to net.ipv4.tcp_allowed_congestion_control until it is put back; a module loaded for it stays until the next boot"}},
	"net.core.default_qdisc":                    {{"", newOnly + "; a module loaded for it stays until the next boot"}},
	"kernel.randomize_va_space":                 {{"0", weakens + "no address space randomisation"}},
	"kernel.sysrq":                              {{"1", weakens + "every key command of the console is allowed"}, {"", noServer + "it is about keys of the console"}},
	"kernel.core_uses_pid":                      {{"", noServer + "it names core dumps"}},
	"kernel.msgmnb":                             {{"", forIPC}},
	"kernel.msgmax":                             {{"", forIPC}},
	"kernel.msgmni":                             {{"", forIPC}},
	"kernel.shmmax":                             {{"", forIPC}},
	"kernel.shmall":                             {{"", forIPC + "; it counts pages"}},
	"vm.max_map_count":                          {{"", noServer + "nginx has a few dozen mappings"}},
	"vm.overcommit_memory":                      {{"1", "memory may run out without a refused allocation"}, {"2", "allocations are refused beyond vm.overcommit_ratio"}},
	"vm.min_free_kbytes":                        {{"", "the kernel no longer adapts it by itself until the next boot"}},
	"vm.nr_hugepages":                           {{"", noServer + "nginx does not use them, and the memory is taken from it"}},
	"fs.file-max":                               {{"", "bounds the whole machine; a server meets its own limit (nofile) first"}},
	"net.ipv4.tcp_mem":                          {{"", "counts pages, not bytes"}},
	"net.ipv4.udp_mem":                          {{"", "counts pages, not bytes"}},
}

// firewalls are services whose stopping opens the host.
var firewalls = []string{"firewalld", "iptables", "ip6tables", "nftables", "ufw", "fail2ban", "shorewall", "apf", "csf"}

// guards are other services that protect a host, or that the lab or the way to it lives on.
var guards = map[string]string{
	"auditd": weakens + "nothing is audited", "apparmor": weakens + "programs are no longer confined",
	"sshd": "the lab reaches the host through it", "ssh": "the lab reaches the host through it",
	"NetworkManager": "the host may lose its addresses", "systemd-networkd": "the host may lose its addresses",
	"systemd-resolved": "the host no longer resolves names", "chronyd": "the clock drifts", "chrony": "the clock drifts",
	"ntpd": "the clock drifts", "systemd-timesyncd": "the clock drifts",
	"tuned":  "on its way out it sets back the sysctls of its profile",
	"docker": "the containers of the host may stop",
}

// Note says what a person should know of a knob at a value, "" when nothing: what it weakens, that it does nothing,
// what it leaves behind. value is "" of a knob that shall have no value.
func Note(k lab.KnobID, value string) string {
	switch k.Kind {
	case lab.KnobSysctl:
		return sysctlNote(k.Name, fields(value))
	case lab.KnobService:
		return serviceNote(k.Name, trimmed("", value))
	case lab.KnobFile:
		return fileNote(k.Name, value)
	case lab.KnobUnit:
		return "in force when the unit is started again"
	case lab.KnobEthtool:
		return ethtoolNote(k.Name)
	case lab.KnobCommand:
		return "put back by its own revert command only"
	}
	return ""
}

func sysctlNote(name, value string) string {
	for _, r := range remarks[name] {
		if r.value == value || r.value == "" {
			return r.text
		}
	}
	if strings.HasPrefix(name, "net.ipv4.conf.default.") || strings.HasPrefix(name, "net.ipv4.neigh.default.") {
		return newIfaces
	}
	return ""
}

func serviceNote(name, value string) string {
	switch {
	case value != Stopped:
		return ""
	case slices.Contains(firewalls, name):
		return weakens + "the firewall is down, and rules that were not saved are lost"
	}
	return guards[name]
}

// fileNote: files that other programs read when something starts, or that say who may do what.
func fileNote(name, value string) string {
	f, err := lab.ParseFileValue(value)
	mode, _ := strconv.ParseUint(f.Mode, 8, 32)
	switch {
	case value == "":
		return "the file is taken away"
	case err == nil && mode&0o002 != 0:
		return weakens + "everybody may write it"
	case strings.HasPrefix(name, "/etc/sudoers") || slices.Contains([]string{"/etc/passwd", "/etc/shadow", "/etc/group"}, name):
		return weakens + "it says who may do what on this host"
	case strings.HasPrefix(name, "/etc/sysctl.d/") || name == "/etc/sysctl.conf":
		return "read at the next boot"
	case strings.HasPrefix(name, "/etc/security/limits"):
		return "read at the next login; a service takes its limits from its unit"
	}
	return "it survives a boot until it is restored"
}

func ethtoolNote(name string) string {
	switch group, _, _ := splitEthtool(name); group {
	case "rings", "channels":
		return "the interface may be down for a moment while its driver sets up its queues anew"
	}
	return ""
}
