package knob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
)

// whole is a host with a knob of every kind, in a tree.
type whole struct {
	booted
	dir     dir
	card    *card
	journal string
	command lab.CommandValue
	flag    string
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	w := &whole{booted: newBooted(t), card: newCard(t), journal: t.TempDir()}
	w.roots.ProcSys = filepath.Join(w.root, "proc/sys")
	w.dir = dir{t: t, root: w.root}
	w.dir.put("proc/sys/kernel/random/boot_id", "boot-one", 0o644)
	w.dir.put("proc/sys/net/core/somaxconn", "4096\n", 0o644)
	w.dir.put("sys/kernel/mm/transparent_hugepage/defrag", "1\n", 0o644)
	w.dir.put("etc/present.conf", "original", 0o640)
	w.command, w.flag = flag(t)
	w.unit("nginx.service")
	w.unit("irqbalance.service")
	w.do("start", "nginx.service")
	w.do("start", "irqbalance.service")
	return w
}

func (w *whole) keeper() *Keeper {
	w.t.Helper()
	k, err := OpenRoots(w.journal, w.roots)
	if err != nil {
		w.t.Fatal(err)
	}
	k.drivers[lab.KnobEthtool] = interfaces{call: w.card.call, admin: true}
	k.drivers[lab.KnobService] = services{w.asRoot()}
	k.drivers[lab.KnobUnit] = units{w.asRoot()}
	return k
}

// settings are one of each kind, of files also one that is not there and one that goes.
func (w *whole) settings() []lab.Setting {
	return []lab.Setting{
		fileSetting("/etc/present.conf", `{"content":"tuned","mode":"0600"}`),
		fileSetting("/etc/missing.conf", `{"content":"new"}`),
		{Knob: lab.KnobID{Kind: lab.KnobSysfs, Name: "/sys/kernel/mm/transparent_hugepage/defrag"}, Value: "0"},
		ethtoolSetting("eth0.7.rings.rx", "4096"),
		{Knob: unitKnob(nofile), Value: "65535"},
		serviceSetting("irqbalance", "stopped"),
		{Knob: commandKnob, Value: w.command.String()},
	}
}

// changes are what the host says that the settings come to.
func (w *whole) changes(k *Keeper) []lab.Change {
	w.t.Helper()
	facts, err := k.Probe(w.t.Context(), w.settings())
	if err != nil {
		w.t.Fatal(err)
	}
	changes := []lab.Change{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, From: lab.Value{Text: "4096"}, To: lab.Value{Text: "65535"}}}
	for _, f := range facts {
		if f.Reason != "" {
			w.t.Fatalf("%s: %s", f.Knob, f.Reason)
		}
		changes = append(changes, lab.Change{Knob: f.Knob, From: f.Now, To: f.To})
	}
	return changes
}

// fingerprint is all that is to come back.
func (w *whole) fingerprint() string {
	w.t.Helper()
	var all strings.Builder
	fmt.Fprintln(&all, w.dir.state(), w.card.text(), w.dropIns())
	for _, name := range []string{"proc/sys/net/core/somaxconn", "sys/kernel/mm/transparent_hugepage/defrag"} {
		content, err := os.ReadFile(w.dir.path(name))
		fmt.Fprintln(&all, name, string(content), err)
	}
	_, err := os.Stat(w.flag)
	fmt.Fprintln(&all, "applied", err == nil)
	fmt.Fprintln(&all, mustRead(w.t, units{w.asRoot()}, unitKnob(nofile)), mustRead(w.t, services{w.asRoot()}, serviceKnob("irqbalance")))
	return all.String()
}

func TestKnobsOfEveryKindAreSetStandAndComeBack(t *testing.T) {
	w := newWhole(t)
	before, changes := w.fingerprint(), w.changes(w.keeper())
	applied, err := w.keeper().Apply(t.Context(), "camp", changes)
	if err != nil || len(applied) != len(changes) {
		t.Fatalf("%d of %d applied, %v", len(applied), len(changes), err)
	}
	var back []lab.Change
	for i, a := range applied {
		if a.Differs {
			t.Errorf("%+v", a)
		}
		back = append([]lab.Change{{Knob: changes[i].Knob, From: a.ReadBack, To: changes[i].From}}, back...)
	}
	standing, err := w.keeper().Standing(t.Context())
	if err != nil || len(standing) != len(changes) {
		t.Fatalf("%d standing, %v", len(standing), err)
	}
	for _, s := range standing {
		if s.Drifted || s.Error != "" {
			t.Errorf("%+v", s)
		}
	}
	// To the baseline and back again, as a ladder goes, and then home.
	for _, cs := range [][]lab.Change{back, changes} {
		if _, err := w.keeper().Apply(t.Context(), "camp", cs); err != nil {
			t.Fatal(err)
		}
	}
	w.mustRestore(lab.RestoreDone, len(changes))
	if after := w.fingerprint(); after != before {
		t.Errorf("after:\n%s\nbefore:\n%s", after, before)
	}
}

func (w *whole) mustRestore(outcome string, n int) {
	w.t.Helper()
	restored, err := w.keeper().Restore(w.t.Context())
	if err != nil || len(restored) != n {
		w.t.Fatalf("%d restored, %v", len(restored), err)
	}
	for _, r := range restored {
		if outcome != "" && r.Outcome != outcome {
			w.t.Errorf("%+v, want %s", r, outcome)
		}
	}
}

func TestAfterAKillAtAnyBoundaryKnobsOfEveryKindComeBack(t *testing.T) {
	w := newWhole(t)
	before := w.fingerprint()
	for n, died := 0, true; died; n++ {
		changes := w.changes(w.keeper())
		died = killedAt(n, w.keeper(), func(k *Keeper) {
			if _, err := k.Apply(t.Context(), "camp", changes); err != nil {
				t.Error(err)
			}
		})
		if _, err := w.keeper().Restore(t.Context()); err != nil {
			t.Fatalf("killed at boundary %d: %v", n, err)
		}
		if after := w.fingerprint(); after != before {
			t.Fatalf("killed at boundary %d, after:\n%s\nbefore:\n%s", n, after, before)
		}
		if n > 200 {
			t.Fatal("never survived")
		}
	}
}

// killedAt runs do until the nth boundary of the keeper or of its files.
func killedAt(n int, k *Keeper, do func(*Keeper)) bool {
	return diesAt(n, files{}, func(f files) {
		k.faults.at = f.faults.at
		own := k.drivers[lab.KnobFile].(files)
		own.faults.at = f.faults.at
		k.drivers[lab.KnobFile] = own
		do(k)
	})
}

func TestAfterARebootOnlyWhatADiskHoldsIsPutBack(t *testing.T) {
	w := newWhole(t)
	before, changes := w.fingerprint(), w.changes(w.keeper())
	if _, err := w.keeper().Apply(t.Context(), "camp", changes); err != nil {
		t.Fatal(err)
	}
	w.reboot()
	restored, err := w.keeper().Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range restored {
		want := lab.RestoreRebooted
		if r.Knob.Kind == lab.KnobFile || r.Knob.Kind == lab.KnobCommand {
			want = lab.RestoreDone
		}
		if r.Outcome != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	if after := w.fingerprint(); after != before {
		t.Errorf("after:\n%s\nbefore:\n%s", after, before)
	}
}

// reboot makes of the tree what a boot would: what memory held is as it was at first.
func (w *whole) reboot() {
	w.t.Helper()
	w.dir.put("proc/sys/kernel/random/boot_id", "boot-two", 0o644)
	w.dir.put("proc/sys/net/core/somaxconn", "4096\n", 0o644)
	w.dir.put("sys/kernel/mm/transparent_hugepage/defrag", "1\n", 0o644)
	w.card.groups[getRings][5] = 512
	for _, path := range w.dropIns() {
		if err := os.RemoveAll(path); err != nil {
			w.t.Fatal(err)
		}
	}
	w.do("daemon-reload")
	w.do("restart", "nginx.service")
	w.do("start", "irqbalance.service")
}

func TestWhatSomeoneElseMadeOfAKnobIsKeptAndNothingLiesBesideIt(t *testing.T) {
	w := newWhole(t)
	changes := w.changes(w.keeper())
	if _, err := w.keeper().Apply(t.Context(), "camp", changes); err != nil {
		t.Fatal(err)
	}
	w.dir.put("etc/present.conf", "theirs", 0o644)
	w.dir.put("etc/missing.conf", "theirs", 0o644)
	w.limit("5")
	standing, err := w.keeper().Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range standing {
		theirs := s.Knob.Kind == lab.KnobFile || s.Knob.Kind == lab.KnobUnit
		if s.Drifted != theirs {
			t.Errorf("%+v", s)
		}
	}
	restored, err := w.keeper().Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range restored {
		if theirs := r.Knob.Kind == lab.KnobFile || r.Knob.Kind == lab.KnobUnit; theirs != (r.Outcome == lab.RestoreForeign) {
			t.Errorf("%+v", r)
		}
	}
	beside, _ := filepath.Glob(w.dir.path("etc/.*"))
	if state := w.dir.state(); strings.Count(state, "theirs") != 2 || beside != nil || w.dropIns() != nil {
		t.Errorf("left %v %v:\n%s", beside, w.dropIns(), state)
	}
}

// limit gives the running nginx another limit, as prlimit(1) would.
func (w *whole) limit(to string) {
	w.t.Helper()
	found, err := filepath.Glob(w.dir.path("proc/[0-9]*/limits"))
	if err != nil || len(found) == 0 {
		w.t.Fatal(found, err)
	}
	for _, path := range found {
		text := "Limit   Soft Limit   Hard Limit   Units\nMax open files   " + to + "   " + to + "   files\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestUnitWhoseRestartHangsOrFailsComesBack(t *testing.T) {
	for _, spoil := range []string{"Hangs", "Fails"} {
		w := newWhole(t)
		before := w.fingerprint()
		w.set("nginx.service", spoil, "restart")
		ctx, cancel := contextWithin(t)
		change := lab.Change{Knob: unitKnob(nofile), From: lab.Value{Text: "1024:524288"}, To: lab.Value{Text: "65535"}}
		_, err := w.keeper().Apply(ctx, "camp", []lab.Change{change})
		cancel()
		if err == nil || w.dropIns() == nil {
			t.Fatalf("%s: error %v, files %v", spoil, err, w.dropIns())
		}
		w.set("nginx.service", spoil, "")
		w.mustRestore(lab.RestoreAlready, 1)
		w.do("restart", "nginx.service") // as somebody may at any time
		if after := w.fingerprint(); after != before {
			t.Errorf("%s, after:\n%s\nbefore:\n%s", spoil, after, before)
		}
	}
}
