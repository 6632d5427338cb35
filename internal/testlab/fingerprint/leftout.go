package fingerprint

import "strings"

// Prefixes are the directories whose files are looked at: those that a study touches, and all in which a program that
// runs as root would leave something.
var Prefixes = []string{"/etc", "/usr/local", "/usr/sbin", "/run", "/var", "/root", "/home", "/opt", "/srv", "/tmp", "/dev/shm"}

// LeftOut is facts that are no part of a fingerprint, with the reason. A name that ends with "*" stands for all that
// begin like it.
type LeftOut struct{ Name, Why string }

// MovesByItself is what changes on a host that nobody touches.
var MovesByItself = []LeftOut{
	{"sysctl fs.dentry-state", "the machine's count of cached names"},
	{"sysctl fs.inode-nr", "the machine's count of cached inodes"},
	{"sysctl fs.inode-state", "the same"},
	{"sysctl fs.file-nr", "the machine's count of open files"},
	{"sysctl fs.aio-nr", "the machine's count of asynchronous requests"},
	{"sysctl fs.quota.*", "counters of the machine"},
	{"sysctl kernel.random.uuid", "another one at each reading"},
	{"sysctl kernel.random.entropy_avail", "the machine's entropy"},
	{"sysctl kernel.ns_last_pid", "the last pid given"},
	{"sysctl kernel.pty.nr", "the machine's count of terminals"},
	{"sysctl kernel.perf_event_max_sample_rate", "the kernel lowers it by itself under load"},
	{"sysctl kernel.tainted", "the machine's kernel's history"},
	{"sysctl net.netfilter.nf_conntrack_count", "the connections of this moment"},
	{"file /run/utmp", "who is logged in"},
	{"file /var/log/wtmp", "sshd notes logins here"},
	{"file /var/log/btmp", "and failed ones here"},
	{"file /var/log/lastlog", "and the last one here"},
}

// Keepings is what the lab keeps on a host by design. Everything else there is a difference: a journal that is not
// settled, files of work, half-written files. The agent itself is a difference, too, on a host that never had one.
var Keepings = []LeftOut{
	{"file /var/lib/ngxlab", "the state directory"},
	{"file /var/lib/ngxlab/builds", "builds, kept for the next campaign"},
	{"file /var/lib/ngxlab/builds/*", "the same"},
	{"file /var/lib/ngxlab/bodies", "bodies, made once, that servers answer"},
	{"file /var/lib/ngxlab/bodies/*", "the same"},
	{"file /var/lib/ngxlab/certs", "certificates, made once, that servers show"},
	{"file /var/lib/ngxlab/certs/*", "the same"},
	{"file /var/lib/ngxlab/work", "the directory alone: what is in it is a difference"},
	{"file /run/lock/ngxlab.lock", "the file that is locked"},
	{"file /var/lib/ngxlab/lock", "where that one cannot be made"},
	{"file /var/lib/ngxlab/journal.restored", "the last journal, settled"},
}

// names are exact ones, and beginnings.
type names struct {
	exact  map[string]bool
	begins []string
}

func index(all []LeftOut) names {
	n := names{exact: map[string]bool{}}
	for _, l := range all {
		if begin, ok := strings.CutSuffix(l.Name, "*"); ok {
			n.begins = append(n.begins, begin)
			continue
		}
		n.exact[l.Name] = true
	}
	return n
}

func (n names) has(name string) bool {
	if n.exact[name] {
		return true
	}
	for _, begin := range n.begins {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}
