package knob

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// openedJournal is a journal in a new directory, of which operations fail with what err returns of their names.
func openedJournal(t *testing.T, err func(operation string) error) *journal {
	t.Helper()
	dir, openErr := os.Open(t.TempDir())
	if openErr != nil {
		t.Fatal(openErr)
	}
	j, openErr := openJournal(dir.Name(), dir, faults{err: err})
	if openErr != nil {
		t.Fatal(openErr)
	}
	t.Cleanup(func() {
		if err := errors.Join(j.close(), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	return j
}

// opened are the records that open an entry and announce a value.
func opened(name, original, to string) []record {
	id := lab.KnobID{Kind: lab.KnobSysctl, Name: name}
	return []record{
		{Kind: originalRecord, Knob: id, Value: lab.Value{Text: original}, Boot: "one", Campaign: "camp"},
		{Kind: intentRecord, Knob: id, Value: lab.Value{Text: to}},
	}
}

func TestWhatCouldNotBeBroughtToTheDiskLeavesNoTrace(t *testing.T) {
	for name, failing := range map[string][]string{
		"the line": {"append"}, "its fsync": {"fsync"}, "taking it back too": {"fsync", "truncate"}, "the half too": {"append", "truncate"},
	} {
		var fail []string
		j := openedJournal(t, func(operation string) error {
			if slices.Contains(fail, operation) {
				return unix.EIO
			}
			return nil
		})
		if err := j.commit(opened("a.first", "1", "2")...); err != nil {
			t.Fatal(err)
		}
		fail = failing
		if err := j.commit(opened("b.lost", "a value of some length", "another value of some length")...); !errors.Is(err, unix.EIO) {
			t.Fatalf("%s: error %v", name, err)
		}
		fail = nil
		if j.pending(lab.KnobID{Kind: lab.KnobSysctl, Name: "b.lost"}) != nil {
			t.Errorf("%s: what was not written is pending", name)
		}
		if err := errors.Join(j.commit(opened("c.second", "3", "4")...), j.commit(opened("d.third", "5", "6")...)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read, err := readJournal(j.dir.Name())
		if err = errors.Join(err, read.damage); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var names []string
		for _, e := range read.entries {
			names = append(names, e.knob.Name)
		}
		if !slices.Equal(names, []string{"a.first", "c.second", "d.third"}) || read.length != j.length {
			t.Errorf("%s: entries %q, %d bytes of %d", name, names, read.length, j.length)
		}
	}
}
