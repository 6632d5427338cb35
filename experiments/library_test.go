package experiments

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryLibraryFileDecodes(t *testing.T) {
	files, err := filepath.Glob("library/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("library files %v: %v", files, err)
	}
	entries := Library()
	if len(entries) != len(files) {
		t.Fatalf("%d entries, %d files", len(entries), len(files))
	}
	for _, entry := range entries {
		text, err := Open(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		e := decode(t, string(text))
		if entry.Title == "" || entry.Line == "" || e.Name != entry.Name {
			t.Errorf("entry %+v of experiment %q", entry, e.Name)
		}
		for i, s := range e.Steps {
			if s.Why == "" {
				t.Errorf("%s: step %d has no why", entry.Name, i)
			}
		}
	}
	if _, err := Open("quickstrat"); err == nil || !strings.Contains(err.Error(), `"quickstart"`) {
		t.Errorf("error %v does not name the nearest", err)
	}
}

func TestScaffoldIsValidAndLocal(t *testing.T) {
	var b bytes.Buffer
	if err := Scaffold(&b, ScaffoldOptions{Name: "queue"}); err != nil {
		t.Fatal(err)
	}
	e := decode(t, b.String())
	if e.Name != "queue" || !e.Hosts[0].Local || len(e.Hosts) != 1 {
		t.Errorf("name %q, hosts %+v", e.Name, e.Hosts)
	}
	if err := Scaffold(&b, ScaffoldOptions{Name: "a b"}); err == nil {
		t.Error("a name with a blank was taken")
	}
}
