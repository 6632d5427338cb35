package build

import (
	"archive/tar"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// unpackFile unpacks a tar archive (plain, gzip or bzip2, told by its first bytes) so that the archive's single
// top directory becomes the directory into.
func unpackFile(path, into string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	if err := unpack(f, into); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(path), err)
	}
	return nil
}

func unpack(r io.Reader, into string) error {
	r, err := decompress(r)
	if err != nil {
		return err
	}
	return unpackTar(r, into)
}

// unpackTar refuses every name and link that leads out of the directory; os.Root makes sure of it a second time.
func unpackTar(r io.Reader, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only a directory handle
	files := 0
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := entry(root, h, archive); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		files++
	}
	if files == 0 {
		return errors.New("the archive is empty")
	}
	return nil
}

// decompress looks at the first bytes.
func decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(3)
	if err != nil {
		return nil, fmt.Errorf("too short for an archive: %w", err)
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		return gzip.NewReader(buffered)
	case string(magic) == "BZh":
		return bzip2.NewReader(buffered), nil
	}
	return buffered, nil
}

// entry makes one file, directory or link.
func entry(root *os.Root, h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if !filepath.IsLocal(strings.TrimSuffix(h.Name, "/")) {
		return errors.New("leads out of the archive")
	}
	name := inside(h.Name)
	if name == "." {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		return regular(root, name, h, content)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), h.Linkname)) || filepath.IsAbs(h.Linkname) {
			return fmt.Errorf("link to %s leads out of the archive", h.Linkname)
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		if !filepath.IsLocal(h.Linkname) {
			return fmt.Errorf("link to %s leads out of the archive", h.Linkname)
		}
		return root.Link(inside(h.Linkname), name)
	}
	return fmt.Errorf("is neither file, directory nor link (type %q)", h.Typeflag)
}

// inside is a name without the archive's top directory.
func inside(name string) string {
	_, rest, found := strings.Cut(filepath.Clean(name), "/")
	if !found {
		return "."
	}
	return rest
}

// regular writes a file with its time: make must not think that generated files are out of date.
func regular(root *os.Root, name string, h *tar.Header, content io.Reader) error {
	mode := os.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
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
