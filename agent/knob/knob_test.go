package knob_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

func TestReadTellsAbsentFromEmpty(t *testing.T) {
	tr := newTree(t)
	vs, err := tr.keeper().Read(t.Context(), lab.Naming(
		sysctl("net.core.somaxconn"), sysctl("net.ipv4.tcp_tw_recycle"), sysctl("kernel.hostname"),
		sysctl("net.ipv4.conf.eth0/100.tag"), sysctl("net/ipv4/conf/eth0.100/tag"), sysctl("net.ipv4.tcp_rmem")))
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
	_, err := newTree(t).keeper().Read(t.Context(), lab.Naming(lab.KnobID{Kind: lab.KnobNginx, Name: "events.accept_mutex"}))
	if !errors.Is(err, knob.ErrKind) {
		t.Errorf("error %v, want ErrKind", err)
	}
}

func TestJournalTellsTheWallClockOfItsHost(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	k.Wall = func() time.Time { return time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC) }
	tr.apply(k, change("net.core.somaxconn", "4096", "65535"))
	if ps := tr.pending(k); len(ps) != 1 || ps[0].Since != "2031-05-06T07:08:09Z" {
		t.Errorf("pending %+v", ps)
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
	var changed *knob.ChangedError
	if !errors.As(err, &changed) || changed.Expected.Text != "30" || changed.Found.Text != "60" || changed.Knob.Name != "net.ipv4.tcp_fin_timeout" {
		t.Fatalf("error %v, want ChangedError with knob and values", err)
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

func TestClampedValueIsAnErrorUnlessBestEffortAndIsRestoredAllTheSame(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	k.Kernel(tr.clamp)
	as, err := k.Apply(t.Context(), "camp", []lab.Change{change("net.core.somaxconn", "4096", "65535")})
	var differs *knob.ReadBackError
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
	k, err := knob.OpenRoots(b.TempDir(), knob.Roots{ProcSys: root})
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
