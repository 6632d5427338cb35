package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ngxlab/lab"
)

// Commit records a run, a build, a capacity level or the outcome of a campaign, whole or not at all.
func (s *Store) Commit(ctx context.Context, c lab.CampaignID, r lab.Record) error {
	switch {
	case r.Run != nil:
		return s.commitRun(ctx, c, *r.Run)
	case r.Build != nil:
		return s.commitBuild(ctx, c, *r.Build)
	case r.Level != nil:
		return s.commitLevel(ctx, c, *r.Level)
	case r.Outcome != nil:
		return s.commitOutcome(ctx, c, *r.Outcome)
	}
	return fmt.Errorf("commit to campaign %s: %w", c, errors.New("an empty record"))
}

func (s *Store) commitBuild(ctx context.Context, c lab.CampaignID, b lab.Build) error {
	text, err := jsonText(b)
	if err != nil {
		return fmt.Errorf("commit build %s: %w", b.Recipe, err)
	}
	err = s.exec(ctx, `INSERT INTO builds (campaign, recipe, id, version, compiler, took_s, json) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, string(c), b.Recipe, b.ID, b.Version, b.Compiler, b.TookS, text)
	if err != nil {
		return fmt.Errorf("commit build %s: %w", b.Recipe, err)
	}
	return nil
}

// commitLevel replaces what an earlier attempt left for the same level.
func (s *Store) commitLevel(ctx context.Context, c lab.CampaignID, l lab.CapacityLevel) error {
	what := fmt.Sprintf("commit level of %d %s connections", l.Asked, l.Kind)
	parts, err := jsonText(l.Parts)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	text, err := jsonText(l)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = s.exec(ctx, `INSERT OR REPLACE INTO capacity_levels (campaign, kind, ramp, asked, connections, settled_s, problem, parts_bytes, json)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, string(c), string(l.Kind), l.Ramp, l.Asked, l.Connections, l.SettledS, l.Problem, parts, text)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s *Store) commitOutcome(ctx context.Context, c lab.CampaignID, o lab.Outcome) error {
	text, err := jsonText(o)
	if err != nil {
		return fmt.Errorf("commit outcome of campaign %s: %w", c, err)
	}
	err = s.exec(ctx, "UPDATE campaigns SET status = ?, reason = ?, ended = ?, outcome = ? WHERE id = ?",
		string(o.Status), string(o.Reason), formatTime(time.Now()), text, string(c))
	if err != nil {
		return fmt.Errorf("commit outcome of campaign %s: %w", c, err)
	}
	return nil
}

// Originals records the values found on a host before the first change of the campaign's present part. A value once
// recorded stays: a later call for the same knob changes nothing.
func (s *Store) Originals(ctx context.Context, c lab.CampaignID, h lab.HostName, cs []lab.Change) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		for _, ch := range cs {
			_, err := tx.ExecContext(ctx, `INSERT INTO originals (campaign, part, host, kind, name, value, at)
				SELECT id, parts, ?, ?, ?, ?, ? FROM campaigns WHERE id = ? ON CONFLICT DO NOTHING`,
				string(h), ch.Knob.Kind, ch.Knob.Name, sql.NullString{String: ch.From.Text, Valid: !ch.From.Absent}, formatTime(time.Now()), string(c))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record original values of %s: %w", h, err)
	}
	return nil
}

// Left is a host that a campaign changed and, as far as is recorded, did not put back.
type Left struct {
	Campaign lab.CampaignID
	Host     lab.HostName // as the campaign's experiment names it
}

// Left returns the hosts whose values were recorded as about to change by a campaign that has not ended, or that ended
// without putting them back, and that PutBack has not told of since.
func (s *Store) Left(ctx context.Context) ([]Left, error) {
	all, err := collect(ctx, s.read, func(rows *sql.Rows) (l Left, err error) { return l, rows.Scan(&l.Campaign, &l.Host) },
		`SELECT DISTINCT o.campaign, o.host FROM originals o JOIN campaigns c ON c.id = o.campaign
		WHERE CASE WHEN c.outcome IS NOT NULL THEN EXISTS (SELECT 1 FROM json_each(c.outcome, '$.unrestored') u WHERE u.key = o.host)
			ELSE NOT EXISTS (SELECT 1 FROM events b WHERE b.campaign = c.id AND b.kind = ? AND b.host = o.host AND b.id >
				(SELECT coalesce(max(id), 0) FROM events WHERE campaign = c.id AND kind <> ?)) END
		ORDER BY o.campaign, o.host`, string(lab.EventRestored), string(lab.EventRestored))
	if err != nil {
		return nil, fmt.Errorf("read what campaigns left changed: %w", err)
	}
	return all, nil
}

// PutBack records that a host is as it was before a campaign, which somebody put back after it: the campaign's outcome no
// longer has it as unrestored, and a campaign whose last such host it is is done. One that has no outcome was killed, for
// as long as it runs it has its hosts to itself: it was interrupted, nobody knows when.
func (s *Store) PutBack(ctx context.Context, l Left, at time.Time) error {
	e := lab.Event{At: at.UTC(), Kind: lab.EventRestored, Campaign: l.Campaign, Host: l.Host, Text: "put back after the campaign"}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := insertEvent(ctx, tx, l.Campaign, e); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE campaigns SET outcome = json_remove(outcome, '$.unrestored."' || ? || '"') WHERE id = ? AND outcome IS NOT NULL`,
			string(l.Host), string(l.Campaign))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE campaigns SET status = ?, outcome = json_set(json_remove(outcome, '$.unrestored'), '$.status', ?)
			WHERE id = ? AND status = ? AND NOT EXISTS (SELECT 1 FROM json_each(outcome, '$.unrestored'))`,
			string(lab.StatusDone), string(lab.StatusDone), string(l.Campaign), string(lab.StatusUnrestored))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE campaigns SET status = ? WHERE id = ? AND outcome IS NULL", string(lab.StatusInterrupted), string(l.Campaign))
		return err
	})
	if err != nil {
		return fmt.Errorf("record that %s is as it was before campaign %s: %w", l.Host, l.Campaign, err)
	}
	return nil
}

// Event records what happened.
func (s *Store) Event(ctx context.Context, c lab.CampaignID, e lab.Event) error {
	if err := s.inTx(ctx, func(tx *sql.Tx) error { return insertEvent(ctx, tx, c, e) }); err != nil {
		return fmt.Errorf("record event %s: %w", e.Kind, err)
	}
	return nil
}

func insertEvent(ctx context.Context, tx *sql.Tx, c lab.CampaignID, e lab.Event) error {
	text, err := jsonText(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO events (campaign, at, kind, host, text, json) VALUES (?, ?, ?, ?, ?, ?)",
		string(c), formatTime(e.At), string(e.Kind), string(e.Host), e.Text, text)
	return err
}

// SaveVerdicts replaces the verdicts of a campaign.
func (s *Store) SaveVerdicts(ctx context.Context, c lab.CampaignID, vs []lab.Verdict) error {
	var args []any
	for i, v := range vs {
		text, err := jsonText(v)
		if err != nil {
			return fmt.Errorf("save verdicts of campaign %s: %w", c, err)
		}
		k := v.Comparison
		args = append(args, string(c), i, v.Family, v.Claim, string(k.Target), k.State, k.Over, k.Load, string(k.Metric), string(v.Word),
			k.Ratio, k.Low, k.High, v.Text, text)
	}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM verdicts WHERE campaign = ?", string(c)); err != nil {
			return err
		}
		return insertRows(ctx, tx, "verdicts (campaign, position, family, claim, target, state, over, load, metric, word, ratio, low, high, text, json)", 15, args)
	})
	if err != nil {
		return fmt.Errorf("save verdicts of campaign %s: %w", c, err)
	}
	return nil
}

// exec runs one statement as a transaction of its own.
func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}
