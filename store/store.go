// Package store keeps campaigns in one SQLite file: the experiment and its plan, every run with its raw output,
// figures, samples and findings, events, the values found on the hosts, capacity levels and verdicts.
//
// A run is committed whole or not at all. Times are RFC 3339 in UTC with six decimals; units are in the names of the columns.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// Store is one open database file. Its methods may be called from several goroutines.
type Store struct {
	// Version of ngxlab, kept with every campaign begun.
	Version string

	write *sql.DB // one connection, so that writers queue here and not in SQLite; nil when opened read-only
	read  *sql.DB
	enc   *zstd.Encoder
	dec   *zstd.Decoder
}

// ErrReadOnly is returned by every writing method of a store opened by OpenReadOnly.
var ErrReadOnly = errors.New("database is open for reading only")

// NotDatabaseError says that a file is no database of ngxlab.
type NotDatabaseError struct {
	Path   string
	Reason string
}

// Error names the file and the reason.
func (e *NotDatabaseError) Error() string {
	return fmt.Sprintf("open %s: not an ngxlab database: %s", e.Path, e.Reason)
}

// NewerError says that a file was written by a newer ngxlab.
type NewerError struct {
	Path          string
	Schema, Known int
}

// Error names the file and both schema numbers.
func (e *NewerError) Error() string {
	return fmt.Sprintf("open %s: schema %d is newer than this program's %d", e.Path, e.Schema, e.Known)
}

// Open opens the database file, makes it when there is none, and brings its schema up to date.
// Errors: *NotDatabaseError, *NewerError, and what the file system says.
func Open(ctx context.Context, path string) (*Store, error) {
	err := checkFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	exists := err == nil
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	known, err := migrations()
	if err != nil {
		return nil, err
	}
	s, err := newStore(path, false)
	if err != nil {
		return nil, err
	}
	if exists { // looked at before anything is written: the writing connection's settings would change another program's file
		if _, err := schemaOf(ctx, s.read, path, len(known)); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := migrate(ctx, s.write, path, known); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenReadOnly opens an existing database file for reading. One with an older schema is brought up to date first, which
// has to write to it once.
func OpenReadOnly(ctx context.Context, path string) (*Store, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	s, err := newStore(path, true)
	if err != nil {
		return nil, err
	}
	old, err := s.older(ctx, path)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if !old {
		return s, nil
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	if err := update(ctx, path); err != nil {
		return nil, fmt.Errorf("%w (its schema is older than this program's, and it has to be brought up to date)", err)
	}
	return newStore(path, true)
}

// older tells whether a file opened for reading has an older schema than this program.
func (s *Store) older(ctx context.Context, path string) (bool, error) {
	known, err := migrations()
	if err != nil {
		return false, err
	}
	have, err := schemaOf(ctx, s.read, path, len(known))
	return have < len(known), err
}

// update brings the schema of a file up to date.
func update(ctx context.Context, path string) error {
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	return s.Close()
}

// newStore opens the pools without touching the file.
func newStore(path string, readOnly bool) (*Store, error) {
	s := &Store{}
	var err error
	if s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if s.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30)); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if s.read, err = sql.Open("sqlite3", dsn(path, readSettings(readOnly))); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if readOnly {
		return s, nil
	}
	if s.write, err = sql.Open("sqlite3", dsn(path, writeSettings())); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s.write.SetMaxOpenConns(1)
	return s, nil
}

// Close closes the file.
func (s *Store) Close() error {
	var errs []error
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	errs = append(errs, s.read.Close(), s.enc.Close())
	s.dec.Close()
	return errors.Join(errs...)
}

// writeSettings are those of the one writing connection. WAL alone is synchronous=NORMAL in this driver: a power cut
// would lose committed runs.
func writeSettings() url.Values {
	return url.Values{
		"mode": {"rwc"}, "_foreign_keys": {"on"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"},
		"_busy_timeout": {"5000"}, "_txlock": {"immediate"}, "_stmt_cache_size": {"64"},
	}
}

// readSettings are those of the reading connections. They may have to write the files beside the database (WAL) even
// though they change nothing.
func readSettings(readOnly bool) url.Values {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	return url.Values{"mode": {mode}, "_query_only": {"on"}, "_busy_timeout": {"5000"}, "_stmt_cache_size": {"64"}}
}

// dsn carries every setting, so that each pooled connection gets them.
func dsn(path string, settings url.Values) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings.Encode()}
	return u.String()
}

// magic begins every SQLite file.
const magic = "SQLite format 3\x00"

// checkFile tells a file that is no database from one that is; an empty file is a database without tables.
func checkFile(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &NotDatabaseError{Path: path, Reason: "it is a directory"}
	case info.Size() == 0:
		return nil
	}
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(f, head); err != nil || string(head[:n]) != magic {
		return &NotDatabaseError{Path: path, Reason: "it does not begin as an SQLite file does"}
	}
	return nil
}
