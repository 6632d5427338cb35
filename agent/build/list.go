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

// List returns the finished builds of this host, those used last first, and what is left of interrupted ones is not among
// them.
func (c Cache) List(context.Context) ([]lab.KeptBuild, error) {
	dirs, err := os.ReadDir(c.builds())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the builds: %w", err)
	}
	used := c.used()
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
		if k.Used = k.Made; used[b.ID].After(k.Used) {
			k.Used = used[b.ID]
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b lab.KeptBuild) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// used is when each build was asked for last, as the files say that led to it.
func (c Cache) used() map[string]time.Time {
	last := map[string]time.Time{}
	files, _ := filepath.Glob(c.resolution("*")) // the pattern is well formed
	for _, file := range files {
		id, err := os.ReadFile(file)
		info, bad := os.Stat(file)
		if errors.Join(err, bad) == nil && info.ModTime().After(last[string(id)]) {
			last[string(id)] = info.ModTime()
		}
	}
	return last
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

// Remove removes builds, by their IDs or beginnings of them that fit one only, and whatever interrupted builds have left.
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
	return done, c.removeWork()
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
	return errors.Join(os.Remove(filepath.Join(dir, manifest)), os.RemoveAll(dir))
}

// removeWork removes what interrupted builds have left: nobody builds while the host's lock is held by who removes.
func (c Cache) removeWork() error {
	left, _ := filepath.Glob(filepath.Join(c.builds(), ".work-*")) // as above
	var errs []error
	for _, dir := range left {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
