package knob_test

import (
	"os"
	"path/filepath"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

func standing(t *testing.T, k *knob.Keeper) map[string]lab.Standing {
	t.Helper()
	all, err := k.Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]lab.Standing{}
	for _, s := range all {
		m[s.Knob.Name] = s
	}
	return m
}

func TestStandingTellsWhatSomeoneElseChanged(t *testing.T) {
	m := newMachine(t)
	k := m.keeper()
	if all := standing(t, k); len(all) != 0 {
		t.Errorf("before any change: %+v", all)
	}
	m.apply(k, change("net.core.somaxconn", "4096", "8192"), change("net.ipv4.tcp_fin_timeout", "60", "15"), to(sysfs(hugePages), "madvise", "never"))
	m.apply(k, change("net.core.somaxconn", "8192", "1024"), change("net.ipv4.tcp_fin_timeout", "15", "60"))
	m.put("/proc/sys/net/core/somaxconn", "8192\n", 0o644) // a value of ours, but of another state
	all := standing(t, m.keeper())
	if s := all["net.core.somaxconn"]; !s.Drifted || s.Expected.Text != "1024" || s.Found.Text != "8192" || s.Campaign != "camp" || s.Since == "" {
		t.Errorf("somaxconn %+v", s)
	}
	if s := all["net.ipv4.tcp_fin_timeout"]; s.Drifted || s.Expected.Text != "60" || s.Found.Text != "60" {
		t.Errorf("fin_timeout %+v", s)
	}
	if s := all[hugePages]; s.Drifted || s.Expected.Text != "never" || len(all) != 3 {
		t.Errorf("huge pages %+v", s)
	}
	m.restore(k)
	if all := standing(t, k); len(all) != 0 || !m.settled() {
		t.Errorf("after the restore: %+v", all)
	}
}

func TestStandingKnowsBothHalvesOfACouple(t *testing.T) {
	m := newMachine(t)
	k := m.keeper()
	m.apply(k, change("vm.dirty_bytes", "0", "8388608"), change("vm.dirty_ratio", "20", "0"))
	if all := standing(t, k); all["vm.dirty_ratio"].Drifted || all["vm.dirty_bytes"].Drifted || len(all) != 2 {
		t.Errorf("standing %+v", all)
	}
	m.put("/proc/sys/vm/dirty_ratio", "20\n", 0o644)
	m.put("/proc/sys/vm/dirty_bytes", "0\n", 0o644)
	if all := standing(t, k); !all["vm.dirty_ratio"].Drifted || !all["vm.dirty_bytes"].Drifted {
		t.Errorf("standing %+v", all)
	}
}

func TestWithoutWhatIsInForceAnyValueOfTheLabWillDo(t *testing.T) {
	m := newMachine(t)
	k := m.keeper()
	m.apply(k, change("net.core.somaxconn", "4096", "8192"))
	m.apply(k, change("net.core.somaxconn", "8192", "1024"))
	for _, damage := range []func(path string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("{"), 0o644) }} {
		if err := damage(filepath.Join(m.dir, "in-force")); err != nil {
			t.Fatal(err)
		}
		m.put("/proc/sys/net/core/somaxconn", "8192\n", 0o644)
		if s := standing(t, k)["net.core.somaxconn"]; s.Drifted || s.Expected.Text != "8192" {
			t.Errorf("a value of ours: %+v", s)
		}
		m.put("/proc/sys/net/core/somaxconn", "77\n", 0o644)
		if s := standing(t, k)["net.core.somaxconn"]; !s.Drifted || s.Expected.Text != "1024" {
			t.Errorf("a foreign value: %+v", s)
		}
	}
}

func TestKilledBetweenTwoChangesNothingHasDrifted(t *testing.T) {
	survived := false
	for n := 0; !survived; n++ {
		m := newMachine(t)
		k := m.keeper()
		m.apply(k, change("net.core.somaxconn", "4096", "8192"), to(sysfs(hugePages), "madvise", "never"))
		k.KillAt(nth(n))
		survived = !dies(func() {
			m.apply(k, change("net.core.somaxconn", "8192", "1024"), to(sysfs(hugePages), "never", "always"))
		})
		for name, s := range standing(t, m.keeper()) {
			if s.Drifted {
				t.Errorf("killed at boundary %d: %s %+v", n, name, s)
			}
		}
	}
}
