package knob_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

// machine is a tree of ordinary files that plays a host with knobs of several kinds, and its kernel.
type machine struct {
	t         testing.TB
	root, dir string
}

// choiceLists are the files of which one word stands in brackets.
var choiceLists = map[string][]string{"/sys/kernel/mm/transparent_hugepage/enabled": {"always", "madvise", "never"}}

// couples are the sysctls of which the kernel zeroes one when the other is written.
var couples = [][2]string{{"vm/dirty_bytes", "vm/dirty_ratio"}, {"vm/dirty_background_bytes", "vm/dirty_background_ratio"}}

const (
	hugePages = "/sys/kernel/mm/transparent_hugepage/enabled"
	steering  = "/sys/class/net/eth0/queues/rx-0/rps_cpus"
	flows     = "/sys/class/net/eth0/queues/rx-0/rps_flow_cnt"
	present   = "/etc/present.conf"
	missing   = "/etc/missing.conf"
)

// newMachine is in memory where there is a directory for that: a journal is brought to the disk again and again.
func newMachine(t testing.TB) *machine {
	t.Helper()
	root, err := os.MkdirTemp("/dev/shm", "ngxlab-test-*")
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	m := &machine{t: t, root: filepath.Join(root, "host"), dir: filepath.Join(root, "state")}
	for name, value := range map[string]string{
		"/proc/sys/kernel/random/boot_id":          "boot-one\n",
		"/proc/sys/net/core/somaxconn":             "4096\n",
		"/proc/sys/net/ipv4/tcp_fin_timeout":       "60\n",
		"/proc/sys/net/ipv4/tcp_rmem":              "4096\t131072\t6291456\n",
		"/proc/sys/vm/dirty_bytes":                 "0\n",
		"/proc/sys/vm/dirty_ratio":                 "20\n",
		"/proc/sys/vm/dirty_background_bytes":      "1048576\n",
		"/proc/sys/vm/dirty_background_ratio":      "0\n",
		hugePages:                                  "always [madvise] never\n",
		steering:                                   "00000000,00000000\n",
		"/sys/class/net/eth0/queues/rx-1/rps_cpus": "00000000,00000000\n",
		flows:   "0\n",
		present: "one\ntwo",
	} {
		m.put(name, value, 0o644)
	}
	m.put(present, "one\ntwo", 0o640)
	return m
}

func (m *machine) put(name, content string, mode fs.FileMode) {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) text(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

// kernel does what writing a file of the kernel does: it keeps the list of choices, formats masks and vectors, and zeroes
// the other half of a couple.
func (m *machine) kernel(path string) {
	name := strings.TrimPrefix(path, m.root)
	text := strings.TrimSpace(m.text(name))
	if words := choiceLists[name]; words != nil {
		m.put(name, strings.Replace(strings.Join(words, " "), text, "["+text+"]", 1)+"\n", 0o644)
	}
	if strings.HasSuffix(name, "rps_cpus") && !strings.Contains(text, ",") {
		m.put(name, "00000000,"+strings.Repeat("0", max(0, 8-len(text)))+text+"\n", 0o644)
	}
	if strings.HasSuffix(name, "tcp_rmem") {
		m.put(name, strings.Join(strings.Fields(text), "\t")+"\n", 0o644)
	}
	for _, c := range couples {
		for i := range c {
			if name == "/proc/sys/"+c[i] {
				m.put("/proc/sys/"+c[1-i], "0\n", 0o644)
			}
		}
	}
}

func (m *machine) roots() knob.Roots {
	return knob.Roots{ProcSys: filepath.Join(m.root, "proc/sys"), Root: m.root}
}

// keeper is one as a new process would have it.
func (m *machine) keeper() *knob.Keeper {
	m.t.Helper()
	k, err := knob.OpenRoots(m.dir, m.roots())
	if err != nil {
		m.t.Fatal(err)
	}
	k.Kernel(m.kernel)
	return k
}

func (m *machine) apply(k *knob.Keeper, cs ...lab.Change) {
	m.t.Helper()
	if _, err := k.Apply(m.t.Context(), "camp", cs); err != nil {
		m.t.Fatalf("Apply: %v", err)
	}
}

func (m *machine) restore(k *knob.Keeper) map[string]lab.Restored {
	m.t.Helper()
	rs, err := k.Restore(m.t.Context())
	if err != nil {
		m.t.Fatalf("Restore: %v", err)
	}
	return byName(rs)
}

// snapshot is the mode and content of every file of the host.
func (m *machine) snapshot() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(m.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, m.root)
		all[name] = info.Mode().String() + " " + m.text(name)
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// differences are what one snapshot has otherwise than another.
func differences(got, want map[string]string) map[string][2]string {
	d := map[string][2]string{}
	for name := range maps.Keys(got) {
		if got[name] != want[name] {
			d[name] = [2]string{got[name], want[name]}
		}
	}
	for name := range want {
		if _, there := got[name]; !there {
			d[name] = [2]string{"", want[name]}
		}
	}
	return d
}

// settled reports whether nothing is left beside the archived journal.
func (m *machine) settled() bool {
	m.t.Helper()
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "journal.restored" {
			return false
		}
	}
	return true
}

func sysfs(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobSysfs, Name: name} }
func file(name string) lab.KnobID  { return lab.KnobID{Kind: lab.KnobFile, Name: name} }

// fileText is the value of a file with content and mode, of the user who runs the test.
func fileText(content, mode string) string {
	return lab.FileValue{Mode: mode, Owner: ownNumbers()}.WithContent([]byte(content)).String()
}

func ownNumbers() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// to is a change of a knob with texts.
func to(id lab.KnobID, from, to string) lab.Change {
	return lab.Change{Knob: id, From: lab.Value{Text: from}, To: lab.Value{Text: to}}
}
