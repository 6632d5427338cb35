// Package build fetches, unpacks and compiles servers on a host, and keeps every finished build by the hash of all
// that went into it.
//
// It changes nothing of the host's but its own directory; only Install, which asks the host's package manager, does.
package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ngxlab/lab"
)

// Cache makes builds and keeps them.
type Cache struct {
	// Dir is the state directory; builds/ and sources/ are made inside.
	Dir string
	// Run runs a command to its end with its standard output and error on out; nil runs it as a plain child in a
	// process group of its own. A command that exits other than 0, or is not to be found, is an error.
	Run func(ctx context.Context, c lab.Command, out io.Writer) error
	// AptDir is where the host keeps its apt sources, only read; "" = /etc/apt.
	AptDir string
}

// Build makes a recipe, or finds it already made, here or on the host that it was imported from (then in well under a
// second): compiled from its source, taken out of the distribution's packages, or found installed. The recipe must have its Flags, as lab/server fills them. Progress and the output of the compiler go to log,
// when it is not nil. Errors: no compiler, no source to be had, a checksum that differs, a compilation that stopped (with
// the last lines of its log, which is kept).
func (c Cache) Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error) {
	began := time.Now()
	if log == nil {
		log = io.Discard
	}
	b, err := c.build(ctx, job{recipe: r, log: log, began: began})
	if err != nil {
		return lab.Build{}, fmt.Errorf("build %s: %w", r.Name, err)
	}
	b.Libraries = c.libraries(ctx, b)
	if b.Recipe = r.Name; b.Cached {
		b.TookS = time.Since(began).Seconds()
	}
	return b, nil
}

// build finds the build, or makes it while no other builder makes the same.
func (c Cache) build(ctx context.Context, j job) (lab.Build, error) {
	if j.recipe.Installed != "" {
		return c.installed(ctx, j)
	}
	j, none, err := c.placed(ctx, j)
	if err != nil {
		return lab.Build{}, err
	}
	if b, ok := c.known(j); ok {
		return b, nil
	}
	if none != nil {
		return lab.Build{}, none
	}
	if err := os.MkdirAll(c.builds(), 0o755); err != nil {
		return lab.Build{}, err
	}
	unlock, err := lockSaying(ctx, c.lockOf(j.key), j.log)
	if err != nil {
		return lab.Build{}, err
	}
	defer unlock()
	if b, ok := c.known(j); ok {
		return b, nil
	}
	return c.make(ctx, j)
}

// placed is a job with the conditions of this host. none says why nothing can be compiled here.
func (c Cache) placed(ctx context.Context, j job) (_ job, none, err error) {
	if j.where, err = place(j.recipe); err != nil {
		return j, nil, err
	}
	j.identity = hash(identity(j.recipe), j.where)
	if j.recipe.Compiled() {
		j.where.Compiler, none = c.compiler(ctx, j.recipe)
	}
	j.key = hash(identity(j.recipe), j.where)
	return j, none, nil
}

// Find returns the finished build of a recipe, false when it is not here.
func (c Cache) Find(ctx context.Context, r lab.Recipe) (lab.Build, bool) {
	j := job{recipe: r, log: io.Discard}
	if r.Installed != "" {
		b, err := c.installed(ctx, j)
		return b, err == nil
	}
	j, _, err := c.placed(ctx, j)
	if err != nil {
		return lab.Build{}, false
	}
	b, ok := c.known(j)
	b.Recipe = r.Name
	return b, ok
}

func (c Cache) lockOf(key string) string { return filepath.Join(c.builds(), ".lock-"+key) }

// known is a build made here by the compiler that is here, or else one imported of the same recipe, distribution and
// architecture.
func (c Cache) known(j job) (lab.Build, bool) {
	for _, key := range []string{j.key, j.identity} {
		if b, ok := c.remembered(key); ok {
			b.Cached, b.Identity = true, j.identity
			b.Distribution, b.Architecture = j.where.Distribution, j.where.Architecture
			_ = os.Chtimes(c.resolution(key), time.Time{}, time.Now()) // when it was used last is good to know, no more
			return b, true
		}
	}
	return lab.Build{}, false
}

// job is one build being made.
type job struct {
	recipe   lab.Recipe
	where    conditions
	key      string // of the recipe under these conditions, sources not yet looked up
	identity string // the same, whatever the compiler
	maker    maker  // who compiles
	log      io.Writer
	began    time.Time
}

// make makes a build in a work directory, and renames the finished one into place.
func (c Cache) make(ctx context.Context, j job) (lab.Build, error) {
	work := filepath.Join(c.builds(), ".work-"+j.key)
	if err := os.RemoveAll(work); err != nil { // of a build that was interrupted
		return lab.Build{}, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left is removed by the next build
	if err := os.MkdirAll(work, 0o755); err != nil {
		return lab.Build{}, err
	}
	b := lab.Build{
		Recipe: j.recipe.Name, Compiler: j.where.Compiler, Sources: map[string]string{}, Identity: j.identity,
		Distribution: j.where.Distribution, Architecture: j.where.Architecture,
	}
	var err error
	if len(j.recipe.Package) > 0 {
		err = c.packaged(ctx, j, work, &b)
	} else {
		err = c.fromSource(ctx, j, work, &b)
	}
	if why := reason("", c.builds(), err); err != nil && why != "" {
		err = fmt.Errorf("%s (%w)", why, err)
	}
	if err != nil {
		return lab.Build{}, err
	}
	b.TookS = time.Since(j.began).Seconds()
	if _, there := c.finished(b.ID); !there {
		if err := keep(filepath.Join(work, "out"), filepath.Join(c.builds(), b.ID), b); err != nil {
			return lab.Build{}, err
		}
	}
	if err := writeFile(c.resolution(j.key), []byte(b.ID)); err != nil {
		return lab.Build{}, err
	}
	done, ok := c.known(j)
	if !ok {
		return lab.Build{}, fmt.Errorf("finished build %s cannot be read back", b.ID)
	}
	done.Cached = false
	return done, nil
}

// fromSource fetches, unpacks and compiles; a build that came of the same before is not made again.
func (c Cache) fromSource(ctx context.Context, j job, work string, b *lab.Build) (err error) {
	var why string
	if j.maker, why, err = newMaker(work); err != nil {
		return err
	}
	if why != "" {
		b.Notes = append(b.Notes, why)
	}
	if err := c.sources(ctx, j, work, b); err != nil {
		return err
	}
	b.ID = hash(identity(j.recipe), j.where.fixed(), b.Sources)
	if _, there := c.finished(b.ID); there {
		return nil
	}
	return c.compile(ctx, j, work, b)
}

// The files of a finished build: a directory without its manifest is no build.
const (
	manifest = "build.json" // describes it
	binary   = "nginx"
	buildLog = "build.log"
)

// keep writes the manifest beside the binary and renames the directory into place, whole.
func keep(out, final string, b lab.Build) error {
	b.Dir, b.Binary = final, filepath.Join(final, b.Binary)
	if _, err := os.Stat(filepath.Join(out, buildLog)); err == nil {
		b.Log = filepath.Join(final, buildLog)
	}
	var err error
	if b.SizeBytes, err = sizeOf(filepath.Join(out, strings.TrimPrefix(b.Binary, final))); err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(out, manifest), text); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil { // a directory without manifest, or damaged
		return err
	}
	return os.Rename(out, final)
}

// remembered returns the finished build that the key was resolved to before.
func (c Cache) remembered(key string) (lab.Build, bool) {
	id, err := os.ReadFile(c.resolution(key))
	if err != nil {
		return lab.Build{}, false
	}
	return c.finished(string(id))
}

// finished returns the build of that ID, when it is here.
func (c Cache) finished(id string) (lab.Build, bool) {
	if !idForm.MatchString(id) {
		return lab.Build{}, false
	}
	b, ok := readManifest(filepath.Join(c.builds(), id, manifest))
	if !ok {
		return lab.Build{}, false
	}
	if size, err := sizeOf(b.Binary); err != nil || b.SizeBytes != 0 && size != b.SizeBytes {
		return lab.Build{}, false // damaged: it is made anew
	}
	return b, true
}

func readManifest(path string) (b lab.Build, ok bool) {
	text, err := os.ReadFile(path)
	return b, err == nil && json.Unmarshal(text, &b) == nil
}

func (c Cache) builds() string  { return filepath.Join(c.Dir, "builds") }
func (c Cache) fetched() string { return filepath.Join(c.Dir, "sources") }

// resolution is the file that remembers which build a key led to, so that a second use asks no mirror.
func (c Cache) resolution(key string) string { return filepath.Join(c.builds(), ".resolved-"+key) }

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// identity is the recipe without what does not change the binary.
func identity(r lab.Recipe) lab.Recipe {
	r.Name, r.Packages, r.Command, r.Timeout = "", nil, nil, lab.Duration{}
	return r
}

// hash is 16 hex digits of the SHA-256 over the JSON of its arguments.
func hash(parts ...any) string {
	sum := sha256.New()
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil { // strings, maps and structs of strings only
			text = []byte(err.Error())
		}
		sum.Write(append(text, '\n'))
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// writeFile writes a file whole or not at all, and syncs it.
func writeFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644) // other users may read what was built
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// tail returns the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
