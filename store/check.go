package store

import (
	"context"
	"database/sql"
	"fmt"

	"ngxlab/lab"
)

// Check reads the whole file and returns what is broken in it: pages, references between tables, the hashes of the
// experiment and of its servers' configurations, and the counts that listings show for the campaign. Nothing broken: nil.
func (s *Store) Check(ctx context.Context, id lab.CampaignID) ([]string, error) {
	var broken []string
	for _, check := range []func(context.Context, lab.CampaignID) ([]string, error){s.checkPages, s.checkHash, s.checkConfigurations, s.checkCounts} {
		found, err := check(ctx, id)
		if err != nil {
			return broken, fmt.Errorf("check campaign %s: %w", id, err)
		}
		broken = append(broken, found...)
	}
	return broken, nil
}

func (s *Store) checkPages(ctx context.Context, _ lab.CampaignID) ([]string, error) {
	text := func(rows *sql.Rows) (line string, err error) { return line, rows.Scan(&line) }
	found, err := collect(ctx, s.read, text, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
	if err != nil {
		return nil, err
	}
	lost, err := collect(ctx, s.read, text, `SELECT format('a row of %s refers to a row of %s that is missing', "table", parent) FROM pragma_foreign_key_check`)
	return append(found, lost...), err
}

func (s *Store) checkHash(ctx context.Context, id lab.CampaignID) ([]string, error) {
	var hash, text string
	q := "SELECT e.hash, e.text FROM experiments e JOIN campaigns c ON c.experiment = e.hash WHERE c.id = ?"
	if err := s.read.QueryRowContext(ctx, q, string(id)).Scan(&hash, &text); err != nil {
		return nil, err
	}
	if hashOf(text) != hash {
		return []string{"the experiment's text is not what its hash says"}, nil
	}
	return nil, nil
}

// checkConfigurations holds the configurations of the campaign's servers against their hashes.
func (s *Store) checkConfigurations(ctx context.Context, id lab.CampaignID) ([]string, error) {
	var broken []string
	err := each(ctx, s.read, func(rows *sql.Rows) error {
		var key, text string
		err := rows.Scan(&key, &text)
		if err == nil && hashOf(text) != key {
			broken = append(broken, fmt.Sprintf("the configuration %.12s… is not what its hash says", key))
		}
		return err
	}, "SELECT sha256, text FROM configurations WHERE sha256 IN (SELECT config FROM servers WHERE campaign = ?1 UNION SELECT upstream_config FROM servers WHERE campaign = ?1)", string(id))
	return broken, err
}

// checkCounts counts again what the columns say.
func (s *Store) checkCounts(ctx context.Context, id lab.CampaignID) ([]string, error) {
	line := func(rows *sql.Rows) (text string, err error) {
		var name string
		var said, counted int
		err = rows.Scan(&name, &said, &counted)
		return fmt.Sprintf("%s: listed as %d, counted as %d", name, said, counted), err
	}
	return collect(ctx, s.read, line, `SELECT * FROM (
		SELECT 'runs' AS name, runs AS said, (SELECT count(*) FROM runs WHERE campaign = c.id) AS counted FROM campaigns c WHERE id = ?1
		UNION ALL SELECT 'invalid runs', invalid, (SELECT count(*) FROM runs WHERE campaign = c.id AND validity = 'invalid') FROM campaigns c WHERE id = ?1
		UNION ALL SELECT 'findings', findings, (SELECT count(*) FROM findings f JOIN runs r ON r.id = f.run WHERE r.campaign = c.id AND f.consequence IN ('warned', 'invalid')) FROM campaigns c WHERE id = ?1
		UNION ALL SELECT 'runs of cell ' || target || ', ' || state || ', ' || load, runs, (SELECT count(*) FROM runs WHERE cell = m.id) FROM campaign_cells m WHERE campaign = ?1
		) WHERE said <> counted`, string(id))
}

// LastEvents returns the last n events of a campaign, oldest first.
func (s *Store) LastEvents(ctx context.Context, id lab.CampaignID, n int) ([]lab.Event, error) {
	events, err := collectJSON[lab.Event](ctx, s.read, "SELECT json FROM (SELECT id, json FROM events WHERE campaign = ? ORDER BY id DESC LIMIT ?) ORDER BY id", string(id), n)
	if err != nil {
		return nil, fmt.Errorf("events of campaign %s: %w", id, err)
	}
	return events, nil
}
