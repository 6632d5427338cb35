package knob_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

// allSayDamaged holds that whoever asks is told of the damage, and that nothing is changed.
func allSayDamaged(t *testing.T, tr *tree, when string) {
	t.Helper()
	k := tr.keeper()
	_, restored := k.Restore(t.Context())
	_, pending := k.Pending()
	_, stood := k.Standing(t.Context())
	_, applied := k.Apply(t.Context(), "camp", []lab.Change{change("net.ipv4.tcp_fin_timeout", "60", "15")})
	for name, err := range map[string]error{"restore": restored, "pending": pending, "standing": stood, "apply": applied} {
		if !errors.Is(err, knob.ErrJournal) || !strings.Contains(err.Error(), "net.core.somaxconn") {
			t.Errorf("%s: %s: %v", when, name, err)
		}
	}
	for _, name := range []string{"journal", "in-force"} {
		if _, err := os.Stat(filepath.Join(tr.dir, name)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if tr.value("net/ipv4/tcp_fin_timeout") != "60" {
		t.Errorf("%s: applied", when)
	}
}

func TestEmptiedJournalIsDamagedWhenSomethingWasChanged(t *testing.T) {
	for name, left := range map[string]string{"empty": "", "without a newline": `{"crc32c":"0`} {
		for n := 0; ; n++ {
			tr := newTree(t)
			k := tr.keeper()
			k.KillAt(nth(n))
			survived := !dies(func() {
				tr.apply(k, change("net.core.somaxconn", "4096", "8192"))
				tr.apply(k, change("net.core.somaxconn", "8192", "1024"))
			})
			if tr.value("net/core/somaxconn") != "4096" {
				if err := os.WriteFile(filepath.Join(tr.dir, "journal"), []byte(left), 0o600); err != nil {
					t.Fatal(err)
				}
				allSayDamaged(t, tr, name)
			}
			if survived {
				break
			}
		}
	}
}

func TestTornFirstWriteIsNoDamage(t *testing.T) {
	tr := newTree(t)
	if err := os.WriteFile(filepath.Join(tr.dir, "journal"), []byte(`{"crc`), 0o600); err != nil {
		t.Fatal(err)
	}
	tr.restore(tr.keeper())
	if err := os.WriteFile(filepath.Join(tr.dir, "in-force"), []byte(`{"boot":"boot-one","values":[{"knob":{"kind":"sysctl","name":"net.core.somaxconn"},"value":{"text":"1"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tr.restore(tr.keeper()) // as killed between putting the journal aside and the removal
	tr.apply(tr.keeper(), change("net.core.somaxconn", "4096", "8192"))
	tr.restore(tr.keeper())
}

func TestWhatTheGoodLinesOfADamagedJournalProveIsPutBack(t *testing.T) {
	for bad, want := range map[int]struct{ somaxconn, timeout lab.Restored }{
		0: {somaxconn: lab.Restored{}, timeout: lab.Restored{Outcome: lab.RestoreDone}},
		1: {somaxconn: lab.Restored{Outcome: lab.RestoreDone}, timeout: lab.Restored{Outcome: lab.RestoreDone}}, // found is there still
		3: {somaxconn: lab.Restored{Outcome: lab.RestoreDone}, timeout: lab.Restored{}},
	} {
		tr := newTree(t)
		tr.apply(tr.keeper(), change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15"))
		path := filepath.Join(tr.dir, "journal")
		spoilLine(t, path, bad)
		if err := os.WriteFile(path+".damaged", []byte("older"), 0o600); err != nil {
			t.Fatal(err)
		}
		if ps, err := tr.keeper().Pending(); !errors.Is(err, knob.ErrJournal) || len(ps) == 0 {
			t.Errorf("line %d: pending %+v, %v", bad, ps, err)
		}
		rs, err := tr.keeper().Restore(t.Context())
		m := byName(rs)
		if !errors.Is(err, knob.ErrJournal) || m["net.core.somaxconn"].Outcome != want.somaxconn.Outcome || m["net.ipv4.tcp_fin_timeout"].Outcome != want.timeout.Outcome {
			t.Errorf("line %d: restored %+v, %v", bad, rs, err)
		}
		if err == nil || !strings.Contains(err.Error(), path+".damaged.1") {
			t.Errorf("line %d: it does not say where the journal is now: %v", bad, err)
		}
		older, err := os.ReadFile(path + ".damaged")
		if err != nil || string(older) != "older" {
			t.Errorf("line %d: the older one is %q, %v", bad, older, err)
		}
		if _, err := os.Stat(path + ".damaged.1"); err != nil {
			t.Error(err)
		}
		if rs := tr.restore(tr.keeper()); len(rs) > 0 {
			t.Errorf("line %d: the next restore: %+v", bad, rs)
		}
	}
}

func TestDamagedJournalStaysUntilItsGoodEntriesAreDealtWith(t *testing.T) {
	tr := newTree(t)
	tr.apply(tr.keeper(), change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15"))
	spoilLine(t, filepath.Join(tr.dir, "journal"), 0)
	k := tr.keeper()
	k.Kernel(func(string) { tr.set("net/ipv4/tcp_fin_timeout", "15") })
	if _, err := k.Restore(t.Context()); !errors.Is(err, knob.ErrJournal) {
		t.Error(err)
	}
	if rs, err := tr.keeper().Restore(t.Context()); !errors.Is(err, knob.ErrJournal) || len(rs) != 1 || tr.value("net/ipv4/tcp_fin_timeout") != "60" {
		t.Errorf("restored %+v, %v", rs, err)
	}
}

// spoilLine flips a bit of a line, counted from 0.
func spoilLine(t *testing.T, path string, n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[n][60] ^= 1
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}
