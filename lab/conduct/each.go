package conduct

import (
	"context"
	"errors"
	"sync"

	"ngxlab/lab"
)

// each does one thing for every host at the same time, waits for all, and joins the errors in the order of the names.
func each(names []lab.HostName, do func(lab.HostName) error) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = do(name) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// commit records one thing; records come one at a time.
func (c *campaign) commit(ctx context.Context, r lab.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec.Commit(ctx, c.id, r)
}
