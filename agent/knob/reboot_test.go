package knob_test

import (
	"os"
	"path/filepath"
	"testing"

	"ngxlab/lab"
)

const ours = "/etc/sysctl.d/99-ngxlab.conf"

// persisted is a machine with two sysctls and a file of ours, which names one of them, after the next boot.
func persisted(t *testing.T) (*machine, map[string]string) {
	m := newMachine(t)
	m.put("/etc/sysctl.d/README", "mine\n", 0o644)
	before := m.snapshot()
	content := fileText("# ngxlab\n-net/core/somaxconn=8192\n", "0644")
	m.apply(m.keeper(), lab.Change{Knob: file(ours), From: lab.Value{Absent: true}, To: lab.Value{Text: content}},
		change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15"))
	m.put("/proc/sys/kernel/random/boot_id", "boot-two\n", 0o644)
	before["/proc/sys/kernel/random/boot_id"] = m.snapshot()["/proc/sys/kernel/random/boot_id"]
	return m, before
}

func TestWhatAFileOfOursSetAtTheNextBootIsPutBack(t *testing.T) {
	m, before := persisted(t)
	m.put("/proc/sys/net/ipv4/tcp_fin_timeout", "60\n", 0o644)
	rs := m.restore(m.keeper())
	if rs["net.core.somaxconn"].Outcome != lab.RestoreDone || rs["net.ipv4.tcp_fin_timeout"].Outcome != lab.RestoreRebooted || rs[ours].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v", rs)
	}
	if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
		t.Errorf("not as before: %q", d)
	}
}

func TestWhatSomeoneElsesBootSetIsKept(t *testing.T) {
	m, _ := persisted(t)
	m.put("/proc/sys/net/core/somaxconn", "999\n", 0o644) // and fin_timeout is 15, which no file of ours names
	rs := m.restore(m.keeper())
	if rs["net.core.somaxconn"].Outcome != lab.RestoreRebooted || rs["net.ipv4.tcp_fin_timeout"].Outcome != lab.RestoreForeign {
		t.Errorf("restored %+v", rs)
	}
	if m.text("/proc/sys/net/core/somaxconn") != "999\n" || m.text("/proc/sys/net/ipv4/tcp_fin_timeout") != "15\n" {
		t.Error("written after a boot")
	}
}

func TestChangedAgainAfterABootTheFirstOriginalStays(t *testing.T) {
	m, before := persisted(t)
	m.put("/proc/sys/net/ipv4/tcp_fin_timeout", "60\n", 0o644)
	m.apply(m.keeper(), change("net.core.somaxconn", "8192", "1024"))
	m.restore(m.keeper())
	if d := differences(m.snapshot(), before); len(d) > 0 {
		t.Errorf("not as before: %q", d)
	}
}

func TestSysctlThatFailsAfterABootIsPutBackByTheNextRestore(t *testing.T) {
	m, before := persisted(t)
	m.put("/proc/sys/net/ipv4/tcp_fin_timeout", "60\n", 0o644)
	k := m.keeper()
	k.Kernel(func(path string) {
		if filepath.Base(path) == "somaxconn" {
			m.put("/proc/sys/net/core/somaxconn", "8192\n", 0o644)
		}
	})
	if _, err := k.Restore(t.Context()); err == nil {
		t.Fatal("no error")
	}
	m.restore(m.keeper())
	if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
		t.Errorf("not as before: %q", d)
	}
}

func TestFileIsPutBackAfterABoot(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	m.apply(m.keeper(), to(file(present), fileText("one\ntwo", "0640"), fileText("three", "0600")))
	m.put("/proc/sys/kernel/random/boot_id", "boot-two\n", 0o644)
	m.apply(m.keeper(), lab.Change{Knob: file(present), From: lab.Value{Text: fileText("three", "0600")}, To: lab.Value{Absent: true}})
	m.put("/proc/sys/kernel/random/boot_id", "boot-one\n", 0o644)
	rs := m.restore(m.keeper())
	if d := differences(m.snapshot(), before); len(d) > 0 || rs[present].Outcome != lab.RestoreDone {
		t.Errorf("not as before: %q; %+v", d, rs)
	}
}

// testdata/journal-sysctls was written by the release before the other kinds came (commit c700630): Apply of five
// changes to newTree, of which it clamped one, then killed.
func TestJournalOfTheReleaseBeforeIsRestored(t *testing.T) {
	text, err := os.ReadFile("testdata/journal-sysctls")
	if err != nil {
		t.Fatal(err)
	}
	tr := newTree(t)
	for name, value := range map[string]string{"net/ipv4/tcp_fin_timeout": "20", "net/core/somaxconn": "5000", "net/ipv4/tcp_rmem": "8192\t87380\t16777216", "vm/dirty_background_ratio": "5"} {
		tr.set(name, value)
	}
	if err := os.WriteFile(filepath.Join(tr.dir, "journal"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	k := tr.keeper()
	k.Kernel(tr.couple)
	if ps := tr.pending(k); len(ps) != 5 || ps[0].Since != "2026-11-20T08:00:00Z" || len(ps[0].Ours) != 3 {
		t.Errorf("pending %+v", ps)
	}
	rs := tr.restore(k)
	for name, want := range map[string]string{"net/ipv4/tcp_fin_timeout": "60", "net/core/somaxconn": "4096", "net/ipv4/tcp_rmem": "4096\t131072\t6291456", "vm/dirty_background_ratio": "10", "vm/dirty_background_bytes": "0"} {
		if got := tr.value(name); got != want {
			t.Errorf("%s = %q, want %q; %+v", name, got, want, rs)
		}
	}
}
