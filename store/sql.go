package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// inTx runs do in one writing transaction: all of it is committed, or nothing.
func (s *Store) inTx(ctx context.Context, do func(tx *sql.Tx) error) (err error) {
	if s.write == nil {
		return ErrReadOnly
	}
	defer func() { err = cancelled(ctx, err) }()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = rollback(tx, err) }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// collect returns what scan makes of every row.
func collect[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := each(ctx, q, func(rows *sql.Rows) error {
		v, err := scan(rows)
		all = append(all, v)
		return err
	}, query, args...)
	return all, err
}

// each calls do for every row.
func each(ctx context.Context, q querier, do func(*sql.Rows) error, query string, args ...any) (err error) {
	defer func() { err = cancelled(ctx, err) }()
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := do(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// cancelled is err with the reason that ctx ended: the driver tells of what that interrupted, each time in other words.
func cancelled(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// rowsAtOnce bounds the rows of one INSERT; few enough for the cache of prepared statements to keep every length.
const rowsAtOnce = 32

// insertRows inserts rows of width columns; args holds them one after the other. One statement for many rows is several
// times faster than many.
func insertRows(ctx context.Context, tx *sql.Tx, into string, width int, args []any) error {
	row := ", (" + strings.Repeat(", ?", width)[2:] + ")"
	for len(args) > 0 {
		n := min(len(args), rowsAtOnce*width)
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+into+" VALUES "+strings.Repeat(row, n/width)[2:], args[:n]...); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// IsFull reports whether an error comes from a disk, or a bound on the file, that has no space left.
func IsFull(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && se.Code == sqlite3.ErrFull
}
