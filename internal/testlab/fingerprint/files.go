package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// trees notes every file below the directories. A file that vanishes meanwhile is not there.
func (f taken) trees(prefixes []string) error {
	for _, prefix := range prefixes {
		err := filepath.WalkDir(prefix, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !f.leftOut.has("file "+path) {
				var text string
				text, err = describe(path)
				if err == nil {
					f.note("file "+path, text)
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.IsDir() && f.leftOut.has("file "+path+"/") {
				return fs.SkipDir // all that could be in it
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// describe is all that is known of a file. Of a directory, size, number of links and times count what was ever in it:
// what is in it is noted by itself.
func describe(path string) (string, error) {
	var s syscall.Stat_t
	if err := syscall.Lstat(path, &s); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	kind, ends, err := contents(path, s)
	text := fmt.Sprintf("type=%s mode=%04o owner=%d:%d inode=%d", kind, s.Mode&0o7777, s.Uid, s.Gid, s.Ino)
	if kind != "directory" {
		text += fmt.Sprintf(" links=%d size=%d mtime=%d.%09d", s.Nlink, s.Size, s.Mtim.Sec, s.Mtim.Nsec)
	}
	return text + ends, err
}

// contents is the type of a file, and what it holds.
func contents(path string, s syscall.Stat_t) (kind, text string, err error) {
	switch s.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return "directory", "", nil
	case syscall.S_IFLNK:
		to, err := os.Readlink(path)
		return "link", fmt.Sprintf(" to=%q", to), err
	case syscall.S_IFREG:
		sum, err := hashOf(path)
		return "file", " sha256=" + sum, err
	}
	return fmt.Sprintf("%#o", s.Mode&syscall.S_IFMT), fmt.Sprintf(" device=%d", s.Rdev), nil
}

// hashOf is the first 16 bytes of a file's SHA-256.
func hashOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}
