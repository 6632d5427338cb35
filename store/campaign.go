package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// NotFoundError says that no campaign has the id, or the beginning of an id, that was asked for.
type NotFoundError struct {
	ID   lab.CampaignID
	Near []lab.CampaignID // the nearest ids, best first, at most three
}

// Error names what was asked for.
func (e *NotFoundError) Error() string {
	if e.ID == "" {
		return "the database has no campaign"
	}
	return fmt.Sprintf("no campaign %q", string(e.ID))
}

// AmbiguousError says that several campaigns begin with what was asked for.
type AmbiguousError struct {
	ID   lab.CampaignID
	Both []lab.CampaignID // newest first
}

// Error names the first of them.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%d campaigns begin with %q: %s, %s …", len(e.Both), string(e.ID), e.Both[0], e.Both[1])
}

// Begin opens a campaign and returns what of it is already done in all parts; a campaign that is known goes on: its
// plan is replaced by p, and its earlier runs stay.
func (s *Store) Begin(ctx context.Context, id lab.CampaignID, p lab.Plan) (lab.Done, error) {
	p.Part = max(p.Part, 1)
	err := s.inTx(ctx, func(tx *sql.Tx) error { return s.begin(ctx, tx, id, p) })
	if err != nil {
		return lab.Done{}, fmt.Errorf("begin campaign %s: %w", id, err)
	}
	runs, err := s.runs(ctx, s.read, ofCampaign(id), Options{})
	if err != nil {
		return lab.Done{}, fmt.Errorf("begin campaign %s: %w", id, err)
	}
	levels, err := s.levels(ctx, id)
	if err != nil {
		return lab.Done{}, fmt.Errorf("begin campaign %s: %w", id, err)
	}
	return lab.Done{Runs: runs, Levels: levels}, nil
}

func (s *Store) begin(ctx context.Context, tx *sql.Tx, id lab.CampaignID, p lab.Plan) error {
	e := p.Experiment
	_, err := tx.ExecContext(ctx, "INSERT INTO experiments (hash, name, title, text) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		e.Hash, e.Name, e.Title, e.Text)
	if err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO campaigns (id, experiment, began, status, seed, version, parts) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET status = excluded.status, ended = NULL, reason = '', outcome = NULL, parts = max(parts, excluded.parts)
		WHERE experiment = excluded.experiment`,
		string(id), e.Hash, formatTime(time.Now()), string(lab.StatusRunning), strconv.FormatUint(p.Seed, 10), s.Version, p.Part)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errors.New("its experiment is another one"))
	}
	return errors.Join(insertPlan(ctx, tx, id, p), insertFacts(ctx, tx, id, p), insertStates(ctx, tx, id, p), insertCells(ctx, tx, id, p))
}

func insertPlan(ctx context.Context, tx *sql.Tx, id lab.CampaignID, p lab.Plan) error {
	text, err := jsonText(p)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO plans (campaign, json) VALUES (?, ?) ON CONFLICT DO UPDATE SET json = excluded.json", string(id), text)
	return err
}

func insertFacts(ctx context.Context, tx *sql.Tx, id lab.CampaignID, p lab.Plan) error {
	for host, f := range p.Facts {
		text, err := jsonText(f)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO facts (campaign, part, host, cpu_model, cores, memory_bytes, kernel, boot_id, distribution, json)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			string(id), p.Part, string(host), f.CPUModel, f.Cores, f.MemoryBytes, f.Kernel, f.BootID, f.Distribution, text)
		if err != nil {
			return err
		}
	}
	return nil
}

func insertStates(ctx context.Context, tx *sql.Tx, id lab.CampaignID, p lab.Plan) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM states WHERE campaign = ?", string(id)); err != nil {
		return err
	}
	for i, st := range p.States {
		text, err := jsonText(st)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO states (campaign, name, position, step, over, control, json) VALUES (?, ?, ?, ?, ?, ?, ?)",
			string(id), st.Name, i, st.Step, st.Over, st.Control, text)
		if err != nil {
			return err
		}
	}
	return nil
}

func insertCells(ctx context.Context, tx *sql.Tx, id lab.CampaignID, p lab.Plan) error {
	for _, c := range p.Cells {
		_, err := tx.ExecContext(ctx, "INSERT INTO campaign_cells (campaign, target, state, load) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			string(id), string(c.ID.Target), c.ID.State, c.ID.Load)
		if err != nil {
			return err
		}
	}
	return nil
}

const selectCampaigns = `SELECT c.id, e.name, e.title, e.hash, c.began, c.ended, c.status, c.reason, c.parts, c.runs, c.invalid, c.findings
	FROM campaigns c JOIN experiments e ON e.hash = c.experiment`

// Campaigns returns all campaigns, newest first.
func (s *Store) Campaigns(ctx context.Context) ([]lab.Campaign, error) {
	cs, err := collect(ctx, s.read, scanCampaign, selectCampaigns+" ORDER BY c.began DESC, c.id DESC")
	if err != nil {
		return nil, fmt.Errorf("list campaigns: %w", err)
	}
	return cs, nil
}

// Latest returns the campaign that began last; *NotFoundError when there is none.
func (s *Store) Latest(ctx context.Context) (lab.Campaign, error) {
	cs, err := collect(ctx, s.read, scanCampaign, selectCampaigns+" ORDER BY c.began DESC, c.id DESC LIMIT 1")
	if err != nil {
		return lab.Campaign{}, fmt.Errorf("latest campaign: %w", err)
	}
	if len(cs) == 0 {
		return lab.Campaign{}, &NotFoundError{}
	}
	return cs[0], nil
}

// Campaign returns the campaign whose id is, or alone begins with, id. Errors: *NotFoundError, *AmbiguousError.
func (s *Store) Campaign(ctx context.Context, id lab.CampaignID) (lab.Campaign, error) {
	all, err := s.Campaigns(ctx)
	if err != nil {
		return lab.Campaign{}, err
	}
	if id == "" {
		return lab.Campaign{}, &NotFoundError{ID: id}
	}
	var found []lab.Campaign
	for _, c := range all {
		if c.ID == id {
			return c, nil
		}
		if strings.HasPrefix(string(c.ID), string(id)) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return lab.Campaign{}, &NotFoundError{ID: id, Near: nearest(id, ids(all))}
	case 1:
		return found[0], nil
	}
	return lab.Campaign{}, &AmbiguousError{ID: id, Both: ids(found)}
}

func ids(cs []lab.Campaign) []lab.CampaignID {
	all := make([]lab.CampaignID, len(cs))
	for i, c := range cs {
		all[i] = c.ID
	}
	return all
}

// Plan returns the plan of a campaign; id as in Campaign.
func (s *Store) Plan(ctx context.Context, id lab.CampaignID) (lab.Plan, error) {
	c, err := s.Campaign(ctx, id)
	if err != nil {
		return lab.Plan{}, err
	}
	var text string
	if err := s.read.QueryRowContext(ctx, "SELECT json FROM plans WHERE campaign = ?", string(c.ID)).Scan(&text); err != nil {
		return lab.Plan{}, fmt.Errorf("plan of campaign %s: %w", c.ID, err)
	}
	var p lab.Plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return lab.Plan{}, fmt.Errorf("plan of campaign %s: %w", c.ID, err)
	}
	return p, nil
}

func scanCampaign(rows *sql.Rows) (lab.Campaign, error) {
	var c lab.Campaign
	var began string
	var ended sql.NullString
	err := rows.Scan(&c.ID, &c.Name, &c.Title, &c.Hash, &began, &ended, &c.Status, &c.Reason, &c.Parts, &c.Runs, &c.Invalid, &c.Findings)
	if err != nil {
		return c, err
	}
	if c.Began, err = parseTime(began); err != nil {
		return c, err
	}
	if ended.Valid {
		at, err := parseTime(ended.String)
		if err != nil {
			return c, err
		}
		c.Ended = &at
	}
	return c, nil
}

// nearest returns at most three of known, those with the smallest edit distance to id first.
func nearest(id lab.CampaignID, known []lab.CampaignID) []lab.CampaignID {
	near := slices.Clone(known)
	slices.SortStableFunc(near, func(a, b lab.CampaignID) int {
		return lab.Distance(string(id), string(a)) - lab.Distance(string(id), string(b))
	})
	return near[:min(3, len(near))]
}
