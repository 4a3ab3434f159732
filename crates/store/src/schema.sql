-- The tables of a store, version 3. Every column is documented here and nowhere else.
--
-- Rows are never edited, only added; a later verdict supersedes an earlier one. `guard.rs` adds the triggers.
-- `_ns` counts from the start of the trial, `_unix_ms` from 1970. Counts are messages, connections or ticks.
-- `crc` is the CRC-32 of the row's other columns (see row.rs): a row that was damaged or edited is not read.

-- Ids that were given, also those of runs deleted since: an id in somebody's notes never names a second run.
-- No further index, here or elsewhere: a damaged one would hide rows without SQLite noticing.
CREATE TABLE used_id (
  run      TEXT PRIMARY KEY,      -- `master-3`
  stem     TEXT NOT NULL,         -- `master`
  count    INTEGER NOT NULL,      -- 3: the third run of this stem
  number   INTEGER NOT NULL,      -- the how-manieth run of this store, from 1
  crc      INTEGER NOT NULL
) WITHOUT ROWID;

-- One climb, as it was planned.
CREATE TABLE run (
  run             TEXT PRIMARY KEY REFERENCES used_id (run),
  name            TEXT,           -- as the user gave it (`--name`)
  subject         TEXT NOT NULL,  -- the server under test
  scenario        TEXT,           -- path of the scenario file
  seed            TEXT NOT NULL CHECK (seed GLOB '[0-9]*'), -- decimal text, because u64 does not fit an INTEGER
  arrivals        TEXT NOT NULL,  -- the law of arrivals
  command         TEXT NOT NULL,  -- the command line
  git             TEXT,           -- commit of the folder the run was started in
  stepladder      TEXT NOT NULL,  -- version of the program
  started_unix_ms INTEGER NOT NULL CHECK (started_unix_ms >= 0),
  shared_cores    INTEGER NOT NULL CHECK (shared_cores IN (0, 1)), -- generator and server share cores
  plan            TEXT NOT NULL CHECK (json_valid(plan)),
  environment     TEXT NOT NULL CHECK (json_valid(environment)),
  crc             INTEGER NOT NULL
) WITHOUT ROWID;

-- How a run ended. No row and no living writer: it was interrupted.
CREATE TABLE run_end (
  run           TEXT PRIMARY KEY REFERENCES run (run),
  outcome       TEXT NOT NULL CHECK (outcome IN ('finished', 'interrupted', 'broken')),
  reason        TEXT,             -- for people
  ended_unix_ms INTEGER NOT NULL CHECK (ended_unix_ms >= 0),
  parts         INTEGER NOT NULL CHECK (parts >= 0), -- rows of trial, trial_end, verdict and artifact that belong to it
  climb         TEXT CHECK (climb IS NULL OR json_valid(climb)), -- the three answers
  crc           INTEGER NOT NULL
) WITHOUT ROWID;

-- What people write on a run. The only table that may be updated; a removed label is NULL.
CREATE TABLE label (
  run   TEXT NOT NULL REFERENCES run (run),
  key   TEXT NOT NULL CHECK (key <> ''),
  value TEXT,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;

-- One load to be held once.
CREATE TABLE trial (
  run             TEXT NOT NULL REFERENCES run (run),
  trial           INTEGER NOT NULL CHECK (trial >= 0), -- number within the run, from 0
  purpose         TEXT NOT NULL,  -- `rung`, `calibration`, …
  load            REAL NOT NULL,  -- asked for, in load_unit
  load_unit       TEXT NOT NULL,
  bots            INTEGER NOT NULL CHECK (bots >= 0),
  connections     INTEGER NOT NULL CHECK (connections >= 0), -- that should stand during the hold
  tick_period_ns  INTEGER NOT NULL CHECK (tick_period_ns >= 0), -- 0: the subject has no ticks
  cell            TEXT NOT NULL CHECK (json_type(cell) = 'object'), -- of a sweep: axis and value; `{}` elsewhere
  metric_names    TEXT NOT NULL CHECK (json_valid(metric_names)), -- operations, errors, counters, causes of failed connects
  started_unix_ms INTEGER NOT NULL CHECK (started_unix_ms >= 0),
  crc             INTEGER NOT NULL,
  PRIMARY KEY (run, trial)
) WITHOUT ROWID;

-- A trial whose every entry was handed over. No row: it was cut off.
CREATE TABLE trial_end (
  run           TEXT NOT NULL,
  trial         INTEGER NOT NULL,
  entries       INTEGER NOT NULL CHECK (entries >= 0), -- how many entries it has: seconds, ticks, samples, events, books
  ended_unix_ms INTEGER NOT NULL CHECK (ended_unix_ms >= 0),
  crc           INTEGER NOT NULL,
  PRIMARY KEY (run, trial),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial)
) WITHOUT ROWID;

-- One second of the bots, all workers merged. `position` numbers the trial's entries of all kinds from 0, no gaps.
CREATE TABLE interval (
  run              TEXT NOT NULL,
  trial            INTEGER NOT NULL,
  interval         INTEGER NOT NULL CHECK (interval >= 0), -- seconds since the start of the trial
  position         INTEGER NOT NULL CHECK (position >= 0),
  parts            INTEGER NOT NULL CHECK (parts >= 0), -- rows of flow, distribution and tally that belong to it
  workers          INTEGER NOT NULL CHECK (workers >= 0), -- how many workers' seconds are in it
  asked            INTEGER NOT NULL CHECK (asked >= 0), -- connection attempts begun
  opened           INTEGER NOT NULL CHECK (opened >= 0), -- attempts that succeeded
  closed           INTEGER NOT NULL CHECK (closed >= 0), -- open ones that ended
  open_min         INTEGER NOT NULL CHECK (open_min >= 0), -- open at the worst moment
  open_end         INTEGER NOT NULL CHECK (open_end >= 0), -- open at the end
  ticks_due        INTEGER NOT NULL, -- ticks as the clients see them, by class
  ticks_on_time    INTEGER NOT NULL CHECK (ticks_on_time >= 0),
  ticks_over       INTEGER NOT NULL CHECK (ticks_over >= 0),
  ticks_under      INTEGER NOT NULL CHECK (ticks_under >= 0),
  ticks_missed     INTEGER NOT NULL CHECK (ticks_missed >= 0),
  bytes_sent       INTEGER NOT NULL CHECK (bytes_sent >= 0),
  bytes_received   INTEGER NOT NULL CHECK (bytes_received >= 0),
  busy_ns          INTEGER NOT NULL CHECK (busy_ns >= 0), -- time the workers did not sleep, added up
  busy_share_max   REAL, -- the busiest worker's share; NULL is NaN
  crc              INTEGER NOT NULL,
  PRIMARY KEY (run, trial, interval),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial),
  CONSTRAINT every_due_tick_is_in_one_class CHECK (ticks_due = ticks_on_time + ticks_over + ticks_under + ticks_missed)
) WITHOUT ROWID;

-- Where the messages of a second went. Rows of which every count is 0 are left out.
CREATE TABLE flow (
  run         TEXT NOT NULL,
  trial       INTEGER NOT NULL,
  interval    INTEGER NOT NULL,   -- the second in which it happened
  phase       TEXT NOT NULL CHECK (phase IN ('ramp', 'settle', 'hold', 'drain')), -- in which it was planned
  op          TEXT NOT NULL,
  offered     INTEGER NOT NULL CHECK (offered >= 0),
  not_sent    INTEGER NOT NULL CHECK (not_sent >= 0),
  sent        INTEGER NOT NULL CHECK (sent >= 0),
  told        INTEGER NOT NULL CHECK (told >= 0),        -- sent and owing nothing
  answered    INTEGER NOT NULL CHECK (answered >= 0),
  late        INTEGER NOT NULL CHECK (late >= 0),        -- of the answered: after the plan's patience
  failed      INTEGER NOT NULL CHECK (failed >= 0),      -- replied to wrongly
  lost        INTEGER NOT NULL CHECK (lost >= 0),        -- the connection ended before the reply
  open_before INTEGER NOT NULL CHECK (open_before >= 0), -- waiting when the second began
  open_after  INTEGER NOT NULL CHECK (open_after >= 0),  -- waiting when it ended
  crc         INTEGER NOT NULL,
  PRIMARY KEY (run, trial, interval, phase, op),
  FOREIGN KEY (run, trial, interval) REFERENCES interval (run, trial, interval),
  CONSTRAINT offered_is_sent_or_not_sent CHECK (offered = sent + not_sent),
  CONSTRAINT sent_leaves_by_one_door CHECK (open_before + sent = told + answered + failed + lost + open_after),
  CONSTRAINT late_is_answered CHECK (late <= answered)
) WITHOUT ROWID;

-- Durations in ns as HdrHistogram V2 (not compressed). Empty ones are left out.
CREATE TABLE distribution (
  run      TEXT NOT NULL,
  trial    INTEGER NOT NULL,
  interval INTEGER NOT NULL,
  name     TEXT NOT NULL,         -- `response`, `service`, `send_lag`, `receive_lag`, `handshake`, …
  in_hold  INTEGER NOT NULL CHECK (in_hold IN (0, 1)), -- of messages planned in the hold
  count    INTEGER NOT NULL CHECK (count > 0),
  v2       BLOB NOT NULL,
  crc      INTEGER NOT NULL,
  PRIMARY KEY (run, trial, interval, name, in_hold),
  FOREIGN KEY (run, trial, interval) REFERENCES interval (run, trial, interval)
) WITHOUT ROWID;

-- What else the bots counted in a second, by name. Zeros are left out.
CREATE TABLE tally (
  run      TEXT NOT NULL,
  trial    INTEGER NOT NULL,
  interval INTEGER NOT NULL,
  kind     TEXT NOT NULL CHECK (kind IN ('error', 'counter', 'connect_failure')),
  name     TEXT NOT NULL,
  count    INTEGER NOT NULL CHECK (count > 0),
  crc      INTEGER NOT NULL,
  PRIMARY KEY (run, trial, interval, kind, name),
  FOREIGN KEY (run, trial, interval) REFERENCES interval (run, trial, interval)
) WITHOUT ROWID;

-- A second of the server's own ticks.
CREATE TABLE tick (
  run              TEXT NOT NULL,
  trial            INTEGER NOT NULL,
  position         INTEGER NOT NULL CHECK (position >= 0),
  source           TEXT NOT NULL, -- `log`, …
  from_ns          INTEGER NOT NULL CHECK (from_ns >= 0),
  to_ns            INTEGER NOT NULL CHECK (to_ns >= 0),
  due              INTEGER NOT NULL,
  on_time          INTEGER NOT NULL CHECK (on_time >= 0),
  over             INTEGER NOT NULL CHECK (over >= 0),
  under            INTEGER NOT NULL CHECK (under >= 0),
  missed           INTEGER NOT NULL CHECK (missed >= 0),
  interval_v2      BLOB NOT NULL, -- between two ticks
  busy_v2          BLOB,          -- work per tick; NULL: the server does not say
  lateness_v2      BLOB,          -- actual − scheduled start; NULL: the server does not say
  isr_numerator_ns REAL,          -- the numerator of the instability ratio; NULL: unknown
  counters         TEXT NOT NULL CHECK (json_valid(counters)), -- [[name, count], …]
  crc              INTEGER NOT NULL,
  PRIMARY KEY (run, trial, position),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial),
  CONSTRAINT every_due_tick_is_in_one_class CHECK (due = on_time + over + under + missed)
) WITHOUT ROWID;

-- A reading of a process or of the machine.
CREATE TABLE sample (
  run      TEXT NOT NULL,
  trial    INTEGER NOT NULL,
  position INTEGER NOT NULL CHECK (position >= 0),
  at_ns    INTEGER NOT NULL CHECK (at_ns >= 0),
  who      TEXT NOT NULL,         -- `subject`, `worker`, `machine`, `program`, `thread`
  name     TEXT NOT NULL,         -- unit last: `cpu_s`, `rss_bytes`, …; of a program or thread its name, and value is in cores
  value    REAL,                  -- NULL is NaN
  crc      INTEGER NOT NULL,
  PRIMARY KEY (run, trial, position),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial)
) WITHOUT ROWID;

-- A mark on the time axis.
CREATE TABLE event (
  run      TEXT NOT NULL,
  trial    INTEGER NOT NULL,
  position INTEGER NOT NULL CHECK (position >= 0),
  at_ns    INTEGER NOT NULL CHECK (at_ns >= 0),
  kind     TEXT NOT NULL,         -- `hold`, `drain`, `end`, …
  text     TEXT NOT NULL,         -- for people; never markup
  crc      INTEGER NOT NULL,
  PRIMARY KEY (run, trial, position),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial)
) WITHOUT ROWID;

-- The books of a trial's deliveries, once, at its end. The sums over receivers are not kept: rows of `books` add up to them.
CREATE TABLE ledger (
  run            TEXT NOT NULL,
  trial          INTEGER NOT NULL,
  position       INTEGER NOT NULL CHECK (position >= 0),
  receivers      INTEGER NOT NULL CHECK (receivers >= 0), -- rows of books that belong to it
  pairs          INTEGER NOT NULL CHECK (pairs >= 0),     -- rows of pair that belong to it
  sent           INTEGER NOT NULL CHECK (sent >= 0),      -- messages that left, of all senders
  unknown_messages      INTEGER NOT NULL CHECK (unknown_messages >= 0), -- came with an unknown sender or number
  drops_are_told INTEGER NOT NULL CHECK (drops_are_told IN (0, 1)), -- the server tells what it drops
  crc            INTEGER NOT NULL,
  PRIMARY KEY (run, trial),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial)
) WITHOUT ROWID;

-- What was owed to one receiver and what became of it, in deliveries.
CREATE TABLE books (
  run             TEXT NOT NULL,
  trial           INTEGER NOT NULL,
  receiver        INTEGER NOT NULL CHECK (receiver >= 0), -- its number in the crowd
  is_excluded        INTEGER NOT NULL CHECK (is_excluded IN (0, 1)), -- behaves badly, and is judged separately
  owed_min        INTEGER NOT NULL CHECK (owed_min >= 0),   -- surely owed
  owed_max        INTEGER NOT NULL CHECK (owed_max >= 0),   -- possibly owed
  delivered       INTEGER NOT NULL CHECK (delivered >= 0),  -- different messages that came
  late            INTEGER NOT NULL CHECK (late >= 0),       -- of the delivered: after the plan's patience
  lost            INTEGER NOT NULL CHECK (lost >= 0),       -- surely owed, and never came
  duplicated      INTEGER NOT NULL CHECK (duplicated >= 0), -- came again
  reordered       INTEGER NOT NULL CHECK (reordered >= 0),  -- came after a newer one of the same sender
  dropped         INTEGER NOT NULL CHECK (dropped >= 0),    -- the server says that it dropped them
  in_flight       INTEGER NOT NULL CHECK (in_flight >= 0),  -- the server says that they still waited at the end
  residual        INTEGER NOT NULL,                         -- what nobody accounts for
  unowed          INTEGER NOT NULL CHECK (unowed >= 0),     -- of the delivered: not owed
  not_caught_up   INTEGER NOT NULL CHECK (not_caught_up IN (0, 1)), -- never had the server's word that all had come
  latency_mean_ns REAL,           -- from the planned send, NULL: nothing came
  latency_max_ns  INTEGER CHECK (latency_max_ns >= 0),
  told_owed       INTEGER CHECK (told_owed >= 0),      -- the server's own count of what it owed; NULL: it does not tell
  told_delivered  INTEGER CHECK (told_delivered >= 0), -- and of what it handed to the kernel
  crc             INTEGER NOT NULL,
  PRIMARY KEY (run, trial, receiver),
  FOREIGN KEY (run, trial) REFERENCES ledger (run, trial),
  CONSTRAINT what_is_late_or_unowed_was_delivered CHECK (late <= delivered AND unowed <= delivered),
  CONSTRAINT what_was_owed_came_or_was_lost CHECK (delivered - unowed + lost BETWEEN owed_min AND owed_max),
  CONSTRAINT the_residual_is_what_nobody_accounts_for CHECK (residual = max(lost - dropped - in_flight, 0)
    + min(owed_max - (delivered - unowed) - dropped - in_flight, 0))
) WITHOUT ROWID;

-- The pairs that lost most or got what was not owed, at most 100.
CREATE TABLE pair (
  run       TEXT NOT NULL,
  trial     INTEGER NOT NULL,
  place     INTEGER NOT NULL CHECK (place >= 0), -- 0 is the worst
  sender    INTEGER NOT NULL CHECK (sender >= 0),
  receiver  INTEGER NOT NULL CHECK (receiver >= 0),
  owed_min  INTEGER NOT NULL CHECK (owed_min >= 0),
  owed_max  INTEGER NOT NULL CHECK (owed_max >= owed_min),
  delivered INTEGER NOT NULL CHECK (delivered >= 0),
  lost      INTEGER NOT NULL CHECK (lost >= 0),
  crc       INTEGER NOT NULL,
  PRIMARY KEY (run, trial, place),
  FOREIGN KEY (run, trial) REFERENCES ledger (run, trial)
) WITHOUT ROWID;

-- What a judge said of a trial. The highest number of a judge stands.
CREATE TABLE verdict (
  run      TEXT NOT NULL,
  trial    INTEGER NOT NULL,
  number   INTEGER NOT NULL CHECK (number >= 0), -- within the trial, from 0
  judge    TEXT NOT NULL,
  verdict  TEXT NOT NULL,         -- `PASS`, `FAIL`, `GENERATOR_LIMITED`, `INCONCLUSIVE`, `INVALID`
  reason   TEXT,
  cut_s    INTEGER NOT NULL CHECK (cut_s >= 0), -- seconds of the hold left out as warm-up
  evidence TEXT NOT NULL CHECK (json_valid(evidence)),
  crc      INTEGER NOT NULL,
  PRIMARY KEY (run, trial, number),
  FOREIGN KEY (run, trial) REFERENCES trial (run, trial)
) WITHOUT ROWID;

-- A file that belongs to a run, such as its final JSON.
CREATE TABLE artifact (
  run     TEXT NOT NULL REFERENCES run (run),
  name    TEXT NOT NULL CHECK (name <> ''),
  content BLOB NOT NULL,
  crc     INTEGER NOT NULL,
  PRIMARY KEY (run, name)
) WITHOUT ROWID;
