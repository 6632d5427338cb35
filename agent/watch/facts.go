package watch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// Facts reads what is known of the host. What it does not offer stays empty; it fails when the host's CPUs, memory,
// sockets or limits cannot be read, for no plan can be made without them.
func (w *Watcher) Facts(ctx context.Context, q lab.FactsQuery) (lab.Facts, error) {
	f := lab.Facts{Host: w.Host, Architecture: runtime.GOARCH, Agent: w.Agent, StateDir: w.StateDir, Root: os.Geteuid() == 0}
	var err error
	if f.Hostname, err = os.Hostname(); err != nil || q.Brief {
		return f, err
	}
	if err := errors.Join(w.cpuFacts(&f), w.memoryFacts(&f), w.kernelFacts(&f), w.limitFacts(ctx, &f)); err != nil {
		return f, err
	}
	if f.PortsInUse, err = portsInUse(); err != nil {
		return f, err
	}
	f.Container = w.container("/")
	f.Network = w.link("self/ns/net")
	w.cgroupFacts(&f)
	f.NICs = w.nics()
	f.Sysctls = w.sysctls(ctx)
	f.SysctlWritable = w.writable(q.Sysctls, f.Root)
	f.LogBytesFree = bytesFree(w.StateDir)
	w.softwareFacts(ctx, q, &f)
	return f, ctx.Err()
}

func (w *Watcher) cpuFacts(f *lab.Facts) error {
	cpus, err := w.oneSample(w.cpus)
	if err != nil {
		return err
	}
	f.Cores = len(cpus)
	if f.CPUs, err = allowedCPUs(); err != nil {
		return err
	}
	nodes, _ := filepath.Glob(w.sys("devices/system/node/node[0-9]*"))
	f.NUMANodes = max(1, len(nodes))
	f.Governor = w.line(w.sys("devices/system/cpu/cpu0/cpufreq/scaling_governor"))
	fs, err := procfs.NewFS(w.proc(""))
	if err != nil {
		return err
	}
	if infos, err := fs.CPUInfo(); err == nil && len(infos) > 0 {
		f.CPUModel = infos[0].ModelName
		f.Virtualisation = w.virtualisation(infos[0].Flags)
	}
	return nil
}

// oneSample keeps a reading of the shared buffer apart from the samples.
func (w *Watcher) oneSample(read func() ([]lab.CPUTimes, error)) ([]lab.CPUTimes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return read()
}

// allowedCPUs are the CPUs that this process may use, ascending.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

// makers are the parts of sys_vendor and product_name by which hypervisors show themselves (as systemd-detect-virt
// reads them).
var makers = []struct{ text, name string }{
	{"KVM", "kvm"}, {"OpenStack", "kvm"}, {"Amazon EC2", "amazon"}, {"Google", "google"}, {"QEMU", "qemu"},
	{"VMware", "vmware"}, {"VirtualBox", "oracle"}, {"innotek", "oracle"}, {"Xen", "xen"}, {"Bochs", "bochs"},
	{"Virtual Machine", "microsoft"}, {"Parallels", "parallels"}, {"Alibaba Cloud", "alibaba"},
}

// virtualisation is a hypervisor's name, "vm" for one that does not say its name, or "".
func (w *Watcher) virtualisation(cpuFlags []string) string {
	text := w.line(w.sys("class/dmi/id/sys_vendor")) + " " + w.line(w.sys("class/dmi/id/product_name"))
	for _, m := range makers {
		if strings.Contains(text, m.text) {
			return m.name
		}
	}
	if slices.Contains(cpuFlags, "hypervisor") {
		return "vm"
	}
	return ""
}

func (w *Watcher) memoryFacts(f *lab.Facts) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.memory()
	f.MemoryBytes, f.AvailableBytes = m.TotalBytes, m.AvailableBytes
	return err
}

func (w *Watcher) kernelFacts(f *lab.Facts) error {
	f.Kernel = w.line(w.proc("sys/kernel/osrelease"))
	f.BootID = w.line(w.proc("sys/kernel/random/boot_id"))
	if f.Kernel == "" || f.BootID == "" {
		return errors.New("kernel release and boot id cannot be read below " + w.proc("sys/kernel"))
	}
	text, err := os.ReadFile("/etc/os-release")
	if errors.Is(err, os.ErrNotExist) {
		text, err = os.ReadFile("/usr/lib/os-release")
	}
	if err == nil {
		f.Distribution = parseDistribution(text)
	}
	return nil
}

// parseDistribution is ID and VERSION_ID of os-release(5), "debian 12".
func parseDistribution(text []byte) string {
	m := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		m[key] = strings.Trim(value, `"'`)
	}
	return strings.TrimSpace(m["ID"] + " " + m["VERSION_ID"])
}

func (w *Watcher) limitFacts(ctx context.Context, f *lab.Facts) error {
	var err error
	if f.NofileSoft, f.NofileHard, err = nofile(ctx); err != nil {
		return err
	}
	f.NrOpen, err = strconv.Atoi(w.line(w.proc("sys/fs/nr_open")))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(w.proc("self/status"))
	if err != nil {
		return err
	}
	f.RaiseNofile = parseMayRaise(text)
	return nil
}

// nofile is the limit of open files that children of this process get. The Go runtime raises the soft limit of its
// own process, and gives children the original, so it is a child that is asked.
func nofile(ctx context.Context) (soft, hard int, err error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, 0, err
	}
	hard = int(min(r.Max, 1<<30)) // RLIM_INFINITY does not occur: the kernel's bound is fs.nr_open
	text, err := say(ctx, "cat", "/proc/self/limits")
	if err != nil {
		return int(min(r.Cur, 1<<30)), hard, nil
	}
	return parseNofile([]byte(text)), hard, nil
}

// parseMayRaise reports whether the effective set in /proc/PID/status has CAP_SYS_RESOURCE (capabilities(7)).
func parseMayRaise(status []byte) bool {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("CapEff:")); ok {
			set, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), 16, 64)
			return err == nil && set>>unix.CAP_SYS_RESOURCE&1 == 1
		}
	}
	return false
}

// nics are the network interfaces other than the loopback, by name.
func (w *Watcher) nics() []lab.NIC {
	dirs, _ := filepath.Glob(w.sys("class/net/*"))
	var nics []lab.NIC
	for _, dir := range dirs {
		mtu, err := strconv.Atoi(w.line(dir + "/mtu"))
		if name := filepath.Base(dir); err == nil && name != "lo" {
			speed, _ := strconv.Atoi(w.line(dir + "/speed")) // -1 or an error when it is not known
			queues, _ := filepath.Glob(dir + "/queues/rx-*")
			nics = append(nics, lab.NIC{Name: name, SpeedMbitS: max(0, speed), Queues: len(queues), MTUBytes: mtu})
		}
	}
	return nics
}

func portsInUse() ([]int, error) {
	all, err := listeners()
	if err != nil {
		return nil, err
	}
	var ports []int
	for _, l := range all {
		ports = append(ports, l.Port)
	}
	return slices.Compact(ports), nil // sorted by port
}

// bytesFree is the space for ordinary users on the file system of a directory, or of the one that will hold it.
func bytesFree(dir string) int64 {
	for {
		var fs unix.Statfs_t
		if err := unix.Statfs(or(dir, "."), &fs); err == nil {
			return int64(fs.Bavail) * fs.Bsize
		} else if dir == filepath.Dir(dir) {
			return 0
		}
		dir = filepath.Dir(dir)
	}
}

// line is the text of a small file without space around it; "" when it cannot be read.
func (w *Watcher) line(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}
