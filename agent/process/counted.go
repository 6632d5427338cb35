package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// counted makes sure that a server tells its requests where it is said to: a page that answers, or a log that is there
// once it has answered.
func (sv *serving) counted(ctx context.Context) error {
	c := sv.asked.Count
	if c == nil {
		return nil
	}
	if c.Log != "" {
		if _, err := os.Stat(filepath.Join(sv.prefix, c.Log)); err != nil {
			return fmt.Errorf("count of requests: the server has answered, and there is no log %s in its directory", c.Log)
		}
		return nil
	}
	p, err := probe(ctx, sv.site(), c.URL)
	if err == nil && p.Status != 200 {
		err = fmt.Errorf("status %d", p.Status)
	}
	if err != nil {
		return fmt.Errorf("count of requests at %s: %w", c.URL, err)
	}
	return nil
}
