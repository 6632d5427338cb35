package knob_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

// tree is a stand-in for /proc/sys.
type tree struct {
	t    *testing.T
	root string
	dir  string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	tr := &tree{t: t, root: t.TempDir(), dir: t.TempDir()}
	for name, value := range map[string]string{
		"kernel/random/boot_id":       "boot-one",
		"net/core/somaxconn":          "4096",
		"net/ipv4/tcp_rmem":           "4096\t131072\t6291456",
		"net/ipv4/tcp_fin_timeout":    "60",
		"net/ipv4/conf/eth0.100/tag":  "0",
		"vm/dirty_bytes":              "0",
		"vm/dirty_ratio":              "20",
		"vm/dirty_background_bytes":   "0",
		"vm/dirty_background_ratio":   "10",
		"kernel/hostname":             "",
		"net/ipv4/tcp_syncookies":     "1",
		"net/ipv4/ip_local_port_rage": "32768\t60999",
	} {
		tr.set(name, value)
	}
	return tr
}

func (tr *tree) set(name, value string) {
	tr.t.Helper()
	path := filepath.Join(tr.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) value(name string) string {
	tr.t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.root, name))
	if err != nil {
		tr.t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

func (tr *tree) keeper() *knob.Keeper {
	tr.t.Helper()
	k, err := knob.OpenRoots(tr.dir, knob.Roots{ProcSys: tr.root})
	if err != nil {
		tr.t.Fatal(err)
	}
	return k
}

func (tr *tree) restore(k *knob.Keeper) map[string]lab.Restored {
	tr.t.Helper()
	rs, err := k.Restore(tr.t.Context())
	if err != nil {
		tr.t.Fatalf("Restore: %v", err)
	}
	return byName(rs)
}

func byName(rs []lab.Restored) map[string]lab.Restored {
	m := map[string]lab.Restored{}
	for _, r := range rs {
		m[r.Knob.Name] = r
	}
	return m
}

func sysctl(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobSysctl, Name: name} }

func change(name, from, to string) lab.Change {
	return lab.Change{Knob: sysctl(name), From: lab.Value{Text: from}, To: lab.Value{Text: to}}
}

func (tr *tree) apply(k *knob.Keeper, cs ...lab.Change) []lab.Applied {
	tr.t.Helper()
	as, err := k.Apply(tr.t.Context(), "camp", cs)
	if err != nil {
		tr.t.Fatalf("Apply: %v", err)
	}
	return as
}

func (tr *tree) pending(k *knob.Keeper) []lab.Pending {
	tr.t.Helper()
	ps, err := k.Pending()
	if err != nil {
		tr.t.Fatal(err)
	}
	return ps
}

// clamp makes the tree keep at most 5000 in somaxconn, as a kernel would.
func (tr *tree) clamp(path string) {
	if strings.HasSuffix(path, "somaxconn") {
		if v := tr.value("net/core/somaxconn"); len(v) > 4 {
			tr.set("net/core/somaxconn", "5000")
		}
	}
}

// couple zeroes the other half, and refuses 0 bytes, as mm/page-writeback.c does.
func (tr *tree) couple(path string) {
	name, _ := filepath.Rel(tr.root, path)
	for _, pair := range [][2]string{{"vm/dirty_bytes", "vm/dirty_ratio"}, {"vm/dirty_background_bytes", "vm/dirty_background_ratio"}} {
		if name == pair[0] && tr.value(name) == "0" {
			tr.t.Errorf("0 written to %s, which the kernel refuses", name)
		}
		if name == pair[0] {
			tr.set(pair[1], "0")
		}
		if name == pair[1] {
			tr.set(pair[0], "0")
		}
	}
}
