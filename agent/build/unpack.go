package build

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ngxlab/lab"
)

// How archives begin.
const (
	magicGzip  = "\x1f\x8b"
	magicBzip2 = "BZh"
	magicXz    = "\xfd7zXZ\x00"
	magicZip   = "PK\x03\x04"
)

// unpackFile unpacks an archive (tar, plain or compressed by gzip, bzip2 or xz, or zip, told by its first bytes) so that the
// archive's single top directory, whose name it returns, becomes the directory into.
func (c Cache) unpackFile(ctx context.Context, path, into string) (top string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	buffered := bufio.NewReader(f)
	magic, _ := buffered.Peek(len(magicXz)) // shorter ones are told below
	switch {
	case strings.HasPrefix(string(magic), magicZip):
		top, err = unpackZip(f, into)
	case string(magic) == magicXz:
		top, err = c.unpackXz(ctx, path, into)
	default:
		top, err = unpackTop(buffered, into)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("unpack %s: %w", filepath.Base(path), err), os.RemoveAll(into))
	}
	return top, nil
}

// unpack is unpackFile of a tar archive that comes as a stream.
func unpack(r io.Reader, into string) error {
	_, err := unpackTop(r, into)
	return err
}

func unpackTop(r io.Reader, into string) (top string, err error) {
	r, err = decompress(r)
	if err != nil {
		return "", err
	}
	return unpackBounded(r, into)
}

// unpackXz lets the host's xz decompress: the standard library cannot.
func (c Cache) unpackXz(ctx context.Context, path, into string) (top string, err error) {
	if _, err := exec.LookPath("xz"); err != nil {
		return "", errors.New("it is compressed by xz, which this host has not; install the package xz-utils")
	}
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := c.run(ctx, lab.Command{Argv: []string{"xz", "-dcqq", path}, Deadline: lab.Duration{Duration: 10 * time.Minute}}, w)
		_ = w.CloseWithError(err) // always nil
		ended <- err
	}()
	top, err = unpackBounded(r, into)
	_, rest := io.Copy(io.Discard, r) // to the end: only there a stream that is cut off is known
	if err == nil {
		err = rest
	}
	_ = r.Close() // always nil
	if failed := <-ended; failed != nil && err == nil {
		err = failed
	}
	return top, err
}

// unpackBounded is unpackTar of at most unpackedLimit bytes.
func unpackBounded(r io.Reader, into string) (string, error) {
	bounded := &io.LimitedReader{R: r, N: unpackedLimit}
	top, err := unpackTar(bounded, into)
	if bounded.N <= 0 {
		return "", fmt.Errorf("it holds more than %d bytes", unpackedLimit)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, bounded) // as above
	}
	return top, err
}

// unpackTar refuses every name and link that leads out of the directory; os.Root makes sure of it a second time.
func unpackTar(r io.Reader, into string) (top string, err error) {
	u, err := newUnpacking(into)
	if err != nil {
		return "", err
	}
	defer u.root.Close() //nolint:errcheck // only a directory handle
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if err := u.entry(h, archive); err != nil {
			return "", fmt.Errorf("%s: %w", h.Name, err)
		}
	}
	return u.top, u.whole()
}

// unpackZip unpacks a zip archive in the same way.
func unpackZip(f *os.File, into string) (top string, err error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	archive, err := zip.NewReader(f, info.Size())
	if err != nil {
		return "", err
	}
	u, err := newUnpacking(into)
	if err != nil {
		return "", err
	}
	defer u.root.Close() //nolint:errcheck // only a directory handle
	left := int64(unpackedLimit)
	for _, file := range archive.File {
		if err := u.zipped(file, &left); err != nil {
			return "", fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return u.top, u.whole()
}

// unpacking is an archive on its way into a directory.
type unpacking struct {
	root *os.Root
	top  string // the archive's own directory, once it is known
}

func newUnpacking(into string) (*unpacking, error) {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(into)
	return &unpacking{root: root}, err
}

// whole refuses an archive without entries.
func (u *unpacking) whole() error {
	if u.top == "" {
		return errors.New("the archive is empty")
	}
	return nil
}

// zipped makes one entry of a zip archive; left is how many bytes all may still have.
func (u *unpacking) zipped(f *zip.File, left *int64) error {
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // only read
	bounded := &io.LimitedReader{R: content, N: *left}
	h := &tar.Header{Name: f.Name, Mode: int64(f.Mode().Perm()), ModTime: f.Modified, Typeflag: tar.TypeReg}
	switch mode := f.Mode(); {
	case mode.IsDir():
		h.Typeflag = tar.TypeDir
	case mode&fs.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(bounded, 4096))
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(target)
	case !mode.IsRegular():
		h.Typeflag = tar.TypeFifo // whatever it is, it is not unpacked
	}
	err = u.entry(h, bounded)
	if *left = bounded.N; err == nil && bounded.N <= 0 {
		err = fmt.Errorf("the archive holds more than %d bytes", unpackedLimit)
	}
	return err
}

// decompress looks at the first bytes.
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(3)
	if err != nil {
		return nil, fmt.Errorf("too short for an archive: %w", err)
	}
	switch {
	case strings.HasPrefix(string(magic), magicGzip):
		return gzip.NewReader(buffered)
	case string(magic) == magicBzip2:
		return bzip2.NewReader(buffered), nil
	}
	return buffered, nil
}

// entry makes one file, directory or link.
func (u *unpacking) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if !filepath.IsLocal(strings.TrimSuffix(h.Name, "/")) {
		return errors.New("leads out of the archive")
	}
	name, err := u.inside(h)
	if err != nil || name == "." {
		return err
	}
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		return regular(u.root, name, h, content)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), h.Linkname)) || filepath.IsAbs(h.Linkname) {
			return fmt.Errorf("link to %s leads out of the archive", h.Linkname)
		}
		return u.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		if !filepath.IsLocal(h.Linkname) {
			return fmt.Errorf("link to %s leads out of the archive", h.Linkname)
		}
		_, rest, _ := strings.Cut(filepath.Clean(h.Linkname), "/")
		return u.root.Link(rest, name)
	}
	return fmt.Errorf("is neither file, directory nor link (type %q)", h.Typeflag)
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
func regular(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("stands twice in the archive")
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return root.Chtimes(name, h.ModTime, h.ModTime)
}
