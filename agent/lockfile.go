package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// sharedDirs are the places for the lock that all users of a host share. They are emptied when the host boots, but for
// the last.
var sharedDirs = []string{"/run/lock", "/dev/shm", "/var/tmp"}

const sharedName = "ngxlab.lock"

// openLockFile opens, and makes when missing, the lock file that goes with a state directory, which it makes too: the
// one of the host with the directory that an agent of this user chooses by itself, a file inside with any other. Where the
// file system is read-only it opens the null device, which locks nothing: what only reads works there.
func openLockFile(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	file, err := openLockAt(lockPath(dir, ownDirs().paths, sharedDirs))
	if errors.Is(err, unix.EROFS) {
		file, err = os.Open(os.DevNull)
	}
	if err != nil {
		return nil, fmt.Errorf("open the host lock: %w", err)
	}
	return file, nil
}

// lockPath is where the lock of dir is: in the first of the shared directories that every user may write to, so that all
// of them come to the same, when dir is one that an agent of the user may choose (own).
func lockPath(dir string, own []string, shared []string) string {
	if slices.ContainsFunc(own, func(o string) bool { return whole(o) == whole(dir) }) {
		for _, s := range shared {
			if info, err := os.Stat(s); err == nil && info.IsDir() && info.Mode()&fs.ModeSticky != 0 && info.Mode().Perm()&0o002 != 0 {
				return filepath.Join(s, sharedName)
			}
		}
	}
	return filepath.Join(dir, "lock")
}

// whole is a path without symbolic links, as far as it exists.
func whole(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

// openLockAt makes the file only when it is missing: where fs.protected_regular is set, opening with O_CREAT a file of
// another user in a directory that all may write to is refused. Every user may write to it, for the holder's name.
func openLockAt(path string) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	for range 10 { // another may make or remove it in between
		file, err := os.OpenFile(path, flags, 0)
		if err == nil {
			return regular(file)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		file, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			if err = file.Chmod(0o666); err == nil { // whatever the umask
				return file, nil
			}
			return nil, errors.Join(err, file.Close())
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s comes and goes", path)
}

func regular(file *os.File) (*os.File, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file.Name())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
