-- A database of schema 1 with two runs, as the program before schema 2 wrote it; made by sqlite3's .dump.
CREATE TABLE experiments (
  hash  TEXT PRIMARY KEY,   -- SHA-256 of text
  name  TEXT NOT NULL,
  title TEXT NOT NULL,
  text  TEXT NOT NULL       -- the file, byte for byte
) STRICT, WITHOUT ROWID;
INSERT INTO experiments VALUES('abc123','quickstart','A study',replace('name: quickstart\n','\n',char(10)));
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
INSERT INTO campaigns VALUES('c','abc123','2026-12-01T04:13:11.083846Z',NULL,'running','','9223372036854775815','0.1.0',1,2,0,2,NULL);
CREATE TABLE plans (
  campaign TEXT PRIMARY KEY REFERENCES campaigns(id),
  json     TEXT NOT NULL
) STRICT;
INSERT INTO plans VALUES('c','{"experiment":{"name":"quickstart","title":"A study","hosts":null,"builds":null,"server":{"build":"","port":0,"status_port":0,"site":"","restart":""},"ladder":{"kind":""},"steps":null,"load":null,"repeat":{"min":0,"max":0,"precision":0,"effect":0,"budget_s":0,"cool_down_s":0,"control":false},"order":"","cannot":"","published":{},"file":"","text":"name: quickstart\n","hash":"abc123","where":null},"facts":{"web":{"host":"web","hostname":"","cpu_model":"","cores":2,"cpus":null,"numa_nodes":0,"memory_bytes":0,"available_bytes":0,"kernel":"6.18","boot_id":"b1","distribution":"","architecture":"","cgroup":0,"nofile_soft":0,"nofile_hard":0,"nr_open":0,"root":false,"can_install":false,"raise_nofile":false,"sysctls":null,"sysctl_writable":null,"commands":null,"packages":null,"ports_in_use":null,"tool_versions":null,"compiler":"","disk_free_bytes":0,"agent":"","state_dir":""}},"seed":9223372036854775815,"part":1,"original":{"name":"","steps":null,"settings":null},"states":[{"name":"default","steps":null,"settings":null},{"name":"log off","step":"log off","over":"default","steps":null,"settings":null}],"loads":null,"cells":[{"id":{"target":"web","state":"default","load":"wrk 10"}},{"id":{"target":"web","state":"log off","load":"wrk 10"}}],"rounds":null,"builds":null,"servings":null,"drivings":null,"estimate_s":0,"estimate_max_s":0}');
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
INSERT INTO facts VALUES('c',1,'web','',2,0,'6.18','b1','','{"host":"web","hostname":"","cpu_model":"","cores":2,"cpus":null,"numa_nodes":0,"memory_bytes":0,"available_bytes":0,"kernel":"6.18","boot_id":"b1","distribution":"","architecture":"","cgroup":0,"nofile_soft":0,"nofile_hard":0,"nr_open":0,"root":false,"can_install":false,"raise_nofile":false,"sysctls":null,"sysctl_writable":null,"commands":null,"packages":null,"ports_in_use":null,"tool_versions":null,"compiler":"","disk_free_bytes":0,"agent":"","state_dir":""}');
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
INSERT INTO builds VALUES('c','nginx','nginx-1.22.1-3fa9','1.22.1','gcc 12.2.0',0.0,'{"id":"nginx-1.22.1-3fa9","recipe":"nginx","binary":"","version":"1.22.1","configured":"--with-threads","compiler":"gcc 12.2.0","sources":{"nginx_1.22.1.orig.tar.gz":"9ebb333a"},"took_s":0,"cached":false,"log":""}');
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
INSERT INTO states VALUES('c','default',0,'','',0,'{"name":"default","steps":null,"settings":null}');
INSERT INTO states VALUES('c','log off',1,'log off','default',0,'{"name":"log off","step":"log off","over":"default","steps":null,"settings":null}');
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
INSERT INTO campaign_cells VALUES(1,'c','web','default','wrk 10',1,0);
INSERT INTO campaign_cells VALUES(2,'c','web','log off','wrk 10',1,0);
CREATE TABLE servers (
  id       INTEGER PRIMARY KEY,
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  hash     TEXT NOT NULL,
  json_zst BLOB NOT NULL,
  UNIQUE (campaign, hash)
) STRICT;
INSERT INTO servers VALUES(1,'c','807643b6a365e10d4549924248c8bb524992500d5b80b27d01220d464891f381',X'28b52ffd0400dd0400d24a201b80a5550475589b9d201b316b96292d2f8aba1c43d767f619cc8506d1e4f9a4eda7cd2f31be901ce2ed023a6f93eef162cc9067a4b5f9300f7098e745ee110cc70685a2f4f430f9568ecfb2a55c7bf93e1f400c7af0798402eeb6c93ebfc9ea6295da17c69096e7c173032f443e2dc279dbac022f6f86a8daf4bcd156f2960f0308007d28804c2480eacacfb68120cc2cee9dc645865906c1b822fd');
INSERT INTO servers VALUES(2,'c','bf681e91f7036f40d8cf08edb785a787752c369f945dc18f5b1e65374aa4a98c',X'28b52ffd0400dd0400d24a201b80a5550475b4283b236dc4ac59a6747f06faac43d767f604666504d1e4f928ed879a5f627c416d62ed423a4f1552e4c51822cf8446cd877980c33c6bda3738b6090c94d44388c9f75a3edad85af7727d3ea02010c2e7110edc4e137d5e13d686aea52fad115c9e056f075e8abc6283f3b41909bc7cad1d8e6dcf1f8e254ff93008007d28804c2480eacacfb68120cc2cee9dc64586590663529a2a');
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
INSERT INTO runs VALUES(1,'c',1,1,1,1,'2026-11-30T17:16:02.123456Z','warned','A','closed','server CPU','',10,2000000010,2.0,1.0,0.00010000000000000000479,0.050000000000000002775,1,'[{"host":"web","after":false,"cpu_s":[0.01,0.01],"wall_s":0.01}]',X'48495354','[{"position":0,"code":"client-cpu","outcome":"quiet"},{"position":2,"code":"non-2xx","outcome":"not evaluated","evidence":"no probe"}]');
INSERT INTO runs VALUES(2,'c',2,1,1,1,'2026-11-30T17:16:02.123456Z','warned','A','closed','server CPU','',10,2000000010,2.0,1.0,0.00010000000000000000479,0.050000000000000002775,2,'[{"host":"web","after":false,"cpu_s":[0.01,0.01],"wall_s":0.01}]',X'48495354','[{"position":0,"code":"client-cpu","outcome":"quiet"},{"position":2,"code":"non-2xx","outcome":"not evaluated","evidence":"no probe"}]');
CREATE TABLE figures (
  run    INTEGER NOT NULL REFERENCES runs(id),
  metric TEXT NOT NULL,
  value  REAL NOT NULL,
  PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO figures VALUES(1,'goodput_per_s',0.33333333333333331482);
INSERT INTO figures VALUES(1,'p99_s',0.0020999999999999998702);
INSERT INTO figures VALUES(1,'server_cpu_per_request_s',3.300000000000000253e-05);
INSERT INTO figures VALUES(2,'goodput_per_s',0.33333333333333331482);
INSERT INTO figures VALUES(2,'p99_s',0.0020999999999999998702);
INSERT INTO figures VALUES(2,'server_cpu_per_request_s',3.300000000000000253e-05);
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
INSERT INTO findings VALUES(1,1,'server-cpu','fired','limit','1.0 of 1 cores','{"code":"server-cpu","outcome":"fired","consequence":"limit","evidence":"1.0 of 1 cores","values":{"cores":1}}');
INSERT INTO findings VALUES(1,3,'short-run','fired','warned','2 s','{"code":"short-run","outcome":"fired","consequence":"warned","evidence":"2 s"}');
INSERT INTO findings VALUES(2,1,'server-cpu','fired','limit','1.0 of 1 cores','{"code":"server-cpu","outcome":"fired","consequence":"limit","evidence":"1.0 of 1 cores","values":{"cores":1}}');
INSERT INTO findings VALUES(2,3,'short-run','fired','warned','2 s','{"code":"short-run","outcome":"fired","consequence":"warned","evidence":"2 s"}');
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
INSERT INTO processes VALUES(1,1,0,'load','wrk','["wrk","-c","10"]',0,'','',1.5,4096,X'28b52ffd440022005d0600c2ce2c22406bab003d86ab9124bb6bd1e456e192d651e0e104bc17e199c0ad2833d3310caf0bcff34663e0c0c011145cbf284e60eca63c1f2481102f933af6360ccb77f4bddc246d213264969f010c04a0ef8d0f0aa99bd3432dcf4502d1776a9815db639f488114eced93d16addf273a1ef97d83a5a3d05f4ac31cfe74188be1f6c71ed7b70ddd12f2ba59f48df695f734c2d7b261c21cf2f0482be2161f5bc831dae7710c63b7af6d4b2c0f53c53d05d1f1b2a770207009f10da8736df1804c70d0c335734339b4736f535f15d1a');
INSERT INTO processes VALUES(2,2,0,'load','wrk','["wrk","-c","10"]',0,'','',1.5,4096,X'28b52ffd440022005d0600c2ce2c22406bab003d86ab9124bb6bd1e456e192d651e0e104bc17e199c0ad2833d3310caf0bcff34663e0c0c011145cbf284e60eca63c1f2481102f933af6360ccb77f4bddc246d213264969f010c04a0ef8d0f0aa99bd3432dcf4502d1776a9815db639f488114eced93d16addf273a1ef97d83a5a3d05f4ac31cfe74188be1f6c71ed7b70ddd12f2ba59f48df695f734c2d7b261c21cf2f0482be2161f5bc831dae7710c63b7af6d4b2c0f53c53d05d1f1b2a770207009f10da8736df1804c70d0c335734339b4736f535f15d1a');
CREATE TABLE outputs (
  process  INTEGER NOT NULL REFERENCES processes(id),
  name     TEXT NOT NULL,   -- 'stdout', 'stderr', 'file:…' or 'reduced:…' (JSON)
  bytes    INTEGER NOT NULL,
  body_zst BLOB NOT NULL,
  PRIMARY KEY (process, name)
) STRICT;
INSERT INTO outputs VALUES(1,'reduced:e',13,X'28b52ffd04006900007b22746f6f6c223a226162227d74dc9613');
INSERT INTO outputs VALUES(1,'stdout',18,X'28b52ffd040091000052657175657374732f7365633a203130300adc5772f0');
INSERT INTO outputs VALUES(1,'stderr',5,X'28b52ffd04002900006e6f74650a011bc722');
INSERT INTO outputs VALUES(1,'file:e.csv',4,X'28b52ffd0400210000302c310aedf9f8d3');
INSERT INTO outputs VALUES(2,'stdout',18,X'28b52ffd040091000052657175657374732f7365633a203130300adc5772f0');
INSERT INTO outputs VALUES(2,'stderr',5,X'28b52ffd04002900006e6f74650a011bc722');
INSERT INTO outputs VALUES(2,'file:e.csv',4,X'28b52ffd0400210000302c310aedf9f8d3');
INSERT INTO outputs VALUES(2,'reduced:e',13,X'28b52ffd04006900007b22746f6f6c223a226162227d74dc9613');
CREATE TABLE samples (
  run      INTEGER NOT NULL REFERENCES runs(id),
  host     TEXT NOT NULL,
  count    INTEGER NOT NULL,
  json_zst BLOB NOT NULL,   -- array, by time
  PRIMARY KEY (run, host)
) STRICT;
INSERT INTO samples VALUES(1,'web',2,X'28b52ffd44001b01750500a2091e1c70216e0060019f24edef220a8d30248193eaffbf351531a1095415be856018f041b2a9960c1f99dd6b86ea45913c3e2b9777e5261990aaeed06e96da6cd677d21bc714558ec5b3a9dd076300a73b48146d6e5839e5f79a718748e7d78c2342683799234a675560ac8f81745e54e7f14b99a73733c21d2214003c4009100f1406b1dad2703b5265660888f8269905b9c9b98c2118de8c9e37c734a425631742b6ca25abd187ba2b3acc32f5992f22');
INSERT INTO samples VALUES(1,'load',1,X'28b52ffd44000f00250500320a1f1b60a736d0eaa14c1a12710eb5939e847518061870381a94208822024594d459956caba5c34766f7dab1ba51258f9191cb6be42e59485597683fc6da6cd687d41fc718658e45b4a9dd096382d34516469b1f3e02d47939e5f7da718850e7d78ee390d2b09bce31a9f31a30d6c7803a37abf37824d95ebd99090e11010e004895992120e29b6416e426e732866078337ade1cd390968c5d08b9552e43b52015a61e621ab4ad');
INSERT INTO samples VALUES(2,'web',2,X'28b52ffd44001b01750500a2091e1c70216e0060019f24edef220a8d30248193eaffbf351531a1095415be856018f041b2a9960c1f99dd6b86ea45913c3e2b9777e5261990aaeed06e96da6cd677d21bc714558ec5b3a9dd076300a73b48146d6e5839e5f79a718748e7d78c2342683799234a675560ac8f81745e54e7f14b99a73733c21d2214003c4009100f1406b1dad2703b5265660888f8269905b9c9b98c2118de8c9e37c734a425631742b6ca25abd187ba2b3acc32f5992f22');
INSERT INTO samples VALUES(2,'load',1,X'28b52ffd44000f00250500320a1f1b60a736d0eaa14c1a12710eb5939e847518061870381a94208822024594d459956caba5c34766f7dab1ba51258f9191cb6be42e59485597683fc6da6cd687d41fc718658e45b4a9dd096382d34516469b1f3e02d47939e5f7da718850e7d78ee390d2b09bce31a9f31a30d6c7803a37abf37824d95ebd99090e11010e004895992120e29b6416e426e732866078337ade1cd390968c5d08b9552e43b52015a61e621ab4ad');
CREATE TABLE events (
  id       INTEGER PRIMARY KEY,
  campaign TEXT NOT NULL REFERENCES campaigns(id),
  at       TEXT NOT NULL,
  kind     TEXT NOT NULL,
  host     TEXT NOT NULL,
  text     TEXT NOT NULL,
  json     TEXT NOT NULL
) STRICT;
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
CREATE INDEX campaigns_began ON campaigns(began);
CREATE INDEX runs_cell ON runs(cell);
CREATE INDEX events_campaign ON events(campaign, id);
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
CREATE VIEW comparisons AS
SELECT c.campaign, c.target, c.load, c.state, b.state AS baseline, m.part, m.metric, m.runs,
       m.median, n.median AS baseline_median, m.median / nullif(n.median, 0) AS ratio_of_medians
FROM campaign_cells c
JOIN states z ON z.campaign = c.campaign AND z.position = 0
JOIN campaign_cells b ON b.campaign = c.campaign AND b.target = c.target AND b.load = c.load AND b.state = z.name
JOIN medians m ON m.cell = c.id
JOIN medians n ON n.cell = b.id AND n.metric = m.metric AND n.part = m.part
WHERE c.id <> b.id;
