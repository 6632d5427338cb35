package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// List returns the finished builds of this host, those used last first, with the libraries that they use now. Damaged ones
// and what is left of interrupted ones are not among them.
func (c Cache) List(ctx context.Context) ([]lab.KeptBuild, error) {
	dirs, err := os.ReadDir(c.builds())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the builds: %w", err)
	}
	var all []lab.KeptBuild
	for _, d := range dirs {
		b, ok := c.finished(d.Name())
		if !ok {
			continue
		}
		k := lab.KeptBuild{Build: b}
		if k.DiskBytes, k.Made, err = c.measured(b.ID); err != nil {
			return nil, fmt.Errorf("list the builds: %w", err)
		}
		if k.Used = k.Made; c.lastUsed(b.ID).After(k.Used) {
			k.Used = c.lastUsed(b.ID)
		}
		k.Libraries = c.libraries(ctx, b)
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b lab.KeptBuild) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// usage is the file whose time tells when a build was used last.
func (c Cache) usage(id string) string { return filepath.Join(c.builds(), ".used-"+id) }

// touch remembers that a build is used now: good to know, no more, so that it does no harm when it cannot.
func (c Cache) touch(id string) {
	now := time.Now()
	if err := os.Chtimes(c.usage(id), now, now); err != nil {
		_ = os.WriteFile(c.usage(id), nil, 0o644)
	}
}

func (c Cache) lastUsed(id string) (at time.Time) {
	if info, err := os.Stat(c.usage(id)); err == nil {
		at = info.ModTime()
	}
	return at
}

// measured is how much a build takes on the disk, and when it was finished.
func (c Cache) measured(id string) (sizeBytes int64, made time.Time, err error) {
	dir := filepath.Join(c.builds(), id)
	info, err := os.Stat(filepath.Join(dir, manifest))
	if err != nil {
		return 0, made, err
	}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		file, err := d.Info()
		if err == nil {
			sizeBytes += file.Size()
		}
		return err
	})
	return sizeBytes, info.ModTime(), err
}

// Remove removes builds, by their IDs or beginnings of them that fit one only, and whatever interrupted and damaged builds
// have left. Nobody may build or serve meanwhile: that is for who holds the host's lock to see to.
// Errors, after which nothing is removed: an ID that no build has, or several.
func (c Cache) Remove(ctx context.Context, ids []string) (lab.Cleaned, error) {
	kept, err := c.List(ctx)
	if err != nil {
		return lab.Cleaned{}, err
	}
	var chosen []lab.KeptBuild
	var wrong []error
	for _, id := range ids {
		b, err := oneOf(kept, id)
		chosen, wrong = append(chosen, b), append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return lab.Cleaned{}, err
	}
	var done lab.Cleaned
	for _, b := range chosen {
		if err := c.remove(b.ID); err != nil {
			return done, fmt.Errorf("remove build %s: %w", b.ID, err)
		}
		done.Removed, done.FreedBytes = append(done.Removed, b.Dir), done.FreedBytes+b.DiskBytes
	}
	return done, c.removeRest()
}

// oneOf is the build whose ID begins so.
func oneOf(kept []lab.KeptBuild, id string) (lab.KeptBuild, error) {
	var fit []lab.KeptBuild
	var all []string
	for _, b := range kept {
		if id != "" && strings.HasPrefix(b.ID, id) {
			fit = append(fit, b)
		}
		all = append(all, b.ID)
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return lab.KeptBuild{}, fmt.Errorf("%d builds begin with %q; give more of the ID", len(fit), id)
	case len(all) == 0:
		return lab.KeptBuild{}, fmt.Errorf("there is no build %q: none is kept here", id)
	}
	return lab.KeptBuild{}, fmt.Errorf("there is no build %q; there are %s", id, strings.Join(all, ", "))
}

// remove takes the manifest first: what is left of a removal that is cut short is no build.
func (c Cache) remove(id string) error {
	files, _ := filepath.Glob(c.resolution("*")) // the pattern is well formed
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && string(text) == id {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	dir := filepath.Join(c.builds(), id)
	_ = os.Remove(c.usage(id)) // there may be none
	return errors.Join(os.Remove(filepath.Join(dir, manifest)), os.RemoveAll(dir))
}

// removeRest removes what can never be used.
func (c Cache) removeRest() error {
	dirs, err := os.ReadDir(c.builds())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, d := range dirs {
		name := d.Name()
		_, whole := c.finished(name)
		if strings.HasPrefix(name, workPrefix) || strings.HasPrefix(name, ".new-") || idForm.MatchString(name) && !whole {
			errs = append(errs, os.RemoveAll(filepath.Join(c.builds(), name)))
		}
	}
	return errors.Join(errs...)
}
