package tune_test

import (
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

func knob(kind, name string) lab.KnobID { return lab.KnobID{Kind: kind, Name: name} }

const (
	rps     = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
	hugeTHP = "/sys/kernel/mm/transparent_hugepage/enabled"
)

func TestValuesOfHostKindsAreComparedByMeaning(t *testing.T) {
	for _, c := range []struct {
		knob lab.KnobID
		a, b string
		want bool
	}{
		{knob(lab.KnobSysfs, rps), "00000000,00000003\n", "3", true}, {knob(lab.KnobSysfs, rps), "0,00000000", "0", true},
		{knob(lab.KnobSysfs, rps), "1,00000000", "100000000", true}, {knob(lab.KnobSysfs, rps), "FF", "ff", true},
		{knob(lab.KnobSysfs, rps), "3", "30", false}, {knob(lab.KnobSysfs, "/proc/irq/24/smp_affinity"), "00f", "f", true},
		{knob(lab.KnobSysfs, "/proc/irq/24/smp_affinity_list"), "00f", "f", false},
		{knob(lab.KnobSysfs, hugeTHP), "always madvise [never]", "never", true}, {knob(lab.KnobSysfs, hugeTHP), "[always] madvise never", "never", false},
		{knob(lab.KnobSysfs, "/sys/module/nvme/parameters/threaded"), "Y", "1", true}, {knob(lab.KnobSysfs, "/sys/x/y"), "Y", "1", false},
		{knob(lab.KnobEthtool, "eth0.features.gro"), "true", "on", true}, {knob(lab.KnobEthtool, "eth0.rings.rx"), "04096", "4096", true},
		{knob(lab.KnobService, "irqbalance"), " stopped\n", "stopped", true}, {knob(lab.KnobService, "irqbalance"), "started", "stopped", false},
		{knob(lab.KnobFile, "/etc/x"), `{"mode":"644","owner":"root:root","content":"a"}`, `{"content":"YQ==","base64":true,"owner":"0:0","mode":"0644"}`, true},
		{knob(lab.KnobFile, "/etc/x"), `{"content":""}`, `{}`, false}, {knob(lab.KnobFile, "/etc/x"), `{"mode":"0600"}`, `{"mode":"0644"}`, false},
		{knob(lab.KnobCommand, "irq"), `{"apply":["a"],"verify":["v"],"revert":["r"],"timeout_s":60,"applied":true}`,
			`{"timeout_s":60.0,"apply":["a"],"verify":["v"],"revert":["r"],"applied":true}`, true},
		{sysctl("net.ipv4.ip_local_reserved_ports"), "8082,8080-8081 9000", "8080-8082,9000", true},
		{sysctl("net.ipv4.ip_local_reserved_ports"), "", "8080", false}, {sysctl("net.ipv4.tcp_rmem"), "1 2", "1-2", false},
		{nginx("http.add_header"), "X-A  1 ;X-B 2;", "X-A 1; X-B 2", true}, {nginx("http.log_format"), `main "a  b"`, `main "a b"`, false},
		{nginx("http.map"), "$a  ${b}{ default 0 ; }", "$a ${b} { default 0; }", true}, {nginx("http.log_format"), `m '\' x'`, `m '\'  x'`, false},
		{knob(lab.KnobNproc, ""), "40960\n", "40960", true}, {knob(lab.KnobUnit, "nginx.service.LimitNOFILE"), "65535 ", "65535", true},
	} {
		if got := tune.Equal(c.knob, c.a, c.b); got != c.want {
			t.Errorf("%s: %q and %q equal: %v", c.knob, c.a, c.b, got)
		}
	}
}

func TestCheckRefusesWhatNoHostCouldHave(t *testing.T) {
	whole := `{"apply":["a"],"verify":["v"],"revert":["r"],"timeout_s":60,"applied":true}`
	for _, c := range []struct {
		knob  lab.KnobID
		value string
		good  bool
	}{
		{knob(lab.KnobSysfs, rps), "3", true}, {knob(lab.KnobSysfs, "/sys/class/net/eth0/queues/rx-*/rps_cpus"), "3", true},
		{knob(lab.KnobSysfs, rps), " ", false}, {knob(lab.KnobSysfs, rps), "1\n2", false}, {knob(lab.KnobSysfs, "/sys/a[/b"), "1", false},
		{knob(lab.KnobSysfs, "/proc/sys/vm/swappiness"), "1", false}, {knob(lab.KnobSysfs, "/etc/passwd"), "1", false}, {knob(lab.KnobSysfs, "/sys/../etc/x"), "1", false},
		{knob(lab.KnobEthtool, "eth0.rings.rx"), "4096", true}, {knob(lab.KnobEthtool, "eth0.100.channels.combined"), "2", true},
		{knob(lab.KnobEthtool, "eth0.coalesce.adaptive-rx"), "off", true}, {knob(lab.KnobEthtool, "eth0.coalesce.adaptive-rx"), "3", false},
		{knob(lab.KnobEthtool, "eth0.features.tx-tcp-segmentation"), "true", true}, {knob(lab.KnobEthtool, "eth0.features.gro"), "yes", false},
		{knob(lab.KnobEthtool, "eth0.rings.rx"), "-1", false}, {knob(lab.KnobEthtool, "eth0.rings.ry"), "1", false},
		{knob(lab.KnobEthtool, "eth0.wings.rx"), "1", false}, {knob(lab.KnobEthtool, "rings.rx"), "1", false},
		{knob(lab.KnobFile, "/etc/x.conf"), `{"mode":"7777","owner":"www-data:www-data","content":"x"}`, true}, {knob(lab.KnobFile, "/etc/x.conf"), `{}`, true},
		{knob(lab.KnobFile, "/etc/x.conf"), `{"mode":"10000"}`, false}, {knob(lab.KnobFile, "/etc/x.conf"), `{"mode":"rw"}`, false},
		{knob(lab.KnobFile, "/etc/x.conf"), `{"owner":"root"}`, false}, {knob(lab.KnobFile, "/etc/x.conf"), `{"own":"root"}`, false},
		{knob(lab.KnobFile, "/etc/x.conf"), `{"content":"*","base64":true}`, false}, {knob(lab.KnobFile, "/etc/../x"), `{}`, false},
		{knob(lab.KnobFile, "etc/x"), `{}`, false}, {knob(lab.KnobFile, "/sys/x"), `{}`, false},
		{knob(lab.KnobFile, "/etc/x"), lab.FileValue{}.WithContent(make([]byte, 1<<20)).String(), true},
		{knob(lab.KnobFile, "/etc/x"), lab.FileValue{}.WithContent(make([]byte, 1<<20+1)).String(), false},
		{knob(lab.KnobService, "irqbalance"), "stopped", true}, {knob(lab.KnobService, "getty@tty1"), "started", true},
		{knob(lab.KnobService, "irqbalance"), "off", false}, {knob(lab.KnobService, "irqbalance.service"), "stopped", false}, {knob(lab.KnobService, "a b"), "stopped", false},
		{knob(lab.KnobService, "--now"), "stopped", false},
		{knob(lab.KnobUnit, "nginx.service.LimitNOFILE"), "65535", true}, {knob(lab.KnobUnit, "nginx.service.LimitNPROC"), "infinity", true},
		{knob(lab.KnobUnit, "nginx.service.LimitNOFILE"), "0", false}, {knob(lab.KnobUnit, "nginx.LimitNOFILE"), "1", false}, {knob(lab.KnobUnit, "nginx.service.CPUQuota"), "1", false},
		{knob(lab.KnobCommand, "irq"), whole, true}, {knob(lab.KnobCommand, ""), whole, false},
		{knob(lab.KnobCommand, "irq"), strings.Replace(whole, `["r"]`, `[]`, 1), false}, {knob(lab.KnobCommand, "irq"), strings.Replace(whole, `["v"]`, `null`, 1), false},
		{knob(lab.KnobCommand, "irq"), strings.Replace(whole, `60`, `0`, 1), false}, {knob(lab.KnobCommand, "irq"), "echo", false},
		{knob(lab.KnobNproc, ""), "40960", true}, {knob(lab.KnobNproc, ""), "0", false},
		{sysctl("vm.dirty_bytes"), "8192", true}, {sysctl("vm.dirty_bytes"), "4096", false}, {sysctl("vm.dirty_ratio"), "0", false}, {sysctl("vm.dirty_ratio"), "101", false},
		{sysctl("vm.overcommit_kbytes"), "0", false},
	} {
		if err := tune.Check(c.knob, c.value); (err == nil) != c.good {
			t.Errorf("%s = %.60q: %v", c.knob, c.value, err)
		}
	}
}

func TestOnlyFilesAndDirectivesCanBeTakenAway(t *testing.T) {
	for _, c := range []struct {
		knob lab.KnobID
		good bool
	}{
		{knob(lab.KnobFile, "/etc/x"), true}, {knob(lab.KnobFile, "x"), false}, {nginx("http.gzip"), true},
		{sysctl("net.core.somaxconn"), false}, {knob(lab.KnobService, "irqbalance"), false},
	} {
		if err := tune.CheckSetting(lab.Setting{Knob: c.knob, Absent: true}); (err == nil) != c.good {
			t.Errorf("%s absent: %v", c.knob, err)
		}
	}
	if err := tune.CheckSetting(lab.Setting{Knob: sysctl("net.core.somaxconn"), Value: "-1"}); err == nil {
		t.Error("the value of a setting is not checked")
	}
}

func TestLiveIsOnlyWhatNoSocketOrProcessTakesOver(t *testing.T) {
	for k, want := range map[lab.KnobID]bool{
		sysctl("net.core.netdev_max_backlog"): true, sysctl("net.core.netdev_budget_usecs"): true, sysctl("net.ipv4.tcp_fin_timeout"): true,
		sysctl("net.ipv4.tcp_tw_reuse"): true, sysctl("net.netfilter.nf_conntrack_max"): true, sysctl("fs.file-max"): true,
		sysctl("net.core.somaxconn"): false, sysctl("net.ipv4.tcp_rmem"): false, sysctl("net.core.rmem_max"): false,
		sysctl("net.ipv4.tcp_congestion_control"): false, sysctl("net.ipv4.tcp_max_syn_backlog"): false, sysctl("unheard.of"): false,
		knob(lab.KnobSysfs, rps): true, knob(lab.KnobSysfs, hugeTHP): false, knob(lab.KnobEthtool, "eth0.rings.rx"): true,
		knob(lab.KnobSysfs, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"): true,
		knob(lab.KnobService, "irqbalance"):                                          true, knob(lab.KnobService, "firewalld"): false, knob(lab.KnobFile, "/etc/x"): false,
		knob(lab.KnobUnit, "nginx.service.LimitNOFILE"): false, knob(lab.KnobCommand, "c"): false, knob(lab.KnobNofile, ""): false, nginx("http.gzip"): false,
	} {
		if got := tune.Live(k); got != want {
			t.Errorf("%s live: %v", k, got)
		}
	}
}

func TestClampedTellsWhatTheKernelRounds(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"net.core.rps_sock_flow_entries", "30000", "32768"}, {"net.core.rps_sock_flow_entries", "32768", ""}, {"net.core.rps_sock_flow_entries", "0", ""},
		{"net.netfilter.nf_conntrack_buckets", "65537", "66048"}, {"net.netfilter.nf_conntrack_buckets", "65536", ""},
		{"fs.pipe-max-size", "5000", "8192"}, {"fs.pipe-max-size", "1", "4096"}, {"net.core.somaxconn", "70000", ""}, {"net.ipv4.tcp_rmem", "1 1 1", ""},
	} {
		to, why := tune.Clamped(c.name, c.value)
		if to != c.want || (to == "") != (why == "") {
			t.Errorf("%s = %s becomes %q (%s), want %q", c.name, c.value, to, why, c.want)
		}
	}
}
