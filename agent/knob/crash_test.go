package knob_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/agent/knob"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

type killed struct{}

// dies runs do and reports whether it was killed in the middle.
func dies(do func()) (dead bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
		}
	}()
	do()
	return false
}

// nth returns a hook that kills at the nth boundary.
func nth(n int) func(string) {
	return func(string) {
		if n--; n < 0 {
			panic(killed{})
		}
	}
}

func TestKilledAtAnyBoundaryOfApplyRestoresEverything(t *testing.T) {
	survived := false
	for n := 0; !survived; n++ {
		tr := newTree(t)
		k := tr.keeper()
		k.Kernel(func(path string) { tr.clamp(path); tr.couple(path) })
		k.KillAt(nth(n))
		c := change("net.core.somaxconn", "4096", "65535") // the tree keeps 5000
		c.BestEffort = true
		survived = !dies(func() {
			tr.apply(k, change("net.ipv4.tcp_fin_timeout", "60", "15"), c, change("vm.dirty_bytes", "0", "8388608"))
		})
		next := tr.keeper()
		next.Kernel(func(path string) { tr.clamp(path); tr.couple(path) })
		rs := tr.restore(next)
		for name, want := range map[string]string{"net/ipv4/tcp_fin_timeout": "60", "net/core/somaxconn": "4096", "vm/dirty_bytes": "0", "vm/dirty_ratio": "20"} {
			if got := tr.value(name); got != want {
				t.Errorf("killed at boundary %d: %s = %s, want %s; %+v", n, name, got, want, rs)
			}
		}
		if n > 100 {
			t.Fatal("never survived")
		}
	}
}

func TestKilledAtAnyBoundaryOfRestoreIsFinishedByTheNext(t *testing.T) {
	survived := false
	for n := 0; !survived; n++ {
		tr := newTree(t)
		k := tr.keeper()
		k.Kernel(tr.couple)
		tr.apply(k, change("net.ipv4.tcp_fin_timeout", "60", "15"), change("net.core.somaxconn", "4096", "5"), change("vm.dirty_bytes", "0", "8388608"))
		k.KillAt(nth(n))
		survived = !dies(func() { tr.restore(k) })
		next := tr.keeper()
		next.Kernel(tr.couple)
		tr.restore(next)
		if tr.value("net/ipv4/tcp_fin_timeout") != "60" || tr.value("net/core/somaxconn") != "4096" || tr.value("vm/dirty_ratio") != "20" {
			t.Errorf("killed at boundary %d: not restored", n)
		}
		if ps := tr.pending(next); ps != nil {
			t.Errorf("killed at boundary %d: pending %+v", n, ps)
		}
		if n > 100 {
			t.Fatal("never survived")
		}
	}
}

func TestValueOfSomeoneElseAfterAKillIsKept(t *testing.T) {
	tr := newTree(t)
	k := tr.keeper()
	k.KillAt(func(point string) {
		if point == "after write" {
			panic(killed{})
		}
	})
	dies(func() { tr.apply(k, change("net.core.somaxconn", "4096", "8192")) })
	tr.set("net/core/somaxconn", "777")
	if rs := tr.restore(tr.keeper()); rs["net.core.somaxconn"].Outcome != lab.RestoreForeign || tr.value("net/core/somaxconn") != "777" {
		t.Errorf("restored %+v, value %s", rs, tr.value("net/core/somaxconn"))
	}
}

func TestLineTornAtAnyByteIsIgnoredAndOverwritten(t *testing.T) {
	for cut := 0; cut < 300; cut += 7 {
		tr := newTree(t)
		k := tr.keeper()
		tr.apply(k, change("net.ipv4.tcp_fin_timeout", "60", "15"))
		k.Tear(func(b []byte) []byte { return b[:min(cut, len(b)-1)] })
		k.KillAt(func(point string) {
			if point == "after append" {
				panic(killed{})
			}
		})
		if !dies(func() { tr.apply(k, change("net.core.somaxconn", "4096", "8192")) }) {
			t.Fatal("not killed")
		}
		next := tr.keeper()
		tr.apply(next, change("net.core.somaxconn", "4096", "9000"))
		tr.restore(next)
		if tr.value("net/core/somaxconn") != "4096" || tr.value("net/ipv4/tcp_fin_timeout") != "60" {
			t.Errorf("torn at %d: not restored", cut)
		}
	}
}

func TestDamagedJournalIsAnErrorThatNamesTheLine(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"flipped bit in the first line": func(b []byte) []byte { b[40] ^= 1; return b },
		"flipped bit in the last line":  func(b []byte) []byte { b[len(b)-5] ^= 1; return b },
		"a line missing":                func(b []byte) []byte { _, rest, _ := bytes.Cut(b, []byte("\n")); return rest },
		"a line twice": func(b []byte) []byte {
			first, _, _ := bytes.Cut(b, []byte("\n"))
			return append(b, append(first, '\n')...)
		},
	} {
		tr := newTree(t)
		k := tr.keeper()
		tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
		path := filepath.Join(tr.dir, "journal")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = k.Pending()
		if !errors.Is(err, knob.ErrJournal) || !strings.Contains(err.Error(), path+": line ") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := k.Apply(t.Context(), "camp", []lab.Change{change("net.core.somaxconn", "8192", "1")}); err == nil || tr.value("net/core/somaxconn") != "8192" {
			t.Errorf("%s: applied on a damaged journal", name)
		}
		if _, err := k.Restore(t.Context()); !errors.Is(err, knob.ErrJournal) {
			t.Errorf("%s: restore: %v", name, err)
		}
	}
}

func TestHolesThatAPowerCutLeftInTheLastLineAreIgnored(t *testing.T) {
	good := knob.EncodeForFuzz("a.b", "1")
	torn := append(bytes.Clone(good), append(make([]byte, 20), "rest of a line\"}\n"...)...)
	n, length, err := knob.ParseJournal(bytes.NewReader(torn))
	if n != 1 || length != int64(len(good)) || err != nil {
		t.Errorf("entries %d, length %d, error %v", n, length, err)
	}
}

func TestFullDiskAtTheJournalChangesNothing(t *testing.T) {
	tr := newTree(t)
	if err := unix.Mount("tmpfs", tr.dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted here: %v", err)
	}
	defer unix.Unmount(tr.dir, unix.MNT_DETACH) //nolint:errcheck // the test is over
	k := tr.keeper()
	tr.apply(k, change("net.ipv4.tcp_fin_timeout", "60", "15"))
	full := bytes.Repeat([]byte("x"), 1<<16)
	_ = os.WriteFile(filepath.Join(tr.dir, "filler"), full, 0o644)
	var err error
	value := "4096"
	for i := 1; err == nil && i < 1000; i++ {
		next := fmt.Sprint(4096 + i)
		if _, err = k.Apply(t.Context(), "camp", []lab.Change{change("net.core.somaxconn", value, next)}); err == nil {
			value = next
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error %v, want no space", err)
	}
	tr.restore(k)
	if tr.value("net/core/somaxconn") != "4096" || tr.value("net/ipv4/tcp_fin_timeout") != "60" {
		t.Error("not restored")
	}
}

const childEnv = "KNOB_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	m.Run()
}

// killChild starts a process that applies changes, and kills it when it reaches a point, after passing it some times.
func killChild(t *testing.T, dir, root, point string, passing int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, "KNOB_TEST_ROOT="+root, "KNOB_TEST_POINT="+point, fmt.Sprintf("KNOB_TEST_PASSING=%d", passing))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // ends the child
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if text, err := bufio.NewReader(out).ReadString('\n'); text != point+"\n" {
		t.Fatalf("child said %q, %v", text, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// child applies changes, says at which point it stands, and waits there to be killed.
func child() {
	k, err := knob.OpenRoots(os.Getenv(childEnv), knob.Roots{ProcSys: os.Getenv("KNOB_TEST_ROOT")})
	if err != nil {
		panic(err)
	}
	passing, _ := strconv.Atoi(os.Getenv("KNOB_TEST_PASSING"))
	k.KillAt(func(point string) {
		if point != os.Getenv("KNOB_TEST_POINT") {
			return
		}
		if passing--; passing < 0 {
			_, _ = fmt.Fprintln(os.Stdout, point)
			select {}
		}
	})
	go func() { _, _ = bufio.NewReader(os.Stdin).ReadByte(); panic("the parent is gone") }()
	changes := []lab.Change{change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15")}
	if os.Getenv("KNOB_TEST_ROOT") == "/proc/sys" {
		changes = defaultsChanged(k)
	}
	_, err = k.Apply(context.Background(), "camp", changes)
	panic(err)
}

func TestProcessKilledWhileItHoldsTheLockLeavesAJournalThatRestores(t *testing.T) {
	for _, point := range []string{"before append", "after append", "before fsync", "after fsync", "before write", "after write"} {
		tr := newTree(t)
		killChild(t, tr.dir, tr.root, point, 0)
		tr.restore(tr.keeper())
		if tr.value("net/core/somaxconn") != "4096" || tr.value("net/ipv4/tcp_fin_timeout") != "60" {
			t.Errorf("killed %s: not restored", point)
		}
	}
}

// TestKernelsOwnSysctlsAreChangedAndPutBack works in a network namespace of its own.
func TestKernelsOwnSysctlsAreChangedAndPutBack(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace can be made here: %v", err)
	}
	testlab.RequireWritable(t, "/proc/sys/net/ipv4/tcp_fin_timeout")
	k, err := knob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ids := []lab.KnobID{sysctl("net.ipv4.tcp_fin_timeout"), sysctl("net.ipv4.ip_local_port_range"), sysctl("net.ipv4.tcp_rmem")}
	before, err := k.Read(t.Context(), lab.Naming(ids...))
	if err != nil {
		t.Fatal(err)
	}
	cs := []lab.Change{
		{Knob: ids[0], From: before[0], To: lab.Value{Text: "17"}},
		{Knob: ids[1], From: before[1], To: lab.Value{Text: "10000 65000"}},
		{Knob: ids[2], From: before[2], To: lab.Value{Text: "4096 87380 4194304"}}}
	if _, err := k.Apply(t.Context(), "camp", cs); err != nil {
		t.Fatal(err)
	}
	if now, err := k.Read(t.Context(), lab.Naming(ids...)); err != nil || now[0].Text != "17" || now[1].Text != "10000\t65000" {
		t.Errorf("values %+v, error %v", now, err)
	}
	if _, err := k.Apply(t.Context(), "camp", []lab.Change{{Knob: ids[1], From: lab.Value{Text: "10000 65000"}, To: lab.Value{Text: "9 3"}}}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v, want what the kernel said", err)
	}
	if _, err := k.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := k.Read(t.Context(), lab.Naming(ids...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if before[i] != after[i] {
			t.Errorf("%s: before %+v, after %+v", ids[i], before[i], after[i])
		}
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(""))
	f.Add(knob.EncodeForFuzz("net.core.somaxconn", "4096"))
	f.Add(append(knob.EncodeForFuzz("net.core.somaxconn", "4096"), "{\"crc32c\":\"0"...))
	f.Add(append(knob.EncodeForFuzz("a", "4"), '\n'))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, length, err := knob.ParseJournal(bytes.NewReader(text))
		if err != nil {
			return
		}
		if length < 0 || length > int64(len(text)) {
			t.Fatalf("length %d of %d", length, len(text))
		}
		if _, again, err := knob.ParseJournal(bytes.NewReader(text[:length])); err != nil || again != length {
			t.Errorf("whole lines alone: length %d, %v; before %d", again, err, length)
		}
	})
}
