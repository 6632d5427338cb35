package hosts

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// exporting is a host that has a build.
func exporting(t *testing.T) (*Host, lab.Build) {
	t.Helper()
	b := testlab.Nginx(t)
	return local(t, filepath.Dir(filepath.Dir(filepath.Dir(b.Binary)))), b
}

func TestBuildGoesFromHostToHost(t *testing.T) {
	from, b := exporting(t)
	to := claimed(t, local(t, testlab.StateDir(t)))
	read, write := io.Pipe()
	go func() { _ = write.CloseWithError(from.Export(t.Context(), b, write)) }() // never fails
	got, err := to.Import(t.Context(), b, read)
	if err != nil || got.ID != b.ID || got.Binary == b.Binary {
		t.Fatalf("imported %+v, %v", got, err)
	}
	there, err := os.ReadFile(got.Binary)
	here, err2 := os.ReadFile(b.Binary)
	if err := errors.Join(err, err2); err != nil || !bytes.Equal(here, there) {
		t.Errorf("%d bytes, not the %d of the original: %v", len(there), len(here), err)
	}
	again, err := to.Import(t.Context(), b, strings.NewReader(""))
	if err != nil || again.Binary != got.Binary {
		t.Errorf("a build that is there: %+v, %v", again, err)
	}
	if found, err := to.Build(t.Context(), testlab.Recipe(), io.Discard); err != nil || found.ID != b.ID || !found.Cached {
		t.Errorf("the recipe there: %+v, %v", found, err)
	}
}

func TestBuildThatDoesNotArriveWholeLeavesNothing(t *testing.T) {
	from, b := exporting(t)
	var whole bytes.Buffer
	if err := from.Export(t.Context(), b, &whole); err != nil {
		t.Fatal(err)
	}
	dir := testlab.StateDir(t)
	to := claimed(t, local(t, dir))
	errSource := errors.New("the source broke")
	half := whole.Bytes()[:whole.Len()/2]
	for name, r := range map[string]io.Reader{
		"empty": strings.NewReader(""), "cut off": bytes.NewReader(half),
		"broken": io.MultiReader(bytes.NewReader(half), &failing{errSource}),
	} {
		_, err := to.Import(t.Context(), b, r)
		if err == nil || !strings.HasPrefix(err.Error(), "here: import: ") || name == "broken" && !errors.Is(err, errSource) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := filepath.Glob(filepath.Join(dir, "builds", "*"))
		left = slices.DeleteFunc(left, func(path string) bool { return strings.HasPrefix(filepath.Base(path), ".lock-") })
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	if _, err := to.Import(t.Context(), b, &whole); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestExportOfNoBuildIsAnError(t *testing.T) {
	h := local(t, testlab.StateDir(t))
	var got bytes.Buffer
	err := h.Export(t.Context(), lab.Build{ID: "0123456789abcdef"}, &got)
	var sent *wire.Error
	if !errors.As(err, &sent) || !strings.HasPrefix(err.Error(), "here: export: ") || got.Len() > 0 {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	from, b := exporting(t)
	if err := from.Export(t.Context(), b, full{}); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "here: export: ") {
		t.Errorf("export to what takes nothing: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
