//! The tables of a store in its latest version: every column once, with its meaning, its form, and the source of its
//! value.
//!
//! SQL, writing, reading and the exports follow from these lines. A row is written from a tuple and read back into one;
//! both sides name the same fields.
//! Rows are never edited, only added; a later verdict supersedes an earlier one. `guard.rs` adds the triggers.
//! `_ns` counts from the start of the trial, `_unix_ms` from 1970. Counts are messages, connections or ticks.
//! No index besides the keys: a damaged one would hide rows without SQLite noticing.

use std::sync::Arc;

use measure::ledger::{PairBooks, ReceiverBooks, SumOfBooks};
use measure::{Books, Distribution, Event, Flow, Interval, Measure, Phase, TickSecond, TrialHead};
use rusqlite::types::Value;

use crate::entries::Pack;
use crate::error::StoreError;
use crate::form::{
    Bytes, Count, Digits, Encoded, Flag, Form, Json, Loads, Maybe, Number, OneOf, Real, Recorded, Stores,
    Tally, Text, V2, Whole,
};
use crate::row::{Column, OF_RUN, OF_TRIAL, ReadError, Row, Table};
use crate::run::{LineSource, Outcome, RunEnd, RunHead, RunKind, StoredLine, StoredVerdict};

/// Declares a table and, in a module, how its rows are written and read.
///
/// `of` says which columns come first; `key` how many of its own are in the primary key. The pattern binds the parts of a
/// row, which is `$write` when it is stored and `$read` when it is read; each column names one place in it. What no column
/// tells is that of `$blank`, by default the default of `$read`. Parts of which `$wrong` is true are neither stored nor read.
macro_rules! table {
    (@blank $blank:expr) => { $blank };
    (@blank) => { Default::default() };
    (
        $(#[doc = $about:literal])*
        $table:ident, $module:ident, $name:literal, of $of:ident, key $key:literal,
        |$parts:pat_param| $write:ty => $read:ty $(= $blank:expr)?,
        { $($column:ident: $form:ty = $place:expr $(, $doc:literal)? $(, and $more:literal)?;)* }
        $($constraint:literal)*
        $(never $wrong:expr, $why:literal)?
    ) => {
        pub(crate) static $table: Table = Table {
            name: $name,
            about: &[$($about),*],
            of: &$of,
            columns: &[$(Column {
                name: stringify!($column),
                about: concat!($($doc)?),
                form: <$form as Form>::TYPE,
                kind: <$form as Form>::KIND,
                check: <$form as Form>::check,
                more: concat!($($more)?),
            }),*],
            key: $key,
            constraints: &[$($constraint),*],
            #[cfg(feature = "fuzz")]
            again: $module::again,
        };

        pub(crate) mod $module {
            use super::*;

            /// The values of a row behind the columns of `of`.
            pub(crate) fn values($parts: &$write) -> Result<Vec<Value>, StoreError> {
                $(if $wrong {
                    return Err(StoreError::Unstorable { what: $name.to_owned(), detail: $why.to_owned() });
                })?
                Ok(vec![$(kept(stringify!($column), <$form as Stores<_>>::store(&$place))?),*])
            }

            /// The parts of a row.
            // Seconds are read into existing parts; only the fuzz target reads them alone.
            #[allow(dead_code)]
            pub(crate) fn read(row: &Row) -> Result<$read, ReadError> {
                let mut parts = table!(@blank $($blank)?);
                read_into(row, &mut parts)?;
                Ok(parts)
            }

            /// The same into parts that are there.
            pub(crate) fn read_into(row: &Row, $parts: &mut $read) -> Result<(), ReadError> {
                let mut at = row.table.of.len();
                $({
                    $place = <$form as Loads<_>>::load(&row.values[at]).map_err(|why| row.odd(at, why))?;
                    at += 1;
                })*
                debug_assert_eq!(at, row.values.len());
                $(if $wrong {
                    return Err(ReadError::Damaged(format!("{}: {}", row.place(), $why)));
                })?
                Ok(())
            }

            /// What a row that is read is stored as again, behind the columns of `of`.
            #[cfg(feature = "fuzz")]
            pub(crate) fn again(row: &Row) -> Result<Vec<Value>, ReadError> {
                let parts = read(row)?;
                let $parts = &parts;
                Ok(vec![$(<$form as Stores<_>>::store(&$place).expect("what was read is stored")),*])
            }
        }
    };
}

fn kept(column: &str, stored: Result<Value, String>) -> Result<Value, StoreError> {
    stored.map_err(|detail| StoreError::Unstorable { what: column.to_owned(), detail })
}

table! {
    /// Ids that were given, also those of runs deleted since: an id in somebody's notes never names a second run.
    USED_ID, used_id, "used_id", of OF_RUN, key 0,
    |(stem, count, number)| (&str, u64, u64) => (String, u64, u64),
    {
        stem: Text = *stem, "`master`";
        count: Count = *count, "3: the third run of this stem";
        number: Count = *number, "the how-manieth run of this store, from 1";
    }
}

table! {
    /// One climb, or one comparison of client libraries, as it was planned.
    RUN, run, "run", of OF_RUN, key 0,
    |head| RunHead => RunHead,
    {
        kind: OneOf<RunKind> = head.kind, "`climb`, `duel`: its figures are in trials; `bench`: in lines";
        name: Maybe<Text> = head.name, "as the user gave it (`--name`)";
        subject: Text = head.subject, "the server under test";
        scenario: Maybe<Text> = head.scenario, "path of the scenario file";
        seed: Digits = head.seed, "everything random came from it";
        arrivals: Text = head.arrivals, "the law of arrivals";
        command: Text = head.command, "the command line";
        git: Maybe<Text> = head.git, "commit of the folder the run was started in";
        stepladder: Text = head.stepladder, "version of the program";
        started_unix_ms: Count = head.started_unix_ms, "when it began";
        shared_cores: Flag = head.shared_cores, "generator and server share cores";
        plan: Json = head.plan, "all settings";
        environment: Json = head.environment, "the machine";
    }
    "FOREIGN KEY (run) REFERENCES used_id (run)"
}

table! {
    /// How a run ended. No row and no living writer: it was interrupted.
    RUN_END, run_end, "run_end", of OF_RUN, key 0,
    |(end, parts)| (&RunEnd, u64) => (RunEnd, u64)
        = (RunEnd { outcome: Outcome::Broken, reason: None, ended_unix_ms: 0, climb: None }, 0),
    {
        outcome: OneOf<Outcome> = end.outcome, "how";
        reason: Maybe<Text> = end.reason, "for people";
        ended_unix_ms: Count = end.ended_unix_ms, "when";
        parts: Count = *parts, "rows of trial, trial_end, verdict, artifact and line that belong to it";
        climb: Maybe<Json> = end.climb, "the three answers";
    }
    "FOREIGN KEY (run) REFERENCES run (run)"
}

/// What people write on a run: the only table that may be updated, and so the only one without a checksum.
pub(crate) const LABEL: &str = "
-- What people write on a run. The only table that may be updated; a removed label is NULL.
CREATE TABLE label (
  run TEXT NOT NULL REFERENCES run (run),
  key TEXT NOT NULL CHECK (key <> ''),
  value TEXT,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;
";

table! {
    /// One load to be held once.
    TRIAL, trial, "trial", of OF_RUN, key 1,
    |(head, started_unix_ms)| (&TrialHead, u64) => (TrialHead, u64),
    {
        trial: Count = head.seq, "number within the run, from 0";
        purpose: Text = head.purpose, "`rung`, `calibration latency`, …";
        load: Number = head.load, "asked for, in load_unit";
        load_unit: Text = head.load_unit, "`games`, `clients`, …";
        bots: Count = head.bots, "simulated clients";
        connections: Count = head.connections, "that should stand during the hold";
        tick_period_ns: Count = head.tick_period_ns, "0: the subject has no ticks";
        cell: Encoded = head.cell, "of a sweep: axis and value; `{}` elsewhere", and "CHECK (json_type(cell) = 'object')";
        metric_names: Encoded = head.metric_names,
            "operations, errors, counters, causes of failed connects, and what they are for";
        started_unix_ms: Count = *started_unix_ms, "when it began";
    }
    "FOREIGN KEY (run) REFERENCES run (run)"
}

table! {
    /// A trial whose every entry was handed over. No row: it was cut off.
    TRIAL_END, trial_end, "trial_end", of OF_TRIAL, key 0,
    |(entries, ended_unix_ms)| (u64, u64) => (u64, u64),
    {
        entries: Count = *entries, "how many entries it has: seconds, ticks, samples, events, books";
        ended_unix_ms: Count = *ended_unix_ms, "when";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
}

table! {
    /// One second of the bots, all workers merged. `position` numbers the trial's entries of all kinds from 0, no gaps.
    INTERVAL, interval, "interval", of OF_TRIAL, key 1,
    |(position, parts, second)| (u64, u64, &Interval) => (u64, u64, Box<Interval>) = (0, 0, Box::new(Interval::new(&Arc::default()))),
    {
        interval: Count = second.index, "seconds since the start of the trial";
        position: Count = *position, "of the entry within the trial";
        parts: Count = *parts, "rows of flow, distribution and tally that belong to it";
        workers: Count = second.workers, "how many workers' seconds are in it";
        asked: Count = second.connections.asked, "connection attempts begun";
        opened: Count = second.connections.opened, "attempts that succeeded";
        closed: Count = second.connections.closed, "open ones that ended";
        open_min: Count = second.connections.open_min, "open at the worst moment";
        open_end: Count = second.connections.open_end, "open at the end";
        ticks_due: Count = second.ticks.due, "ticks as the clients see them, by class";
        ticks_on_time: Count = second.ticks.on_time;
        ticks_over: Count = second.ticks.over;
        ticks_under: Count = second.ticks.under;
        ticks_missed: Count = second.ticks.missed;
        bytes_sent: Count = second.bytes_sent, "payload and protocol";
        bytes_received: Count = second.bytes_received;
        busy_ns: Count = second.busy_ns, "time the workers did not sleep, added up";
        busy_share_max: Real = second.busy_share_max, "the busiest worker's share";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
    "CONSTRAINT every_due_tick_is_in_one_class CHECK (ticks_due = ticks_on_time + ticks_over + ticks_under + ticks_missed)"
}

table! {
    /// Where the messages of a second went. Rows of which every count is 0 are left out.
    FLOW, flow, "flow", of OF_TRIAL, key 3,
    |(interval, phase, op, flow)| (u32, Phase, &str, &Flow) => (u32, Phase, String, Flow) = (0, Phase::Hold, String::new(), Flow::default()),
    {
        interval: Count = *interval, "the second in which it happened";
        phase: OneOf<Phase> = *phase, "in which it was planned";
        op: Text = *op, "what was sent";
        offered: Count = flow.offered;
        not_sent: Count = flow.not_sent;
        sent: Count = flow.sent;
        told: Count = flow.told, "sent and owing nothing";
        answered: Count = flow.answered;
        late: Count = flow.late, "of the answered: after the plan's patience";
        failed: Count = flow.failed, "replied to wrongly";
        lost: Count = flow.lost, "the connection ended before the reply";
        open_before: Count = flow.open_before, "waiting when the second began";
        open_after: Count = flow.open_after, "waiting when it ended";
    }
    "FOREIGN KEY (run, trial, interval) REFERENCES interval (run, trial, interval)"
    "CONSTRAINT offered_is_sent_or_not_sent CHECK (offered = sent + not_sent)"
    "CONSTRAINT sent_leaves_by_one_door CHECK (open_before + sent = told + answered + failed + lost + open_after)"
    "CONSTRAINT late_is_answered CHECK (late <= answered)"
}

table! {
    /// Durations in ns as HdrHistogram V2 (not compressed). Empty ones are left out.
    DISTRIBUTION, distribution, "distribution", of OF_TRIAL, key 3,
    |(interval, name, in_hold, count, values)| (u32, Recorded, bool, u64, &Distribution) => (u32, Recorded, bool, u64, Distribution)
        = (0, Recorded::Of(Measure::Response), false, 0, Distribution::new()),
    {
        interval: Count = *interval, "the second in which they were recorded";
        name: Text = *name, "`response`, `service`, `send_lag`, `receive_lag`, `handshake`, …; `response of NAME`: of one operation";
        in_hold: Flag = *in_hold, "of messages planned in the hold";
        count: Count = *count, "how many", and "CHECK (count > 0)";
        v2: V2 = *values, "the histogram";
    }
    "FOREIGN KEY (run, trial, interval) REFERENCES interval (run, trial, interval)"
}

table! {
    /// What else the bots counted in a second, by name. Zeros are left out.
    TALLY, tally, "tally", of OF_TRIAL, key 3,
    |(interval, kind, name, count)| (u32, Tally, &str, u64) => (u32, Tally, String, u64) = (0, Tally::Error, String::new(), 0),
    {
        interval: Count = *interval, "the second in which it happened";
        kind: OneOf<Tally> = *kind, "which of the metric names it is one of";
        name: Text = *name, "its name";
        count: Count = *count, "how often", and "CHECK (count > 0)";
    }
    "FOREIGN KEY (run, trial, interval) REFERENCES interval (run, trial, interval)"
}

table! {
    /// A second of the server's own ticks.
    TICK, tick, "tick", of OF_TRIAL, key 1,
    |(position, second)| (u64, &TickSecond) => (u64, TickSecond),
    {
        position: Count = *position, "of the entry within the trial";
        source: Text = second.source, "`log`, …";
        from_ns: Count = second.from_ns;
        to_ns: Count = second.to_ns;
        due: Count = second.counts.due;
        on_time: Count = second.counts.on_time;
        over: Count = second.counts.over;
        under: Count = second.counts.under;
        missed: Count = second.counts.missed;
        interval_v2: V2 = second.interval, "between two ticks";
        busy_v2: Maybe<V2> = second.busy, "work per tick; NULL: the server does not say";
        lateness_v2: Maybe<V2> = second.lateness, "actual − scheduled start; NULL: the server does not say";
        isr_numerator_ns: Maybe<Real> = second.isr_numerator_ns, "the numerator of the instability ratio; NULL: unknown";
        counters: Encoded = second.counters, "[[name, count], …]";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
    "CONSTRAINT every_due_tick_is_in_one_class CHECK (due = on_time + over + under + missed)"
    never second.from_ns > second.to_ns, "it ends before it begins"
}

table! {
    /// A reading of a process or of the machine.
    SAMPLE, sample, "sample", of OF_TRIAL, key 1,
    |(position, at_ns, (who, name), value)| (u64, u64, (&str, &str), f64) => (u64, u64, (String, String), f64),
    {
        position: Count = *position, "of the entry within the trial";
        at_ns: Count = *at_ns, "when it was read";
        who: Text = *who, "`subject`, `worker`, `machine`, `threads`, `services`, `program`, `thread`, `threads_named`";
        name: Text = *name, "unit last: `cpu_s`, `rss_bytes`, …; of a program, thread or kind of threads its name, and value is in cores";
        value: Real = *value, "NULL is NaN";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
}

table! {
    /// Rows of a table that are older than some minutes, of a long trial: compressed, row for row as they were written.
    PACK, pack, "pack", of OF_TRIAL, key 2,
    |pack| Pack => Pack,
    {
        of_table: Text = pack.of_table, "`flow`, `distribution`, `tally`, `tick`, `sample`";
        first: Count = pack.first, "second or position of the first row";
        last: Count = pack.last, "and of the last";
        rows: Count = pack.rows, "how many there are";
        content: Bytes = pack.content, "deflated (`entries/packs.rs`)";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
}

table! {
    /// A mark on the time axis.
    EVENT, event, "event", of OF_TRIAL, key 1,
    |(position, event)| (u64, &Event) => (u64, Event),
    {
        position: Count = *position, "of the entry within the trial";
        at_ns: Count = event.at_ns, "when";
        kind: Text = event.kind, "`hold`, `drain`, `end`, …";
        text: Text = event.text, "for people; never markup";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
}

table! {
    /// The books of a trial's deliveries, once, at its end. The sums over receivers are not kept: rows of `books` add up to
    /// them.
    LEDGER, ledger, "ledger", of OF_TRIAL, key 0,
    |(position, receivers, pairs, books)| (u64, u64, u64, &Books) => (u64, u64, u64, Books),
    {
        position: Count = *position, "of the entry within the trial";
        receivers: Count = *receivers, "rows of books that belong to it";
        pairs: Count = *pairs, "rows of pair that belong to it";
        sent: Count = books.sent, "messages that left, of all senders";
        unknown_messages: Count = books.unknown_messages, "came with an unknown sender or number";
        drops_are_told: Flag = books.drops_are_told, "the server tells what it drops";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
}

table! {
    /// What was owed to one receiver and what became of it, in deliveries.
    BOOKS, books, "books", of OF_TRIAL, key 1,
    |books| ReceiverBooks => ReceiverBooks
        // One receiver's sum counts 1, which is not a column.
        = ReceiverBooks { sum: SumOfBooks { receivers: 1, ..SumOfBooks::default() }, ..ReceiverBooks::default() },
    {
        receiver: Count = books.receiver, "its number in the crowd";
        is_excluded: Flag = books.is_excluded, "behaves badly, and is judged separately";
        owed_min: Count = books.sum.owed_min, "surely owed";
        owed_max: Count = books.sum.owed_max, "possibly owed";
        delivered: Count = books.sum.delivered, "different messages that came";
        late: Count = books.sum.late, "of the delivered: after the plan's patience";
        lost: Count = books.sum.lost, "surely owed, and never came, although it was read in time";
        unread: Count = books.sum.unread, "surely owed, and not read in time by the bots";
        duplicated: Count = books.sum.duplicated, "came again";
        reordered: Count = books.sum.reordered, "came after a newer one of the same sender";
        dropped: Count = books.sum.dropped, "the server says that it dropped them";
        in_flight: Count = books.sum.in_flight, "the server says that they still waited at the end";
        residual: Whole = books.sum.residual, "what nobody accounts for";
        unowed: Count = books.sum.unowed, "of the delivered: not owed";
        not_caught_up: Count = books.sum.not_caught_up,
            "never had the server's word that all had come", and "CHECK (not_caught_up IN (0, 1))";
        latency_mean_ns: Maybe<Real> = books.latency_mean_ns, "from the planned send, NULL: nothing came";
        latency_max_ns: Maybe<Count> = books.latency_max_ns;
        told_owed: Maybe<Count> = books.told_owed, "the server's own count of what it owed; NULL: it does not tell";
        told_delivered: Maybe<Count> = books.told_delivered, "and of what it handed to the kernel";
    }
    "FOREIGN KEY (run, trial) REFERENCES ledger (run, trial)"
    "CONSTRAINT what_is_late_or_unowed_was_delivered CHECK (late <= delivered AND unowed <= delivered)"
    "CONSTRAINT what_was_owed_came_or_was_lost CHECK (delivered - unowed + lost + unread BETWEEN owed_min AND owed_max)"
    "CONSTRAINT the_residual_is_what_nobody_accounts_for CHECK (residual
    = max(lost + unread - max(dropped + in_flight, unread), 0)
    + min(owed_max - (delivered - unowed) - max(dropped + in_flight, unread), 0))"
}

table! {
    /// The pairs that lost most or got what was not owed, at most 100.
    PAIR, pair, "pair", of OF_TRIAL, key 1,
    |(place, pair)| (u64, &PairBooks) => (u64, PairBooks),
    {
        place: Count = *place, "0 is the worst";
        sender: Count = pair.sender;
        receiver: Count = pair.receiver;
        owed_min: Count = pair.owed_min;
        owed_max: Count = pair.owed_max, and "CHECK (owed_max >= owed_min)";
        delivered: Count = pair.delivered;
        lost: Count = pair.lost;
    }
    "FOREIGN KEY (run, trial) REFERENCES ledger (run, trial)"
}

table! {
    /// What a judge said of a trial. The highest number of a judge stands.
    VERDICT, verdict, "verdict", of OF_TRIAL, key 1,
    |(number, said)| (u64, &StoredVerdict) => (u64, StoredVerdict),
    {
        number: Count = *number, "within the trial, from 0";
        judge: Text = said.judge, "who judges";
        verdict: Text = said.verdict, "`PASS`, `FAIL`, `GENERATOR_LIMITED`, `INCONCLUSIVE`, `INVALID`";
        reason: Maybe<Text> = said.reason, "why";
        cut_s: Count = said.cut_s, "seconds of the hold left out as warm-up";
        evidence: Json = said.evidence, "the figures it rests on";
    }
    "FOREIGN KEY (run, trial) REFERENCES trial (run, trial)"
}

table! {
    /// A file that belongs to a run, such as its final JSON.
    ARTIFACT, artifact, "artifact", of OF_RUN, key 1,
    |(name, content)| (&str, &[u8]) => (String, Vec<u8>),
    {
        name: Text = *name, "within the run", and "CHECK (name <> '')";
        content: Bytes = *content;
    }
    "FOREIGN KEY (run) REFERENCES run (run)"
}

table! {
    /// What the processes of client libraries wrote (`inflight/clients/README.md`), in the order in which it came, and what was noted
    /// beside them: which process it is, and what the server had used.
    LINE, line, "line", of OF_RUN, key 1,
    |(position, line)| (u64, &StoredLine) => (u64, StoredLine)
        = (0, StoredLine { process: 0, source: LineSource::Client, text: String::new() }),
    {
        position: Count = *position, "within the run, from 0, no gaps";
        process: Count = line.process, "which process, from 0";
        source: OneOf<LineSource> = line.source, "who wrote it";
        text: Json = line.text, "one JSON object, as it was written";
    }
    "FOREIGN KEY (run) REFERENCES run (run)"
}

/// Every table whose rows belong to a run and carry a checksum, parents before children.
pub(crate) static TABLES: [&Table; 18] = [
    &RUN,
    &RUN_END,
    &TRIAL,
    &TRIAL_END,
    &INTERVAL,
    &FLOW,
    &DISTRIBUTION,
    &TALLY,
    &TICK,
    &SAMPLE,
    &PACK,
    &EVENT,
    &LEDGER,
    &BOOKS,
    &PAIR,
    &VERDICT,
    &ARTIFACT,
    &LINE,
];

/// The SQL that turns an empty file into a store, except for the triggers.
pub(crate) fn schema() -> String {
    let tables = std::iter::once(&USED_ID).chain(TABLES);
    let mut sql: String = tables.map(Table::create).collect();
    sql += LABEL;
    sql
}
