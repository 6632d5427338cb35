package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

func TestStateDirsOfAUserAreTheirsThenOneThatOutlivesABoot(t *testing.T) {
	for _, test := range []struct {
		uid         int
		state, home string
		want        []string
	}{
		{0, "/x", "/root", []string{"/var/lib/ngxlab", "/var/tmp/ngxlab-0"}},
		{1000, "/x", "/home/ana", []string{"/x/ngxlab", "/home/ana/.local/state/ngxlab", "/var/tmp/ngxlab-1000"}},
		{1000, "relative", "/home/ana", []string{"/home/ana/.local/state/ngxlab", "/var/tmp/ngxlab-1000"}},
		{1000, "", "", []string{"/var/tmp/ngxlab-1000"}},
	} {
		got := dirsOf(test.uid, test.state, test.home)
		if !slices.Equal(got.paths, test.want) || got.open != test.want[len(test.want)-1] {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// twoPlaces are a home that cannot be written to, also by root, and a fallback below a fresh directory.
func twoPlaces(t *testing.T) stateDirs {
	t.Helper()
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "home"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(base, "ngxlab-1")
	return stateDirs{paths: []string{filepath.Join(base, "home", "ngxlab"), open}, open: open}
}

// chooses holds what is chosen.
func chooses(t *testing.T, d stateDirs, want, when string) {
	t.Helper()
	if got, err := d.choose(); got != want || err != nil {
		t.Errorf("%s: %s, %v; want %s", when, got, err, want)
	}
}

func TestJournalIsFoundWhereItWasBegun(t *testing.T) {
	d := twoPlaces(t)
	home := d.paths[0]
	chooses(t, d, d.open, "a home that cannot be written to")
	info, err := os.Stat(d.open)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it is %v, %v", info, err)
	}
	begin(t, d.open)
	if err := errors.Join(os.Remove(filepath.Dir(home)), os.Mkdir(filepath.Dir(home), 0o755)); err != nil {
		t.Fatal(err)
	}
	chooses(t, d, d.open, "a home that can be written to by now, and a journal elsewhere")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	begin(t, home)
	chooses(t, d, home, "journals in both")
	if got := d.existing(); !slices.Equal(got, d.paths) {
		t.Errorf("existing are %v", got)
	}
	var out bytes.Buffer
	code, err := everyState(d, func(dir string) (int, error) { return exitDone, pending(dir, &out) })
	if code != exitDone || err != nil || strings.Count(out.String(), "originally") != 2 {
		t.Errorf("pending in both: %d, %v, %q", code, err, out.String())
	}
	if err := os.Rename(filepath.Join(d.open, "journal"), filepath.Join(d.open, "journal.restored")); err != nil {
		t.Fatal(err)
	}
	chooses(t, d, home, "the journal elsewhere is settled")
}

// begin leaves a change in the journal of a state directory.
func begin(t *testing.T, dir string) {
	t.Helper()
	root := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(root, "kernel/random"), 0o755), os.MkdirAll(filepath.Join(root, "net"), 0o755),
		os.WriteFile(filepath.Join(root, "kernel/random/boot_id"), []byte("b\n"), 0o600),
		os.WriteFile(filepath.Join(root, "net/x"), []byte("1\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	k, err := knob.OpenRoots(dir, knob.Roots{ProcSys: root})
	if err != nil {
		t.Fatal(err)
	}
	change := lab.Change{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.x"}, From: lab.Value{Text: "1"}, To: lab.Value{Text: "2"}}
	if _, err := k.Apply(t.Context(), "c1", []lab.Change{change}); err != nil {
		t.Fatal(err)
	}
}

func TestStateDirectoryThatAnotherMayHavePutThereIsNotUsed(t *testing.T) {
	real := t.TempDir()
	for name, put := range map[string]func(path string) error{
		"a link":     func(path string) error { return os.Symlink(real, path) },
		"open":       func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) }, //nolint:gosec // the mode is the point
		"another's":  func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 65534, 65534)) },
		"a file":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"of a group": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770)) }, //nolint:gosec // the mode is the point
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another's" && os.Geteuid() != 0 {
				t.Skip("SKIPPED: needs root")
			}
			d := twoPlaces(t)
			if err := put(d.open); err != nil {
				t.Fatal(err)
			}
			_, err := d.choose()
			if err == nil || !strings.Contains(err.Error(), d.open) || !strings.Contains(err.Error(), filepath.Dir(d.paths[0])) {
				t.Errorf("the error does not name both: %v", err)
			}
			if got := d.existing(); len(got) > 0 {
				t.Errorf("existing are %v", got)
			}
		})
	}
}
