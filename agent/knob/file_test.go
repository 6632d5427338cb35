package knob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// dir is a root of files.
type dir struct {
	t    *testing.T
	root string
}

func newDir(t *testing.T) dir {
	t.Helper()
	d := dir{t: t, root: t.TempDir()}
	if err := os.Mkdir(filepath.Join(d.root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d dir) files() files { return newFiles(d.root) }

func (d dir) path(name string) string { return filepath.Join(d.root, name) }

// put writes a file with a time of modification long ago.
func (d dir) put(name, content string, mode fs.FileMode) {
	d.t.Helper()
	past := time.Unix(1_000_000_000, 0)
	err := errors.Join(os.MkdirAll(filepath.Dir(d.path(name)), 0o755), os.WriteFile(d.path(name), []byte(content), 0o600),
		os.Chmod(d.path(name), mode), os.Chtimes(d.path(name), past, past))
	if err != nil {
		d.t.Fatal(err)
	}
}

// state is everything that is to come back: names, inodes, modes, owners, times, contents.
func (d dir) state() string {
	d.t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(d.path("etc"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		content, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s inode %d mode %v %d:%d names %d changed %v: %s\n", path, stat.Ino, info.Mode(), stat.Uid, stat.Gid, stat.Nlink, info.ModTime(), content)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all.String()
}

func fileKnob(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobFile, Name: name} }

func fileText(content, mode string) lab.Value {
	owner := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	return lab.Value{Text: lab.FileValue{Mode: mode, Owner: owner}.WithContent([]byte(content)).String()}
}

var absent = lab.Value{Absent: true}

func mustRead(t *testing.T, d driver, id lab.KnobID) lab.Value {
	t.Helper()
	v, err := d.read(t.Context(), id, lab.Value{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustWrite(t *testing.T, d driver, id lab.KnobID, to lab.Value) {
	t.Helper()
	if err := d.write(t.Context(), id, to); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, d, id); got != to {
		t.Fatalf("%s reads %+v after %+v was written", id, got, to)
	}
}

func TestFileIsReadWhole(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "one\n\x00\xff", 0o750|fs.ModeSetuid)
	v := mustRead(t, d.files(), fileKnob("/etc/a.conf"))
	f, err := lab.ParseFileValue(v.Text)
	if err != nil {
		t.Fatal(err)
	}
	content, err := f.Bytes()
	if err != nil || string(content) != "one\n\x00\xff" || !f.Base64 || f.Mode != "4750" || f.Owner != fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()) {
		t.Errorf("read %+v, content %q, %v", f, content, err)
	}
	if v := mustRead(t, d.files(), fileKnob("/etc/none")); !v.Absent {
		t.Errorf("read %+v of a file that is not there", v)
	}
}

func TestFilePutBackIsTheVeryFileThatWas(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o640)
	if err := os.Link(d.path("etc/a.conf"), d.path("etc/second")); err != nil {
		t.Fatal(err)
	}
	before, original := d.state(), mustRead(t, d.files(), fileKnob("/etc/a.conf"))
	id := fileKnob("/etc/a.conf")
	for _, way := range [][]lab.Value{
		{fileText("tuned", "0600"), original},
		{fileText("tuned", "0600"), fileText("more", "4755"), original},
		{absent, original},
		{fileText("tuned", "0600"), absent, fileText("more", "0644"), absent, original},
		{fileText("tuned", "0600"), original, fileText("more", "0644"), original},
		{fileText("original", "0600"), original},
	} {
		for _, to := range way {
			mustWrite(t, d.files(), id, to)
		}
		if after := d.state(); after != before {
			t.Fatalf("after %+v:\n%s\nwant\n%s", way, after, before)
		}
	}
}

func TestFileThatWasNotThereIsGoneAgain(t *testing.T) {
	d := newDir(t)
	before, id := d.state(), fileKnob("/etc/99-ngxlab.conf")
	for _, to := range []lab.Value{fileText("a", "0644"), fileText("b", "0600"), absent} {
		mustWrite(t, d.files(), id, to)
	}
	if err := d.files().forget(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if after := d.state(); after != before {
		t.Errorf("left behind:\n%s", after)
	}
}

func TestReplacedFileKeepsWhoMayReadIt(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o640)
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 0x21, 0, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255, // owner rw, user 33 r, group r
		16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255} // mask r, other none (linux/posix_acl_xattr.h)
	if err := unix.Setxattr(d.path("etc/a.conf"), "system.posix_acl_access", acl, 0); err != nil {
		t.Skipf("SKIPPED: no access control lists in %s: %v", d.root, err)
	}
	mustWrite(t, d.files(), fileKnob("/etc/a.conf"), fileText("tuned", "0640"))
	got := make([]byte, 200)
	n, err := unix.Getxattr(d.path("etc/a.conf"), "system.posix_acl_access", got)
	if err != nil || string(got[:n]) != string(acl) {
		t.Errorf("access control list %v, %v; want %v", got[:max(n, 0)], err, acl)
	}
}

type stopped struct{}

// diesAt runs do until its nth boundary and reports whether it got there.
func diesAt(n int, f files, do func(f files)) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(stopped); !ok {
				panic(r)
			}
			died = true
		}
	}()
	f.faults.at = func(string) {
		if n--; n < 0 {
			panic(stopped{})
		}
	}
	do(f)
	return false
}

func TestFileKilledAtAnyBoundaryIsOldOrNewAndComesBack(t *testing.T) {
	ways := map[string][]lab.Value{
		"replaced": {fileText("tuned", "0600")}, "removed": {absent}, "twice": {fileText("tuned", "0600"), fileText("more", "0644")},
		"back": {fileText("tuned", "0600"), fileText("original", "0640")},
	}
	for name, way := range ways {
		for n, died := 0, true; died; n++ {
			d, id := newDir(t), fileKnob("/etc/a.conf")
			d.put("etc/a.conf", "original", 0o640)
			before, original := d.state(), fileText("original", "0640")
			died = diesAt(n, d.files(), func(f files) {
				for _, to := range way {
					mustWrite(t, f, id, to)
				}
			})
			if now := mustRead(t, d.files(), id); now != original && !contains(way, now) {
				t.Fatalf("%s, killed at boundary %d: found %+v", name, n, now)
			}
			if err := errors.Join(d.files().write(t.Context(), id, original), d.files().forget(t.Context(), id)); err != nil {
				t.Fatalf("%s, killed at boundary %d: %v", name, n, err)
			}
			if after := d.state(); after != before {
				t.Fatalf("%s, killed at boundary %d:\n%s\nwant\n%s", name, n, after, before)
			}
		}
	}
}

func contains(values []lab.Value, v lab.Value) bool {
	for _, w := range values {
		if v == w {
			return true
		}
	}
	return false
}

func TestKeptFileThatIsNotTheOriginalIsNotTrusted(t *testing.T) {
	for name, spoil := range map[string]func(d dir, kept string){
		"another content": func(d dir, kept string) { d.put(kept, "stale", 0o640) },
		"another mode":    func(d dir, kept string) { d.put(kept, "original", 0o666) },
		"a link": func(d dir, kept string) {
			d.put("etc/evil", "original", 0o640)
			if err := os.Symlink("evil", d.path(kept)); err != nil {
				d.t.Fatal(err)
			}
		},
	} {
		d, id := newDir(t), fileKnob("/etc/a.conf")
		d.put("etc/a.conf", "original", 0o640)
		spoil(d, "etc/.a.conf.ngxlab-original")
		d.put("etc/.a.conf.ngxlab-new", "torn", 0o600)
		mustWrite(t, d.files(), id, fileText("tuned", "0600"))
		mustWrite(t, d.files(), id, fileText("original", "0640"))
		if info, err := os.Lstat(d.path("etc/a.conf")); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v %v", name, info, err)
		}
		if err := d.files().forget(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(d.path("etc/.*ngxlab*")); left != nil {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestFileThatCannotBeWrittenStaysAsItIs(t *testing.T) {
	d, id := newDir(t), fileKnob("/etc/a.conf")
	d.put("etc/a.conf", "original", 0o640)
	before := d.state()
	for _, to := range []lab.Value{{Text: "no JSON"}, {Text: `{"mode":"999","owner":"0:0","content":""}`}, {Text: `{"mode":"0644","owner":"root:root","content":""}`},
		{Text: `{"mode":"0644","owner":"0:0","content":"%","base64":true}`}} {
		if err := d.files().write(t.Context(), id, to); err == nil {
			t.Errorf("%+v was written", to)
		}
	}
	if after := d.state(); after != before {
		t.Errorf("%s\nwant\n%s", after, before)
	}
}

func TestFullDiskLeavesTheFileAsItIs(t *testing.T) {
	d, id := newDir(t), fileKnob("/etc/a.conf")
	if err := unix.Mount("tmpfs", d.path("etc"), "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIPPED: cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.path("etc"), 0); err != nil {
			t.Error(err)
		}
	})
	d.put("etc/a.conf", "original", 0o640)
	before := d.state()
	err := d.files().write(t.Context(), id, fileText(strings.Repeat("x", 100_000), "0644"))
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want a full disk", err)
	}
	if after := d.state(); after != before {
		t.Errorf("%s\nwant\n%s", after, before)
	}
}

func TestWhatIsNoFileIsAnError(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "x", 0o644)
	d.put("etc/big", strings.Repeat("x", maxFileBytes+1), 0o644)
	if err := errors.Join(os.Symlink("a.conf", d.path("etc/link")), unix.Mkfifo(d.path("etc/fifo"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/etc", "/etc/link", "/etc/fifo", "/etc/big", "etc/a.conf", "/etc/../etc/a.conf", "/etc/a.conf/below"} {
		if v, err := d.files().read(t.Context(), fileKnob(name), lab.Value{}); err == nil {
			t.Errorf("%s reads %+v", name, v)
		}
		if err := d.files().write(t.Context(), fileKnob(name), fileText("new", "0644")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}
