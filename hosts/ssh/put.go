package ssh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"ngxlab/agent/wire"
	"ngxlab/hosts"
)

const (
	sftpPatience = 10 * time.Second // for a subsystem to answer; else the file goes another way
	putFarewell  = 3 * time.Second  // for an upload that is called off to remove what it wrote
)

// Put writes a file by SFTP, and where the host has none that works (no subsystem, a start-up file that prints) through
// a session. It is there whole, with its mode, or not at all.
func (c *Client) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if err := c.put(ctx, path, mode, r); err != nil {
		return fmt.Errorf("%s: put %s: %w", c.target.written, path, err)
	}
	return nil
}

func (c *Client) put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if strings.ContainsAny(path, "\n\x00") || path == "" {
		return errors.New("no such file name")
	}
	r = &calledOff{ctx: ctx, from: r}
	send := func() (struct{}, error) { return struct{}{}, c.putBySession(ctx, path, mode, r) }
	if files := c.sftp(ctx); files != nil {
		send = func() (struct{}, error) { return struct{}{}, putBySFTP(files, path, mode, r) }
		defer leave(ctx, files)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { // the reader ends the upload, which cleans up; on a lost link nothing does
		time.AfterFunc(putFarewell, func() { cancel(context.Cause(ctx)) })
	})
	defer stop()
	_, err := hosts.Await(late, send, func(struct{}) {})
	return err
}

// leave closes the subsystem. That waits for the far end, which may not answer any more; the file is there by then, or has
// its error.
func leave(ctx context.Context, files *sftp.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_, _ = hosts.Await(ctx, func() (struct{}, error) { return struct{}{}, files.Close() }, func(struct{}) {})
}

// sftp opens the subsystem; nil when there is none that works, which is then remembered.
func (c *Client) sftp(ctx context.Context) *sftp.Client {
	if c.noSFTP.Load() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, sftpPatience)
	defer cancel()
	open := func() (*sftp.Client, error) { return c.ssh.NewSftp(sftp.UseConcurrentWrites(true)) }
	files, err := hosts.Await(bounded, open, func(late *sftp.Client) { _ = late.Close() })
	if err != nil && ctx.Err() == nil {
		c.noSFTP.Store(true)
	}
	if err != nil {
		return nil
	}
	return files
}

// calledOff is a reader that ends with its context.
type calledOff struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to learn of it
	from io.Reader
}

func (r *calledOff) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}

// putBySFTP writes a temporary file beside the target and renames it.
func putBySFTP(files *sftp.Client, name string, mode fs.FileMode, r io.Reader) error {
	temporary := path.Join(path.Dir(name), wire.TemporaryPrefix+rand.Text())
	err := writeBySFTP(files, temporary, mode, r)
	if err == nil {
		err = renameBySFTP(files, temporary, name)
	}
	if err == nil {
		return nil
	}
	err = explained(files, name, err)
	if gone := files.Remove(temporary); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("remove %s: %w", temporary, gone))
	}
	return err
}

func writeBySFTP(files *sftp.Client, temporary string, mode fs.FileMode, r io.Reader) error {
	file, err := files.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = file.ReadFromWithConcurrency(r, 0)
	if err == nil {
		err = file.Chmod(mode)
	}
	if _, offered := files.HasExtension("fsync@openssh.com"); offered && err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// renameBySFTP replaces a file at once where the host can; the rename of SFTP itself replaces nothing.
func renameBySFTP(files *sftp.Client, from, to string) error {
	if _, offered := files.HasExtension("posix-rename@openssh.com"); offered {
		return files.PosixRename(from, to)
	}
	err := files.Rename(from, to)
	if err == nil {
		return nil
	}
	if gone := files.Remove(to); gone != nil {
		return errors.Join(err, gone)
	}
	return files.Rename(from, to)
}

// explained says what is in the way of a file, for which SFTP has no code: it answers "failure".
func explained(files *sftp.Client, name string, err error) error {
	var status *sftp.StatusError
	if !errors.As(err, &status) || status.FxCode() != sftp.ErrSSHFxFailure {
		return err
	}
	if there, statErr := files.Lstat(name); statErr == nil && there.IsDir() {
		return fmt.Errorf("%s is a directory: %w", name, err)
	}
	dir := path.Dir(name)
	if there, statErr := files.Stat(dir); statErr == nil && !there.IsDir() {
		return fmt.Errorf("%s is not a directory: %w", dir, err)
	}
	if disk, statErr := files.StatVFS(dir); statErr == nil && disk.Bavail*disk.Frsize < lowDisk {
		return fmt.Errorf("no space left on device: %s has %d bytes free: %w", dir, disk.Bavail*disk.Frsize, err)
	}
	return err
}

// lowDisk is what a file system may have left when a write of 32 KiB, one packet of SFTP, did not fit.
const lowDisk = 64 << 10

// putScript takes the path, the length and the mode from the first lines, and the file from the rest, so that no name
// stands in a script. A file that was cut off has another length.
var putScript = strings.Join([]string{
	`umask 077`, `IFS= read -r to`, `IFS= read -r size`, `IFS= read -r mode`,
	`case $to in */*) dir=${to%/*}/;; *) dir=./;; esac`,
	`if [ -d "$to" ]; then echo "$to is a directory" >&2; exit 1; fi`, // into which mv would put it
	`t=$dir` + wire.TemporaryPrefix + `$$`,
	`clean() { rm -f -- "$t"; }`, `trap clean EXIT`, `trap "exit 1" HUP INT TERM PIPE`,
	`set -e`, `cat >"$t"`, `have=$(wc -c <"$t")`,
	`if [ "$have" -ne "$size" ]; then echo "$have of $size bytes arrived" >&2; exit 1; fi`,
	`chmod "$mode" "$t"`, `mv -f -- "$t" "$to"`,
}, "; ")

// putBySession sends the file to a script.
func (c *Client) putBySession(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	content, err := io.ReadAll(r) // its length goes first
	if err != nil {
		return err
	}
	p, err := c.start(ctx, putScript, false)
	if err != nil {
		return err
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, p) // a start-up file's noise
	}()
	head := strings.Join([]string{path, strconv.Itoa(len(content)), strconv.FormatUint(uint64(mode.Perm()), 8), ""}, "\n")
	_, err = io.Copy(p, io.MultiReader(strings.NewReader(head), &calledOff{ctx: ctx, from: bytes.NewReader(content)}))
	if closed := p.Close(); closed != nil {
		return errors.Join(context.Cause(ctx), closed) // says more than the broken pipe
	}
	<-drained
	return err
}
