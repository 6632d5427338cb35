package ssh_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// ways are servers on which files go different ways.
func ways(t *testing.T) map[string]testlab.SSHDOptions {
	return map[string]testlab.SSHDOptions{
		"sftp":             {},
		"no subsystem":     {Config: []string{"#Subsystem"}},
		"a start-up file":  {Config: forced(t, "echo Welcome to this machine; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"")},
		"a broken program": {Config: []string{"Subsystem sftp /bin/false"}},
		"csh that prints":  {Config: forced(t, "echo hi; exec tcsh -c \"$SSH_ORIGINAL_COMMAND\"")},
	}
}

// each runs a test on a client of each way.
func each(t *testing.T, test func(t *testing.T, c *ssh.Client)) {
	testlab.Require(t, "tcsh")
	for way, options := range ways(t) {
		t.Run(way, func(t *testing.T) {
			s := testlab.SSHD(t, options)
			test(t, dial(t, to(s), only(s)))
		})
	}
}

// nothingLeft holds that a directory has just these files.
func nothingLeft(t *testing.T, dir string, want ...string) {
	t.Helper()
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	testlab.Eventually(t, "only "+strings.Join(want, ", ")+" in "+dir, func() bool {
		return strings.Join(files(), "/") == strings.Join(want, "/")
	})
}

func TestFilesArePutWholeWithTheirMode(t *testing.T) {
	t.Parallel()
	content := make([]byte, 3<<20)
	_, _ = rand.Read(content) // never fails
	each(t, func(t *testing.T, c *ssh.Client) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a name with $HOME and \"quotes\"")
		for _, mode := range []os.FileMode{0o755, 0o640} { // the second replaces the first
			if err := c.Put(t.Context(), path, mode, bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes arrived, %v, want %d", len(got), err, len(content))
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("its mode is %v, %v, want %v", info.Mode(), err, mode)
			}
		}
		nothingLeft(t, dir, filepath.Base(path))
	})
}

// torn is a file that cannot be read to its end.
type torn struct {
	io.Reader
	end func() error
}

func (r torn) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = r.end()
	}
	return n, err
}

func TestNothingIsLeftOfAFileThatBreaksOff(t *testing.T) {
	t.Parallel()
	errTorn := errors.New("the file is torn")
	each(t, func(t *testing.T, c *ssh.Client) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		half := strings.Repeat("x", 100_000)
		err := c.Put(t.Context(), path, 0o600, torn{strings.NewReader(half), func() error { return errTorn }})
		if !errors.Is(err, errTorn) {
			t.Errorf("a reader that fails: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = c.Put(ctx, path, 0o600, torn{strings.NewReader(half), func() error { cancel(); return nil }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("called off: %v", err)
		}
		says(t, c.Put(t.Context(), dir+"/none/file", 0o600, strings.NewReader("x")), dir+"/none/file")
		nothingLeft(t, dir, "file")
		if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
			t.Errorf("the old file holds %.20q, %v", text, err)
		}
	})
}

func TestFullDiskIsToldAndLeftAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED: cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	each(t, func(t *testing.T, c *ssh.Client) {
		err := c.Put(t.Context(), filepath.Join(dir, "file"), 0o600, bytes.NewReader(make([]byte, 4<<20)))
		says(t, err, filepath.Join(dir, "file"), "o space left on device")
		nothingLeft(t, dir)
	})
}

func TestFileForAHostThatFallsSilentEndsInTime(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"sftp", "no subsystem"} {
		t.Run(way, func(t *testing.T) {
			s := testlab.SSHD(t, ways(t)[way])
			c, dir := dial(t, to(s), only(s)), t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			silent := torn{strings.NewReader("x"), func() error {
				s.Signal(t, syscall.SIGSTOP)
				return io.EOF
			}}
			began := time.Now()
			err := c.Put(ctx, filepath.Join(dir, "file"), 0o600, io.MultiReader(silent, bytes.NewReader(make([]byte, 8<<20))))
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 8*time.Second {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

func TestFileOfACutConnectionIsNotHalfThere(t *testing.T) {
	t.Parallel()
	for way, options := range ways(t) {
		t.Run(way, func(t *testing.T) {
			s := testlab.SSHD(t, options)
			c, dir := dial(t, to(s), only(s)), t.TempDir()
			cut := func() error {
				s.Cut(t)
				return io.EOF
			}
			r := torn{strings.NewReader(strings.Repeat("x", 1<<20)), cut}
			if err := c.Put(t.Context(), filepath.Join(dir, "file"), 0o600, r); err == nil {
				t.Error("no error")
			}
			if _, err := os.Stat(filepath.Join(dir, "file")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file is there: %v", err)
			}
		})
	}
}

func TestDirectoryInTheWayOfAFileIsNamed(t *testing.T) {
	each(t, func(t *testing.T, c *ssh.Client) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if err := os.MkdirAll(filepath.Join(path, "inside"), 0o755); err != nil {
			t.Fatal(err)
		}
		says(t, c.Put(t.Context(), path, 0o644, strings.NewReader("text")), path+" is a directory")
		nothingLeft(t, dir, "file")
		nothingLeft(t, path, "inside")
	})
}
