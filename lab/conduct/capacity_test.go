package conduct

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

// hidden makes what a sample tells of every process of the server unreadable, as without CAP_SYS_PTRACE.
func hidden(anonBytes int64) func(*lab.Sample) {
	return func(s *lab.Sample) {
		for i := range s.Processes[:2] {
			s.Processes[i].PSSBytes, s.Processes[i].AnonBytes = 0, anonBytes
		}
	}
}

func TestServerMemoryThatCannotBeReadIsNoZero(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	host.seen = hidden(0)
	if _, err := run(t.Context(), host, store, withCapacity(smallPlan(1))); err != nil {
		t.Fatal(err)
	}
	for _, l := range store.levels {
		if bytes, there := l.Parts[lab.PartServer]; there || !strings.Contains(l.Problem, "cannot be read") {
			t.Errorf("level %d: %d bytes, problem %q", l.Asked, bytes, l.Problem)
		}
	}
	for _, r := range store.runs {
		if bytes, there := r.Figures[lab.ServerPSS]; there {
			t.Errorf("run %d: PSS %v", r.ID, bytes)
		}
	}
}

func TestLevelSaysThatServerMemoryIsAnonymousMemory(t *testing.T) {
	for _, anonymous := range []bool{true, false} {
		host, store := newFakeHost(t), &fakeStore{}
		if anonymous {
			host.seen = hidden(1 << 20)
		}
		if _, err := run(t.Context(), host, store, withCapacity(smallPlan(1))); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int64{true: 2 << 20, false: 3 << 20}[anonymous]
		for _, l := range store.levels {
			if l.Problem != "" || l.Anonymous != anonymous || l.Parts[lab.PartServer] != want {
				t.Errorf("level %+v, want %d bytes, anonymous %v", l, want, anonymous)
			}
		}
		for _, r := range store.runs {
			if bytes, there := r.Figures[lab.ServerPSS]; there && anonymous {
				t.Errorf("anonymous memory as PSS: %v", bytes)
			}
		}
	}
}
