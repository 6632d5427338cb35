package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ngxlab/agent/knob"
)

// stateDirs are the directories in which an agent may keep journal, builds and work, the best first.
type stateDirs struct {
	paths []string
	open  string // the one among them that lies where all may write; "" = one directory was named
}

// ownDirs are those of this user unless another is named: /var/lib/ngxlab for root, else ngxlab below $XDG_STATE_HOME and
// ~/.local/state; then, for a home that cannot be written to, one below /var/tmp, which outlives a boot of the host.
func ownDirs() stateDirs {
	home, _ := os.UserHomeDir() // none is as one that is not there
	return dirsOf(os.Geteuid(), os.Getenv("XDG_STATE_HOME"), home)
}

func dirsOf(uid int, state, home string) stateDirs {
	d := stateDirs{open: "/var/tmp/ngxlab-" + strconv.Itoa(uid)}
	if uid == 0 {
		d.paths = []string{"/var/lib/ngxlab", d.open}
		return d
	}
	if filepath.IsAbs(state) {
		d.paths = append(d.paths, filepath.Join(state, "ngxlab"))
	}
	if filepath.IsAbs(home) {
		d.paths = append(d.paths, filepath.Join(home, ".local", "state", "ngxlab"))
	}
	d.paths = append(d.paths, d.open)
	return d
}

// choose is the first directory with a journal, wherever it was kept when it was begun; else the first that can be made and
// written to. A directory that is named is taken as it is.
func (d stateDirs) choose() (string, error) {
	if d.open == "" {
		return d.paths[0], nil
	}
	for _, dir := range d.paths {
		if there, err := d.journaled(dir); err != nil || there {
			return dir, err
		}
	}
	var reasons []string
	for _, dir := range d.paths {
		err := d.make(dir)
		if err == nil {
			return dir, nil
		}
		reasons = append(reasons, err.Error())
	}
	return "", fmt.Errorf("no state directory:\n  %s", strings.Join(reasons, "\n  "))
}

// existing are the directories that are there.
func (d stateDirs) existing() []string {
	if d.open == "" {
		return d.paths
	}
	var found []string
	for _, dir := range d.paths {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && d.trusted(dir) == nil {
			found = append(found, dir)
		}
	}
	return found
}

// journaled tells whether there is a journal. One that this user may not look for is none of theirs.
func (d stateDirs) journaled(dir string) (bool, error) {
	if err := d.trusted(dir); err != nil {
		return false, nil
	}
	there, err := knob.Journaled(dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return there, err
}

// make makes a directory when it is missing, and says what keeps this user from writing to it.
func (d stateDirs) make(dir string) error {
	mode := fs.FileMode(0o755)
	if dir == d.open {
		mode = 0o700
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if err := d.trusted(dir); err != nil {
		return err
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("write to the state directory %s: %w", dir, err)
	}
	return nil
}

// trusted is the error of a directory where all may write that another user may have put there: a link, another's, or one
// that others may write to.
func (d stateDirs) trusted(dir string) error {
	if dir != d.open {
		return nil
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory that only this user may write to", dir)
	}
	return nil
}
