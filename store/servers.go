package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"

	"ngxlab/lab"
)

// serverRow returns the row of a server as read back; equal ones share a row, and equal configurations a text.
func (s *Store) serverRow(ctx context.Context, tx *sql.Tx, c lab.CampaignID, v lab.Server) (int64, error) {
	config, err := configRow(ctx, tx, v.Effective)
	if err != nil {
		return 0, err
	}
	behind := sql.NullString{}
	if v.Upstream != nil {
		if behind, err = configRow(ctx, tx, v.Upstream.Effective); err != nil {
			return 0, err
		}
	}
	text, err := json.Marshal(bare(v))
	if err != nil {
		return 0, err
	}
	const find = "SELECT id FROM servers WHERE campaign = ? AND hash = ?"
	const add = "INSERT INTO servers (campaign, hash, json_zst, build, user, tls, config, upstream_config) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	key := []any{string(c), hashOf(string(text) + config.String + behind.String)}
	return rowID(ctx, tx, find, add, key, func() []any {
		return []any{s.pack(text), known(v.Build), known(v.User), known(tlsWords(v.TLS)), config, behind}
	})
}

// bare is a server without the texts of its configurations, which stand in a table of their own.
func bare(v lab.Server) lab.Server {
	v.Effective = ""
	if v.Upstream != nil {
		upstream := *v.Upstream
		upstream.Effective = ""
		v.Upstream = &upstream
	}
	return v
}

// configRow keeps a configuration, once, and returns its key: NULL for none.
func configRow(ctx context.Context, tx *sql.Tx, text string) (sql.NullString, error) {
	if text == "" {
		return sql.NullString{}, nil
	}
	key := hashOf(text)
	_, err := tx.ExecContext(ctx, "INSERT INTO configurations (sha256, text) VALUES (?, ?) ON CONFLICT DO NOTHING", key, text)
	return known(key), err
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// known is NULL for an empty text.
func known(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

// tlsWords is "TLS 1.3, TLS_AES_128_GCM_SHA256, h2"; "" without TLS.
func tlsWords(t *lab.TLSState) string {
	if t == nil {
		return ""
	}
	words := t.Version + ", " + t.Cipher
	if t.Protocol != "" {
		words += ", " + t.Protocol
	}
	return words
}

// readServers gives every run its server, and the server its configuration; equal configurations are one text in memory.
func (b *bundle) readServers(ctx context.Context) error {
	of := " WHERE s.id IN (SELECT r.server FROM runs r WHERE " + b.f.where + ")"
	configs, err := b.configurations(ctx, of)
	if err != nil {
		return err
	}
	err = each(ctx, b.q, func(rows *sql.Rows) error {
		var id int64
		var packed sql.RawBytes
		var config, behind sql.NullString
		var v lab.Server
		if err := rows.Scan(&id, &packed, &config, &behind); err != nil {
			return err
		}
		err := b.s.unpackJSON(packed, &v)
		if config.Valid {
			v.Effective = configs[config.String]
		}
		if behind.Valid && v.Upstream != nil {
			v.Upstream.Effective = configs[behind.String]
		}
		b.servers[id] = v
		return err
	}, "SELECT s.id, s.json_zst, s.config, s.upstream_config FROM servers s"+of, b.f.arg)
	for i := range b.runs {
		b.runs[i].Server = b.servers[b.server[i]]
	}
	return err
}

// configurations are the texts, by hash, of the servers that a condition chooses.
func (b *bundle) configurations(ctx context.Context, of string) (map[string]string, error) {
	texts := map[string]string{}
	err := each(ctx, b.q, func(rows *sql.Rows) error {
		var key, text string
		err := rows.Scan(&key, &text)
		texts[key] = text
		return err
	}, "SELECT f.sha256, f.text FROM configurations f WHERE EXISTS (SELECT 1 FROM servers s"+of+" AND f.sha256 IN (s.config, s.upstream_config))", b.f.arg)
	return texts, err
}
