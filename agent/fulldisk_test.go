package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/agent/knob"
	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// ownFileSystem is a directory on a small file system of its own.
func ownFileSystem(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIPPED: a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestFullDiskKeepsNobodyFromRestoring(t *testing.T) {
	dir := ownFileSystem(t)
	begin(t, dir)
	if lock, err := openLockFile(dir); err != nil || lock.Close() != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, err := restore(dir, &out) // the knob was one of a tree that is gone
	if errors.Is(err, unix.ENOSPC) || !bytes.Contains(out.Bytes(), []byte("sysctl net.x: ")) {
		t.Errorf("restore: %v, %q", err, out.String())
	}
}

func TestWhatOnlyReadsWorksOnAReadOnlyFileSystem(t *testing.T) {
	for name, used := range map[string]bool{"new": false, "used": true} {
		dir := ownFileSystem(t)
		if used {
			begin(t, dir)
			if lock, err := openLockFile(dir); err != nil || lock.Close() != nil {
				t.Fatal(err)
			}
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Skipf("SKIPPED: a file system cannot be made read-only here: %v", err)
		}
		file, err := openLockFile(dir)
		if err != nil {
			t.Fatal(err)
		}
		a := serve(t, Options{Dir: dir, Hash: hash, Lock: file})
		for path, body := range map[string]string{wire.PathFacts: "{}", wire.PathPending: "{}", wire.PathStanding: "{}", wire.PathRead: "[]", wire.PathHolder: "{}"} {
			var answer wire.Reply[json.RawMessage]
			if err := json.Unmarshal([]byte(a.post(t, path, body)[0]), &answer); err != nil || answer.Error != nil {
				t.Errorf("%s: %s: %v, %v", name, path, answer.Error, err)
			}
		}
		var answer wire.Reply[[]lab.Restored]
		if err := json.Unmarshal([]byte(a.post(t, wire.PathRestore, "{}")[0]), &answer); err != nil || answer.Error == nil {
			t.Errorf("%s: a restore without a lock: %v, %v", name, answer, err)
		}
		keeper, err := knob.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if ps, err := keeper.Pending(); err != nil || len(ps) > 0 != used {
			t.Errorf("%s: pending %+v, %v", name, ps, err)
		}
	}
}
