package tune_test

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

func sysctl(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobSysctl, Name: name} }
func nginx(name string) lab.KnobID  { return lab.KnobID{Kind: lab.KnobNginx, Name: name} }

func TestEqualComparesByMeaningOfTheKind(t *testing.T) {
	for _, c := range []struct {
		knob lab.KnobID
		a, b string
		want bool
	}{
		{sysctl("net.ipv4.tcp_rmem"), "4096\t87380\t6291456", " 4096 87380  6291456\n", true},
		{sysctl("net.ipv4.tcp_rmem"), "4096 87380", "4096 8738", false},
		{sysctl("net.ipv4.tcp_syncookies"), "true", "on", false},
		{nginx("sendfile"), "true", "on", true},
		{nginx("sendfile"), "off", "false", true},
		{nginx("sendfile"), "on", "off", false},
		{lab.KnobID{Kind: lab.KnobNofile}, "1024 ", "1024", true},
		{lab.KnobID{Kind: lab.KnobBuild}, "a", "b", false},
		{lab.KnobID{Kind: "other"}, "a ", "a", false},
	} {
		if got := tune.Equal(c.knob, c.a, c.b); got != c.want {
			t.Errorf("%s: %q and %q equal: %v", c.knob, c.a, c.b, got)
		}
	}
	if tune.EqualValues(nginx("sendfile"), lab.Value{}, lab.Value{Absent: true}) {
		t.Error("empty equals absent")
	}
}

func TestKindsTellWhereAndHowTheyAreSet(t *testing.T) {
	host := []string{lab.KnobSysctl, lab.KnobSysfs, lab.KnobEthtool, lab.KnobFile, lab.KnobService, lab.KnobUnit, lab.KnobCommand}
	stays := []string{lab.KnobFile, lab.KnobCommand}
	for _, k := range tune.Kinds() {
		onHost := slices.Contains(host, k.Name)
		if tune.OnHost(k.Name) != onHost || tune.NeedsRoot(lab.KnobID{Kind: k.Name}) != (onHost && k.Name != lab.KnobCommand) {
			t.Errorf("%s: on host %v, needs root %v", k.Name, tune.OnHost(k.Name), tune.NeedsRoot(lab.KnobID{Kind: k.Name}))
		}
		if tune.Volatile(k.Name) != (onHost && !slices.Contains(stays, k.Name)) {
			t.Errorf("%s: volatile %v", k.Name, tune.Volatile(k.Name))
		}
	}
	if tune.OnHost("unheard of") || tune.Volatile("unheard of") {
		t.Error("an unknown kind is set on the host, or volatile")
	}
}

func state(name string, pairs ...string) lab.State {
	s := lab.State{Name: name, Settings: map[lab.HostName][]lab.Setting{}}
	for i := 0; i < len(pairs); i += 2 {
		kind, knob, _ := strings.Cut(pairs[i], " ")
		s.Settings["web"] = append(s.Settings["web"], lab.Setting{Knob: lab.KnobID{Kind: kind, Name: knob}, Value: pairs[i+1]})
	}
	return s
}

func changes(t *testing.T, from, to lab.State) []string {
	t.Helper()
	list, err := tune.Transition(from, to, "web")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range list {
		line := c.Knob.String() + ": " + c.From.Text + " → " + c.To.Text
		if c.From.Absent {
			line += " (was absent)"
		}
		if c.To.Absent {
			line += " (removed)"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestTransitionIsTheMinimalOrderedDifference(t *testing.T) {
	original := state("original", "sysctl net.core.somaxconn", "4096", "sysctl net.ipv4.tcp_rmem", "4096\t131072\t6291456")
	states, err := tune.Complete([]lab.State{
		state("default", "nginx access_log", "on", "build ", "nginx"),
		state("tuned", "nginx access_log", "off", "nginx sendfile", "on", "nofile ", "20000", "build ", "nginx",
			"sysctl net.core.somaxconn", "65535", "sysctl net.ipv4.tcp_rmem", "4096 131072 6291456"),
	}, original)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"sysctl net.core.somaxconn: 4096 → 65535", "nofile:  → 20000 (was absent)",
		"nginx access_log: on → off", "nginx sendfile:  → on (was absent)"}
	if got := changes(t, states[0], states[1]); !slices.Equal(got, want) {
		t.Errorf("forward %q", got)
	}
	back := []string{"sysctl net.core.somaxconn: 65535 → 4096", "nofile: 20000 →  (removed)",
		"nginx access_log: off → on", "nginx sendfile: on →  (removed)"}
	if got := changes(t, states[1], states[0]); !slices.Equal(got, back) {
		t.Errorf("back %q", got)
	}
	if got := changes(t, states[1], states[1]); got != nil {
		t.Errorf("to itself %q", got)
	}
	restored := slices.DeleteFunc(changes(t, states[1], original), func(s string) bool { return !strings.HasPrefix(s, "sysctl") })
	if !slices.Equal(restored, back[:1]) {
		t.Errorf("to the original %q", restored)
	}
}

func TestCompleteLeavesItsInputAndNeedsEveryOriginal(t *testing.T) {
	original := state("original", "sysctl a", "1", "sysctl b", "2")
	in := []lab.State{state("one", "sysctl b", "3")}
	out, err := tune.Complete(in, original)
	if err != nil {
		t.Fatal(err)
	}
	if len(in[0].Settings["web"]) != 1 {
		t.Error("input was changed")
	}
	if got := out[0].Settings["web"]; len(got) != 2 || got[0].Value != "1" || got[1].Value != "3" {
		t.Errorf("completed to %v", got)
	}
	if _, err := tune.Complete([]lab.State{state("one", "sysctl c", "3")}, original); err == nil || !strings.Contains(err.Error(), "sysctl c") {
		t.Errorf("an unknown original gives %v", err)
	}
	if _, err := tune.Transition(state("a"), state("b", "sysctl c", "3"), "web"); err == nil {
		t.Error("a transition from an incomplete state succeeds")
	}
}

// TestPortRangeMakesWayForTheUnprivilegedStart holds the one order that the kernel enforces.
func TestPortRangeMakesWayForTheUnprivilegedStart(t *testing.T) {
	const start, ports = "sysctl net.ipv4.ip_unprivileged_port_start", "sysctl net.ipv4.ip_local_port_range"
	low, high := state("low", start, "1024", ports, "2000 60000"), state("high", start, "30000", ports, "32768 60999")
	if got := changes(t, low, high); len(got) != 2 || !strings.HasPrefix(got[0], ports) {
		t.Errorf("rising: %q", got)
	}
	if got := changes(t, high, low); len(got) != 2 || !strings.HasPrefix(got[0], start) {
		t.Errorf("falling: %q", got)
	}
}

func TestCheckRefusesValuesThatTheKernelRefuses(t *testing.T) {
	for _, c := range []struct {
		knob  lab.KnobID
		value string
		good  bool
	}{
		{sysctl("net.core.somaxconn"), "65535", true}, {sysctl("net.core.somaxconn"), "-1", false},
		{sysctl("net.core.somaxconn"), "many", false}, {sysctl("net.core.somaxconn"), "1 2", false},
		{sysctl("net.ipv4.ip_local_port_range"), "1024\t65535", true}, {sysctl("net.ipv4.ip_local_port_range"), "1024 65536", false},
		{sysctl("net.ipv4.ip_local_port_range"), "5000 4000", false}, {sysctl("net.ipv4.tcp_rmem"), "4096 87380 16777216", true},
		{sysctl("net.ipv4.tcp_rmem"), "4096", false}, {sysctl("net.ipv4.tcp_tw_reuse"), "3", false},
		{sysctl("net.ipv4.tcp_congestion_control"), "bbr", true}, {sysctl("net.ipv4.tcp_retries2"), "-1", false},
		{sysctl("net.ipv4.tcp_adv_win_scale"), "-2", true}, {sysctl("kernel.sched_rt_runtime_us"), "-1", true},
		{sysctl("net.core.somaxconn"), "", false}, {sysctl("kernel.hostname"), "a\nb", false},
		{lab.KnobID{Kind: lab.KnobNofile}, "0", false}, {lab.KnobID{Kind: lab.KnobNofile}, "1024", true},
		{nginx("sendfile"), "anything", true},
	} {
		if err := tune.Check(c.knob, c.value); (err == nil) != c.good {
			t.Errorf("%s = %q: %v", c.knob, c.value, err)
		}
	}
	err := tune.Check(sysctl("net.ipv4.tcp_rmem"), "1")
	if want := `"1" is not 3 rising numbers from 1 to 2147483647`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := tune.Check(sysctl("net.ipv4.tcp_tw_reuse"), "9"); err == nil || err.Error() != `"9" is not a number from 0 to 2` {
		t.Errorf("got %v", err)
	}
}

func TestRemovedDependsOnTheKernel(t *testing.T) {
	for kernel, want := range map[string]string{"4.11.12-custom": "", "3.17.2": "", "4.12.0": "4.12", "6.18.44-amd64": "4.12", "": "4.12"} {
		if got, _ := tune.Removed("net.ipv4.tcp_tw_recycle", kernel); got != want {
			t.Errorf("on %q removed since %q, want %q", kernel, got, want)
		}
	}
	if since, _ := tune.Removed("net.core.somaxconn", "6.18"); since != "" {
		t.Errorf("somaxconn removed since %s", since)
	}
}

func TestCoupledRefusesWhatCouldNotBePutBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		present map[string]string
		want    string
	}{
		{"vm.drop_caches", nil, "an act"}, {"net.ipv6.route.flush", nil, "an act"}, {"kernel.modules_disabled", nil, "taken back"},
		{"net.ipv4.ip_forward", nil, "accept_redirects"}, {"net.ipv4.conf.eth0.100.forwarding", nil, "offload"},
		{"net.ipv4.conf.default.forwarding", nil, ""}, {"net.ipv6.conf.eth0.disable_ipv6", nil, "addresses"},
		{"net.ipv4.neigh.eth0.unres_qlen", nil, "rounded"}, {"net.ipv4.neigh.eth0.unres_qlen_bytes", nil, ""},
		{"vm.dirty_bytes", map[string]string{"vm.dirty_bytes": "0", "vm.dirty_ratio": "20"}, ""},
		{"vm.dirty_ratio", map[string]string{"vm.dirty_bytes": "1048576", "vm.dirty_ratio": "0"}, ""},
		{"vm.dirty_bytes", map[string]string{"vm.dirty_bytes": "0\n", "vm.dirty_ratio": "0"}, "does not take 0"},
		{"vm.overcommit_kbytes", map[string]string{"vm.overcommit_kbytes": "0", "vm.overcommit_ratio": "0"}, ""},
		{"net.core.somaxconn", nil, ""},
	} {
		reason, cure := tune.Coupled(c.name, c.present)
		if (reason == "") != (c.want == "") || !strings.Contains(reason, c.want) || (reason == "") != (cure == "") {
			t.Errorf("%s with %v: %q, cure %q", c.name, c.present, reason, cure)
		}
	}
}

func TestNamespacedTellsWhatAContainerMaySet(t *testing.T) {
	for name, want := range map[string]bool{
		"net.core.somaxconn": true, "net.ipv4.tcp_rmem": true, "net.ipv4.tcp_congestion_control": true,
		"net.ipv4.ip_local_port_range": true, "net.ipv4.conf.all.rp_filter": true, "net.netfilter.nf_conntrack_tcp_timeout_established": true,
		"net.core.rmem_max": false, "net.core.netdev_max_backlog": false, "net.core.dev_weight_tx_bias": false, "net.core.default_qdisc": false,
		"net.ipv4.tcp_mem": false, "net.ipv4.tcp_max_orphans": false, "net.ipv4.route.max_size": false,
		"net.netfilter.nf_conntrack_max": false, "net.netfilter.nf_hooks_lwtunnel": false, "net.nf_conntrack_max": false,
		"vm.swappiness": false, "fs.file-max": false, "kernel.hostname": false,
	} {
		if got := tune.Namespaced(name); got != want {
			t.Errorf("%s namespaced: %v", name, got)
		}
	}
}

func TestNoteSaysWhatAValueCosts(t *testing.T) {
	for _, c := range []struct {
		knob        lab.KnobID
		value, want string
	}{
		{sysctl("net.ipv4.tcp_syncookies"), "0", "SYN floods"}, {sysctl("net.ipv4.tcp_syncookies"), "1", ""},
		{sysctl("net.ipv4.tcp_congestion_control"), "bbr", "tcp_allowed_congestion_control"},
		{sysctl("net.ipv4.tcp_low_latency"), "1", "no effect"}, {nginx("tcp_syncookies"), "0", ""},
	} {
		got := tune.Note(c.knob, c.value)
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s = %s: %q", c.knob, c.value, got)
		}
	}
}

func FuzzEqualIsAnEquivalence(f *testing.F) {
	f.Add("sysctl", "4096\t1", "4096 1")
	f.Fuzz(func(t *testing.T, kind, a, b string) {
		k := lab.KnobID{Kind: kind, Name: "x"}
		if !tune.Equal(k, a, a) || tune.Equal(k, a, b) != tune.Equal(k, b, a) || !tune.Equal(k, a, tune.Normalise(k, a)) {
			t.Errorf("%q %q %q", kind, a, b)
		}
	})
}
