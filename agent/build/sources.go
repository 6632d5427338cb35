package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"ngxlab/lab"
)

// defaultEcho is where the echo module comes from when the recipe does not say: the distribution's source package.
var defaultEcho = []lab.BuildSource{{Debian: "libnginx-mod-http-echo"}}

// archiveLimit bounds what is downloaded, in bytes; nginx's archive has 1 MB.
const archiveLimit = 256 << 20

// errChecksum marks an archive that is not the one asked for: no other source is tried then.
var errChecksum = errors.New("checksum differs")

// sources puts the server's source into work/server and the echo module's, when asked for, into work/echo.
func (c Cache) sources(ctx context.Context, j job, work string, b *lab.Build) error {
	if err := c.first(ctx, j, j.recipe.Sources, filepath.Join(work, "server"), b); err != nil {
		return err
	}
	for _, module := range j.recipe.Modules {
		if module != "echo" {
			continue
		}
		from := j.recipe.Echo
		if len(from) == 0 {
			from = defaultEcho
		}
		if err := c.first(ctx, j, from, filepath.Join(work, "echo"), b); err != nil {
			return fmt.Errorf("module echo: %w", err)
		}
	}
	return nil
}

// first unpacks the first source that can be had, and notes those that could not.
func (c Cache) first(ctx context.Context, j job, list []lab.BuildSource, into string, b *lab.Build) error {
	var failed []error
	for _, s := range list {
		err := c.source(ctx, j, s, into, b)
		if err == nil {
			for _, f := range failed {
				b.Notes = append(b.Notes, "not used: "+f.Error())
			}
			return nil
		}
		failed = append(failed, err)
		if errors.Is(err, errChecksum) || ctx.Err() != nil {
			break
		}
		if err := os.RemoveAll(into); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return errors.New("the recipe names no source")
	}
	return errors.Join(failed...)
}

// source unpacks one source into a directory and records its sum.
func (c Cache) source(ctx context.Context, j job, s lab.BuildSource, into string, b *lab.Build) error {
	switch {
	case s.URL != "":
		return c.fromURL(ctx, s, into, b)
	case s.Path != "":
		return fromPath(s.Path, j.where.Paths[s.Path], into, b)
	case s.Git != "":
		return c.fromGit(ctx, j, s, into, b)
	case s.Debian != "":
		return c.fromDebian(ctx, j, s, into, b)
	}
	return errors.New("a source names none of url, path, git and debian")
}

// fromURL downloads an archive, unless one with that sum is kept, and unpacks it.
func (c Cache) fromURL(ctx context.Context, s lab.BuildSource, into string, b *lab.Build) error {
	if s.SHA256 == "" {
		return fmt.Errorf("source %s: sha256 is compulsory with url", s.URL)
	}
	kept := filepath.Join(c.fetched(), s.SHA256)
	if sum, err := hashFile(kept); err != nil || sum != s.SHA256 {
		if err := c.download(ctx, s, kept); err != nil {
			return fmt.Errorf("source %s: %w", s.URL, err)
		}
	}
	b.Sources[s.URL] = s.SHA256
	return unpackFile(kept, into)
}

// download fetches an archive to a temporary file and keeps it only when its sum is the one asked for.
func (c Cache) download(ctx context.Context, s lab.BuildSource, kept string) error {
	if err := os.MkdirAll(c.fetched(), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.fetched(), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone when it was kept
	err = fetch(ctx, s.URL, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := verify(f.Name(), s.SHA256); err != nil {
		return err
	}
	return os.Rename(f.Name(), kept)
}

// verify compares a file with the sum asked for.
func verify(path, want string) error {
	sum, err := hashFile(path)
	if err != nil {
		return err
	}
	if sum != want {
		return fmt.Errorf("%w: asked for sha256 %s, got %s; nothing was kept", errChecksum, want, sum)
	}
	return nil
}

// fetch writes the body of a GET to w.
func fetch(ctx context.Context, url string, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	n, err := io.Copy(w, io.LimitReader(resp.Body, archiveLimit+1))
	if err == nil && n > archiveLimit {
		err = fmt.Errorf("more than %d bytes", archiveLimit)
	}
	return err
}

// fromPath unpacks an archive, or copies a directory, of the host.
func fromPath(path, sum, into string, b *lab.Build) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	b.Sources[path] = sum
	if !info.IsDir() {
		return unpackFile(path, into)
	}
	if err := os.CopyFS(into, os.DirFS(path)); err != nil {
		return fmt.Errorf("source %s: %w", path, err)
	}
	return nil
}

// fromGit fetches one commit and unpacks it; its sum is the commit.
func (c Cache) fromGit(ctx context.Context, j job, s lab.BuildSource, into string, b *lab.Build) error {
	if s.Commit == "" {
		return fmt.Errorf("source %s: commit is compulsory with git", s.Git)
	}
	repo, archive := into+".git", into+".tar"
	steps := [][]string{
		{"git", "init", "--quiet", "--bare", repo},
		{"git", "-C", repo, "fetch", "--quiet", "--depth=1", s.Git, s.Commit},
		{"git", "-C", repo, "archive", "--format=tar", "--prefix=source/", "--output=" + archive, s.Commit},
	}
	for _, argv := range steps {
		cmd := lab.Command{Argv: argv, Env: []string{"GIT_TERMINAL_PROMPT=0"}, Deadline: lab.Duration{Duration: 10 * time.Minute}}
		if err := c.run(ctx, cmd, j.log); err != nil {
			return fmt.Errorf("source %s at %s: %w", s.Git, s.Commit, err)
		}
	}
	b.Sources[s.Git+"@"+s.Commit] = s.Commit
	return unpackFile(archive, into)
}
