package knob

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func TestServiceThatCrashesOnItsWayIsNotStarted(t *testing.T) {
	for _, bestEffort := range []bool{false, true} {
		w := newWhole(t)
		w.unit("a.service", "Crashes=start")
		c := lab.Change{Knob: serviceKnob("a"), From: lab.Value{Text: "stopped"}, To: lab.Value{Text: "started"}, BestEffort: bestEffort}
		done, err := w.keeper().Apply(t.Context(), "camp", []lab.Change{c})
		if said := err != nil && strings.Contains(err.Error(), "start limit"); said == bestEffort || len(done) != 1 {
			t.Errorf("best effort %v: %+v, %v", bestEffort, done, err)
		}
	}
}

func TestJobOfServicesMayTakeAsLongAsSystemdLetsIt(t *testing.T) {
	if jobTimeout <= 90*time.Second {
		t.Errorf("a job is given up after %s, systemd's own time-out is 90 s", jobTimeout)
	}
}

// TestJobLeftByAKilledProcessIsAwaitedByTheRestore has a service that still runs when the restore first looks.
func TestJobLeftByAKilledProcessIsAwaitedByTheRestore(t *testing.T) {
	w := newWhole(t)
	k := w.keeper()
	k.KillAt(func(point string) {
		if point == "before write" {
			panic(stopped{})
		}
	})
	func() {
		defer func() { _ = recover() }()
		c := lab.Change{Knob: serviceKnob("irqbalance"), From: lab.Value{Text: "started"}, To: lab.Value{Text: "stopped"}}
		_, _ = k.Apply(t.Context(), "camp", []lab.Change{c})
		t.Fatal("not killed")
	}()
	w.set("irqbalance.service", "Job", "7")
	w.set("irqbalance.service", "Stops", "5")
	if _, err := w.keeper().Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if v := mustRead(t, services{w.asRoot()}, serviceKnob("irqbalance")); v.Text != "started" {
			t.Fatalf("after the restore it is %s", v.Text)
		}
	}
}

func TestOthersMayHaveTheJournalWhileKnobsAreRead(t *testing.T) {
	w := newWhole(t)
	looks, goOn := filepath.Join(w.root, "looks"), filepath.Join(w.root, "go-on")
	value := lab.CommandValue{
		Apply: []string{"true"}, Revert: []string{"true"}, Timeout: lab.Seconds(30),
		Verify: shell("touch " + looks + "; [ ! -e " + w.flag + " ] || until [ -e " + goOn + " ]; do sleep 0.02; done; [ -e " + w.flag + " ]"),
	}
	off, on := text(value), value
	on.Applied, on.Apply = true, []string{"true"}
	k := w.keeper()
	k.KillAt(func(point string) { // it is in force when it is read back, but takes no time yet
		if point == "after write" {
			_ = os.WriteFile(goOn, nil, 0o600)
			_ = os.WriteFile(w.flag, nil, 0o600)
		}
	})
	if _, err := k.Apply(t.Context(), "camp", []lab.Change{{Knob: commandKnob, From: off, To: text(on)}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(goOn), os.Remove(looks)); err != nil {
		t.Fatal(err)
	}
	stood := make(chan error, 1)
	go func() { _, err := w.keeper().Standing(t.Context()); stood <- err }()
	testlab.Eventually(t, "verify is run", func() bool { _, err := os.Stat(looks); return err == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	c := lab.Change{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, From: lab.Value{Text: "4096"}, To: lab.Value{Text: "8192"}}
	if _, err := w.keeper().Apply(ctx, "camp", []lab.Change{c}); err != nil {
		t.Errorf("while knobs are read: %v", err)
	}
	if err := errors.Join(os.WriteFile(goOn, nil, 0o600), <-stood); err != nil {
		t.Error(err)
	}
}

func TestNobodyElseReadsWhatFilesHeld(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	w := newWhole(t)
	k := w.keeper()
	c := lab.Change{Knob: fileKnob("/etc/present.conf"), From: fileText("original", "0640"), To: fileText("tuned", "0600")}
	if _, err := k.Apply(t.Context(), "camp", []lab.Change{c}); err != nil {
		t.Fatal(err)
	}
	hidden := func(when string, names ...string) {
		t.Helper()
		for _, name := range names {
			if info, err := os.Stat(filepath.Join(w.journal, name)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s: %v, %v", when, name, info, err)
			}
		}
	}
	hidden("new", "journal", "in-force")
	if err := errors.Join(os.Chmod(filepath.Join(w.journal, "journal"), 0o644), os.Chmod(filepath.Join(w.journal, "in-force"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Standing(t.Context()); err != nil {
		t.Fatal(err)
	}
	hidden("of an earlier version", "journal", "in-force")
	if err := os.Chmod(filepath.Join(w.journal, "journal"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	hidden("restored", "journal.restored")
}

func TestWhatTheLabKeepsIsNoKnob(t *testing.T) {
	d := newDir(t)
	own := filepath.Join(d.root, "elsewhere/state")
	if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(d.path("var/lib/ngxlab-other"), 0o755), os.Symlink("elsewhere", d.path("alias"))); err != nil {
		t.Fatal(err)
	}
	f := filesBeside(d.root, filepath.Join(d.root, "alias/state"))
	for _, name := range []string{"/elsewhere/state/journal", "/alias/state/in-force", "/var/lib/ngxlab/builds/x", "/var/tmp/ngxlab-1000/journal",
		"/home/ana/.local/state/ngxlab/journal", "/root/.cache/ngxlab/agent", "/run/lock/ngxlab.lock"} {
		if fact := probed(t, f, fileSetting(name, `{"content":""}`)); !strings.Contains(fact.Reason, "the lab keeps it") || fact.Cure == "" {
			t.Errorf("%s: %q, cure %q", name, fact.Reason, fact.Cure)
		}
	}
	for _, name := range []string{"/etc/ngxlab.conf", "/elsewhere/state.conf", "/var/lib/ngxlab-other/x", "/etc/ngxlab"} {
		if fact := probed(t, f, fileSetting(name, `{"content":""}`)); strings.Contains(fact.Reason, "the lab keeps it") {
			t.Errorf("%s: %q", name, fact.Reason)
		}
	}
}

func TestWhatALostJournalKeptIsNeverDestroyed(t *testing.T) {
	for _, name := range []string{"etc/.present.conf.ngxlab-original", "etc/.present.conf.ngxlab-new"} {
		w := newWhole(t)
		w.dir.put(name, "kept by an earlier study", 0o600)
		before := w.dir.state()
		fact := probed(t, w.keeper().drivers[lab.KnobFile], fileSetting("/etc/present.conf", `{"content":"tuned"}`))
		if !strings.Contains(fact.Reason, name) || !strings.Contains(fact.Reason, "journal is lost") || !strings.Contains(fact.Cure, "move it away") {
			t.Errorf("probe: %+v", fact)
		}
		c := lab.Change{Knob: fileKnob("/etc/present.conf"), From: fileText("original", "0640"), To: fileText("tuned", "0600")}
		if _, err := w.keeper().Apply(t.Context(), "camp", []lab.Change{c}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("apply: %v", err)
		}
		if _, err := w.keeper().Restore(t.Context()); err != nil {
			t.Error(err)
		}
		if after := w.dir.state(); after != before {
			t.Errorf("%s\nwant\n%s", after, before)
		}
	}
}

func TestWhatIsKeptForAPendingEntryIsTheLabs(t *testing.T) {
	w := newWhole(t)
	before := w.dir.state()
	c := lab.Change{Knob: fileKnob("/etc/present.conf"), From: fileText("original", "0640"), To: fileText("tuned", "0600")}
	for _, next := range []lab.Value{fileText("more", "0600"), {Absent: true}} {
		if _, err := w.keeper().Apply(t.Context(), "camp", []lab.Change{c}); err != nil {
			t.Fatal(err)
		}
		w.dir.put("etc/.present.conf.ngxlab-new", "of a killed process", 0o600)
		if fact := probed(t, w.keeper().drivers[lab.KnobFile], fileSetting("/etc/present.conf", `{"content":"else"}`)); fact.Reason != "" {
			t.Errorf("probe: %+v", fact)
		}
		c.From, c.To = c.To, next
	}
	if rs, err := w.keeper().Restore(t.Context()); err != nil || rs[0].Note != "" {
		t.Error(rs, err)
	}
	if after := w.dir.state(); after != before {
		t.Errorf("%s\nwant\n%s", after, before)
	}
}

func TestRestoreSaysThatTheKeptOriginalWasGone(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"changed": func(path string) error { return os.WriteFile(path, []byte("else"), 0o640) },
	} {
		w := newWhole(t)
		c := lab.Change{Knob: fileKnob("/etc/present.conf"), From: fileText("original", "0640"), To: fileText("tuned", "0600")}
		if _, err := w.keeper().Apply(t.Context(), "camp", []lab.Change{c}); err != nil {
			t.Fatal(err)
		}
		if err := spoil(w.dir.path("etc/.present.conf.ngxlab-original")); err != nil {
			t.Fatal(err)
		}
		rs, err := w.keeper().Restore(t.Context())
		if err != nil || rs[0].Outcome != lab.RestoreDone || rs[0].Note != "as a new file: the kept original was gone" {
			t.Errorf("%s: %+v, %v", name, rs, err)
		}
		if text, err := os.ReadFile(w.dir.path("etc/present.conf")); string(text) != "original" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestWhatSomeonePutInThePlaceOfAFileIsKeptAndSaid(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a directory":               func(path string) error { return os.Mkdir(path, 0o755) },
		"a symbolic link":           func(path string) error { return os.Symlink("elsewhere", path) },
		"a file of more than 1 MiB": func(path string) error { return os.WriteFile(path, make([]byte, maxFileBytes+1), 0o600) },
	} {
		w := newWhole(t)
		c := lab.Change{Knob: fileKnob("/etc/present.conf"), From: fileText("original", "0640"), To: fileText("tuned", "0600")}
		if _, err := w.keeper().Apply(t.Context(), "camp", []lab.Change{c}); err != nil {
			t.Fatal(err)
		}
		path := w.dir.path("etc/present.conf")
		if err := errors.Join(os.Remove(path), put(path)); err != nil {
			t.Fatal(err)
		}
		if s, err := w.keeper().Standing(t.Context()); err != nil || !s[0].Drifted || s[0].Found.Text != what || s[0].Error != "" {
			t.Errorf("%s: standing %+v, %v", what, s, err)
		}
		c.From, c.To = c.To, c.From
		var changed *ChangedError
		if _, err := w.keeper().Apply(t.Context(), "camp", []lab.Change{c}); !errors.As(err, &changed) {
			t.Errorf("%s: apply: %v", what, err)
		}
		rs, err := w.keeper().Restore(t.Context())
		if err != nil || rs[0].Outcome != lab.RestoreForeign || rs[0].Found.Text != what {
			t.Errorf("%s: restored %+v, %v", what, rs, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() && info.Size() <= maxFileBytes {
			t.Errorf("%s: %v, %v", what, info, err)
		}
		if pending, err := w.keeper().Pending(); err != nil || len(pending) > 0 {
			t.Errorf("%s: pending %+v, %v", what, pending, err)
		}
	}
}

func TestOneFileOfTheKernelIsOneKnobByWhateverPath(t *testing.T) {
	d := newDir(t)
	card := "sys/devices/pci0/0000:00:01.0/net/eth0"
	d.put(card+"/mtu", "1500\n", 0o644)
	d.put(card+"/queues/rx-0/rps_cpus", "0\n", 0o644)
	d.put("sys/devices/pci0/0000:00:02.0/sda/queue/nr_requests", "64\n", 0o644)
	err := errors.Join(os.MkdirAll(d.path("sys/class/net"), 0o755), os.MkdirAll(d.path("sys/block"), 0o755),
		os.Symlink("../../devices/pci0/0000:00:01.0/net/eth0", d.path("sys/class/net/eth0")),
		os.Symlink("../../..", d.path(card+"/device")),
		os.Symlink("../devices/pci0/0000:00:02.0/sda", d.path("sys/block/sda")))
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{
		"/sys/class/net/eth0/mtu": "/sys/class/net/eth0/mtu", "/" + card + "/mtu": "/sys/class/net/eth0/mtu",
		"/sys/class/net/eth0/device/0000:00:01.0/net/eth0/mtu": "/sys/class/net/eth0/mtu",
		"/sys/class/net/e*/queues/rx-*/rps_cpus":               "/sys/class/net/eth0/queues/rx-0/rps_cpus",
		"/sys/block/sda/queue/nr_requests":                     "/sys/devices/pci0/0000:00:02.0/sda/queue/nr_requests",
	} {
		s := lab.Setting{Knob: lab.KnobID{Kind: lab.KnobSysfs, Name: asked}, Value: "2"}
		if fact := probed(t, kernelFiles{root: d.root}, s); fact.Knob.Name != want || fact.Asked != s || fact.Reason != "" {
			t.Errorf("%s is %+v, want %s", asked, fact, want)
		}
	}
}
