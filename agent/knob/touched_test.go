package knob_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/agent/knob"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// linkedNetwork moves the test's thread into a fresh network namespace with two interfaces, of which the second has an
// address. Processes that it starts are there too.
func linkedNetwork(t *testing.T) {
	t.Helper()
	testlab.RequireCapability(t, unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
	runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace can be made here: %v", err)
	}
	testlab.RequireWritable(t, "/proc/sys/net/ipv4/conf/default/rp_filter")
	for _, name := range []string{"one", "two"} {
		addInterface(t, name)
	}
	address(t, "two", "192.0.2.1/24")
}

// addInterface makes a dummy interface, or where the kernel has none another that needs no hardware.
func addInterface(t *testing.T, name string) {
	t.Helper()
	var said []byte
	for _, kind := range []string{"dummy", "bridge", "ifb"} {
		text, err := exec.CommandContext(t.Context(), "ip", "link", "add", name, "type", kind).CombinedOutput()
		if err == nil {
			return
		}
		said = append(said, text...)
	}
	t.Skipf("SKIPPED: no interface can be made here: %s", said)
}

func address(t *testing.T, name, address string) {
	t.Helper()
	if text, err := exec.CommandContext(t.Context(), "ip", "address", "add", address, "dev", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// netTree is all that can be read below /proc/sys/net of one thread, but the counter of connections.
func netTree(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "nf_conntrack_count") {
			return err
		}
		if text, err := os.ReadFile(path); err == nil {
			all[path] = string(text)
		}
		return nil
	})
	if err != nil || len(all) < 100 {
		t.Fatalf("%d sysctls, %v", len(all), err)
	}
	return all
}

// defaultsChanged are changes of defaults that interfaces follow, and of the congestion control, whatever they are now.
func defaultsChanged(k *knob.Keeper) []lab.Change {
	ids := []lab.KnobID{sysctl("net.ipv4.conf.default.rp_filter"), sysctl("net.ipv4.conf.default.accept_redirects"),
		sysctl("net/ipv4/conf/default/log_martians"), sysctl("net.ipv6.conf.default.accept_ra"), sysctl("net.ipv4.conf.one.rp_filter"),
		sysctl("net.ipv4.tcp_congestion_control"), sysctl("net.ipv4.conf.default.rp_filter")}
	now, err := k.Read(context.Background(), lab.Naming(ids...))
	if err != nil {
		panic(err)
	}
	var cs []lab.Change
	for i, id := range ids {
		next := map[string]string{"0": "1", "1": "0", "2": "1"}[now[i].Text]
		if next == "" && now[i].Text != "reno" {
			next = "reno"
		}
		if next != "" {
			cs = append(cs, lab.Change{Knob: id, From: now[i], To: lab.Value{Text: next}})
		}
	}
	last := &cs[len(cs)-1] // the first once more
	last.From, last.To = cs[0].To, lab.Value{Text: "2"}
	return cs
}

func TestDefaultsThatInterfacesFollowComeBackWithTheInterfaces(t *testing.T) {
	linkedNetwork(t)
	before := netTree(t)
	k, err := knob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Apply(t.Context(), "camp", defaultsChanged(k)); err != nil {
		t.Fatal(err)
	}
	d := differences(netTree(t), before)
	if _, followed := d["/proc/sys/net/ipv4/conf/one/accept_redirects"]; !followed {
		t.Fatalf("no interface followed its default: %q", d)
	}
	address(t, "one", "192.0.2.9/24") // from now on it no longer follows
	rs, err := k.Restore(t.Context())
	if d := differences(netTree(t), before); err != nil || len(d) > 0 {
		t.Errorf("not as before: %q; %v; %+v", d, err, rs)
	}
	for _, r := range rs {
		if r.Outcome != lab.RestoreDone && r.Outcome != lab.RestoreAlready {
			t.Errorf("%+v", r)
		}
	}
}

func TestInterfaceStillFollowsItsDefaultAfterARestore(t *testing.T) {
	linkedNetwork(t)
	k, err := knob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const of = "/proc/sys/net/ipv4/conf/"
	if _, err := k.Apply(t.Context(), "camp", defaultsChanged(k)[1:2]); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(of+"default/accept_redirects", []byte("3\n"), 0); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(of + "one/accept_redirects"); string(text) != "3\n" {
		t.Errorf("cut off from its default: %q, %v", text, err)
	}
}

func TestInterfaceMadeMeanwhileGetsTheDefaultOfBefore(t *testing.T) {
	linkedNetwork(t)
	k, err := knob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cs := defaultsChanged(k)[:1]
	if _, err := k.Apply(t.Context(), "camp", cs); err != nil {
		t.Fatal(err)
	}
	addInterface(t, "late.7")
	if _, err := k.Apply(t.Context(), "camp", []lab.Change{{Knob: cs[0].Knob, From: cs[0].To, To: lab.Value{Text: "2"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile("/proc/sys/net/ipv4/conf/late.7/rp_filter"); strings.TrimSpace(string(text)) != cs[0].From.Text {
		t.Errorf("it has %q, %v, want %s", text, err, cs[0].From.Text)
	}
}

func TestKilledAmongDefaultsThatInterfacesFollowTheNextRestoresAll(t *testing.T) {
	linkedNetwork(t)
	before := netTree(t)
	for _, point := range []string{"after append", "after fsync", "before write", "after write"} {
		for passing := range 5 {
			dir := t.TempDir()
			killChild(t, dir, "/proc/sys", point, passing)
			k, err := knob.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			rs, err := k.Restore(t.Context())
			if d := differences(netTree(t), before); err != nil || len(d) > 0 {
				t.Fatalf("killed %s %d: not as before: %q; %v; %+v", point, passing, d, err, rs)
			}
		}
	}
}

const (
	current = "/proc/sys/net/ipv4/tcp_congestion_control"
	allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	minFree = "/proc/sys/vm/min_free_kbytes"
)

// touching is a machine whose kernel also changes what no network namespace may.
func touching(t *testing.T) (*machine, func() *knob.Keeper) {
	m := newMachine(t)
	m.put(current, "cubic\n", 0o644)
	m.put(allowed, "reno cubic\n", 0o644)
	m.put(minFree, "67584\n", 0o644)
	return m, func() *knob.Keeper {
		k := m.keeper()
		k.Kernel(func(path string) {
			m.kernel(path)
			name := strings.TrimPrefix(path, m.root)
			switch text := strings.TrimSpace(m.text(name)); {
			case name == current && !strings.Contains(m.text(allowed), text):
				m.put(allowed, "reno "+text+" cubic\n", 0o644)
			case name == hugePages && strings.HasSuffix(text, "[never]"):
				m.put(minFree, "11000\n", 0o644)
			case name == hugePages:
				m.put(minFree, "70000\n", 0o644)
			}
		})
		return k
	}
}

func touchingChanges() []lab.Change {
	return []lab.Change{change("net.ipv4.tcp_congestion_control", "cubic", "bbr"), to(sysfs(hugePages), "madvise", "never"), to(sysfs(hugePages), "never", "always")}
}

func TestWhatTheKernelChangesBesidesComesBackAfterAKillAtAnyBoundary(t *testing.T) {
	for n, survived := 0, false; !survived; n++ {
		m, keeper := touching(t)
		before := m.snapshot()
		k := keeper()
		k.KillAt(nth(n))
		survived = !dies(func() { m.apply(k, touchingChanges()...); m.restore(k) })
		rs := m.restore(keeper())
		if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
			t.Errorf("killed at boundary %d: not as before: %q; %+v", n, d, rs)
		}
		if n > 200 {
			t.Fatal("never survived")
		}
	}
}

func TestForeignValueThatPuttingBackAnotherKnobChangesIsKeptThroughAKillAtAnyBoundary(t *testing.T) {
	for n, survived := 0, false; !survived; n++ {
		m, keeper := touching(t)
		m.apply(keeper(), touchingChanges()...)
		m.put(minFree, "99999\n", 0o644)
		k := keeper()
		k.KillAt(nth(n))
		survived = !dies(func() { m.restore(k) })
		rs := m.restore(keeper())
		if m.text(minFree) != "99999\n" || m.text(hugePages) != "always [madvise] never\n" || m.text(allowed) != "reno cubic\n" || !m.settled() {
			t.Errorf("killed at boundary %d: min_free_kbytes %q; %+v", n, m.text(minFree), rs)
		}
		if n > 200 {
			t.Fatal("never survived")
		}
	}
}

func TestForeignValueIsKeptThroughAKillWhileTheRestoreLearnsWhoseItIs(t *testing.T) {
	for _, clamps := range []bool{false, true} {
		for n, survived := 0, false; !survived; n++ {
			tr := newTree(t)
			keeper := func() *knob.Keeper {
				k := tr.keeper()
				if clamps {
					k.Kernel(tr.clamp)
				}
				return k
			}
			k := keeper()
			k.KillAt(func(point string) {
				if point == "after write" {
					panic(killed{})
				}
			})
			c := change("net.core.somaxconn", "4096", "65535")
			c.BestEffort = true
			dies(func() { tr.apply(k, c) })
			tr.set("net/core/somaxconn", "777")
			k = keeper()
			k.KillAt(nth(n))
			survived = !dies(func() { tr.restore(k) })
			rs := tr.restore(keeper())
			if tr.value("net/core/somaxconn") != "777" || tr.pending(keeper()) != nil {
				t.Errorf("clamps %v, killed at boundary %d: %s; %+v", clamps, n, tr.value("net/core/somaxconn"), rs)
			}
			if n > 50 {
				t.Fatal("never survived")
			}
		}
	}
}

func TestChangeThatWouldUndoSomeoneElsesTouchedValueIsRefused(t *testing.T) {
	m, keeper := touching(t)
	k := keeper()
	m.apply(k, touchingChanges()[:2]...)
	m.put(minFree, "99999\n", 0o644)
	if _, err := k.Apply(t.Context(), "camp", touchingChanges()[2:]); err == nil || m.text(minFree) != "99999\n" {
		t.Errorf("error %v, min_free_kbytes %q", err, m.text(minFree))
	}
}
