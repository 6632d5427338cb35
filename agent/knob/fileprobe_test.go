package knob

import (
	"errors"
	"os"
	"os/user"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// probed is the one fact of a setting.
func probed(t *testing.T, d driver, s lab.Setting) lab.KnobFact {
	t.Helper()
	facts := d.probe(t.Context(), s)
	if len(facts) != 1 {
		t.Fatalf("%d facts of %+v: %+v", len(facts), s, facts)
	}
	return facts[0]
}

func fileSetting(name, value string) lab.Setting {
	return lab.Setting{Knob: fileKnob(name), Value: value}
}

func TestProbeFillsInWhatAnExperimentLeavesOut(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o640)
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, asked, want string }{
		{"/etc/a.conf", `{"content":"new"}`, `{"mode":"0640","owner":"0:0","content":"new"}`},
		{"/etc/a.conf", `{"mode":"600"}`, `{"mode":"0600","owner":"0:0","content":"original"}`},
		{"/etc/a.conf", `{"owner":"nobody:root","content":""}`, `{"mode":"0640","owner":"` + nobody.Uid + `:0","content":""}`},
		{"/etc/new.conf", `{"content":"new"}`, `{"mode":"0644","owner":"0:0","content":"new"}`},
		{"/etc/new.conf", `{"content":"new","owner":"12:34","mode":"0400"}`, `{"mode":"0400","owner":"12:34","content":"new"}`},
	} {
		f := d.files()
		f.euid = 0
		fact := probed(t, f, fileSetting(c.name, c.asked))
		if os.Geteuid() == 0 && (fact.To.Text != c.want || fact.Reason != "") {
			t.Errorf("%s %s comes to %s (%s), want %s", c.name, c.asked, fact.To.Text, fact.Reason, c.want)
		}
	}
	fact := probed(t, d.files(), lab.Setting{Knob: fileKnob("/etc/a.conf"), Absent: true})
	if fact.Reason != "" || !fact.To.Absent || fact.Now != fileText("original", "0640") {
		t.Errorf("taking a file away: %+v", fact)
	}
}

func TestProbeSaysWhyAFileCannotBe(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o644)
	d.put("etc/big", strings.Repeat("x", maxFileBytes+1), 0o644)
	if err := errors.Join(os.Symlink("a.conf", d.path("etc/link")), unix.Mkfifo(d.path("etc/fifo"), 0o644), os.Symlink("etc", d.path("alias"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, reason, cure string }{
		{"etc/a.conf", `{"content":""}`, "absolute path", "whole path"},
		{"/etc/../etc/a.conf", `{"content":""}`, "absolute path", "whole path"},
		{"/proc/sys/vm/swappiness", `{"content":"1"}`, "below /proc/", "sysctl:"},
		{"/sys/kernel/mm/x", `{"content":"1"}`, "below /sys/", "sysfs:"},
		{"/dev/null", `{"content":"1"}`, "below /dev/", "command"},
		{"/etc/passwd", `{"content":"1"}`, "never changed: logins", "by hand"},
		{"/alias/shadow", `{"content":"1"}`, "never changed: logins", "by hand"},
		{"/etc/ssh/sshd_config", `{"content":"1"}`, "comes by SSH", "by hand"},
		{"/root/.ssh/authorized_keys", `{"content":"1"}`, "comes by SSH", "by hand"},
		{"/etc/sudoers.d/x", `{"content":"1"}`, "way to root", "by hand"},
		{"/etc/link", `{"content":"1"}`, "symbolic link to a.conf", "leads to"},
		{"/etc", `{"content":"1"}`, "a directory", "name a file"},
		{"/etc/fifo", `{"content":"1"}`, "not a regular file", "name a file"},
		{"/etc/big", `{"content":"1"}`, "1048577 bytes", "command"},
		{"/etc/a.conf", `{"content":"` + strings.Repeat("x", maxFileBytes+1) + `"}`, "larger than 1 MiB", "command"},
		{"/etc/none/a.conf", `{"content":"1"}`, "no directory", "install"},
		{"/etc/new", `{"mode":"0600"}`, "no content", "content:"},
		{"/etc/a.conf", `{"owner":"nosuchuser:root"}`, "nosuchuser", "this host has"},
		{"/etc/a.conf", `{"owner":"root:nosuchgroup"}`, "nosuchgroup", "this host has"},
		{"/etc/a.conf", `{"mode":"rw"}`, "mode", "0644"},
		{"/etc/a.conf", `[]`, "value of a file", ""},
	} {
		fact := probed(t, d.files(), fileSetting(c.name, c.value))
		if !strings.Contains(fact.Reason, c.reason) || !strings.Contains(fact.Cure, c.cure) || fact.Privilege {
			t.Errorf("%s: reason %q, cure %q, privilege %v", c.name, fact.Reason, fact.Cure, fact.Privilege)
		}
		if same(fact.Knob, fact.Now, fact.To) {
			t.Errorf("%s: refused, and yet as it is asked for: %+v", c.name, fact)
		}
	}
	for name, reason := range map[string]string{"/etc": "a directory", "/etc/link": "a symbolic link", "/etc/fifo": "not a regular file", "/etc/big": "1048577 bytes"} {
		fact := probed(t, d.files(), lab.Setting{Knob: fileKnob(name), Absent: true})
		if !strings.Contains(fact.Reason, reason) || same(fact.Knob, fact.Now, fact.To) {
			t.Errorf("%s shall be absent: %+v", name, fact)
		}
	}
}

func TestOneFileIsOneKnobByWhateverPath(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o644)
	if err := errors.Join(os.Symlink("etc", d.path("alias")), os.Link(d.path("etc/a.conf"), d.path("etc/second"))); err != nil {
		t.Fatal(err)
	}
	fact := probed(t, d.files(), fileSetting("/alias/a.conf", `{"content":"new"}`))
	if fact.Knob.Name != "/etc/a.conf" || fact.Asked.Knob.Name != "/alias/a.conf" || !strings.Contains(fact.Note, "2 names") {
		t.Errorf("%+v", fact)
	}
}

func TestProbeTellsFilesThatAnotherUserCouldHave(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o644)
	f := d.files()
	f.euid = 4242
	fact := probed(t, f, fileSetting("/etc/a.conf", `{"content":"new","owner":"0:0"}`))
	if !fact.Privilege || !strings.Contains(fact.Reason, "needs root") || fact.Cure == "" {
		t.Errorf("%+v", fact)
	}
	if fact := probed(t, f, fileSetting("/etc/a.conf", `{"content":"original"}`)); fact.Reason != "" {
		t.Errorf("what is so already needs nothing: %+v", fact)
	}
}

func TestProbeTellsWhatRootCannotReplace(t *testing.T) {
	d := newDir(t)
	d.put("etc/alone", "original", 0o644)
	d.put("etc/source", "mounted", 0o644)
	if err := unix.Mount(d.path("etc/source"), d.path("etc/alone"), "", unix.MS_BIND, ""); err != nil {
		t.Skipf("SKIPPED: cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.path("etc/alone"), 0); err != nil {
			t.Error(err)
		}
	})
	if fact := probed(t, d.files(), fileSetting("/etc/alone", `{"content":"new"}`)); !strings.Contains(fact.Reason, "mount of its own") {
		t.Errorf("%+v", fact)
	}
	if err := os.Mkdir(d.path("ro"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", d.path("ro"), "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.path("ro"), 0); err != nil {
			t.Error(err)
		}
	})
	if fact := probed(t, d.files(), fileSetting("/ro/a.conf", `{"content":"new"}`)); !strings.Contains(fact.Reason, "read-only") {
		t.Errorf("%+v", fact)
	}
}

func TestProbeTellsImmutableFiles(t *testing.T) {
	d := newDir(t)
	d.put("etc/a.conf", "original", 0o644)
	file, err := os.Open(d.path("etc/a.conf"))
	if err != nil {
		t.Fatal(err)
	}
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags|immutableFlag))
	}
	if err != nil {
		t.Skipf("SKIPPED: files cannot be made immutable here: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags)), file.Close()); err != nil {
			t.Error(err)
		}
	})
	fact := probed(t, d.files(), fileSetting("/etc/a.conf", `{"content":"new"}`))
	if !strings.Contains(fact.Reason, "immutable") || !strings.Contains(fact.Cure, "chattr -i") {
		t.Errorf("%+v", fact)
	}
}
