package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// listsAge is for how long lists of packages are used again: mirrors of Debian have new ones four times a day, and what is
// gone since is noticed.
const listsAge = 24 * time.Hour

// listsPrefix begins the names of the directories of lists, before the hash of the sources that they are of.
const listsPrefix = "apt-lists-"

// aptLists are lists of binary packages, kept in the cache for a day and shared by all packaged builds of a suite.
type aptLists struct {
	apt
	lists string
}

// download fetches packages with what the host lacks of their dependencies, by lists of the last day, or new ones where
// these name files that are gone. Nothing is installed.
func (a apt) download(ctx context.Context, packages []string) error {
	sources, err := os.ReadFile(filepath.Join(a.dir, "sources.list.d", "host.list"))
	if err != nil {
		return err
	}
	name := listsPrefix + hash(string(sources))
	l := aptLists{a, filepath.Join(a.cache.fetched(), name)}
	if err := os.MkdirAll(filepath.Join(l.lists, "partial"), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, l.lists+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	a.dropLists(ctx, name)
	get := append([]string{"install", "--download-only", "--reinstall", "--no-install-recommends", "-y"}, packages...)
	if l.age() < listsAge && l.get(ctx, get...) == nil {
		return nil
	}
	updated := l.get(ctx, "update") // told when something is missing
	if err := l.get(ctx, get...); err != nil {
		return errors.Join(err, updated, os.RemoveAll(l.updated()))
	}
	return os.WriteFile(l.updated(), nil, 0o644)
}

func (l aptLists) get(ctx context.Context, args ...string) error {
	return l.run(ctx, l.job.log, "apt-get", append([]string{"-o", "Dir::State::lists=" + l.lists, "-o", "Acquire::GzipIndexes=true"}, args...)...)
}

// updated is the file whose time tells when the lists were fetched.
func (l aptLists) updated() string { return l.lists + ".updated" }

func (l aptLists) age() time.Duration {
	info, err := os.Stat(l.updated())
	if err != nil {
		return listsAge
	}
	return time.Since(info.ModTime())
}

// dropLists removes the lists of other sources that are too old to be used, and that nobody uses.
func (a apt) dropLists(ctx context.Context, but string) {
	all, _ := filepath.Glob(filepath.Join(a.cache.fetched(), listsPrefix+"*.lock")) // the pattern is well formed
	for _, file := range all {
		l := aptLists{a, strings.TrimSuffix(file, ".lock")}
		if filepath.Base(l.lists) == but || l.age() < listsAge {
			continue
		}
		if unlock, free := lockFree(ctx, file); free {
			_, _ = os.RemoveAll(l.lists), os.RemoveAll(l.updated()) // the next build tries again
			unlock()
		}
	}
}
