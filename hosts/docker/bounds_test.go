package docker_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

func TestBoundsAreInForceInside(t *testing.T) {
	t.Parallel()
	e := dockerlab.Open(t)
	l := docker.Lab{Name: dockerlab.Name(), Version: "1.2.3", Hosts: []lab.Host{
		host("web", lab.DockerHost{CPUs: 0.5, CPUSet: "0", MemoryBytes: 192 << 20, Nofile: 4321}),
	}}
	dockerlab.Up(t, e, l)
	const script = `ulimit -Sn; ulimit -Hn; grep Cpus_allowed_list /proc/self/status | cut -f 2
cd /sys/fs/cgroup
if [ -f memory.max ]; then cat memory.max memory.swap.max cpu.max; else cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us; fi`
	got := lines(t, e, l.Name, "web", script)
	v1 := []string{"4321", "4321", "0", "201326592", "50000", "100000"}
	v2 := []string{"4321", "4321", "0", "201326592", "0", "50000 100000"}
	if !slices.Equal(got, v1) && !slices.Equal(got, v2) {
		t.Errorf("inside there are %q, want %q or %q", got, v1, v2)
	}
	c, err := newRaw(t).ContainerInspect(t.Context(), "ngxlab-"+l.Name+"-web")
	if err != nil {
		t.Fatal(err)
	}
	h := c.HostConfig
	if h.Memory != h.MemorySwap || h.RestartPolicy.Name != "no" || len(h.PortBindings) > 0 || !slices.Equal([]string(h.CapAdd), []string{"NET_ADMIN"}) && !slices.Equal([]string(h.CapAdd), []string{"CAP_NET_ADMIN"}) {
		t.Errorf("made with %+v", h)
	}
	for label, want := range map[string]string{"ngxlab.lab": l.Name, "ngxlab.host": "web", "ngxlab.version": "1.2.3"} {
		if c.Config.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, c.Config.Labels[label], want)
		}
	}
}

// tryScript tries to write every sysctl: those of the network one more than they have, or else one less; the others are
// only opened for writing, for they must not open.
const tryScript = `find /proc/sys -type f | while read -r f; do
case $f in
/proc/sys/net/*)
	old=
	IFS= read -r old <"$f" || true
	set -f; set -- $old; set +f
	case ${1-} in ''|*[!0-9]*) more=$old less=$old ;; *) more=$(($1 + 1)) less=$(($1 - 1)); shift; more="$more $*" less="$less $*" ;; esac
	if { echo "$more" >"$f" || echo "$less" >"$f"; } 2>/dev/null; then echo "wrote $f"; else echo "refused $f"; fi ;;
*)
	if { true >>"$f"; } 2>/dev/null; then echo "opened $f"; fi ;;
esac
done 2>/dev/null
`

// moving are sysctls that move by themselves, or with what the other tests of this machine do.
var moving = regexp.MustCompile(`^(fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|dqstats|quota/.*|epoll/.*|inotify/.*)|` +
	`kernel/(random/.*|ns_last_pid|pty/nr|ostype|cap_last_cap|sched_domain/.*|seccomp/.*|perf_cpu_time_max_percent|perf_event_max_sample_rate|tainted)|` +
	`net/netfilter/nf_conntrack_count|net/(ipv4|ipv6)/(conf|neigh)/(veth|br-)[^/]*/.*)$`)

// sysctls reads all of this machine's sysctls.
func sysctls(t *testing.T) map[string]string {
	t.Helper()
	const root = "/proc/sys"
	values := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		if err != nil || d.IsDir() || moving.MatchString(name) {
			return nil //nolint:nilerr // an interface that went meanwhile
		}
		if content, err := os.ReadFile(path); err == nil {
			values[name] = string(content)
		}
		return nil
	})
	if err != nil || len(values) < 500 {
		t.Fatalf("%d sysctls were read, %v", len(values), err)
	}
	return values
}

// TestHostsCannotChangeTheMachinesSysctls tries every sysctl in a host, and looks at the machine's before and after.
func TestHostsCannotChangeTheMachinesSysctls(t *testing.T) {
	d, _ := enter(t)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if inside, err := output(t, d, "cat /proc/sys/kernel/random/boot_id"); err != nil || inside != string(boot) {
		t.Skipf("SKIPPED: the Docker engine of the tests is on another machine: %v", err)
	}
	before := sysctls(t)
	if err := d.Put(t.Context(), "/root/try", 0o755, strings.NewReader(tryScript)); err != nil {
		t.Fatal(err)
	}
	out, err := output(t, d, "sh /root/try")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(out) {
		what, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		count[what]++
		if what == "opened" {
			t.Errorf("%s can be written from a host", path)
		}
	}
	t.Logf("of the network %d were written and %d refused", count["wrote"], count["refused"])
	if count["wrote"] < 100 {
		t.Errorf("only %d sysctls of the network can be written:\n%.2000s", count["wrote"], out)
	}
	for _, path := range machineWide {
		if out, err := output(t, d, "test ! -w "+path); err != nil {
			t.Errorf("%s can be written from a host: %q, %v", path, out, err)
		}
	}
	// Other tests may change some for a while; what a host changed stays.
	var changed map[string]string
	t.Cleanup(func() {
		for name, was := range changed {
			t.Logf("%s was %q; putting it back: %v", name, was, os.WriteFile("/proc/sys/"+name, []byte(was), 0o644))
		}
	})
	testlab.Eventually(t, "the machine's sysctls are as before", func() bool {
		changed = map[string]string{}
		after := sysctls(t)
		for name, was := range before {
			if is, there := after[name]; there && is != was {
				changed[name] = was
			}
		}
		return len(changed) == 0
	})
}

// machineWide are sysctls of the network that the kernel has once for all network namespaces, and shows in each.
var machineWide = []string{"/proc/sys/net/netfilter/nf_hooks_lwtunnel"}

// TestSysctlsOfTheNetworkAreTheHostsOwn writes one that a study tunes.
func TestSysctlsOfTheNetworkAreTheHostsOwn(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	here, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, d, "sysctl -q -w net.core.somaxconn=12345 net.ipv4.tcp_tw_reuse=1 && cat /proc/sys/net/core/somaxconn")
	if err != nil || out != "12345\n" {
		t.Errorf("%q, %v", out, err)
	}
	if now, err := os.ReadFile("/proc/sys/net/core/somaxconn"); err != nil || !bytes.Equal(now, here) {
		t.Errorf("the machine's is %q, was %q, %v", now, here, err)
	}
	if out, err := output(t, d, "f=/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait; test ! -e $f || cat $f"); err != nil || out != "" && out != "1\n" {
		t.Errorf("closed connections are tracked for %q s, %v", out, err)
	}
	if out, err := output(t, d, "sysctl -w vm.swappiness=3"); err == nil {
		t.Errorf("vm.swappiness was written: %q", out)
	}
	// What Docker masks stays masked.
	if out, err := output(t, d, "head -qc 1 /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug 2>/dev/null; ls /sys/firmware"); err != nil || out != "" {
		t.Errorf("of what is masked there is %q, %v", out, err)
	}
}
