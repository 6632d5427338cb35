package process

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ngxlab/lab"
)

// write fills the fresh directory: configuration, files and generated bodies.
func (sv *serving) write() error {
	files := map[string]string{"nginx.conf": sv.asked.Config, errorLog: ""}
	for name, content := range sv.asked.Files {
		files[name] = content
	}
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "{prefix}", sv.prefix)
	}
	if err := writeFiles(sv.prefix, files); err != nil {
		return err
	}
	for name, body := range sv.asked.Bodies {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("write body %q: it would lie outside the server's directory", name)
		}
		if err := writeBody(filepath.Join(sv.prefix, name), body.Bytes); err != nil {
			return fmt.Errorf("write body %s: %w", name, err)
		}
	}
	return sv.readable()
}

func writeFiles(work string, files map[string]string) error {
	for name, content := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("write file %q of a command: it would lie outside its directory", name)
		}
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write a file of a command: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write a file of a command: %w", err)
		}
	}
	return nil
}

// readable makes sure that workers, which are not root when their master is, reach and read the directory whatever the
// umask was. Only directories of the lab's own are opened to them.
func (sv *serving) readable() error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := filepath.WalkDir(sv.prefix, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
	for dir := filepath.Dir(sv.prefix); err == nil && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		err = enterable(dir, dir == sv.r.Dir || within(dir, sv.r.Dir))
	}
	return err
}

// enterable lets everybody pass a directory of ours, and refuses another that lets not.
func enterable(dir string, ours bool) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&0o001 != 0 {
		return err
	}
	if ours {
		return os.Chmod(dir, info.Mode().Perm()|0o011)
	}
	return fmt.Errorf("the workers of a server cannot enter %s (mode %v); chmod o+x it, or give the agent another --dir", dir, info.Mode().Perm())
}

// writeBody writes a body of printable noise: it compresses like packed data, to three quarters.
func writeBody(path string, sizeBytes int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 1<<16)
	_, err = io.CopyN(buffered, lab.BodyNoise(), sizeBytes)
	if err == nil {
		err = buffered.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
