package store

import (
	"context"
	"database/sql"
	"errors"
	"testing"
)

// TestWhatACancelInterruptsIsACancel cancels inside a transaction and inside a query: the driver's own words differ.
func TestWhatACancelInterruptsIsACancel(t *testing.T) {
	s, _ := opened(t)
	for name, interrupted := range map[string]func(context.Context, context.CancelFunc) error{
		"statement": func(ctx context.Context, cancel context.CancelFunc) error {
			return s.inTx(ctx, func(tx *sql.Tx) error {
				cancel()
				_, err := tx.ExecContext(context.WithoutCancel(ctx), "DELETE FROM events")
				return err
			})
		},
		"commit": func(ctx context.Context, cancel context.CancelFunc) error {
			return s.inTx(ctx, func(*sql.Tx) error { cancel(); return nil })
		},
		"query": func(ctx context.Context, cancel context.CancelFunc) error {
			return each(ctx, s.read, func(*sql.Rows) error { cancel(); return nil },
				"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) SELECT i FROM n")
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if err := interrupted(ctx, cancel); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
