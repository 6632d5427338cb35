package watch

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"ngxlab/lab"
)

func TestFactsOfThisMachine(t *testing.T) {
	w := &Watcher{Host: "here", Agent: "abc", StateDir: "/var/lib/not/there/yet"}
	f, err := w.Facts(t.Context(), lab.FactsQuery{Sysctls: []string{"net.core.somaxconn", "net.ipv4.tcp_tw_recycle", "kernel.osrelease", "net/../../etc/passwd"},
		Commands: []string{"sh", "no-such-tool", "/bin/sh"}, Packages: []string{"no-such-package"}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Host != "here" || f.Hostname == "" || f.Agent != "abc" || f.StateDir == "" || f.Architecture != runtime.GOARCH || f.Distribution == "" {
		t.Errorf("names %+v", f)
	}
	if f.Cores < 1 || len(f.CPUs) < 1 || len(f.CPUs) > f.Cores || !slices.IsSorted(f.CPUs) || f.NUMANodes < 1 || f.MemoryBytes < 1<<26 || f.AvailableBytes < 1 {
		t.Errorf("hardware: %d cores, CPUs %v, %d nodes, %d bytes", f.Cores, f.CPUs, f.NUMANodes, f.MemoryBytes)
	}
	if f.NofileSoft < 1 || f.NofileHard < f.NofileSoft || f.NrOpen < 1 || f.Cgroup < 1 || f.LogBytesFree < 1 {
		t.Errorf("limits: %d, %d, %d, cgroup %d, %d bytes free", f.NofileSoft, f.NofileHard, f.NrOpen, f.Cgroup, f.LogBytesFree)
	}
	somaxconn, err := os.OpenFile("/proc/sys/net/core/somaxconn", os.O_WRONLY, 0) // root's, and read-only in many containers
	if err == nil {
		err = somaxconn.Close()
	}
	if f.Root != (os.Geteuid() == 0) || f.SysctlWritable["net.core.somaxconn"] != (err == nil) {
		t.Errorf("root %v, writable %v; opened for writing: %v", f.Root, f.SysctlWritable, err)
	}
	for _, name := range []string{"net.ipv4.tcp_tw_recycle", "kernel.osrelease", "net/../../etc/passwd"} {
		if writable, asked := f.SysctlWritable[name]; writable || !asked {
			t.Errorf("%s: writable %v, asked %v", name, writable, asked)
		}
	}
	if len(f.Commands) != 1 || !filepath.IsAbs(f.Commands["sh"]) || len(f.Packages) != 0 {
		t.Errorf("commands %v, packages %v", f.Commands, f.Packages)
	}
	if f.Sysctls["kernel.osrelease"] != f.Kernel || f.Sysctls["kernel.random.boot_id"] != f.BootID || len(f.Sysctls) < 200 {
		t.Errorf("%d sysctls", len(f.Sysctls))
	}
	for name := range f.Sysctls {
		if name == "net.ipv4.route.flush" || name == "vm.compact_memory" {
			t.Errorf("%s can only be written", name)
		}
	}
}

func TestBriefFactsSayWhoAnswers(t *testing.T) {
	w := &Watcher{Host: "here", Agent: "abc", StateDir: "/var/lib/not/there/yet"}
	f, err := w.Facts(t.Context(), lab.FactsQuery{Brief: true})
	if err != nil || f.Hostname == "" || f.Agent != "abc" || f.Root != (os.Geteuid() == 0) || f.Sysctls != nil {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestPortInUseIsAFact(t *testing.T) {
	port := narrow(t)
	ports, err := portsInUse()
	if err != nil || !slices.Contains(ports, port) {
		t.Errorf("%d is not in %v, %v", port, ports, err)
	}
}

func TestSysctlNamesWithDotsAreWrittenWithASlash(t *testing.T) {
	w := fixture(t)
	if m := w.sysctls(t.Context()); m["net.ipv4.conf.eth0/100.tag"] != "1" {
		t.Errorf("sysctls %v", m)
	}
	m := w.writable([]string{"net.ipv4.conf.eth0/100.tag", "net/ipv4/conf/eth0.100/tag"}, true)
	if !m["net.ipv4.conf.eth0/100.tag"] || !m["net/ipv4/conf/eth0.100/tag"] {
		t.Errorf("writable %v", m)
	}
	if w.writable([]string{"net.ipv4.conf.eth0/100.tag"}, false)["net.ipv4.conf.eth0/100.tag"] {
		t.Error("writable without being root")
	}
}

func TestLoadToolsSayTheirVersion(t *testing.T) {
	for name, want := range map[string]string{"wrk": "wrk ", "ab": "apache2-utils ", "h2load": "h2load nghttp2/"} {
		path := find(name)
		if path == "" {
			t.Logf("SKIPPED: %s is not installed", name)
			continue
		}
		if got := toolVersion(t.Context(), name, path); len(got) <= len(want) || got[:len(want)] != want {
			t.Errorf("%s says %q, want %q…", name, got, want)
		}
	}
}

func TestDistributionIsIDAndVersion(t *testing.T) {
	text := "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n"
	if got := parseDistribution([]byte(text)); got != "debian 12" {
		t.Errorf("%q", got)
	}
	if got := parseDistribution([]byte("ID=arch\n")); got != "arch" {
		t.Errorf("%q", got)
	}
}

func TestCapabilityIsReadFromTheEffectiveSet(t *testing.T) {
	if !parseMayRaise([]byte("CapPrm:\t0\nCapEff:\t0000000001000000\n")) {
		t.Error("not found")
	}
	if parseMayRaise([]byte("CapEff:\t00000000feffffff\n")) {
		t.Error("found")
	}
}

func TestInterfacesAreReadFromSysfs(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{"eth0/mtu": "1500", "eth0/speed": "10000", "lo/mtu": "65536", "veth1/mtu": "1400", "veth1/speed": "-1"} {
		path = filepath.Join(dir, "class/net", path)
		if err := os.MkdirAll(filepath.Dir(path)+"/queues/rx-0", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := (&Watcher{Sys: dir}).nics()
	want := []lab.NIC{{Name: "eth0", SpeedMbitS: 10000, Queues: 1, MTUBytes: 1500}, {Name: "veth1", Queues: 1, MTUBytes: 1400}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestYardstickTimesEveryAllowedCPU(t *testing.T) {
	y, err := (&Watcher{Host: "here"}).Yardstick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cpus, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(y.CPUS) != len(cpus) || y.Host != "here" || y.WallS <= 0 {
		t.Fatalf("yardstick %+v on CPUs %v", y, cpus)
	}
	for _, s := range y.CPUS {
		if s < 1e-4 || s > y.WallS {
			t.Errorf("CPU time %v s of %v s", s, y.WallS)
		}
	}
	after, err := allowedCPUs()
	if err != nil || !slices.Equal(cpus, after) {
		t.Errorf("affinity %v before, %v after, %v", cpus, after, err)
	}
}
