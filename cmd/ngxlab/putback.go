package main

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"ngxlab/lab"
	"ngxlab/store"
)

// leftChanged reports whether the database has a campaign that changed a host, which cannot be asked, and did not put it
// back.
func (a *app) leftChanged(ctx context.Context, x lab.Experiment, h lab.Host) bool {
	var left []store.Left
	err := a.reading(ctx, func(s *store.Store) (err error) {
		left, err = leftOn(ctx, s, x, h, "")
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.note("what campaigns left changed on %s could not be read: %v", h.Name, err)
	}
	return len(left) > 0
}

// leftOn is what campaigns left changed on a host of an experiment, which they may call by another name. A stateDir leaves
// those out whose agent kept its journal elsewhere.
func leftOn(ctx context.Context, s *store.Store, x lab.Experiment, h lab.Host, stateDir string) ([]store.Left, error) {
	all, err := s.Left(ctx)
	if err != nil {
		return nil, err
	}
	var left []store.Left
	for _, l := range all {
		pl, err := s.Plan(ctx, l.Campaign)
		if err != nil {
			return nil, err
		}
		same := slices.ContainsFunc(pl.Experiment.Hosts, func(other lab.Host) bool {
			return other.Name == l.Host && sameHost(x.Name, h, pl.Experiment.Name, other)
		})
		if same && (stateDir == "" || pl.Facts[l.Host].StateDir == stateDir) {
			left = append(left, l)
		}
	}
	return left, nil
}

// recordPutBack tells the database, when there is one, which hosts are as they were. That it cannot be told is said, and
// is no failure: the hosts are as they were all the same.
func (a *app) recordPutBack(ctx context.Context, x lab.Experiment, results []restored) {
	ctx = context.WithoutCancel(ctx)
	var left []store.Left
	err := a.reading(ctx, func(s *store.Store) error {
		for i, r := range results {
			if r.err != nil || r.Gone || r.stateDir == "" {
				continue
			}
			of, err := leftOn(ctx, s, x, x.Hosts[i], r.stateDir)
			if err != nil {
				return err
			}
			left = append(left, of...)
		}
		return nil
	})
	if err == nil && len(left) > 0 {
		err = a.writing(ctx, func(s *store.Store) error {
			var errs []error
			for _, l := range left {
				errs = append(errs, s.PutBack(ctx, l, a.now()))
			}
			return errors.Join(errs...)
		})
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.note("%s could not be told that hosts are as they were: %v", a.db, err)
	}
}
