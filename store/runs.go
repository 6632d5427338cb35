package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mattn/go-sqlite3"

	"ngxlab/lab"
)

// ErrDuplicate says that the campaign already has a run of this cell, part, round and attempt.
var ErrDuplicate = errors.New("the run is already stored")

// tally is what runs add to the counts that listings show.
type tally struct{ runs, invalid, findings int }

func (t *tally) add(r lab.Run) {
	t.runs++
	if r.Validity == lab.Invalid {
		t.invalid++
	}
	for _, f := range r.Findings {
		if f.Outcome == lab.Fired && (f.Consequence == lab.Warn || f.Consequence == lab.Invalidate) {
			t.findings++
		}
	}
}

// commitRun stores one run and adds it to the counts, in one transaction.
func (s *Store) commitRun(ctx context.Context, c lab.CampaignID, r lab.Run) error {
	return s.Import(ctx, c, []lab.Run{r})
}

// Import stores many runs in one transaction: all of them or none.
func (s *Store) Import(ctx context.Context, c lab.CampaignID, runs []lab.Run) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		var total tally
		cells := map[lab.CellID]*tally{}
		for _, r := range runs {
			if err := s.insertRun(ctx, tx, c, r); err != nil {
				return fmt.Errorf("run %s %s, round %d: %w", r.Cell.State, r.Cell.Load, r.Round, err)
			}
			if cells[r.Cell] == nil {
				cells[r.Cell] = &tally{}
			}
			total.add(r)
			cells[r.Cell].add(r)
		}
		return count(ctx, tx, c, total, cells)
	})
	if err != nil {
		return fmt.Errorf("commit to campaign %s: %w", c, err)
	}
	return nil
}

// count adds the tallies to the counts of the campaign and its cells.
func count(ctx context.Context, tx *sql.Tx, c lab.CampaignID, total tally, cells map[lab.CellID]*tally) error {
	for id, t := range cells {
		_, err := tx.ExecContext(ctx, "UPDATE campaign_cells SET runs = runs + ?, invalid = invalid + ? WHERE campaign = ? AND target = ? AND state = ? AND load = ?",
			t.runs, t.invalid, string(c), string(id.Target), id.State, id.Load)
		if err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "UPDATE campaigns SET runs = runs + ?, invalid = invalid + ?, findings = findings + ? WHERE id = ?",
		total.runs, total.invalid, total.findings, string(c))
	return err
}

// insertRun stores a run with everything that belongs to it, without the counts.
func (s *Store) insertRun(ctx context.Context, tx *sql.Tx, c lab.CampaignID, r lab.Run) error {
	cell, err := cellRow(ctx, tx, c, r.Cell)
	if err != nil {
		return err
	}
	server, err := s.serverRow(ctx, tx, c, r.Server)
	if err != nil {
		return err
	}
	id, err := insertRunRow(ctx, tx, c, cell, server, r)
	if err != nil {
		return err
	}
	if err := insertFigures(ctx, tx, id, r.Figures); err != nil {
		return err
	}
	if err := insertFindings(ctx, tx, id, r.Findings); err != nil {
		return err
	}
	for i, p := range r.Processes {
		if err := s.insertProcess(ctx, tx, id, i, p); err != nil {
			return err
		}
	}
	return s.insertSamples(ctx, tx, id, r.Samples)
}

// cellRow returns the row of a cell; a cell that the plan lacks is added.
func cellRow(ctx context.Context, tx *sql.Tx, c lab.CampaignID, cell lab.CellID) (int64, error) {
	const find = "SELECT id FROM campaign_cells WHERE campaign = ? AND target = ? AND state = ? AND load = ?"
	const add = "INSERT INTO campaign_cells (campaign, target, state, load) VALUES (?, ?, ?, ?)"
	return rowID(ctx, tx, find, add, []any{string(c), string(cell.Target), cell.State, cell.Load}, nil)
}

// rowID returns the id of the row that has the key; when there is none it is added, with the values of more (if any).
func rowID(ctx context.Context, tx *sql.Tx, find, add string, key []any, more func() []any) (int64, error) {
	var id int64
	err := tx.QueryRowContext(ctx, find, key...).Scan(&id)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	if more != nil {
		key = append(key, more()...)
	}
	res, err := tx.ExecContext(ctx, add, key...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// placed is a finding with its position among all findings of the run.
type placed struct {
	Position int `json:"position"`
	lab.Finding
}

func insertRunRow(ctx context.Context, tx *sql.Tx, c lab.CampaignID, cell, server int64, r lab.Run) (int64, error) {
	unfired := []placed{}
	for i, f := range r.Findings {
		if f.Outcome != lab.Fired {
			unfired = append(unfired, placed{i, f})
		}
	}
	rules, err := jsonText(unfired)
	if err != nil {
		return 0, err
	}
	var yardsticks sql.NullString
	if len(r.Yardsticks) > 0 {
		if yardsticks.String, err = jsonText(r.Yardsticks); err != nil {
			return 0, err
		}
		yardsticks.Valid = true
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO runs (campaign, cell, part, round, attempt, began, validity, grade, loop_model, limiting, problem,
		window_begin_ns, window_end_ns, duration_s, overlap, skew_s, overhead_s, server, yardsticks, histogram, unfired)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		string(c), cell, max(r.Part, 1), r.Round, max(r.Attempt, 1), formatTime(r.Began), string(r.Validity), string(r.Grade), string(r.LoopModel),
		r.Limit, r.Problem, int64(r.Window.Begin), int64(r.Window.End), r.Window.DurationS, r.Window.Overlap, r.Window.SkewS, r.OverheadS,
		server, yardsticks, r.Histogram, rules)
	if err != nil {
		return 0, duplicate(err)
	}
	return res.LastInsertId()
}

// duplicate turns the unique constraint of runs into ErrDuplicate.
func duplicate(err error) error {
	var se sqlite3.Error
	if errors.As(err, &se) && se.ExtendedCode == sqlite3.ErrConstraintUnique {
		return ErrDuplicate
	}
	return err
}

func insertFigures(ctx context.Context, tx *sql.Tx, run int64, figures lab.Figures) error {
	args := make([]any, 0, 3*len(figures))
	for m, v := range figures {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("figure %s is %v: an unknown figure must be absent", m, v)
		}
		args = append(args, run, string(m), v)
	}
	return insertRows(ctx, tx, "figures (run, metric, value)", 3, args)
}

func insertFindings(ctx context.Context, tx *sql.Tx, run int64, findings []lab.Finding) error {
	var args []any
	for i, f := range findings {
		if f.Outcome != lab.Fired {
			continue
		}
		text, err := jsonText(f)
		if err != nil {
			return fmt.Errorf("finding %s: %w", f.Code, err)
		}
		args = append(args, run, i, f.Code, string(f.Outcome), string(f.Consequence), f.Evidence, text)
	}
	return insertRows(ctx, tx, "findings (run, position, code, outcome, consequence, evidence, json)", 7, args)
}

func (s *Store) insertProcess(ctx context.Context, tx *sql.Tx, run int64, position int, p lab.Process) error {
	argv, err := jsonText(p.Command.Argv)
	if err != nil {
		return err
	}
	bare := p
	bare.Stdout, bare.Stderr, bare.Files, bare.Reductions = nil, nil, nil, nil
	packed, err := s.packJSON(bare)
	if err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO processes (run, position, host, tool, argv, exit, signal, problem, cpu_s, max_rss_bytes, json_zst)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		run, position, string(p.Host), p.Command.Tool, argv, p.Exit, p.Signal, p.Problem, p.CPUS, p.MaxRSSBytes, packed)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	return s.insertOutputs(ctx, tx, id, p)
}

// The names of outputs in the database.
const (
	outputStdout  = "stdout"
	outputStderr  = "stderr"
	outputFile    = "file:"
	outputReduced = "reduced:"
)

func (s *Store) insertOutputs(ctx context.Context, tx *sql.Tx, process int64, p lab.Process) error {
	bodies := map[string][]byte{outputStdout: p.Stdout, outputStderr: p.Stderr}
	for name, body := range p.Files {
		bodies[outputFile+name] = body
	}
	for name, report := range p.Reductions {
		text, err := json.Marshal(report)
		if err != nil {
			return err
		}
		bodies[outputReduced+name] = text
	}
	var args []any
	for name, body := range bodies {
		if len(body) > 0 {
			args = append(args, process, name, len(body), s.pack(body))
		}
	}
	return insertRows(ctx, tx, "outputs (process, name, bytes, body_zst)", 4, args)
}

func (s *Store) insertSamples(ctx context.Context, tx *sql.Tx, run int64, samples []lab.Sample) error {
	var hosts []lab.HostName
	perHost := map[lab.HostName][]lab.Sample{}
	for _, sm := range samples {
		if !slices.Contains(hosts, sm.Host) {
			hosts = append(hosts, sm.Host)
		}
		perHost[sm.Host] = append(perHost[sm.Host], sm)
	}
	var args []any
	for _, h := range hosts {
		packed, err := s.packJSON(perHost[h])
		if err != nil {
			return fmt.Errorf("samples of %s: %w", h, err)
		}
		args = append(args, run, string(h), len(perHost[h]), packed)
	}
	return insertRows(ctx, tx, "samples (run, host, count, json_zst)", 4, args)
}
