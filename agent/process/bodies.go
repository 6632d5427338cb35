package process

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ngxlab/lab"
)

// putBody puts a generated body into a server's directory: a link to the one that is kept, so that it is made once, or a
// copy when the directory becomes another user's.
func (sv *serving) putBody(name string, b lab.Body) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("write body %q: it would lie outside the server's directory", name)
	}
	kept, err := sv.r.keptBody(b)
	if err != nil {
		return fmt.Errorf("write body %s: %w", name, err)
	}
	path := filepath.Join(sv.prefix, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write body %s: %w", name, err)
	}
	if sv.as.name == "" && os.Link(kept, path) == nil {
		return nil
	}
	if err := copyFile(kept, path, 0o644); err != nil {
		return fmt.Errorf("write body %s: %w", name, err)
	}
	return nil
}

// keptBody is the body of a size in the state directory, made when it is not there, or is not what it was when it was
// made.
func (r *Runner) keptBody(b lab.Body) (string, error) {
	dir := filepath.Join(r.Dir, "bodies")
	path := filepath.Join(dir, fmt.Sprintf("%d-%.16s", b.Bytes, b.SHA256))
	if r.unchanged(path) {
		return path, nil
	}
	if sum, err := hashOf(path); err == nil && sum == b.SHA256 {
		r.hashed(path)
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone when all went well
	sum, err := generate(f, b.Bytes)
	switch {
	case err != nil:
		return "", err
	case b.SHA256 != "" && sum != b.SHA256:
		return "", fmt.Errorf("the %d bytes made here have the SHA-256 %s, not %s: agent and program are of different versions", b.Bytes, sum, b.SHA256)
	}
	return path, os.Rename(f.Name(), path) // hashed once more when it is used again: what is on the disk is what counts
}

// unchanged reports whether a body is as it was when this runner found that it has its hash.
func (r *Runner) unchanged(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp, known := r.hashes[path]
	return known && stamp == contents(path)
}

func (r *Runner) hashed(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hashes == nil {
		r.hashes = map[string]string{}
	}
	r.hashes[path] = contents(path)
}

// contents is a file with what changes when its content does: a further link, or who may read it, is no matter.
func contents(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// generate writes a body to its end and closes the file.
func generate(f *os.File, sizeBytes int64) (sum string, err error) {
	hash := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(f, hash), 1<<16)
	_, err = io.CopyN(buffered, lab.BodyNoise(), sizeBytes)
	err = errors.Join(err, buffered.Flush(), f.Chmod(0o644), f.Close())
	return hex.EncodeToString(hash.Sum(nil)), err
}

// hashOf is the SHA-256 of a file, hex: some 7 ms for 10 MB.
func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
