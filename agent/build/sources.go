package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// echoPackage is the source package of the echo module.
const echoPackage = "libnginx-mod-http-echo"

// archiveLimit bounds what is downloaded, in bytes; nginx's archive has 1 MB.
const archiveLimit = 256 << 20

// errChecksum marks an archive that is not the one asked for: no other source is tried then.
var errChecksum = errors.New("checksum differs")

// errVersion marks a source of another version than the one asked for.
var errVersion = errors.New("another version")

// part is one of the sources of a build: where it may come from, where it goes, and the version that it must have.
type part struct {
	what    string // "" = the server's own
	from    []lab.BuildSource
	into    string
	version string
}

// parts are the server's source, in work/server, and those of its modules beside it: work/echo, work/module-NAME.
func parts(r lab.Recipe, work string) []part {
	all := []part{{from: r.Sources, into: filepath.Join(work, "server"), version: r.Version}}
	if slices.Contains(r.Modules, "echo") {
		all = append(all, part{"module echo", echoSources(r), filepath.Join(work, "echo"), r.EchoWants})
	}
	for _, m := range r.Added {
		all = append(all, part{"module " + m.Name, m.Sources, filepath.Join(work, "module-"+m.Name), m.Version})
	}
	return all
}

// echoSources are where the echo module comes from when the recipe does not say: the distribution's source package, of the
// suite that the server comes from where that has one.
func echoSources(r lab.Recipe) []lab.BuildSource {
	if len(r.Echo) > 0 {
		return r.Echo
	}
	own := lab.BuildSource{Debian: echoPackage, Version: r.EchoWants}
	for _, s := range r.Sources {
		if s.Debian != "" && s.Suite != "" {
			return []lab.BuildSource{{Debian: echoPackage, Suite: s.Suite, Version: r.EchoWants}, own}
		}
	}
	return []lab.BuildSource{own}
}

// sources fetches and unpacks all sources of a build below work.
func (c Cache) sources(ctx context.Context, j job, work string, b *lab.Build) error {
	for _, p := range parts(j.recipe, work) {
		if err := c.first(ctx, j, p, b); err != nil {
			if p.what != "" {
				return fmt.Errorf("%s: %w", p.what, err)
			}
			return err
		}
	}
	return nil
}

// first unpacks the first source that can be had and is of the version asked for, and notes those that could not.
func (c Cache) first(ctx context.Context, j job, p part, b *lab.Build) error {
	var failed []error
	for _, s := range p.from {
		got, err := c.source(ctx, j, s, p.into)
		if err == nil {
			err = p.fits(&got)
		}
		if err == nil {
			for _, f := range failed {
				b.Notes = append(b.Notes, "not used: "+f.Error())
			}
			p.used(got, b)
			return nil
		}
		failed = append(failed, err)
		if errors.Is(err, errChecksum) || ctx.Err() != nil {
			break
		}
		if err := os.RemoveAll(p.into); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return errors.New("the recipe names no source")
	}
	return errors.Join(failed...)
}

// got is what a source turned out to be.
type got struct {
	version string            // where its name tells it
	sums    map[string]string // what was used → SHA-256
	notes   []string
}

// used tells in the build what was used. Files of a text have short names, which several parts may have.
func (p part) used(g got, b *lab.Build) {
	for name, sum := range g.sums {
		if _, twice := b.Sources[name]; twice && p.what != "" {
			name = p.what + ": " + name
		}
		b.Sources[name] = sum
	}
	b.Notes = append(b.Notes, g.notes...)
}

// fits holds the version of a source, as far as it can be known, against the one asked for.
func (p part) fits(g *got) error {
	version := g.version
	if p.what == "" {
		version = sourceVersion(p.into)
	}
	switch {
	case p.version == "" || version == p.version:
	case version != "":
		return fmt.Errorf("%w: asked for %s, the source is %s; correct version, or name another source", errVersion, p.version, version)
	case p.what != "":
		g.notes = append(g.notes, fmt.Sprintf("%s: whether the source is version %s cannot be seen", p.what, p.version))
	}
	return nil
}

// source unpacks one source into a directory.
func (c Cache) source(ctx context.Context, j job, s lab.BuildSource, into string) (got, error) {
	switch {
	case s.URL != "":
		return c.fromURL(ctx, s, into)
	case s.Path != "":
		return c.fromPath(ctx, s.Path, j.where.Paths[s.Path], into)
	case s.Git != "":
		return c.fromGit(ctx, j, s, into)
	case s.Debian != "":
		return c.fromDebian(ctx, j, s, into)
	case len(s.Text) > 0:
		return fromText(s.Text, into)
	}
	return got{}, errors.New("a source names none of url, path, git, debian and text")
}

// topVersion is the version at the end of the name of an archive's directory: "1.26.3" of nginx-1.26.3.
var topVersion = regexp.MustCompile(`[-_]v?(\d+(\.\d+)+\S*)$`)

func versionOf(top string) string {
	if found := topVersion.FindStringSubmatch(top); found != nil {
		return found[1]
	}
	return ""
}

// fromText writes the files of a source that stands in the experiment.
func fromText(files map[string]string, into string) (got, error) {
	sums := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !filepath.IsLocal(name) {
			return got{}, fmt.Errorf("source text %q leads out of its directory", name)
		}
		path := filepath.Join(into, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return got{}, fmt.Errorf("source text: %w", err)
		}
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return got{}, fmt.Errorf("source text: %w", err)
		}
		sum := sha256.Sum256([]byte(files[name]))
		sums[name] = hex.EncodeToString(sum[:])
	}
	return got{sums: sums}, nil
}

// fromURL downloads an archive, unless one with that sum is kept, and unpacks it.
func (c Cache) fromURL(ctx context.Context, s lab.BuildSource, into string) (got, error) {
	if s.SHA256 == "" {
		return got{}, fmt.Errorf("source %s: sha256 is compulsory with url", s.URL)
	}
	kept := filepath.Join(c.fetched(), strings.ToLower(s.SHA256))
	if sum, err := hashFile(kept); err != nil || !strings.EqualFold(sum, s.SHA256) {
		if err := c.download(ctx, s, kept); err != nil {
			return got{}, fmt.Errorf("source %s: %w", s.URL, err)
		}
	}
	top, err := c.unpackFile(ctx, kept, into)
	if err != nil {
		return got{}, fmt.Errorf("source %s: %w", s.URL, err)
	}
	return got{version: versionOf(top), sums: map[string]string{s.URL: s.SHA256}}, nil
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
	if !strings.EqualFold(sum, want) {
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
func (c Cache) fromPath(ctx context.Context, path, sum, into string) (got, error) {
	info, err := os.Stat(path)
	if err != nil {
		return got{}, fmt.Errorf("source: %w", err)
	}
	top := filepath.Base(path)
	if info.IsDir() {
		err = os.CopyFS(into, os.DirFS(path))
	} else {
		top, err = c.unpackFile(ctx, path, into)
	}
	if err != nil {
		return got{}, fmt.Errorf("source %s: %w", path, err)
	}
	return got{version: versionOf(top), sums: map[string]string{path: sum}}, nil
}
