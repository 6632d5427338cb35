package knob_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

// scenario is a short campaign: two states, back to the first, and the restore. It ends with the first error, as the
// program does, and then restores all the same.
func scenario(t *testing.T, k *knob.Keeper) error {
	t.Helper()
	first := []lab.Change{
		to(file(present), fileText("one\ntwo", "0640"), fileText("three\n", "0600")),
		{Knob: file(missing), From: lab.Value{Absent: true}, To: lab.Value{Text: fileText("new\n", "0644")}},
		change("net.core.somaxconn", "4096", "8192"),
		change("net.ipv4.tcp_rmem", "4096 131072 6291456", "8192 87380 16777216"),
		change("vm.dirty_bytes", "0", "8388608"), change("vm.dirty_ratio", "20", "0"),
		to(sysfs(hugePages), "madvise", "always"), to(sysfs(steering), "0", "3"),
	}
	second := []lab.Change{
		{Knob: file(present), From: lab.Value{Text: fileText("three\n", "0600")}, To: lab.Value{Absent: true}},
		change("vm.dirty_ratio", "0", "20"), change("vm.dirty_bytes", "8388608", "0"),
		to(sysfs(hugePages), "always", "never"),
	}
	_, err := k.Apply(t.Context(), "camp", first)
	if err == nil {
		_, err = k.Apply(t.Context(), "camp", second)
	}
	if err == nil {
		_, err = k.Apply(t.Context(), "camp", []lab.Change{change("net.core.somaxconn", "8192", "4096")})
	}
	_, restored := k.Restore(t.Context())
	return errors.Join(err, restored)
}

func TestEveryOperationFailingInTurnChangesNothingForGood(t *testing.T) {
	var operations []string
	m := newMachine(t)
	k := m.keeper()
	before := m.snapshot()
	k.FailAt(func(operation string) error { operations = append(operations, operation); return nil })
	if err := scenario(t, k); err != nil || len(differences(m.snapshot(), before)) > 0 || !m.settled() {
		t.Fatalf("without a fault: %v, %q", err, differences(m.snapshot(), before))
	}
	for _, fault := range []error{unix.ENOSPC, unix.EIO, unix.EPERM} {
		for n, operation := range operations {
			m := newMachine(t)
			k := m.keeper()
			left := n
			k.FailAt(func(string) error {
				if left--; left == -1 {
					return fault
				}
				return nil
			})
			err := scenario(t, k)
			rs := m.restore(m.keeper())
			if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
				t.Errorf("%v at operation %d (%s): not as before: %q; it said %v; restored %+v", fault, n, operation, d, err, rs)
			}
		}
	}
	slices.Sort(operations)
	t.Logf("%d operations failed in turn: %q", len(operations), slices.Compact(operations))
}

func TestEveryOperationFailingFromOneOnIsMadeGoodByTheNextRestore(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	k := m.keeper()
	total := 0
	k.FailAt(func(string) error { total++; return nil })
	_ = scenario(t, k)
	for n := range total {
		m := newMachine(t)
		k := m.keeper()
		left := n
		k.FailAt(func(operation string) error {
			if left--; left < 0 && !strings.HasPrefix(operation, knob.WriteHalf) { // half a value that cannot be noted either is anybody's
				return unix.ENOSPC
			}
			return nil
		})
		err := scenario(t, k)
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("from operation %d on: %v", n, err)
		}
		m.restore(m.keeper())
		if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
			t.Errorf("from operation %d on: not as before: %q; it said %v", n, d, err)
		}
	}
}

func TestValueThatAFailedRestoreLeftIsPutBackByTheNext(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	k := m.keeper()
	m.apply(k, change("net.ipv4.tcp_rmem", "4096 131072 6291456", "1 2 3"), change("net.core.somaxconn", "4096", "8192"))
	k.FailAt(func(operation string) error {
		if operation == knob.WriteHalf+"sysctl net.ipv4.tcp_rmem" {
			return unix.EINVAL
		}
		return nil
	})
	if _, err := k.Restore(t.Context()); !errors.Is(err, unix.EINVAL) || m.text("/proc/sys/net/ipv4/tcp_rmem") != "4096\t1310\n" {
		t.Fatalf("error %v, tcp_rmem %q", err, m.text("/proc/sys/net/ipv4/tcp_rmem"))
	}
	m.restore(m.keeper())
	if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
		t.Errorf("not as before: %q", d)
	}
}

func TestJournalCutAtAnyByteIsTheJournalUpToItsLastWholeLine(t *testing.T) {
	m := newMachine(t)
	m.apply(m.keeper(), change("net.core.somaxconn", "4096", "8192"), to(sysfs(hugePages), "madvise", "never"),
		to(file(present), fileText("one\ntwo", "0640"), fileText("three\n", "0600")))
	text, err := os.ReadFile(filepath.Join(m.dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for cut := range text {
		n, length, err := knob.ParseJournal(bytes.NewReader(text[:cut]))
		if err != nil || n < entries || length > int64(cut) || int64(cut)-length > 1000 {
			t.Fatalf("cut at %d: %d entries, %d bytes, %v", cut, n, length, err)
		}
		entries = n
	}
}

func TestLastLineTornAtAnyByteRestoresEverything(t *testing.T) {
	for cut, torn := 0, true; torn; cut++ {
		m := newMachine(t)
		before := m.snapshot()
		k := m.keeper()
		m.apply(k, change("net.core.somaxconn", "4096", "8192"))
		torn = false
		k.Tear(func(b []byte) []byte {
			torn = cut < len(b)
			return b[:min(cut, len(b))]
		})
		k.KillAt(func(point string) {
			if point == "after append" {
				panic(killed{})
			}
		})
		dies(func() { m.apply(k, to(file(present), fileText("one\ntwo", "0640"), fileText("three\n", "0600"))) })
		m.restore(m.keeper())
		if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
			t.Errorf("torn at byte %d: not as before: %q", cut, d)
		}
	}
}

// TestFullDiskUnderAFileLeavesItAsItWas has a file system too small for the file's next content.
func TestFullDiskUnderAFileLeavesItAsItWas(t *testing.T) {
	m := newMachine(t)
	etc := filepath.Join(m.root, "etc")
	if err := unix.Mount("tmpfs", etc, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted here: %v", err)
	}
	defer unix.Unmount(etc, unix.MNT_DETACH) //nolint:errcheck // the test is over
	m.put(present, "one\ntwo", 0o640)
	before := m.snapshot()
	k := m.keeper()
	original := fileText("one\ntwo", "0640")
	_, err := k.Apply(t.Context(), "camp", []lab.Change{to(file(present), original, fileText(strings.Repeat("x", 1<<16), "0600"))})
	if !errors.Is(err, unix.ENOSPC) || len(differences(m.snapshot(), before)) > 0 {
		t.Errorf("error %v, want no space; %q", err, differences(m.snapshot(), before))
	}
	small := fileText("three\n", "0600")
	m.apply(k, to(file(present), original, small))
	_ = os.WriteFile(filepath.Join(etc, "filler"), make([]byte, 1<<16), 0o644) // the rest of the space
	m.restore(m.keeper())
	if err := os.Remove(filepath.Join(etc, "filler")); err != nil {
		t.Fatal(err)
	}
	if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
		t.Errorf("not as before: %q", d)
	}
}
