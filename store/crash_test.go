package store

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ngxlab/lab"
)

// childEnv tells the test binary to be the child that is killed; its value is "mode path".
const childEnv = "NGXLAB_STORE_TEST_CHILD"

// TestChild is no test: it is the program that is killed.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("only as the child of another test")
	}
	must(t, child(os.Getenv(childEnv)))
}

// child commits runs until it is killed. In mode "middle" it stops inside the transaction of the third.
func child(job string) error {
	var mode, path string
	if _, err := fmt.Sscan(job, &mode, &path); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	if _, err := s.Begin(ctx, "c", plan()); err != nil {
		return err
	}
	for n := 1; ; n++ {
		r := run("default", n)
		r.Processes[0].Stdout = incompressible(100_000)
		if mode == "middle" && n == 3 {
			return stopInside(ctx, s, r)
		}
		if err := s.Commit(ctx, "c", lab.Record{Run: &r}); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "committed", n)
	}
}

// stopInside writes the run without committing it, says so, and waits to be killed.
func stopInside(ctx context.Context, s *Store, r lab.Run) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "PRAGMA cache_size = 1"); err != nil { // so that pages reach the file before the commit
			return err
		}
		if err := s.insertRun(ctx, tx, "c", r); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "inside")
		select {}
	})
}

func TestKilledCommitLeavesWholeRunsOnly(t *testing.T) {
	for _, tc := range []struct {
		mode string
		last string // the line after which the child is killed
		runs int    // 0: at least as many as were reported
	}{{"middle", "inside", 2}, {"any", "committed 3", 0}, {"any", "committed 7", 0}} {
		path := filepath.Join(t.TempDir(), "lab.db")
		killAfter(t, tc.mode, path, tc.last)
		n := countRuns(t, path)
		if tc.runs != 0 && n != tc.runs {
			t.Errorf("%s: %d runs, want %d", tc.mode, n, tc.runs)
		}
		if n < 2 {
			t.Errorf("%s: a run reported as committed is lost: %d", tc.mode, n)
		}
		whole(t, path, n)
	}
}

// killAfter starts the child and kills it when it has printed the line.
func killAfter(t *testing.T, mode, path, line string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+mode+" "+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	seen := false
	for sc := bufio.NewScanner(out); !seen && sc.Scan(); {
		seen = sc.Text() == line
	}
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil || !seen {
		t.Fatalf("child ended by itself before %q: %v", line, err)
	}
}

func countRuns(t *testing.T, path string) (n int) {
	t.Helper()
	s, err := Open(context.Background(), path)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	must(t, s.read.QueryRow("SELECT count(*) FROM runs").Scan(&n))
	return n
}
