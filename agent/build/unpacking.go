package build

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// entriesLimit bounds how many files, directories and links an archive may have; nginx's has 500, Linux's 90000.
const entriesLimit = 500_000

// unpacking is an archive on its way into a directory. It refuses every name and link that leads out of it; os.Root makes
// sure of it a second time.
type unpacking struct {
	root    *os.Root
	top     string            // the archive's own directory, once it is known
	links   map[string]string // name → target
	left    int64             // bytes that all files together may still have, however few the archive has for them
	entries int
}

func newUnpacking(into string) (*unpacking, error) {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(into)
	return &unpacking{root: root, links: map[string]string{}, left: unpackedLimit}, err
}

// whole refuses an archive without entries.
func (u *unpacking) whole() error {
	if u.top == "" {
		return errors.New("the archive is empty")
	}
	return nil
}

// entry makes one file, directory or link.
func (u *unpacking) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if u.entries++; u.entries > entriesLimit {
		return fmt.Errorf("the archive has more than %d entries", entriesLimit)
	}
	if !filepath.IsLocal(strings.TrimSuffix(h.Name, "/")) {
		return errors.New("leads out of the archive")
	}
	name, err := u.inside(h)
	if err != nil || name == "." {
		return err
	}
	if link := u.linkAbove(name); link != "" {
		return fmt.Errorf("stands below %s, which is a link", link)
	}
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	err = u.made(name, h, content)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("stands twice in the archive")
	}
	return err
}

func (u *unpacking) made(name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		return u.regular(name, h, content)
	case tar.TypeSymlink:
		return u.symlink(name, h.Linkname)
	case tar.TypeLink:
		if !filepath.IsLocal(h.Linkname) {
			return fmt.Errorf("link to %s leads out of the archive", h.Linkname)
		}
		_, to, _ := strings.Cut(filepath.Clean(h.Linkname), "/")
		if target, linked := u.links[to]; linked { // a second link with the same target, which means another place from here
			return u.symlink(name, target)
		}
		return u.root.Link(to, name)
	}
	return fmt.Errorf("is neither file, directory nor link (type %q)", h.Typeflag)
}

// symlink makes a link that stays inside, as no directory above it is a link. A target may begin with "..", but not go up
// later: that could be out of a directory that is itself a link.
func (u *unpacking) symlink(name, target string) error {
	if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
		return fmt.Errorf("link to %s leads out of the archive", target)
	}
	down := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && down {
			return fmt.Errorf("link to %s may lead out of the archive: it goes down and up again", target)
		}
		down = down || part != ".." && part != "." && part != ""
	}
	if err := u.root.Symlink(target, name); err != nil {
		return err
	}
	u.links[name] = target
	return nil
}

// linkAbove is the link that a name goes through, "" when there is none.
func (u *unpacking) linkAbove(name string) string {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if _, linked := u.links[dir]; linked {
			return dir
		}
	}
	return ""
}

// inside is a name without the archive's top directory, which all names have in common.
func (u *unpacking) inside(h *tar.Header) (string, error) {
	top, rest, below := strings.Cut(filepath.Clean(h.Name), "/")
	if top == "." {
		return ".", nil
	}
	if !below && h.Typeflag != tar.TypeDir {
		return "", errors.New("stands outside of a directory: an archive of a source has one directory that holds all")
	}
	if u.top == "" {
		u.top = top
	}
	if top != u.top {
		return "", fmt.Errorf("stands outside of %s: an archive of a source has one directory that holds all", u.top)
	}
	if !below {
		return ".", nil
	}
	return rest, nil
}

// regular writes a file with its time: make must not think that generated files are out of date.
func (u *unpacking) regular(name string, h *tar.Header, content io.Reader) error {
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, u.left+1))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if u.left -= n; err == nil && u.left < 0 {
		err = fmt.Errorf("the archive holds more than %d bytes", unpackedLimit)
	}
	if err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}
