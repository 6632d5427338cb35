package process

import (
	"os"
	"strings"
	"testing"
)

func TestStatIsReadBehindAnyName(t *testing.T) {
	rest := " S 10 11 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 100"
	want := stat{parent: 10, group: 11, session: 12, start: 987654}
	for _, name := range []string{"(sh)", "(a b)", "(a) S 1 (b)", "())"} {
		if got, err := parseStat([]byte("7 " + name + rest + "\n")); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	want.dead = true
	if got, err := parseStat([]byte("7 (sh)" + strings.Replace(rest, "S", "Z", 1))); err != nil || got != want {
		t.Errorf("zombie: %+v, %v", got, err)
	}
}

func TestStatThatIsCutOffIsAnError(t *testing.T) {
	whole := "7 (sh) S 10 11 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654"
	for n := range len(whole) - len("987654") {
		if s, err := parseStat([]byte(whole[:n])); err == nil {
			t.Errorf("%q: %+v", whole[:n], s)
		}
	}
}

func TestProcessTableHoldsThisProcess(t *testing.T) {
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	if own, there := all[os.Getpid()]; !there || own.parent != os.Getppid() || own.start == 0 || own.dead {
		t.Errorf("%+v of %d processes, parent %d", own, len(all), os.Getppid())
	}
}
