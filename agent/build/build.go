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
	"errors"
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
// second): compiled from its source, taken out of the distribution's packages, or found installed. The recipe must have its
// Flags, as lab/server fills them. Progress and the output of the compiler go to log, when it is not nil. A build that was
// damaged since is made anew, and its notes tell. Errors: no compiler, no source to be had, a checksum that differs, a compilation that stopped (with
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
	if b, ok := c.used(j); ok {
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
	if b, ok := c.used(j); ok {
		return b, nil
	}
	if j.damaged = c.damage(j); j.damaged != "" {
		fmt.Fprintln(j.log, j.damaged) //nolint:errcheck // only said
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
			return b, true
		}
	}
	return lab.Build{}, false
}

// used is known, for a campaign that will run the build.
func (c Cache) used(j job) (lab.Build, bool) {
	b, ok := c.known(j)
	if ok {
		c.touch(b.ID)
	}
	return b, ok
}

// damage says what is wrong with the build that was made of this before, "" when nothing is or there is none.
func (c Cache) damage(j job) string {
	for _, key := range []string{j.key, j.identity} {
		id, err := os.ReadFile(c.resolution(key))
		if err != nil {
			continue
		}
		if _, err := c.open(string(id)); errors.Is(err, errDamaged) {
			return fmt.Sprintf("the build kept before was damaged and is made anew: %v", err)
		}
	}
	return ""
}

// job is one build being made.
type job struct {
	recipe   lab.Recipe
	where    conditions
	key      string // of the recipe under these conditions, sources not yet looked up
	identity string // the same, whatever the compiler
	maker    maker  // who compiles
	damaged  string // what was wrong with the build that was kept before
	log      io.Writer
	began    time.Time
}

// make makes a build in a work directory, and renames the finished one into place.
func (c Cache) make(ctx context.Context, j job) (lab.Build, error) {
	work := filepath.Join(c.builds(), workPrefix+j.key)
	c.sweep(ctx)
	if err := os.RemoveAll(work); err != nil { // of a build that was interrupted
		return lab.Build{}, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left is removed by the next build
	if err := os.MkdirAll(work, 0o755); err != nil {
		return lab.Build{}, err
	}
	b := lab.Build{
		Recipe: j.recipe.Name, Flavor: j.recipe.Flavor, Compiler: j.where.Compiler, Sources: map[string]string{}, Identity: j.identity,
		Distribution: j.where.Distribution, Architecture: j.where.Architecture, Notes: nonEmpty(j.damaged),
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
	if err := c.settle(ctx, filepath.Join(work, "out"), b); err != nil {
		return lab.Build{}, err
	}
	if err := writeFile(c.resolution(j.key), []byte(b.ID)); err != nil {
		return lab.Build{}, err
	}
	done, ok := c.used(j)
	if !ok {
		return lab.Build{}, fmt.Errorf("finished build %s cannot be read back", b.ID)
	}
	done.Cached = false
	return done, nil
}

// settle keeps what was made, unless a recipe that came to the same has kept it meanwhile.
func (c Cache) settle(ctx context.Context, out string, b lab.Build) error {
	unlock, err := lock(ctx, c.lockOf(b.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if _, there := c.finished(b.ID); there {
		return nil
	}
	return keep(out, filepath.Join(c.builds(), b.ID), b)
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

func (c Cache) builds() string  { return filepath.Join(c.Dir, "builds") }
func (c Cache) fetched() string { return filepath.Join(c.Dir, "sources") }

// resolution is the file that remembers which build a key led to, so that a second use asks no mirror.
func (c Cache) resolution(key string) string { return filepath.Join(c.builds(), ".resolved-"+key) }

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
