package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"ngxlab/lab"
)

// unprivileged is the user who compiles when the agent is root.
const unprivileged = "nobody"

// patience is the nice value of what compiles: whatever else runs on the host goes first.
const patience = 10

// maker is who compiles, and where.
type maker struct {
	name     string // who that is
	other    bool   // than the agent's own user
	uid, gid int
	work     string // a directory of its own, for home and temporary files too
}

// newMaker gives the work directory to who compiles, so that nobody else can look into it. why says why that is root.
func newMaker(work string) (m maker, why string, err error) {
	m = maker{name: strconv.Itoa(os.Geteuid()), work: work}
	if u, err := user.Current(); err == nil {
		m.name = u.Username
	}
	if os.Geteuid() != 0 {
		return m, "", os.Chmod(work, 0o700)
	}
	u, err := user.Lookup(unprivileged)
	if err != nil {
		return m, fmt.Sprintf("compiled as root: there is no user %s", unprivileged), os.Chmod(work, 0o700)
	}
	real, err := filepath.EvalSymlinks(work) // builds may lie on another disk
	if err != nil {
		return m, "", err
	}
	if shut := closedTo(filepath.Dir(real)); shut != "" {
		return m, fmt.Sprintf("compiled as root: user %s cannot enter %s", unprivileged, shut), os.Chmod(work, 0o700)
	}
	uid, err := strconv.Atoi(u.Uid)
	gid, bad := strconv.Atoi(u.Gid)
	if err := errors.Join(err, bad); err != nil {
		return m, "", fmt.Errorf("numbers of user %s: %w", unprivileged, err)
	}
	m.name, m.other, m.uid, m.gid = u.Username, true, uid, gid
	return m, "", errors.Join(os.Chown(work, uid, gid), os.Chmod(work, 0o700))
}

// closedTo is the first directory on the way to dir that others cannot enter, "" when they can enter all.
func closedTo(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// of is a command as the maker runs it.
func (m maker) of(c lab.Command) lab.Command {
	if m.other {
		c.User = m.name
	}
	c.Nice = patience
	if m.work != "" {
		c.Env = append(c.Env, "HOME="+m.work, "TMPDIR="+m.work)
	}
	return c
}

// gets gives a directory with all below it to the maker.
func (m maker) gets(dir string) error {
	if !m.other {
		return nil
	}
	return owned(dir, m.uid, m.gid)
}

// published takes a directory back, with all below it, and lets everybody read it.
func published(dir string) error {
	if os.Geteuid() == 0 {
		if err := owned(dir, 0, os.Getegid()); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if d.IsDir() {
			mode |= 0o111
		}
		return os.Chmod(path, mode&^0o022)
	})
}

func owned(dir string, uid, gid int) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}
