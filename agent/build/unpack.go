package build

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	emptyZip   = "PK\x05\x06"
)

// archiveErrors are those of archives that are cut off, damaged or none.
var archiveErrors = []error{
	io.ErrUnexpectedEOF, io.EOF, tar.ErrHeader, gzip.ErrHeader, gzip.ErrChecksum, zip.ErrFormat, zip.ErrChecksum, zip.ErrAlgorithm, errXz,
}

// errXz marks what xz could not decompress.
var errXz = errors.New("xz cannot decompress it")

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
	case strings.HasPrefix(string(magic), magicZip), strings.HasPrefix(string(magic), emptyZip):
		top, err = unpackZip(f, into)
	case string(magic) == magicXz:
		top, err = c.unpackXz(ctx, path, into)
	default:
		top, err = unpackTop(buffered, into)
	}
	if err == nil {
		return top, nil
	}
	what := ""
	if damaged(err) {
		what = "it is cut off, damaged, or no archive (tar, plain or by gzip, bzip2 or xz, and zip are known): "
	}
	return "", errors.Join(fmt.Errorf("unpack %s: %s%w", filepath.Base(path), what, err), os.RemoveAll(into))
}

// damaged reports whether an error is of the archive's, and not of the file system's.
func damaged(err error) bool {
	var flate flate.CorruptInputError
	var bzip bzip2.StructuralError
	return errors.As(err, &flate) || errors.As(err, &bzip) ||
		slices.ContainsFunc(archiveErrors, func(known error) bool { return errors.Is(err, known) })
}

// unpackTop is unpackFile of a tar archive that comes as a stream.
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := c.run(ctx, lab.Command{Argv: []string{"xz", "-dcqq", "-M512MiB", "--", path}, Deadline: lab.Duration{Duration: 10 * time.Minute}}, w)
		if err != nil {
			err = fmt.Errorf("%w: %w", errXz, err)
		}
		_ = w.CloseWithError(err) // always nil
	}()
	top, err = unpackBounded(r, into)
	if err != nil {
		cancel() // there may be much more to decompress
	}
	_ = r.Close() // always nil
	<-ended
	return top, err
}

// unpackBounded is unpackTar of at most unpackedLimit bytes.
func unpackBounded(r io.Reader, into string) (string, error) {
	bounded := &io.LimitedReader{R: r, N: unpackedLimit}
	top, err := unpackTar(bounded, into)
	if err == nil {
		_, err = io.Copy(io.Discard, bounded) // to the end: only there a stream that is cut off is known
	}
	if bounded.N <= 0 {
		return "", fmt.Errorf("it holds more than %d bytes", unpackedLimit)
	}
	return top, err
}

// unpackTar unpacks a plain tar archive.
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
	for _, file := range archive.File {
		if err := u.zipped(file); err != nil {
			return "", fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return u.top, u.whole()
}

// zipped makes one entry of a zip archive.
func (u *unpacking) zipped(f *zip.File) error {
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // only read
	h := &tar.Header{Name: f.Name, Mode: int64(f.Mode().Perm()), ModTime: f.Modified, Typeflag: tar.TypeReg}
	switch mode := f.Mode(); {
	case mode.IsDir():
		h.Typeflag = tar.TypeDir
	case mode&fs.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(content, 4096))
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(target)
	case !mode.IsRegular():
		h.Typeflag = tar.TypeFifo // whatever it is, it is not unpacked
	}
	return u.entry(h, content)
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
