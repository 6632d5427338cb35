package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestUnreadableFilesAreRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	must(t, os.WriteFile(text, []byte("not a database, but a text of more than sixteen bytes"), 0o600))
	cut := filepath.Join(dir, "cut.db")
	must(t, os.WriteFile(cut, []byte(magic+strings.Repeat("x", 200)), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite3", foreign)
	must(t, err)
	_, err = db.Exec("CREATE TABLE cookies (a)")
	must(t, errors.Join(err, db.Close()))
	for _, path := range []string{text, cut, foreign, dir} {
		before, _ := os.ReadFile(path)
		for name, open := range map[string]func(context.Context, string) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
			_, err := open(context.Background(), path)
			var not *NotDatabaseError
			if !errors.As(err, &not) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s(%s): %v, want a NotDatabaseError that names the file", name, path, err)
			}
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s was written to", path)
		}
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	s, path := opened(t)
	_, err := s.write.Exec("PRAGMA user_version = 99")
	must(t, err)
	for name, open := range map[string]func(context.Context, string) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
		_, err := open(context.Background(), path)
		var newer *NewerError
		if !errors.As(err, &newer) || newer.Schema != 99 || newer.Known != 2 {
			t.Errorf("%s: %v, want a NewerError", name, err)
		}
	}
}

func TestReadOnlyNeitherMakesNorWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c%.db")
	if _, err := OpenReadOnly(context.Background(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	s, err := Open(context.Background(), path)
	must(t, err)
	begun(t, s, "c")
	must(t, s.Close())
	r, err := OpenReadOnly(context.Background(), path)
	must(t, err)
	defer func() { must(t, r.Close()) }()
	if cs, err := r.Campaigns(context.Background()); err != nil || len(cs) != 1 {
		t.Errorf("campaigns: %v %v", cs, err)
	}
	if err := r.Event(context.Background(), "c", lab.Event{}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
}

func TestFailingMigrationLeavesTheSchemaBefore(t *testing.T) {
	s, path := opened(t)
	begun(t, s, "c")
	all, err := migrations()
	must(t, err)
	all = append(all, "CREATE TABLE half (a); CREATE TABLE campaigns (a)")
	if err := migrate(context.Background(), s.write, path, all); err == nil {
		t.Fatal("a failing migration passed")
	}
	if have, err := schemaOf(context.Background(), s.write, path, 2); err != nil || have != 2 {
		t.Errorf("schema %d, %v; want 2", have, err)
	}
	var n int
	must(t, s.read.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").Scan(&n))
	if n != 0 {
		t.Error("half of the migration stayed")
	}
	all[2] = "CREATE TABLE half (a)"
	must(t, migrate(context.Background(), s.write, path, all))
	if _, err := Open(context.Background(), path); err == nil {
		t.Error("a newer schema was opened")
	}
}

func TestSettingsReachEveryConnection(t *testing.T) {
	s, _ := opened(t)
	for pragma, want := range map[string]string{"foreign_keys": "1", "journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000"} {
		var got string
		must(t, s.write.QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestFullDiskLeavesEarlierRunsIntact(t *testing.T) {
	s, path := opened(t)
	begun(t, s, "c")
	commit(t, s, "c", run("default", 1))
	_, err := s.write.Exec("PRAGMA max_page_count = 80")
	must(t, err)
	n := 1
	for ; n < 1000; n++ {
		r := run("default", n+1)
		r.Processes[0].Stdout = incompressible(20_000)
		if err = s.Commit(context.Background(), "c", lab.Record{Run: &r}); err != nil {
			break
		}
	}
	if !IsFull(err) {
		t.Fatalf("after %d runs: %v, want an error that says full", n, err)
	}
	whole(t, path, n)
	_, err = s.write.Exec("PRAGMA max_page_count = 100000")
	must(t, err)
	commit(t, s, "c", run("default", n+1))
	whole(t, path, n+1)
}

func incompressible(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func whole(t *testing.T, path string, n int) {
	t.Helper()
	s, err := Open(context.Background(), path)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	for query, want := range map[string]int{
		"SELECT count(*) FROM runs":                     n,
		"SELECT runs FROM campaigns":                    n,
		"SELECT sum(runs) FROM campaign_cells":          n,
		"SELECT findings FROM campaigns":                n,
		"SELECT count(*) FROM figures":                  3 * n,
		"SELECT count(*) FROM findings":                 2 * n,
		"SELECT count(*) FROM processes":                n,
		"SELECT count(*) FROM outputs":                  4 * n,
		"SELECT count(*) FROM samples":                  2 * n,
		"SELECT count(*) FROM pragma_foreign_key_check": 0,
	} {
		var got int
		must(t, s.read.QueryRow(query).Scan(&got))
		if got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	var ok string
	must(t, s.read.QueryRow("PRAGMA integrity_check").Scan(&ok))
	if ok != "ok" {
		t.Errorf("integrity: %s", ok)
	}
}

func TestViewsShowMediansOfValidRuns(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	for i, v := range []float64{100, 300, 200, 9999} {
		r := run("default", i+1)
		r.Figures[lab.Goodput] = v
		if v == 9999 {
			r.Validity = lab.Invalid
		}
		commit(t, s, "c", r)
		r.Cell.State, r.Figures[lab.Goodput] = "log off", v*2
		commit(t, s, "c", r)
	}
	var median float64
	var runs int
	must(t, s.read.QueryRow("SELECT median_goodput_per_s, runs FROM cells WHERE state = 'default'").Scan(&median, &runs))
	if median != 200 || runs != 4 {
		t.Errorf("cells: median %v of %d runs, want 200 of 4", median, runs)
	}
	var baseline string
	var ratio float64
	must(t, s.read.QueryRow("SELECT baseline, ratio_of_medians FROM comparisons WHERE metric = 'goodput_per_s'").Scan(&baseline, &ratio))
	if baseline != "default" || ratio != 2 {
		t.Errorf("comparisons: %v over %s, want 2 over default", ratio, baseline)
	}
}

func TestListingsUseIndices(t *testing.T) {
	s, _ := opened(t)
	for _, query := range []string{
		selectCampaigns + " ORDER BY c.began DESC, c.id DESC",
		"SELECT target, state, load, runs, invalid FROM campaign_cells WHERE campaign = 'c' ORDER BY id",
		"SELECT id FROM runs r WHERE r.cell = 1",
		"SELECT f.run FROM runs r JOIN figures f ON f.run = r.id WHERE r.campaign = 'c'",
		"SELECT json FROM events WHERE campaign = 'c' ORDER BY id",
	} {
		steps, err := collect(context.Background(), s.read, func(rows *sql.Rows) (text string, err error) {
			var a, b, c any
			return text, rows.Scan(&a, &b, &c, &text)
		}, "EXPLAIN QUERY PLAN "+query)
		must(t, err)
		for _, step := range steps {
			if strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "INDEX") {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
}
