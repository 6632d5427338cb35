package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/mattn/go-sqlite3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks a file as ngxlab's ("ngxl"), so that another program's database is not written into.
const applicationID = 0x6e67786c

// migrations returns the statements of all migrations, in order: the first makes schema 1.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	all := make([]string, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("migrations/%04d.sql", i+1); name != want {
			return nil, fmt.Errorf("migration %s: want %s", name, want)
		}
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		all[i] = string(text)
	}
	return all, nil
}

// migrate applies the migrations that the file lacks, one transaction each.
func migrate(ctx context.Context, db *sql.DB, path string, all []string) error {
	have, err := schemaOf(ctx, db, path, len(all))
	if err != nil {
		return err
	}
	for n := have + 1; n <= len(all); n++ {
		if err := applyMigration(ctx, db, n, all[n-1]); err != nil {
			return fmt.Errorf("open %s: migrate to schema %d: %w", path, n, err)
		}
	}
	return nil
}

// applyMigration runs one migration and sets the number in the same transaction. Another process may have been
// faster: the number is read again inside.
func applyMigration(ctx context.Context, db *sql.DB, n int, text string) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = rollback(tx, err) }()
	var have int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	if have >= n {
		return nil
	}
	if _, err := tx.ExecContext(ctx, text); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", n, applicationID)); err != nil {
		return err
	}
	return tx.Commit()
}

// schemaOf returns the schema number of the file: 0 for one without tables.
func schemaOf(ctx context.Context, db *sql.DB, path string, known int) (int, error) {
	var schema, app, tables int
	q := "SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)"
	if err := db.QueryRowContext(ctx, q).Scan(&schema, &app, &tables); err != nil {
		return 0, unreadable(path, err)
	}
	switch {
	case app != applicationID && (tables > 0 || schema > 0):
		return 0, &NotDatabaseError{Path: path, Reason: "another program's tables are in it"}
	case schema > known:
		return 0, &NewerError{Path: path, Schema: schema, Known: known}
	}
	return schema, nil
}

// rollback ends a transaction that was not committed; after a commit it does nothing. It keeps err, and ignores the
// rollback's own complaint when SQLite has already rolled back by itself (disk full).
func rollback(tx *sql.Tx, err error) error {
	if rerr := tx.Rollback(); rerr != nil && err == nil && !errors.Is(rerr, sql.ErrTxDone) {
		return rerr
	}
	return err
}

// unreadable turns SQLite's "not a database" and "malformed" into a *NotDatabaseError.
func unreadable(path string, err error) error {
	var se sqlite3.Error
	if errors.As(err, &se) && (se.Code == sqlite3.ErrNotADB || se.Code == sqlite3.ErrCorrupt) {
		return &NotDatabaseError{Path: path, Reason: se.Error()}
	}
	return fmt.Errorf("open %s: %w", path, err)
}
