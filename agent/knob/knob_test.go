package knob_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	k, err := knob.OpenAt(tr.dir, tr.root)
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

func TestReadTellsAbsentFromEmpty(t *testing.T) {
	tr := newTree(t)
	vs, err := tr.keeper().Read(t.Context(), []lab.KnobID{
		sysctl("net.core.somaxconn"), sysctl("net.ipv4.tcp_tw_recycle"), sysctl("kernel.hostname"),
		sysctl("net.ipv4.conf.eth0/100.tag"), sysctl("net/ipv4/conf/eth0.100/tag"), sysctl("net.ipv4.tcp_rmem")})
	if err != nil {
		t.Fatal(err)
	}
	want := []lab.Value{{Text: "4096"}, {Absent: true}, {}, {Text: "0"}, {Text: "0"}, {Text: "4096\t131072\t6291456"}}
	for i := range want {
		if vs[i] != want[i] {
			t.Errorf("value %d: %+v, want %+v", i, vs[i], want[i])
		}
	}
}

func TestNamesThatLeaveTheTreeAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "/etc/passwd", "net/../../etc/passwd", "net..core", "../x", "a/", "a\x00b"} {
		if p, err := knob.Path(name); err == nil {
			t.Errorf("Path(%q) = %q, want an error", name, p)
		}
	}
}

func TestKnobsOfAServerAreRefused(t *testing.T) {
	_, err := newTree(t).keeper().Read(t.Context(), []lab.KnobID{{Kind: lab.KnobNginx, Name: "events.accept_mutex"}})
	if !errors.Is(err, knob.ErrKind) {
		t.Errorf("error %v, want ErrKind", err)
	}
}

func TestApplyThenRestorePutsBackEveryByte(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	as := tr.apply(k, change("net.core.somaxconn", "4096", "65535"), change("net.ipv4.tcp_rmem", "4096 131072 6291456", "8192 1 2"))
	if len(as) != 2 || as[0].ReadBack.Text != "65535" || as[0].Differs || as[1].Differs {
		t.Errorf("applied %+v", as)
	}
	tr.apply(k, change("net.core.somaxconn", "65535", "1024"))
	ps := tr.pending(k)
	if len(ps) != 2 || ps[0].Original.Text != "4096" || ps[0].Campaign != "camp" || ps[0].Since == "" {
		t.Fatalf("pending %+v", ps)
	}
	if ours := ps[0].Ours; len(ours) != 2 || ours[0].Text != "65535" || ours[1].Text != "1024" {
		t.Errorf("ours %+v, want every value written, oldest first", ours)
	}
	rs := tr.restore(k)
	if rs["net.core.somaxconn"].Outcome != lab.RestoreDone || rs["net.ipv4.tcp_rmem"].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v", rs)
	}
	if tr.value("net/core/somaxconn") != "4096" || tr.value("net/ipv4/tcp_rmem") != "4096\t131072\t6291456" {
		t.Errorf("not as before")
	}
	if _, err := os.Stat(filepath.Join(tr.dir, "journal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("journal still there: %v", err)
	}
	if rs := tr.restore(k); len(rs) != 0 {
		t.Errorf("second restore: %+v, want nothing", rs)
	}
}

func TestChangeThatFindsAnotherValueIsRefused(t *testing.T) {
	tr := newTree(t)
	as, err := tr.keeper().Apply(t.Context(), "camp", []lab.Change{
		change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "30", "15"), change("net.ipv4.tcp_syncookies", "1", "0")})
	var changed *knob.ErrChanged
	if !errors.As(err, &changed) || changed.Expected.Text != "30" || changed.Found.Text != "60" || changed.Knob.Name != "net.ipv4.tcp_fin_timeout" {
		t.Fatalf("error %v, want ErrChanged with knob and values", err)
	}
	if len(as) != 1 || tr.value("net/ipv4/tcp_syncookies") != "1" || tr.value("net/ipv4/tcp_fin_timeout") != "60" {
		t.Errorf("applied %+v: what follows a refusal must not happen", as)
	}
	if ps := tr.pending(tr.keeper()); len(ps) != 1 {
		t.Errorf("pending %+v, want the first change only", ps)
	}
}

func TestAbsentKnobCannotBeSet(t *testing.T) {
	tr := newTree(t)
	c := lab.Change{Knob: sysctl("net.ipv4.tcp_tw_recycle"), From: lab.Value{Absent: true}, To: lab.Value{Text: "1"}}
	if _, err := tr.keeper().Apply(t.Context(), "camp", []lab.Change{c}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want not-exist", err)
	}
	if ps := tr.pending(tr.keeper()); ps != nil {
		t.Errorf("pending %+v, want none", ps)
	}
}

// clamp makes the tree keep at most 5000 in somaxconn, as a kernel would.
func (tr *tree) clamp(path string) {
	if strings.HasSuffix(path, "somaxconn") {
		if v := tr.value("net/core/somaxconn"); len(v) > 4 {
			tr.set("net/core/somaxconn", "5000")
		}
	}
}

func TestClampedValueIsAnErrorUnlessBestEffortAndIsRestoredAllTheSame(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	k.Kernel(tr.clamp)
	as, err := k.Apply(t.Context(), "camp", []lab.Change{change("net.core.somaxconn", "4096", "65535")})
	var differs *knob.ErrReadBack
	if !errors.As(err, &differs) || differs.Found.Text != "5000" || len(as) != 1 || !as[0].Differs {
		t.Fatalf("applied %+v, error %v", as, err)
	}
	if rs := tr.restore(k); rs["net.core.somaxconn"].Outcome != lab.RestoreDone || tr.value("net/core/somaxconn") != "4096" {
		t.Errorf("restored %+v", rs)
	}
	c := change("net.core.somaxconn", "4096", "70000")
	c.BestEffort = true
	if as := tr.apply(k, c); !as[0].Differs || as[0].ReadBack.Text != "5000" {
		t.Errorf("applied %+v", as)
	}
	if rs := tr.restore(k); rs["net.core.somaxconn"].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v", rs)
	}
}

func TestValueOfSomeoneElseIsKeptAndReported(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15"), change("net.ipv4.tcp_syncookies", "1", "0"))
	tr.set("net/core/somaxconn", "777")
	tr.set("net/ipv4/tcp_syncookies", "1")
	rs := tr.restore(k)
	got := rs["net.core.somaxconn"].Outcome + " " + rs["net.ipv4.tcp_fin_timeout"].Outcome + " " + rs["net.ipv4.tcp_syncookies"].Outcome
	if got != "foreign restored already" {
		t.Errorf("outcomes %s", got)
	}
	if tr.value("net/core/somaxconn") != "777" || rs["net.core.somaxconn"].Found.Text != "777" {
		t.Errorf("foreign value was not kept: %+v", rs["net.core.somaxconn"])
	}
	if ps := tr.pending(k); ps != nil {
		t.Errorf("pending %+v", ps)
	}
}

func TestAfterARebootNothingIsWrittenBack(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
	tr.set("kernel/random/boot_id", "boot-two")
	if rs := tr.restore(k); rs["net.core.somaxconn"].Outcome != lab.RestoreRebooted || tr.value("net/core/somaxconn") != "8192" {
		t.Errorf("restored %+v", rs)
	}
}

func TestFirstChangeAfterARebootTakesANewOriginal(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
	tr.set("kernel/random/boot_id", "boot-two")
	tr.set("net/core/somaxconn", "128")
	tr.apply(k, change("net.core.somaxconn", "128", "256"))
	tr.restore(k)
	if v := tr.value("net/core/somaxconn"); v != "128" {
		t.Errorf("restored to %s, want the value of this boot", v)
	}
}

func TestEntryInErrorStaysAndIsRetried(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15"))
	stuck := true
	k.Kernel(func(path string) {
		if stuck && strings.HasSuffix(path, "somaxconn") {
			tr.set("net/core/somaxconn", "8192")
		}
	})
	rs, err := k.Restore(t.Context())
	m := byName(rs)
	if err == nil || m["net.core.somaxconn"].Outcome != lab.RestoreFailed || m["net.core.somaxconn"].Error == "" || m["net.ipv4.tcp_fin_timeout"].Outcome != lab.RestoreDone {
		t.Fatalf("restored %+v, error %v", rs, err)
	}
	if ps := tr.pending(k); len(ps) != 1 || ps[0].Knob.Name != "net.core.somaxconn" {
		t.Fatalf("pending %+v", ps)
	}
	stuck = false
	if rs := tr.restore(k); rs["net.core.somaxconn"].Outcome != lab.RestoreDone || len(rs) != 1 {
		t.Errorf("retried %+v", rs)
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

func TestCoupledSysctlsAreBothPutBack(t *testing.T) {
	for _, c := range []struct{ name, bytes, ratio, from, to string }{
		{"vm.dirty_bytes", "0", "20", "0", "8388608"},
		{"vm.dirty_ratio", "16777216", "0", "0", "30"},
		{"vm.dirty_ratio", "0", "20", "20", "0"},
	} {
		tr := newTree(t)
		tr.set("vm/dirty_bytes", c.bytes)
		tr.set("vm/dirty_ratio", c.ratio)
		k := tr.keeper()
		k.Kernel(tr.couple)
		tr.apply(k, change(c.name, c.from, c.to))
		rs := tr.restore(k)
		if tr.value("vm/dirty_bytes") != c.bytes || tr.value("vm/dirty_ratio") != c.ratio {
			t.Errorf("%s: bytes %s ratio %s; %+v", c.name, tr.value("vm/dirty_bytes"), tr.value("vm/dirty_ratio"), rs)
		}
	}
}

func TestTransitionBackOfACoupleWritesNoZero(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	k.Kernel(tr.couple)
	tr.apply(k, change("vm.dirty_bytes", "0", "8388608"))
	tr.apply(k, change("vm.dirty_ratio", "0", "20"), change("vm.dirty_bytes", "8388608", "0"))
	if rs := tr.restore(k); rs["vm.dirty_bytes"].Outcome != lab.RestoreAlready || rs["vm.dirty_ratio"].Outcome != lab.RestoreAlready {
		t.Errorf("restored %+v", rs)
	}
}

func TestForeignHalfOfACoupleIsKept(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	k.Kernel(tr.couple)
	tr.apply(k, change("vm.dirty_ratio", "20", "30"))
	tr.set("vm/dirty_ratio", "0")
	tr.set("vm/dirty_bytes", "123456")
	rs := tr.restore(k)
	if tr.value("vm/dirty_bytes") != "123456" || rs["vm.dirty_bytes"].Outcome != lab.RestoreForeign || rs["vm.dirty_ratio"].Outcome != lab.RestoreForeign {
		t.Errorf("restored %+v, bytes %s", rs, tr.value("vm/dirty_bytes"))
	}
}

func TestKeepersOfOneDirectoryTakeTurns(t *testing.T) {
	tr := newTree(t)
	names := []string{"net.core.somaxconn", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_syncookies"}
	froms := []string{"4096", "60", "1"}
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			k := tr.keeper()
			value := froms[i]
			for _, next := range []string{"7", "8", "9"} {
				if _, err := k.Apply(t.Context(), "camp", []lab.Change{change(names[i], value, next)}); err != nil {
					t.Error(err)
				}
				value = next
			}
		})
	}
	wg.Wait()
	if ps := tr.pending(tr.keeper()); len(ps) != 3 {
		t.Fatalf("pending %+v", ps)
	}
	tr.restore(tr.keeper())
	for i, name := range names {
		if v := tr.value(strings.ReplaceAll(name, ".", "/")); v != froms[i] {
			t.Errorf("%s = %s, want %s", name, v, froms[i])
		}
	}
}

func BenchmarkApply(b *testing.B) {
	root := b.TempDir()
	for name, text := range map[string]string{"kernel/random/boot_id": "b", "somaxconn": "0"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	k, err := knob.OpenAt(b.TempDir(), root)
	if err != nil {
		b.Fatal(err)
	}
	value := "0"
	for b.Loop() {
		next := map[string]string{"0": "1", "1": "0"}[value]
		if _, err := k.Apply(b.Context(), "camp", []lab.Change{change("somaxconn", value, next)}); err != nil {
			b.Fatal(err)
		}
		value = next
	}
}

func TestGoingToAndFroDoesNotMakeTheJournalGrow(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	size := func() int64 {
		info, err := os.Stat(filepath.Join(tr.dir, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
	tr.apply(k, change("net.core.somaxconn", "8192", "4096"))
	before := size()
	for range 3 {
		tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
		tr.apply(k, change("net.core.somaxconn", "8192", "4096"))
	}
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
	if after := size(); after != before {
		t.Errorf("journal of %d bytes, %d before", after, before)
	}
	if rs := tr.restore(k); rs["net.core.somaxconn"].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v", rs)
	}
}

func TestCancelledRestoreKeepsItsEntries(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
	ctx, cancel := contextWithCancel(t)
	cancel()
	if rs, err := k.Restore(ctx); err == nil || len(rs) != 1 || rs[0].Outcome != lab.RestoreFailed {
		t.Errorf("restored %+v, error %v", rs, err)
	}
	if ps := tr.pending(k); len(ps) != 1 {
		t.Errorf("pending %+v", ps)
	}
}
