-- The configuration that a server had in force (nginx -T, or the command and files of another server), each text once: the
-- runs of a state have the same one.
CREATE TABLE configurations (
  sha256 TEXT PRIMARY KEY,   -- of text
  text   TEXT NOT NULL       -- {prefix} stands for the server's own directory
) STRICT, WITHOUT ROWID;

-- NULL in what an earlier version recorded: there the configuration is inside json_zst.
ALTER TABLE servers ADD COLUMN build    TEXT;   -- builds.id
ALTER TABLE servers ADD COLUMN user     TEXT;   -- that the workers run as
ALTER TABLE servers ADD COLUMN tls      TEXT;   -- as negotiated: version, cipher, protocol
ALTER TABLE servers ADD COLUMN config   TEXT REFERENCES configurations(sha256);
ALTER TABLE servers ADD COLUMN upstream_config TEXT REFERENCES configurations(sha256);   -- of the server behind a proxy

-- For people with sqlite3: what answered in each run. A build has one row for each recipe that made it.
CREATE VIEW served AS
SELECT r.id AS run, r.campaign, c.target, c.state, c.load, r.round, r.validity, s.build, s.user, s.tls, s.config AS config_sha256, f.text AS config,
       (SELECT b.version FROM builds b WHERE b.campaign = r.campaign AND b.id = s.build LIMIT 1) AS version,
       (SELECT b.compiler FROM builds b WHERE b.campaign = r.campaign AND b.id = s.build LIMIT 1) AS compiler
FROM runs r
JOIN campaign_cells c ON c.id = r.cell
JOIN servers s ON s.id = r.server
LEFT JOIN configurations f ON f.sha256 = s.config;

-- What each build was made of. Lists are as the binary and the package manager tell them.
CREATE VIEW provenance AS
SELECT campaign, recipe, id, version, compiler,
       json ->> '$.configured' AS configured,
       json ->> '$.made_by' AS made_by,
       json ->> '$.distribution' AS distribution,
       json ->> '$.architecture' AS architecture,
       json ->> '$.from' AS copied_from,
       (SELECT group_concat(key || ' ' || value, char(10)) FROM json_each(builds.json, '$.sources')) AS sources_sha256,
       (SELECT group_concat(value, ' ') FROM json_each(builds.json, '$.modules')) AS modules,
       (SELECT group_concat((value ->> '$.name') || coalesce(' ' || (value ->> '$.version'), ''), char(10)) FROM json_each(builds.json, '$.libraries')) AS libraries,
       (SELECT group_concat(value, char(10)) FROM json_each(builds.json, '$.notes')) AS notes
FROM builds;
