package knob_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

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
	if rs := tr.restore(k); rs["net.core.somaxconn"].Outcome != lab.RestoreForeign || rs["net.core.somaxconn"].Note == "" || tr.value("net/core/somaxconn") != "8192" {
		t.Errorf("at a value of the lab's: restored %+v", rs)
	}
	for _, found := range []string{"4096", "128"} {
		tr := newTree(t)
		tr.apply(tr.keeper(), change("net.core.somaxconn", "4096", "8192"))
		tr.set("kernel/random/boot_id", "boot-two")
		tr.set("net/core/somaxconn", found)
		r := tr.restore(tr.keeper())["net.core.somaxconn"]
		if r.Outcome != lab.RestoreRebooted || r.Found.Text != found || r.Original.Text != "4096" || tr.value("net/core/somaxconn") != found {
			t.Errorf("at %s: restored %+v", found, r)
		}
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

// halfDone is a command that touches one file and fails before the other, by which it is verified.
func halfDone(dir string, revert string) lab.Change {
	c := lab.CommandValue{
		Apply: []string{"/bin/sh", "-c", "touch " + dir + "/half && exit 3"}, Verify: []string{"/bin/sh", "-c", "test -e " + dir + "/whole"},
		Revert: []string{"/bin/sh", "-c", revert}, Timeout: lab.Seconds(20),
	}
	from := lab.Value{Text: c.String()}
	c.Applied = true
	return lab.Change{Knob: lab.KnobID{Kind: lab.KnobCommand, Name: "two files"}, From: from, To: lab.Value{Text: c.String()}}
}

func TestCommandThatFailedHalfWayIsTakenBack(t *testing.T) {
	m, dir := newMachine(t), t.TempDir()
	_, err := m.keeper().Apply(t.Context(), "camp", []lab.Change{halfDone(dir, "rm "+dir+"/half")})
	if _, there := os.Stat(filepath.Join(dir, "half")); err == nil || there != nil {
		t.Fatalf("applied: %v, %v", err, there)
	}
	if rs := m.restore(m.keeper()); rs["two files"].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v", rs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || !m.settled() {
		t.Errorf("left %v, %v", left, err)
	}
}

// cutShort is a command that makes two files and is verified by the first; its revert ends after the first while there is a
// file "cut".
func cutShort(dir string) lab.Change {
	sh := func(line string) []string { return []string{"/bin/sh", "-c", "cd " + dir + " && " + line} }
	c := lab.CommandValue{
		Apply: sh("touch whole half"), Verify: sh("test -e whole"), Revert: sh("rm -f whole && test ! -e cut && rm -f half"), Timeout: lab.Seconds(20),
	}
	from := lab.Value{Text: c.String()}
	c.Applied = true
	return lab.Change{Knob: lab.KnobID{Kind: lab.KnobCommand, Name: "cut short"}, From: from, To: lab.Value{Text: c.String()}}
}

func back(c lab.Change) lab.Change { return lab.Change{Knob: c.Knob, From: c.To, To: c.From} }

// TestRevertThatWasCutShortIsRunAgain: that verifying finds nothing in force does not show that all was taken back.
func TestRevertThatWasCutShortIsRunAgain(t *testing.T) {
	for name, cut := range map[string]func(m *machine, c lab.Change){
		"by a restore": func(m *machine, _ lab.Change) {
			if rs, err := m.keeper().Restore(m.t.Context()); err == nil || rs[0].Outcome != lab.RestoreFailed {
				m.t.Errorf("a revert that failed is taken for done: %+v", rs)
			}
		},
		"between states": func(m *machine, c lab.Change) {
			if _, err := m.keeper().Apply(m.t.Context(), "camp", []lab.Change{back(c)}); err == nil {
				m.t.Error("a revert that failed is taken for done")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, dir := newMachine(t), t.TempDir()
			c := cutShort(dir)
			m.apply(m.keeper(), c)
			m.apply(m.keeper(), back(c), c) // what it is to be reverted to is known to the journal
			marker := filepath.Join(dir, "cut")
			if err := os.WriteFile(marker, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cut(m, c)
			if err := os.Remove(marker); err != nil {
				t.Fatal(err)
			}
			m.restore(m.keeper())
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || !m.settled() {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// TestRestoreKilledWhileItRevertsIsFinishedByTheNext kills at the boundary before the write, when the next can only know by
// the journal that a part may be done.
func TestRestoreKilledWhileItRevertsIsFinishedByTheNext(t *testing.T) {
	m, dir := newMachine(t), t.TempDir()
	m.apply(m.keeper(), cutShort(dir))
	k := m.keeper()
	k.KillAt(func(point string) {
		if point == "after fsync" {
			panic(killed{})
		}
	})
	if !dies(func() { m.restore(k) }) {
		t.Fatal("a revert is not announced")
	}
	if err := os.Remove(filepath.Join(dir, "whole")); err != nil { // as a revert cut short would
		t.Fatal(err)
	}
	m.restore(m.keeper())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || !m.settled() {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestCommandKilledBeforeItDidAnythingIsRestoredThoughThereIsNothingToRevert(t *testing.T) {
	m, dir := newMachine(t), t.TempDir()
	k := m.keeper()
	k.KillAt(func(point string) {
		if point == "before write" {
			panic(killed{})
		}
	})
	dies(func() { m.apply(k, halfDone(dir, "rm "+dir+"/half")) })
	if rs := m.restore(m.keeper()); rs["two files"].Error != "" || !m.settled() {
		t.Errorf("restored %+v", rs)
	}
}

func TestKnobThatIsThereOnlyAfterAnotherIsPutBackIsPutBackToo(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	k := m.keeper()
	m.apply(k, to(sysfs(flows), "0", "4096"), change("net.core.somaxconn", "4096", "8192"))
	if err := os.Remove(filepath.Join(m.root, flows)); err != nil {
		t.Fatal(err)
	}
	k.Kernel(func(path string) {
		if strings.HasSuffix(path, "somaxconn") && m.text("/proc/sys/net/core/somaxconn") == "4096\n" {
			m.put(flows, "4096\n", 0o644)
		}
	})
	if rs := m.restore(k); rs[flows].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v", rs)
	}
	if d := differences(m.snapshot(), before); len(d) > 0 {
		t.Errorf("not as before: %q", d)
	}
}

func TestKnobThatTheHostHasNoMoreIsReportedAndLeft(t *testing.T) {
	m := newMachine(t)
	k := m.keeper()
	m.apply(k, to(sysfs(flows), "0", "4096"))
	if err := os.Remove(filepath.Join(m.root, flows)); err != nil {
		t.Fatal(err)
	}
	if rs := m.restore(k); rs[flows].Outcome != lab.RestoreForeign || !rs[flows].Found.Absent || rs[flows].Error != "" || !m.settled() {
		t.Errorf("restored %+v", rs)
	}
}

func TestWhatPuttingBackAnotherUndidIsPutBackAgain(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	k := m.keeper()
	m.apply(k, change("net.core.somaxconn", "4096", "8192"), to(sysfs(flows), "0", "4096"))
	k.Kernel(func(path string) {
		if strings.HasSuffix(path, "somaxconn") {
			m.put(flows, "512\n", 0o644) // as a network card does with its queues' settings
		}
	})
	m.restore(k)
	if d := differences(m.snapshot(), before); len(d) > 0 {
		t.Errorf("not as before: %q", d)
	}
}

func TestChangeThatWouldUndoSomeoneElsesHalfOfACoupleIsRefused(t *testing.T) {
	m := newMachine(t)
	k := m.keeper()
	m.apply(k, change("vm.dirty_bytes", "0", "8388608"), change("vm.dirty_ratio", "20", "0"))
	m.put("/proc/sys/vm/dirty_bytes", "123456\n", 0o644)
	_, err := k.Apply(t.Context(), "camp", []lab.Change{change("vm.dirty_ratio", "0", "30")})
	var changed *knob.ChangedError
	if !errors.As(err, &changed) || changed.Knob.Name != "vm.dirty_bytes" || changed.Found.Text != "123456" || changed.Expected.Text != "8388608" {
		t.Errorf("error %v", err)
	}
	m.put("/proc/sys/kernel/random/boot_id", "boot-two\n", 0o644) // another boot has other values, whoever set them
	m.apply(k, change("vm.dirty_ratio", "0", "30"))
	m.restore(k)
	if m.text("/proc/sys/vm/dirty_bytes") != "123456\n" || m.text("/proc/sys/vm/dirty_ratio") != "0\n" {
		t.Errorf("bytes %q, ratio %q", m.text("/proc/sys/vm/dirty_bytes"), m.text("/proc/sys/vm/dirty_ratio"))
	}
}

// TestFileWhoseDirectoryIsAwayStaysPending: a file system that is not mounted for a moment has lost nothing.
func TestFileWhoseDirectoryIsAwayStaysPending(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	name := present
	content := "tuned\n"
	read, err := m.keeper().Read(t.Context(), lab.Naming(lab.KnobID{Kind: lab.KnobFile, Name: name}))
	if err != nil {
		t.Fatal(err)
	}
	was, err := lab.ParseFileValue(read[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	tuned := was.WithContent([]byte(content))
	m.apply(m.keeper(), lab.Change{Knob: lab.KnobID{Kind: lab.KnobFile, Name: name}, From: read[0], To: lab.Value{Text: tuned.String()}})
	dir := filepath.Join(m.root, filepath.Dir(name))
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if rs, err := m.keeper().Restore(t.Context()); err == nil || rs[0].Outcome != lab.RestoreFailed || !strings.Contains(rs[0].Error, "directory is not there") {
		t.Errorf("restored %+v, %v", rs, err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	m.restore(m.keeper())
	if after := m.snapshot(); !reflect.DeepEqual(after, before) || !m.settled() {
		t.Errorf("after %v, before %v", after, before)
	}
}
