package watch

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// tree makes files, and symbolic links where the text begins with "→".
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, isLink := cutArrow(text)
		var err error
		if isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func cutArrow(text string) (string, bool) {
	const arrow = "→"
	if len(text) > len(arrow) && text[:len(arrow)] == arrow {
		return text[len(arrow):], true
	}
	return text, false
}

func TestContainersAreKnownByWhatTheirEnginesLeave(t *testing.T) {
	const other, initial = "→pid:[4026532401]", "→pid:[4026531836]"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"machine":                    {map[string]string{"proc/self/ns/pid": initial, "proc/self/ns/uts": "→uts:[4026531838]", "proc/1/cgroup": "0::/init.scope\n"}, ""},
		"machine made of an image":   {map[string]string{"proc/self/ns/pid": initial, "proc/self/ns/uts": "→uts:[4026531838]", ".dockerenv": ""}, ""},
		"docker":                     {map[string]string{"proc/self/ns/pid": other, ".dockerenv": ""}, "docker"},
		"docker with the host's pid": {map[string]string{"proc/self/ns/pid": initial, "proc/self/ns/uts": "→uts:[4026532400]", ".dockerenv": ""}, "docker"},
		"podman":                     {map[string]string{"proc/self/ns/pid": other, "run/.containerenv": ""}, "podman"},
		"lxc":                        {map[string]string{"proc/self/ns/pid": other, "proc/1/environ": "TERM=linux\x00container=lxc\x00"}, "lxc"},
		"nspawn":                     {map[string]string{"proc/self/ns/pid": other, "run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"},
		"docker by its groups":       {map[string]string{"proc/self/ns/pid": other, "proc/1/cgroup": "4:memory:/docker/8ad1\n"}, "docker"},
		"kubernetes":                 {map[string]string{"proc/self/ns/pid": other, "proc/1/cgroup": "0::/kubepods.slice/pod1/cri-containerd-1.scope\n"}, "kubernetes"},
		"docker by its mounts":       {map[string]string{"proc/self/ns/pid": other, "proc/1/cgroup": "0::/\n", "proc/self/mountinfo": "99 88 8:1 /var/lib/docker/containers/8ad1/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n"}, "docker"},
		"one that does not say":      {map[string]string{"proc/self/ns/pid": other, "proc/1/cgroup": "0::/\n"}, "container"},
		"nothing to be read":         {map[string]string{"x": ""}, ""},
	} {
		root := tree(t, c.files)
		if got := (&Watcher{Proc: filepath.Join(root, "proc")}).container(root); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheTightestBoundOfTheControlGroupsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		cgroup int
		files  map[string]string
		cpus   float64
		bytes  int64
	}{
		"second version, in a container": {2, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n", "sys/fs/cgroup/memory.max": "2147483648\n"}, 1.5, 2 << 30},
		"second version, nested": {2, map[string]string{"proc/self/cgroup": "0::/user.slice/a.service\n", "sys/fs/cgroup/user.slice/cpu.max": "200000 100000\n", "sys/fs/cgroup/user.slice/memory.max": "max\n",
			"sys/fs/cgroup/user.slice/a.service/cpu.max": "max 100000\n", "sys/fs/cgroup/user.slice/a.service/memory.max": "1048576000\n"}, 2, 1048576000},
		"second version, unbounded":    {2, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"}, 0, 0},
		"second version, of a machine": {2, map[string]string{"proc/self/cgroup": "0::/init.scope\n"}, 0, 0},
		"first version, in a container": {1, map[string]string{"proc/self/cgroup": "4:memory:/docker/8ad1\n1:cpu,cpuacct:/docker/8ad1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n"}, 0.5, 64 << 20},
		"first version, nested": {1, map[string]string{"proc/self/cgroup": "4:memory:/a/b\n1:cpu:/a\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "2147483648\n"}, 3, 1 << 30},
		"first version, unbounded": {1, map[string]string{"proc/self/cgroup": "4:memory:/\n1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0, 0},
		"nonsense": {2, map[string]string{"proc/self/cgroup": "0::/../..\nx\n", "sys/fs/cgroup/cpu.max": "many\n", "sys/fs/cgroup/memory.max": "-5\n"}, 0, 0},
	} {
		if c.cgroup == 2 {
			c.files["sys/fs/cgroup/cgroup.controllers"] = "cpu memory\n"
		}
		root, f := tree(t, c.files), lab.Facts{}
		(&Watcher{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}).cgroupFacts(&f)
		if f.Cgroup != c.cgroup || f.CgroupCPUs != c.cpus || f.CgroupBytes != c.bytes {
			t.Errorf("%s: %v CPUs, %d bytes, want %v and %d", name, f.CgroupCPUs, f.CgroupBytes, c.cpus, c.bytes)
		}
	}
}

func TestNamespaceOfTheNetworkIsAFact(t *testing.T) {
	f, err := (&Watcher{Host: "here"}).Facts(t.Context(), lab.FactsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.Readlink("/proc/self/ns/net"); err != nil || f.Network != want || f.Network == "" {
		t.Errorf("network %q, want %q, %v", f.Network, want, err)
	}
}

// inside is set for the copy of this program that runs in namespaces of its own.
const inside = "NGXLAB_TEST_INSIDE"

func TestProcessInNamespacesOfItsOwnIsInAContainer(t *testing.T) {
	here := &Watcher{Host: "here"}
	if os.Getenv(inside) != "" {
		if name := here.container("/"); name == "" || here.link("self/ns/net") == os.Getenv(inside) {
			t.Errorf("container %q, network %s", name, here.link("self/ns/net"))
		}
		return
	}
	testlab.RequireCapability(t, unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN for namespaces")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"="+here.link("self/ns/net"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
