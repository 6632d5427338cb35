package hosts

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// TestBuildsOfAHostAreListedTriedAndRemoved has a host that took over a build, and somebody else who uses the host.
func TestBuildsOfAHostAreListedTriedAndRemoved(t *testing.T) {
	from, b := exporting(t)
	dir := testlab.StateDir(t)
	user, other := claimed(t, local(t, dir)), local(t, dir)
	trial := lab.Trial{Recipe: testlab.Recipe(), Serving: lab.Serving{Config: "events {}\nhttp { nosuch on; }\n"}}
	if tried, err := other.Try(t.Context(), trial); err != nil || tried.Build != nil || tried.Refused != "" {
		t.Errorf("before there is a build: %+v, %v", tried, err)
	}
	read, write := io.Pipe()
	go func() { _ = write.CloseWithError(from.Export(t.Context(), b, write)) }() // never fails
	if _, err := user.Import(t.Context(), b, read); err != nil {
		t.Fatal(err)
	}
	kept, err := other.Builds(t.Context())
	if err != nil || len(kept) != 1 || kept[0].ID != b.ID || kept[0].DiskBytes < kept[0].SizeBytes || len(kept[0].Libraries) == 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	tried, err := other.Try(t.Context(), trial)
	if err != nil || tried.Build == nil || tried.Build.ID != b.ID || !strings.Contains(tried.Refused, `unknown directive "nosuch"`) {
		t.Errorf("tried: %+v, %v", tried, err)
	}
	var refused *wire.Error
	if _, err := other.Unbuild(t.Context(), []string{b.ID}); !errors.As(err, &refused) || refused.Kind != wire.KindLocked {
		t.Errorf("removed under a campaign: %v", err)
	}
	if err := user.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Unbuild(t.Context(), []string{"feedfeedfeedfeed"}); err == nil || !strings.Contains(err.Error(), "there are "+b.ID) {
		t.Errorf("an ID that there is not: %v", err)
	}
	gone, err := other.Unbuild(t.Context(), []string{b.ID[:6]})
	if err != nil || gone.FreedBytes != kept[0].DiskBytes || len(gone.Removed) != 1 {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := os.Stat(kept[0].Dir); err == nil {
		t.Error("its directory is still there")
	}
	if kept, err := user.Builds(t.Context()); err != nil || len(kept) > 0 {
		t.Errorf("afterwards: %+v, %v", kept, err)
	}
}
