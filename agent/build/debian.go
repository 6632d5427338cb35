package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"ngxlab/lab"
)

// fromDebian unpacks the upstream archive of a source package.
func (c Cache) fromDebian(ctx context.Context, j job, s lab.BuildSource, into string) (got, error) {
	a := apt{cache: c, job: j, dir: into + ".apt"}
	packages, err := a.index(ctx, s)
	if err == nil {
		packages, err = ofVersion(packages, s.Version)
	}
	if err != nil {
		return got{}, fmt.Errorf("source package %s: %w", s.Debian, err)
	}
	var missing []error
	for _, p := range packages {
		files, err := a.fetch(ctx, p, j.recipe.Patches)
		if err != nil {
			missing = append(missing, err)
			if errors.Is(err, errChecksum) || ctx.Err() != nil {
				break
			}
			continue
		}
		sums, err := a.unpack(ctx, p, files, into)
		if err != nil {
			return got{}, fmt.Errorf("source package %s %s: %w", p.name, p.version, err)
		}
		g := got{version: p.upstream(), sums: sums}
		for _, f := range missing {
			g.notes = append(g.notes, "not used: "+f.Error())
		}
		g.notes = append(g.notes, "source package "+p.name+" "+p.version)
		return g, nil
	}
	return got{}, errors.Join(missing...)
}

// ofVersion are the packages of an upstream version, all when none is asked for.
func ofVersion(packages []sourcePackage, version string) ([]sourcePackage, error) {
	var fit []sourcePackage
	var there []string
	for _, p := range packages {
		if version == "" || p.upstream() == version {
			fit = append(fit, p)
		}
		there = append(there, p.version)
	}
	if len(fit) == 0 {
		return nil, fmt.Errorf("%w: asked for %s, there are %s", errVersion, version, strings.Join(there, ", "))
	}
	return fit, nil
}

// apt asks apt with lists, cache and sources of its own, so that nothing of the host's is written and no privilege
// is needed. Options: apt.conf(5), apt-get(8), apt 2.6.
type apt struct {
	cache Cache
	job   job
	dir   string // private, removed with the work directory
}

// sourcePackage is one version of a source package in an index.
type sourcePackage struct {
	name, version string
	files         map[string]string // file → SHA-256
}

// upstream is the version without Debian's epoch, revision and remarks ("1.30.6" of 1:1.30.6+dfsg-2).
func (p sourcePackage) upstream() string {
	_, rest := epoch(p.version)
	version, _ := revision(rest)
	version, _, _ = strings.Cut(version, "+")
	return version
}

// index fetches the indexes and returns the versions of the package, newest first.
func (a apt) index(ctx context.Context, s lab.BuildSource) ([]sourcePackage, error) {
	if err := a.prepare("deb-src", s.Suite); err != nil {
		return nil, err
	}
	// An index that cannot be fetched is told in the log and missed below: the other indexes may have the package.
	updated := a.run(ctx, a.job.log, "apt-get", "update")
	var out bytes.Buffer
	_ = a.run(ctx, &out, "apt-cache", "showsrc", "--only-source", s.Debian) // what it printed counts; its own advice is about the host's lists
	packages := parseSources(out.String(), s.Debian)
	if len(packages) == 0 {
		return nil, errors.Join(errors.New("not in the indexes of the host's apt sources"), updated)
	}
	return packages, nil
}

// prepare makes the private directory. The hooks of the host's configuration are cleared: they write to the host.
func (a apt) prepare(kind, suite string) error {
	entries, err := aptSources(a.cache.AptDir, kind, suite)
	if err != nil {
		return err
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "sources.list.d", "files"} {
		if err := os.MkdirAll(filepath.Join(a.dir, sub), 0o755); err != nil {
			return err
		}
	}
	list := filepath.Join(a.dir, "sources.list.d", "host.list")
	if err := os.WriteFile(list, []byte(strings.Join(entries, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	conf := fmt.Sprintf(aptConf, a.dir)
	return os.WriteFile(filepath.Join(a.dir, "apt.conf"), []byte(conf), 0o644)
}

const aptConf = `Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "%[1]s/sources.list.d";
Dir::State::lists "%[1]s/lists";
Dir::Cache "%[1]s/cache";
Debug::NoLocking "true";
APT::Sandbox::User "root";
APT::Get::List-Cleanup "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`

// run runs an apt command in the private directory; its error carries apt's first.
func (a apt) run(ctx context.Context, out io.Writer, name string, args ...string) error {
	var said bytes.Buffer
	err := a.cache.run(ctx, lab.Command{
		Argv: append([]string{name, "-c", filepath.Join(a.dir, "apt.conf")}, args...),
		Dir:  filepath.Join(a.dir, "files"), Deadline: lab.Duration{Duration: 5 * time.Minute},
	}, io.MultiWriter(out, &said))
	if err == nil {
		return nil
	}
	for line := range strings.Lines(said.String()) {
		if strings.HasPrefix(line, "E: ") {
			return fmt.Errorf("%w: %s", err, strings.TrimSpace(line[3:]))
		}
	}
	return err
}

// fetch lets apt download the upstream archive (and Debian's, when it is needed for the patches) of one version and
// verifies them against the index. apt verifies too; its word is not needed.
func (a apt) fetch(ctx context.Context, p sourcePackage, patches bool) (map[string]string, error) {
	only := "--tar-only"
	if patches {
		only = "--download-only"
	}
	if err := a.run(ctx, a.job.log, "apt-get", "source", "--download-only", only, p.name+"="+p.version); err != nil {
		return nil, fmt.Errorf("%s %s: %w", p.name, p.version, err)
	}
	files := map[string]string{}
	for file, sum := range p.files {
		path := filepath.Join(a.dir, "files", file)
		if _, err := os.Stat(path); err != nil {
			continue // not asked for
		}
		if err := verify(path, sum); err != nil {
			return nil, fmt.Errorf("%s %s: %s: %w", p.name, p.version, file, err)
		}
		files[file] = path
	}
	return files, nil
}

// unpack unpacks the upstream archive, applies Debian's patches when the recipe wants them, and returns the sums of what was
// used.
func (a apt) unpack(ctx context.Context, p sourcePackage, files map[string]string, into string) (map[string]string, error) {
	for file, path := range files {
		if !strings.Contains(file, ".orig.tar.") || strings.HasSuffix(file, ".asc") {
			continue
		}
		sums := map[string]string{file: p.files[file]}
		if _, err := a.cache.unpackFile(ctx, path, into); err != nil {
			return nil, err
		}
		if !a.job.recipe.Patches {
			return sums, nil
		}
		return sums, a.patch(ctx, p, files, into, sums)
	}
	return nil, errors.New("it has no upstream archive")
}

// patch applies debian/patches in the order of its series file.
func (a apt) patch(ctx context.Context, p sourcePackage, files map[string]string, into string, sums map[string]string) error {
	for file, path := range files {
		if !strings.Contains(file, ".debian.tar.") {
			continue
		}
		sums[file] = p.files[file]
		extract := lab.Command{Argv: []string{"tar", "-C", a.dir, "-xf", path, "debian"}, Deadline: lab.Duration{Duration: time.Minute}}
		if err := a.cache.run(ctx, extract, a.job.log); err != nil {
			return fmt.Errorf("patches of %s: %w", file, err)
		}
		for _, dir := range []string{into, a.dir} {
			if err := a.job.maker.gets(dir); err != nil {
				return err
			}
		}
		return a.series(ctx, filepath.Join(a.dir, "debian", "patches"), into)
	}
	return nil // a package of Debian's own, or in a format without patches
}

// series applies the patches that dir/series lists; a package without such a list has none.
func (a apt) series(ctx context.Context, dir, into string) error {
	text, err := os.ReadFile(filepath.Join(dir, "series"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		cmd := lab.Command{
			Argv: []string{"patch", "-p1", "--batch", "-i", filepath.Join(dir, fields[0])}, Dir: into,
			Deadline: lab.Duration{Duration: time.Minute},
		}
		err := a.cache.run(ctx, a.job.maker.of(cmd), a.job.log)
		if errors.Is(err, errNotFound) {
			return fmt.Errorf("%w; install the package patch, or leave out patches: of the build", err)
		}
		if err != nil {
			return fmt.Errorf("patch %s: %w", fields[0], err)
		}
	}
	return nil
}

// parseSources reads the output of apt-cache showsrc: the versions of one source package, newest first.
func parseSources(text, name string) []sourcePackage {
	var packages []sourcePackage
	for _, stanza := range stanzas(text) {
		p := sourcePackage{name: name, version: stanza["version"], files: map[string]string{}}
		for line := range strings.Lines(stanza["checksums-sha256"]) {
			if fields := strings.Fields(line); len(fields) == 3 {
				p.files[fields[2]] = fields[0]
			}
		}
		if stanza["package"] == name && p.version != "" && len(p.files) > 0 {
			packages = append(packages, p)
		}
	}
	sort.SliceStable(packages, func(i, k int) bool {
		return compareVersions(packages[i].version, packages[k].version) > 0
	})
	return packages
}
