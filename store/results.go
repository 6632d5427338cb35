package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"ngxlab/lab"
)

// Options say what to read beyond figures, findings and reports.
type Options struct {
	Samples bool // the monitors' readings
	Raw     bool // what the load tools wrote
}

// RunNotFoundError says that no run has this number.
type RunNotFoundError struct{ ID int64 }

// Error names the number.
func (e *RunNotFoundError) Error() string { return fmt.Sprintf("no run %d", e.ID) }

// CellCount is how many runs a cell has.
type CellCount struct {
	Cell    lab.CellID `json:"cell"`
	Runs    int        `json:"runs"`
	Invalid int        `json:"invalid"`
}

// Results returns everything a report needs of one campaign; id as in Campaign. Runs are by part, round and time.
func (s *Store) Results(ctx context.Context, id lab.CampaignID, o Options) (lab.Results, error) {
	r := lab.Results{}
	var err error
	if r.Campaign, err = s.Campaign(ctx, id); err != nil {
		return r, err
	}
	id = r.Campaign.ID
	if r.Plan, err = s.Plan(ctx, id); err != nil {
		return r, err
	}
	fail := func(err error) (lab.Results, error) { return r, fmt.Errorf("results of campaign %s: %w", id, err) }
	if r.Runs, err = s.runs(ctx, s.read, ofCampaign(id), o); err != nil {
		return fail(err)
	}
	if r.Levels, err = s.levels(ctx, id); err != nil {
		return fail(err)
	}
	if r.Builds, err = s.Builds(ctx, id); err != nil {
		return r, err
	}
	if r.Events, err = collectJSON[lab.Event](ctx, s.read, "SELECT json FROM events WHERE campaign = ? ORDER BY id", string(id)); err != nil {
		return fail(err)
	}
	if r.Verdicts, err = collectJSON[lab.Verdict](ctx, s.read, "SELECT json FROM verdicts WHERE campaign = ? ORDER BY position", string(id)); err != nil {
		return fail(err)
	}
	if err := s.read.QueryRowContext(ctx, "SELECT version FROM campaigns WHERE id = ?", string(id)).Scan(&r.Version); err != nil {
		return fail(err)
	}
	return r, nil
}

// Builds returns the builds of a campaign in the order in which they were had.
func (s *Store) Builds(ctx context.Context, id lab.CampaignID) ([]lab.Build, error) {
	all, err := collectJSON[lab.Build](ctx, s.read, "SELECT json FROM builds WHERE campaign = ? ORDER BY rowid", string(id))
	if err != nil {
		return nil, fmt.Errorf("builds of campaign %s: %w", id, err)
	}
	return all, nil
}

// Run returns one run with its samples and raw output; *RunNotFoundError when there is none.
func (s *Store) Run(ctx context.Context, id int64) (lab.Run, error) {
	runs, err := s.runs(ctx, s.read, filter{"r.id = ?", id}, Options{Samples: true, Raw: true})
	if err != nil {
		return lab.Run{}, fmt.Errorf("run %d: %w", id, err)
	}
	if len(runs) == 0 {
		return lab.Run{}, &RunNotFoundError{ID: id}
	}
	return runs[0], nil
}

// CampaignOf returns the campaign that a run belongs to; *RunNotFoundError when there is no such run.
func (s *Store) CampaignOf(ctx context.Context, run int64) (lab.CampaignID, error) {
	var c lab.CampaignID
	err := s.read.QueryRowContext(ctx, "SELECT campaign FROM runs WHERE id = ?", run).Scan(&c)
	if errors.Is(err, sql.ErrNoRows) {
		return "", &RunNotFoundError{ID: run}
	}
	if err != nil {
		return "", fmt.Errorf("campaign of run %d: %w", run, err)
	}
	return c, nil
}

// Cells returns the cells of a campaign with their counts, in the order of the plan.
func (s *Store) Cells(ctx context.Context, id lab.CampaignID) ([]CellCount, error) {
	scan := func(rows *sql.Rows) (c CellCount, err error) {
		return c, rows.Scan(&c.Cell.Target, &c.Cell.State, &c.Cell.Load, &c.Runs, &c.Invalid)
	}
	cs, err := collect(ctx, s.read, scan, "SELECT target, state, load, runs, invalid FROM campaign_cells WHERE campaign = ? ORDER BY id", string(id))
	if err != nil {
		return nil, fmt.Errorf("cells of campaign %s: %w", id, err)
	}
	return cs, nil
}

// levels returns the capacity levels in the order in which they were held.
func (s *Store) levels(ctx context.Context, id lab.CampaignID) ([]lab.CapacityLevel, error) {
	return collectJSON[lab.CapacityLevel](ctx, s.read, "SELECT json FROM capacity_levels WHERE campaign = ? ORDER BY kind, ramp, asked", string(id))
}

// collectJSON returns the values of a query of one column of JSON text.
func collectJSON[T any](ctx context.Context, q querier, query string, args ...any) ([]T, error) {
	return collect(ctx, q, func(rows *sql.Rows) (v T, err error) {
		var text sql.RawBytes
		if err := rows.Scan(&text); err != nil {
			return v, err
		}
		return v, json.Unmarshal(text, &v)
	}, query, args...)
}
