package tune_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab/tune"
)

// ownNetwork moves the test's thread into a fresh network namespace, whose one interface, lo, has no address.
func ownNetwork(t *testing.T) {
	t.Helper()
	testlab.RequireCapability(t, unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
	runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: a network namespace of its own: %v", err)
	}
	testlab.RequireWritable(t, "/proc/sys/net/ipv4/conf/default/rp_filter")
}

// netSysctls reads what the namespace has of interfaces and TCP, by name.
func netSysctls(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"ipv4/conf/*/*", "ipv6/conf/*/*", "ipv4/tcp_*", "ipv4/ip_*", "core/somaxconn", "ipv4/neigh/*/*"} {
		paths, err := filepath.Glob("/proc/sys/net/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if text, err := os.ReadFile(path); err == nil {
				found[strings.ReplaceAll(strings.TrimPrefix(path, "/proc/sys/"), "/", ".")] = strings.TrimSpace(string(text))
			}
		}
	}
	return found
}

func writeSysctl(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value+"\n"), 0); err != nil {
		t.Fatal(err)
	}
}

func changed(before, after map[string]string) []string {
	var names []string
	for name, value := range after {
		if before[name] != value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestThisKernelTouchesWhatTheTableSays writes sysctls in a throwaway namespace, there and back, and looks at all that
// moved.
func TestThisKernelTouchesWhatTheTableSays(t *testing.T) {
	ownNetwork(t)
	for _, c := range []struct{ name, value string }{
		{"net.ipv4.conf.default.rp_filter", "1"}, {"net.ipv4.conf.default.accept_source_route", "0"}, {"net.ipv4.conf.default.accept_redirects", "0"},
		{"net.ipv4.conf.default.forwarding", "1"}, {"net.ipv4.conf.all.rp_filter", "2"}, {"net.ipv4.conf.all.accept_source_route", "1"},
		{"net.ipv6.conf.default.accept_ra", "0"}, {"net.ipv6.conf.all.accept_ra", "0"}, {"net.ipv6.conf.all.ignore_routes_with_linkdown", "1"},
		{"net.core.somaxconn", "70000"}, {"net.ipv4.tcp_rmem", "4096 8192 16384"}, {"net.ipv4.tcp_timestamps", "0"}, {"net.ipv4.tcp_fin_timeout", "15"},
		{"net.ipv4.tcp_syncookies", "0"}, {"net.ipv4.tcp_tw_reuse", "1"}, {"net.ipv4.ip_local_port_range", "1024 65535"}, {"net.ipv4.ip_local_reserved_ports", "8080-8082"},
	} {
		before := netSysctls(t)
		old, there := before[c.name]
		if !there {
			t.Logf("this kernel has no %s", c.name)
			continue
		}
		if old == c.value { // namespaces may begin with what the machine has
			c.value = map[string]string{"0": "1", "1": "0"}[old]
		}
		writeSysctl(t, c.name, c.value)
		want := append(tune.Touched(c.name, []string{"all", "default", "lo"}), c.name)
		slices.Sort(want)
		after := netSysctls(t)
		if got := changed(before, after); !slices.Equal(got, want) {
			t.Errorf("writing %s changed %q, want %q", c.name, got, want)
		}
		if text, ok := tune.Brings(c.name, c.value, "0"); ok && after[tune.Touched(c.name, []string{"lo"})[0]] != text {
			t.Errorf("writing %s brings %q, found %q", c.name, text, after[tune.Touched(c.name, []string{"lo"})[0]])
		}
		writeSysctl(t, c.name, old)
		if got := changed(before, netSysctls(t)); got != nil {
			t.Errorf("%s written back leaves %q changed", c.name, got)
		}
	}
}

// TestForwardingIsRefusedForItDoesNotComeBack shows on this kernel what the refusal says.
func TestForwardingIsRefusedForItDoesNotComeBack(t *testing.T) {
	if reason, _ := tune.Coupled("net.ipv4.ip_forward", nil); reason == "" {
		t.Error("net.ipv4.ip_forward is not refused")
	}
	ownNetwork(t)
	writeSysctl(t, "net.ipv4.ip_forward", "0")
	writeSysctl(t, "net.ipv4.conf.all.accept_redirects", "0")
	before := netSysctls(t)
	writeSysctl(t, "net.ipv4.ip_forward", "1")
	writeSysctl(t, "net.ipv4.ip_forward", "0")
	if got := changed(before, netSysctls(t)); !slices.Equal(got, []string{"net.ipv4.conf.all.accept_redirects"}) {
		t.Errorf("there and back changed %q", got)
	}
}

func TestTouchedNamesInterfacesAndMachineWideValues(t *testing.T) {
	interfaces := []string{"all", "default", "lo", "eth0/100"}
	for name, want := range map[string][]string{
		"vm.dirty_ratio": {"vm.dirty_bytes"}, "vm.overcommit_kbytes": {"vm.overcommit_ratio"},
		"net.ipv4.conf.default.rp_filter":   {"net.ipv4.conf.lo.rp_filter", "net.ipv4.conf.eth0/100.rp_filter"},
		"net.ipv4.neigh.default.gc_thresh1": nil, "net.ipv4.neigh.default.ucast_solicit": {"net.ipv4.neigh.lo.ucast_solicit", "net.ipv4.neigh.eth0/100.ucast_solicit"},
		"net.ipv4.conf.default.forwarding": nil, "net.ipv4.conf.all.rp_filter": nil, "net.ipv6.conf.default.accept_ra": nil,
		"net.ipv4.tcp_congestion_control": {"net.ipv4.tcp_allowed_congestion_control"}, "net.core.rmem_max": nil, hugeTHP: {"vm.min_free_kbytes"},
	} {
		if got := tune.Touched(name, interfaces); !slices.Equal(got, want) {
			t.Errorf("%s touches %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"vm.dirty_ratio": "0", "net.ipv4.conf.default.rp_filter": "1", "net.core.somaxconn": "-", hugeTHP: "-", "net.ipv4.tcp_congestion_control": "reno 1"} {
		if got, ok := tune.Brings(name, " 1", "reno"); ok && got != want || !ok && want != "-" {
			t.Errorf("%s brings %q, %v", name, got, ok)
		}
	}
}
