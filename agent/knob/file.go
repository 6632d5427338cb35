package knob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// maxFileBytes is the largest file that can be a knob: its content goes into the journal.
const maxFileBytes = 1 << 20

// What is added to ".NAME" for the files that stand beside a changed one. The names begin with a dot and end with no
// suffix that a directory of configuration files is searched for.
const (
	keptSuffix = ".ngxlab-original" // a hard link to the original
	tempSuffix = ".ngxlab-new"      // the next content, until it has its name
)

// files reads and replaces whole files below a root.
//
// A file is replaced by renaming a finished one over it, so that a reader sees the old or the new, and a kill leaves
// one of them. The original is kept as a hard link beside it: putting it back renames that very inode into its place,
// with its time of modification, its attributes and its other names. On a file system without links the value that
// the caller has is written instead: content, mode and owner come back, the time of modification does not.
type files struct {
	root     string
	journals string // the keeper's directory, without links in its path; "" = it has none
	euid     int
	faults   faults
}

func newFiles(root string) files { return files{root: root, euid: os.Geteuid()} }

// path is where the file of a knob is on this host.
func (f files) path(id lab.KnobID) (string, error) {
	if id.Kind != lab.KnobFile {
		return "", fmt.Errorf("%s: %w", id, ErrKind)
	}
	if !filepath.IsAbs(id.Name) || filepath.Clean(id.Name) != id.Name || id.Name == "/" {
		return "", fmt.Errorf("%s: not an absolute path without . and .. in it", id)
	}
	return filepath.Join(f.root, id.Name), nil
}

func (f files) read(_ context.Context, id lab.KnobID, _ lab.Value) (lab.Value, error) {
	path, err := f.path(id)
	if err != nil {
		return lab.Value{}, err
	}
	now, err := presentFile(path)
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	return valueOf(now), nil
}

// valueOf is the value of a file; nil is none.
func valueOf(f *lab.FileValue) lab.Value {
	if f == nil {
		return lab.Value{Absent: true}
	}
	return lab.Value{Text: f.String()}
}

// directoryThere tells a file that there is none of from one whose directory is away, as one that is not mounted: what
// became of that file is not known then.
func directoryThere(path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("its directory is not there, so that the file cannot be judged: mount it or make it again: %w", err)
	}
	return nil
}

// presentFile returns all of a file; nil when there is none.
func presentFile(path string) (*lab.FileValue, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, directoryThere(path)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = unfitError(unfit(info.Mode()))
	}
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(content) > maxFileBytes {
		err = unfitError("a file of more than 1 MiB")
	}
	if err == nil {
		info, err = file.Stat()
	}
	if err != nil {
		return nil, err
	}
	value := attributesOf(info).WithContent(content)
	return &value, nil
}

// unfitError is what stands in the place of a file and is none that can be a knob.
type unfitError string

// Error says what it is.
func (e unfitError) Error() string { return "is " + string(e) }

// attributesOf is mode and owner.
func attributesOf(info fs.FileInfo) lab.FileValue {
	stat := info.Sys().(*syscall.Stat_t)
	return lab.FileValue{Mode: modeText(stat.Mode), Owner: fmt.Sprintf("%d:%d", stat.Uid, stat.Gid)}
}

func modeText(mode uint32) string { return fmt.Sprintf("%04o", mode&0o7777) }

// unfit says what something is that is no regular file.
func unfit(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsDir():
		return "a directory"
	}
	return "not a regular file"
}

func (f files) write(_ context.Context, id lab.KnobID, to lab.Value) error {
	path, err := f.path(id)
	if err != nil {
		return err
	}
	var want *lab.FileValue
	if !to.Absent {
		value, err := lab.ParseFileValue(to.Text)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		want = &value
	}
	if err := f.change(beside(path), want); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// place is a file with those that stand beside it.
type place struct{ path, kept, temp string }

func beside(path string) place {
	dir, name := filepath.Split(path)
	return place{path: path, kept: dir + "." + name + keptSuffix, temp: dir + "." + name + tempSuffix}
}

// change makes the file what is wanted, nil being none.
func (f files) change(p place, want *lab.FileValue) error {
	now, err := presentFile(p.path)
	if err != nil {
		return err
	}
	if err := f.unlink(p.temp); err != nil {
		return err
	}
	switch {
	case want == nil && now == nil:
		return nil
	case want != nil && holds(p.kept, *want):
		err = f.putBack(p)
	case want != nil && holds(p.path, *want):
		return nil
	case want == nil:
		err = f.keeping(p, func() error { return f.unlink(p.path) })
	default:
		err = f.replace(p, now != nil, *want)
	}
	if err != nil {
		return err
	}
	f.faults.reach("file in place")
	return f.syncDir(filepath.Dir(p.path))
}

// holds reports whether the file is just so. What was kept is never trusted for its name.
func holds(path string, want lab.FileValue) bool {
	kept, err := presentFile(path)
	if err != nil || kept == nil || kept.Mode != want.Mode || kept.Owner != want.Owner {
		return false
	}
	a, errA := kept.Bytes()
	b, errB := want.Bytes()
	return errA == nil && errB == nil && slices.Equal(a, b)
}

// putBack gives the kept original its name again. When both names are the same file already (the first change was
// never made), renaming does nothing by rename(2), and the second name goes.
func (f files) putBack(p place) error {
	if err := f.rename(p.kept, p.path); err != nil {
		return err
	}
	f.faults.reach("file renamed back")
	return f.unlink(p.kept)
}

// replace puts a new file in the place of what is there.
func (f files) replace(p place, present bool, want lab.FileValue) error {
	if err := f.faults.fail("file create"); err != nil {
		return err
	}
	file, err := os.OpenFile(p.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	f.faults.reach("file begun")
	err = errors.Join(f.fill(file, want, func() { likeBefore(p) }), file.Close())
	f.faults.reach("file written")
	if err == nil && present {
		err = f.keeping(p, func() error { return f.rename(p.temp, p.path) })
	} else if err == nil {
		err = f.rename(p.temp, p.path)
	}
	if err != nil {
		return errors.Join(err, f.unlink(p.temp))
	}
	return nil
}

// fill makes the file what is wanted. Changing the owner clears set-uid bits, so the mode comes last.
func (f files) fill(file *os.File, want lab.FileValue, attributes func()) error {
	content, err := want.Bytes()
	if err != nil {
		return err
	}
	uid, gid, err := numbers(want.Owner)
	if err != nil {
		return err
	}
	mode, err := parseMode(want.Mode)
	if err != nil {
		return err
	}
	if err := f.put(file, content); err != nil {
		return err
	}
	if err := f.step("file chown", func() error { return file.Chown(uid, gid) }); err != nil {
		return err
	}
	attributes()
	if err := f.step("file chmod", func() error { return unix.Fchmod(int(file.Fd()), mode) }); err != nil {
		return fmt.Errorf("chmod %s: %w", file.Name(), err)
	}
	return f.step("file fsync", file.Sync)
}

// likeBefore gives the new file those attributes of the old one that decide who may read it. Where they cannot be
// had or set, what the directory gives has to do.
func likeBefore(p place) {
	value := make([]byte, 64<<10) // XATTR_SIZE_MAX of linux/limits.h
	for _, name := range []string{"security.selinux", "system.posix_acl_access"} {
		if n, err := unix.Lgetxattr(p.path, name, value); err == nil {
			_ = unix.Lsetxattr(p.temp, name, value[:n], 0)
		}
	}
}

// keeping makes a change after the original has got its second name, unless it has one. When the change fails a name
// that was made for it goes.
func (f files) keeping(p place, change func() error) error {
	err := f.step("file link", func() error { return os.Link(p.path, p.kept) })
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) && !withoutLinks(err) {
		return err
	}
	f.faults.reach("original kept")
	if err := change(); err != nil {
		if made {
			err = errors.Join(err, f.unlink(p.kept))
		}
		return err
	}
	return nil
}

// withoutLinks reports whether the file system makes no link to this file, now or ever.
func withoutLinks(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK, unix.EXDEV},
		func(e error) bool { return errors.Is(err, e) })
}

// forget removes what stands beside the file.
func (f files) forget(_ context.Context, id lab.KnobID) error {
	path, err := f.path(id)
	if err != nil {
		return err
	}
	p := beside(path)
	if err := errors.Join(f.unlink(p.temp), f.unlink(p.kept)); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// leftover is what stands where the original is to be kept, or the next content to be made.
func (f files) leftover(id lab.KnobID) string {
	path, err := f.path(id)
	if err != nil {
		return ""
	}
	p := beside(path)
	for _, other := range []string{p.kept, p.temp} {
		if _, err := os.Lstat(other); err == nil {
			return other
		}
	}
	return ""
}

// keeps reports whether the original itself is kept, or is in its place.
func (f files) keeps(id lab.KnobID, original lab.Value) bool {
	path, err := f.path(id)
	if err != nil {
		return false
	}
	want, err := lab.ParseFileValue(original.Text)
	return err == nil && holds(beside(path).kept, want)
}
