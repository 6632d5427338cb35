-- Times are RFC 3339 in UTC with six decimals, so that they sort as text. Units are in the names of the columns.
-- Columns named json hold the whole value as the program reads it back; the columns beside them are for people.
-- Columns named *_zst are compressed with zstandard.

CREATE TABLE experiments (
  hash  TEXT PRIMARY KEY,   -- SHA-256 of text
  name  TEXT NOT NULL,
  title TEXT NOT NULL,
  text  TEXT NOT NULL       -- the file, byte for byte
) STRICT, WITHOUT ROWID;

CREATE TABLE campaigns (
  id         TEXT PRIMARY KEY,
  experiment TEXT NOT NULL REFERENCES experiments(hash),
  began      TEXT NOT NULL,
  ended      TEXT,
  status     TEXT NOT NULL,
  reason     TEXT NOT NULL DEFAULT '',
  seed       TEXT NOT NULL,   -- unsigned 64 bits
  version    TEXT NOT NULL,   -- of ngxlab
  parts      INTEGER NOT NULL DEFAULT 1,
  runs       INTEGER NOT NULL DEFAULT 0,
  invalid    INTEGER NOT NULL DEFAULT 0,
  findings   INTEGER NOT NULL DEFAULT 0,   -- fired, warned or worse
  outcome    TEXT             -- JSON, as the campaign ended
) STRICT, WITHOUT ROWID;
CREATE INDEX campaigns_began ON campaigns(began);

-- Apart from campaigns, whose counts are updated by every run.
CREATE TABLE plans (
  campaign TEXT PRIMARY KEY REFERENCES campaigns(id),
  json     TEXT NOT NULL
) STRICT;

CREATE TABLE facts (
  campaign     TEXT NOT NULL REFERENCES campaigns(id),
  part         INTEGER NOT NULL,
  host         TEXT NOT NULL,
  cpu_model    TEXT NOT NULL,
  cores        INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  kernel       TEXT NOT NULL,
  boot_id      TEXT NOT NULL,
  distribution TEXT NOT NULL,
  json         TEXT NOT NULL,
  PRIMARY KEY (campaign, part, host)
) STRICT;

CREATE TABLE builds (
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  recipe   TEXT NOT NULL,
  id       TEXT NOT NULL,   -- hash of all that went into it
  version  TEXT NOT NULL,
  compiler TEXT NOT NULL,
  took_s   REAL NOT NULL,
  json     TEXT NOT NULL,
  PRIMARY KEY (campaign, recipe, id)
) STRICT;

CREATE TABLE states (
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  name     TEXT NOT NULL,
  position INTEGER NOT NULL,   -- 0 = baseline
  step     TEXT NOT NULL,
  over     TEXT NOT NULL,      -- '' for the baseline
  control  INTEGER NOT NULL,
  json     TEXT NOT NULL,
  PRIMARY KEY (campaign, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE campaign_cells (
  id       INTEGER PRIMARY KEY,
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  target   TEXT NOT NULL,
  state    TEXT NOT NULL,
  load     TEXT NOT NULL,
  runs     INTEGER NOT NULL DEFAULT 0,
  invalid  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (campaign, target, state, load)
) STRICT;

-- A server as read back: one for all load points of a state and round.
CREATE TABLE servers (
  id       INTEGER PRIMARY KEY,
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  hash     TEXT NOT NULL,
  json_zst BLOB NOT NULL,
  UNIQUE (campaign, hash)
) STRICT;

CREATE TABLE runs (
  id              INTEGER PRIMARY KEY,
  campaign        TEXT NOT NULL REFERENCES campaigns(id),
  cell            INTEGER NOT NULL REFERENCES campaign_cells(id),
  part            INTEGER NOT NULL,
  round           INTEGER NOT NULL,
  attempt         INTEGER NOT NULL,
  began           TEXT NOT NULL,
  validity        TEXT NOT NULL,
  grade           TEXT NOT NULL,
  loop_model      TEXT NOT NULL,
  limiting        TEXT NOT NULL,
  problem         TEXT NOT NULL,
  window_begin_ns INTEGER NOT NULL,
  window_end_ns   INTEGER NOT NULL,
  duration_s      REAL NOT NULL,
  overlap         REAL NOT NULL,
  skew_s          REAL NOT NULL,
  overhead_s      REAL NOT NULL,
  server          INTEGER NOT NULL REFERENCES servers(id),
  yardsticks      TEXT,      -- JSON
  histogram       BLOB,      -- latency in µs, HdrHistogram V2 compressed, base64
  unfired         TEXT NOT NULL,   -- JSON array: findings that are quiet or not evaluated, with their positions
  UNIQUE (campaign, part, round, cell, attempt)
) STRICT;
CREATE INDEX runs_cell ON runs(cell);

CREATE TABLE figures (
  run    INTEGER NOT NULL REFERENCES runs(id),
  metric TEXT NOT NULL,
  value  REAL NOT NULL,
  PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;

-- Those that fired; the others are in runs.unfired.
CREATE TABLE findings (
  run         INTEGER NOT NULL REFERENCES runs(id),
  position    INTEGER NOT NULL,
  code        TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  consequence TEXT NOT NULL,
  evidence    TEXT NOT NULL,
  json        TEXT NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE processes (
  id            INTEGER PRIMARY KEY,
  run           INTEGER NOT NULL REFERENCES runs(id),
  position      INTEGER NOT NULL,
  host          TEXT NOT NULL,
  tool          TEXT NOT NULL,
  argv          TEXT NOT NULL,   -- JSON array
  exit          INTEGER NOT NULL,
  signal        TEXT NOT NULL,
  problem       TEXT NOT NULL,
  cpu_s         REAL NOT NULL,
  max_rss_bytes INTEGER NOT NULL,
  json_zst      BLOB NOT NULL,   -- the process without its raw output
  UNIQUE (run, position)
) STRICT;

-- What a process wrote, byte for byte.
CREATE TABLE outputs (
  process  INTEGER NOT NULL REFERENCES processes(id),
  name     TEXT NOT NULL,   -- 'stdout', 'stderr', 'file:…' or 'reduced:…' (JSON)
  bytes    INTEGER NOT NULL,
  body_zst BLOB NOT NULL,
  PRIMARY KEY (process, name)
) STRICT;

CREATE TABLE samples (
  run      INTEGER NOT NULL REFERENCES runs(id),
  host     TEXT NOT NULL,
  count    INTEGER NOT NULL,
  json_zst BLOB NOT NULL,   -- array, by time
  PRIMARY KEY (run, host)
) STRICT;

CREATE TABLE events (
  id       INTEGER PRIMARY KEY,
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  at       TEXT NOT NULL,
  kind     TEXT NOT NULL,
  host     TEXT NOT NULL,
  text     TEXT NOT NULL,
  json     TEXT NOT NULL
) STRICT;
CREATE INDEX events_campaign ON events(campaign, id);

-- Values found before the first change of a part of a campaign.
CREATE TABLE originals (
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  part     INTEGER NOT NULL,
  host     TEXT NOT NULL,
  kind     TEXT NOT NULL,
  name     TEXT NOT NULL,
  value    TEXT,             -- NULL: the knob had no value
  at       TEXT NOT NULL,
  PRIMARY KEY (campaign, part, host, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE capacity_levels (
  campaign    TEXT NOT NULL REFERENCES campaigns(id),
  kind        TEXT NOT NULL,
  ramp        INTEGER NOT NULL,
  asked       INTEGER NOT NULL,
  connections INTEGER NOT NULL,
  settled_s   REAL NOT NULL,
  problem     TEXT NOT NULL,
  parts_bytes TEXT NOT NULL,   -- JSON object, part → bytes in all
  json        TEXT NOT NULL,
  PRIMARY KEY (campaign, kind, ramp, asked)
) STRICT, WITHOUT ROWID;

CREATE TABLE verdicts (
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  position INTEGER NOT NULL,
  family   TEXT NOT NULL,
  claim    TEXT NOT NULL,
  target   TEXT NOT NULL,
  state    TEXT NOT NULL,
  over     TEXT NOT NULL,
  load     TEXT NOT NULL,
  metric   TEXT NOT NULL,
  word     TEXT NOT NULL,
  ratio    REAL NOT NULL,
  low      REAL NOT NULL,
  high     REAL NOT NULL,
  text     TEXT NOT NULL,
  json     TEXT NOT NULL,
  PRIMARY KEY (campaign, position)
) STRICT, WITHOUT ROWID;

-- For people with sqlite3: the median over the valid runs of each cell, part and metric. Description only:
-- verdicts come from paired rounds and are in the table verdicts.
CREATE VIEW medians AS
SELECT cell, part, metric, avg(value) AS median, max(n) AS runs
FROM (
  SELECT r.cell, r.part, f.metric, f.value,
         row_number() OVER w AS i,
         count(*) OVER (PARTITION BY r.cell, r.part, f.metric) AS n
  FROM runs r JOIN figures f ON f.run = r.id
  WHERE r.validity <> 'invalid'
  WINDOW w AS (PARTITION BY r.cell, r.part, f.metric ORDER BY f.value)
)
WHERE i IN ((n + 1) / 2, (n + 2) / 2)
GROUP BY cell, part, metric;

CREATE VIEW cells AS
SELECT c.campaign, c.target, c.state, c.load, c.runs, c.invalid, g.part,
       g.median AS median_goodput_per_s, p.median AS median_server_cpu_per_request_s
FROM campaign_cells c
LEFT JOIN medians g ON g.cell = c.id AND g.metric = 'goodput_per_s'
LEFT JOIN medians p ON p.cell = c.id AND p.metric = 'server_cpu_per_request_s' AND p.part = g.part;

-- Medians of a cell beside those of the baseline. Description only: no pairing, no interval, no verdict.
CREATE VIEW comparisons AS
SELECT c.campaign, c.target, c.load, c.state, b.state AS baseline, m.part, m.metric, m.runs,
       m.median, n.median AS baseline_median, m.median / nullif(n.median, 0) AS ratio_of_medians
FROM campaign_cells c
JOIN states z ON z.campaign = c.campaign AND z.position = 0
JOIN campaign_cells b ON b.campaign = c.campaign AND b.target = c.target AND b.load = c.load AND b.state = z.name
JOIN medians m ON m.cell = c.id
JOIN medians n ON n.cell = b.id AND n.metric = m.metric AND n.part = m.part
WHERE c.id <> b.id;
