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
// second). The recipe must have its Flags, as lab/server fills them. Progress and the output of the compiler go to log,
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
	if b.Recipe = r.Name; b.Cached {
		b.TookS = time.Since(began).Seconds()
	}
	return b, nil
}

// build finds the build, or makes it while no other builder makes the same.
func (c Cache) build(ctx context.Context, j job) (lab.Build, error) {
	where, err := place(j.recipe)
	if err != nil {
		return lab.Build{}, err
	}
	j.identity = hash(identity(j.recipe), where)
	var none error
	where.Compiler, none = c.compiler(ctx, j.recipe.Packages)
	j.where, j.key = where, hash(identity(j.recipe), where)
	if b, ok := c.known(j); ok {
		return b, nil
	}
	if none != nil {
		return lab.Build{}, none
	}
	if err := os.MkdirAll(c.builds(), 0o755); err != nil {
		return lab.Build{}, err
	}
	unlock, err := lock(ctx, filepath.Join(c.builds(), ".lock-"+j.key))
	if err != nil {
		return lab.Build{}, err
	}
	defer unlock()
	if b, ok := c.known(j); ok {
		return b, nil
	}
	return c.make(ctx, j)
}

// known is a build made here by the compiler that is here, or else one imported of the same recipe, distribution and
// architecture.
func (c Cache) known(j job) (lab.Build, bool) {
	for _, key := range []string{j.key, j.identity} {
		if b, ok := c.remembered(key); ok {
			b.Cached, b.Identity = true, j.identity
			b.Distribution, b.Architecture = j.where.Distribution, j.where.Architecture
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
	log      io.Writer
	began    time.Time
}

// make fetches, unpacks and compiles in a work directory, and renames the finished build into place.
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
	if err := c.sources(ctx, j, work, &b); err != nil {
		return lab.Build{}, err
	}
	b.ID = hash(identity(j.recipe), j.where.fixed(), b.Sources)
	final := filepath.Join(c.builds(), b.ID)
	if _, err := os.Stat(filepath.Join(final, manifest)); err != nil {
		if err := c.compile(ctx, j, work, &b); err != nil {
			return lab.Build{}, err
		}
		b.TookS = time.Since(j.began).Seconds()
		if err := keep(filepath.Join(work, "out"), final, b); err != nil {
			return lab.Build{}, err
		}
	}
	if err := writeFile(c.resolution(j.key), []byte(b.ID)); err != nil {
		return lab.Build{}, err
	}
	done, ok := c.known(j)
	if !ok {
		return lab.Build{}, fmt.Errorf("finished build %s cannot be read back", final)
	}
	done.Cached = false
	return done, nil
}

// The files of a finished build: a directory without its manifest is no build.
const (
	manifest = "build.json" // describes it
	binary   = "nginx"
	buildLog = "build.log"
)

// keep writes the manifest beside the binary and renames the directory into place, whole.
func keep(out, final string, b lab.Build) error {
	b.Binary, b.Log = filepath.Join(final, binary), filepath.Join(final, buildLog)
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(out, manifest), text); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil { // a directory without manifest
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
	if _, err := os.Stat(b.Binary); err != nil {
		return lab.Build{}, false
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

// identity is the recipe without what does not change the binary.
func identity(r lab.Recipe) lab.Recipe {
	r.Name, r.Packages = "", nil
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
