package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ngxlab/agent/wire"
)

func TestUsersOfOneHostShareItsLockAndOtherStateDirectoriesHaveTheirOwn(t *testing.T) {
	folder := func(mode fs.FileMode) string {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	closed, open := folder(0o755), folder(0o777|fs.ModeSticky)
	shared := []string{filepath.Join(closed, "missing"), closed, folder(0o777), open, folder(0o777 | fs.ModeSticky)}
	roots, anas := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(roots, link); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(open, "ngxlab.lock")
	for _, dirs := range [][2]string{{roots, roots}, {link, roots}, {roots + "/", roots}, {anas, anas}} {
		if got := lockPath(dirs[0], dirs[1:], shared); got != want {
			t.Errorf("lock of %s, own directory %s: %s, want %s", dirs[0], dirs[1], got, want)
		}
	}
	if got := lockPath(anas, []string{roots}, shared); got != filepath.Join(anas, "lock") {
		t.Errorf("lock of another directory: %s", got)
	}
	if got := lockPath(roots, []string{t.TempDir(), roots}, shared[:3]); got != filepath.Join(roots, "lock") {
		t.Errorf("lock of a host without a place for all: %s", got)
	}
}

func TestLockFileIsForEveryUserToOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ngxlab.lock")
	defer syscall.Umask(syscall.Umask(0o077))
	first, err := openLockAt(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := first.Stat(); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 65534, 65534); err != nil { // as another user has made it
			t.Fatal(err)
		}
	}
	second, err := openLockAt(path)
	if err != nil {
		t.Fatal(err)
	}
	one, other := &hostLock{file: first, wall: time.Now}, &hostLock{file: second, wall: time.Now}
	if err := one.claim(wire.Claim{Owner: "ana\x1b[2J", Campaign: "c1"}); err != nil {
		t.Fatal(err)
	}
	var locked *wire.Error
	if err := other.claim(wire.Claim{Owner: "ben"}); !errors.As(err, &locked) || locked.Lock.Owner != "ana[2J" {
		t.Errorf("second claim: %v", err)
	}
	if err := errors.Join(one.close(), other.claim(wire.Claim{Owner: "ben"}), other.close()); err != nil {
		t.Error(err)
	}
}

func TestLockFileThatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink(filepath.Join(dir, "elsewhere"), link), syscall.Mkfifo(fifo, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir} {
		if file, err := openLockAt(path); err == nil {
			t.Errorf("%s: opened", file.Name())
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a file was made through a link")
	}
}

func TestHolderWithoutACampaignIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	first, second := lockIn(t, dir), lockIn(t, dir)
	swept := make(chan error, 1)
	sweeping := make(chan struct{})
	claimed := make(chan error, 1)
	go func() {
		swept <- first.during(wire.Claim{Owner: "an agent that cleans up"}, func() error {
			close(sweeping)
			for second.mu.TryLock() { // until the claim has begun
				second.mu.Unlock()
			}
			return nil
		})
	}()
	<-sweeping
	go func() { claimed <- second.claim(wire.Claim{Owner: "ana", Campaign: "c1"}) }()
	if err := errors.Join(<-swept, <-claimed); err != nil {
		t.Error(err)
	}
}
