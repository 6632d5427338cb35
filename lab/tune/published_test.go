package tune_test

import (
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// TestEveryPublishedSettingIsTakenRefusedOrSaidWhatItCosts holds the sysctls of the published studies: what is refused
// and why, what is noted, and what is taken without a word.
func TestEveryPublishedSettingIsTakenRefusedOrSaidWhatItCosts(t *testing.T) {
	const plain, gone, never = "", "removed", "refused"
	for _, c := range []struct{ name, value, want string }{
		{"net.core.somaxconn", "50000", plain}, {"net.ipv4.tcp_syncookies", "0", "SYN floods"}, {"net.ipv4.tcp_syncookies", "1", plain},
		{"net.ipv4.tcp_tw_recycle", "1", gone}, {"net.ipv4.tcp_tw_recycle", "0", gone}, {"net.ipv4.tcp_tw_reuse", "1", "opens"}, {"net.ipv4.tcp_timestamps", "1", plain},
		{"vm.max_map_count", "262144", "no effect"}, {"net.ipv4.tcp_mem", "3097431 4129911 6194862", "pages"},
		{"net.ipv4.tcp_rmem", "4096 87380 6291456", plain}, {"net.ipv4.tcp_wmem", "4096 65536 4194304", plain},
		{"net.ipv4.tcp_max_tw_buckets", "262144", plain}, {"net.ipv4.tcp_fin_timeout", "15", plain}, {"net.ipv4.ip_local_port_range", "1024 65535", plain},
		{"net.ipv4.tcp_max_syn_backlog", "65535", plain}, {"net.core.netdev_max_backlog", "200000", plain},
		{"net.ipv4.tcp_timestamps", "0", "wrapped"}, {"net.ipv4.tcp_synack_retries", "1", "given up"}, {"net.ipv4.tcp_syn_retries", "1", "opens"},
		{"net.ipv4.tcp_keepalive_time", "120", plain}, {"fs.file-max", "1048576", "whole machine"},
		{"net.core.rmem_default", "67108864", plain}, {"net.core.rmem_max", "67108864", plain}, {"net.core.wmem_default", "67108864", plain}, {"net.core.wmem_max", "67108864", plain},
		{"net.ipv4.conf.all.rp_filter", "1", plain}, {"net.ipv4.conf.default.rp_filter", "1", "no address yet"}, {"net.ipv4.conf.all.rp_filter", "0", "forged"},
		{"net.ipv4.ip_forward", "1", never}, {"net.ipv4.conf.default.accept_source_route", "0", "no address yet"},
		{"kernel.sysrq", "0", "console"}, {"kernel.core_uses_pid", "1", "core dumps"}, {"kernel.msgmnb", "65536", "System V"}, {"kernel.msgmax", "65536", "System V"},
		{"kernel.shmmax", "68719476736", "System V"}, {"kernel.shmall", "4294967296", "pages"}, {"vm.overcommit_memory", "1", "refused allocation"},
	} {
		if err := tune.Check(sysctl(c.name), c.value); err != nil {
			t.Errorf("%s = %s: %v", c.name, c.value, err)
		}
		since, _ := tune.Removed(c.name, "6.18.44")
		reason, _ := tune.Coupled(c.name, nil)
		note := tune.Note(sysctl(c.name), c.value)
		switch {
		case (since != "") != (c.want == gone):
			t.Errorf("%s removed since %q", c.name, since)
		case (reason != "") != (c.want == never):
			t.Errorf("%s refused: %q", c.name, reason)
		case c.want != gone && c.want != never && (!strings.Contains(note, c.want) || (note == "") != (c.want == plain)):
			t.Errorf("%s = %s: %q, want %q", c.name, c.value, note, c.want)
		}
	}
}

func TestNotesOfOtherKindsSayWhatIsLostOrStays(t *testing.T) {
	for _, c := range []struct {
		knob        lab.KnobID
		value, want string
	}{
		{knob(lab.KnobService, "firewalld"), tune.Stopped, "firewall"}, {knob(lab.KnobService, "firewalld"), tune.Started, ""},
		{knob(lab.KnobService, "irqbalance"), tune.Stopped, ""}, {knob(lab.KnobService, "tuned"), tune.Stopped, "sets back"},
		{knob(lab.KnobFile, "/etc/x"), `{"mode":"0666"}`, "everybody"}, {knob(lab.KnobFile, "/etc/x"), `{"mode":"0664"}`, "survives a boot"},
		{knob(lab.KnobFile, "/etc/sudoers.d/x"), `{}`, "who may do what"}, {knob(lab.KnobFile, "/etc/sysctl.d/x.conf"), `{}`, "next boot"},
		{knob(lab.KnobFile, "/etc/security/limits.d/x.conf"), `{}`, "next login"}, {knob(lab.KnobFile, "/etc/x"), "", "taken away"},
		{knob(lab.KnobUnit, "nginx.service.LimitNOFILE"), "1", "started again"}, {knob(lab.KnobEthtool, "eth0.rings.rx"), "1", "down for a moment"},
		{knob(lab.KnobEthtool, "eth0.features.gro"), "on", ""}, {knob(lab.KnobCommand, "c"), commandText(true), "revert"}, {knob(lab.KnobSysfs, rps), "3", ""},
	} {
		got := tune.Note(c.knob, c.value)
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s = %s: %q", c.knob, c.value, got)
		}
	}
}

func TestCongestionControlMustBeThere(t *testing.T) {
	present := map[string]string{"net.ipv4.tcp_available_congestion_control": "reno cubic\n"}
	for value, want := range map[string]bool{"cubic": true, "bbr": false, "cub": false} {
		if reason, cure := tune.Unavailable("net.ipv4.tcp_congestion_control", value, present); (reason == "") != want || (cure == "") != want {
			t.Errorf("%s: %q, cure %q", value, reason, cure)
		}
	}
	if reason, _ := tune.Unavailable("net.ipv4.tcp_congestion_control", "bbr", nil); reason != "" {
		t.Errorf("a host that does not tell refuses: %q", reason)
	}
}
