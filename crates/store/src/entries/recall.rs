//! Recalling the entries of a trial: every row checked, every second complete, every page balanced.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use measure::{
    Connections, Distribution, Entry, Event, Flow, Interval, Measure, Phase, Sample, TickCounts, TickSecond,
    TrialHead,
};
use rusqlite::{Connection, ToSql, params};

use super::books::recall_books;
use super::tally;
use crate::follow::Place;
use crate::row::{
    DISTRIBUTION, EVENT, FLOW, INTERVAL, LEDGER, ReadError, Row, SAMPLE, TALLY, TICK, TRIAL_END,
};
use crate::run::RunId;

const OF_TRIAL: &str = "run = ?1 AND trial = ?2";

/// All committed entries of a trial in the order they were handed over.
///
/// Call it inside one transaction: the tables must be of the same moment. Errors: `Damaged`, or what SQLite says.
pub(crate) fn recall(
    connection: &Connection,
    run: &RunId,
    head: &TrialHead,
) -> Result<Vec<Entry>, ReadError> {
    let trial = params![run.as_str(), head.seq];
    let mut seconds = intervals(connection, head, OF_TRIAL, trial)?;
    add_parts(connection, &mut seconds, OF_TRIAL, trial)?;
    let mut entries = whole(run, head, seconds)?;
    add_others(connection, &mut entries, OF_TRIAL, trial)?;

    if let Some((position, books)) = recall_books(connection, run, head)? {
        entries.insert(position, Entry::Books(Box::new(books)));
    }

    let last = entries.last_key_value().map(|(position, _)| *position);
    all_there(connection, run, head.seq, entries.len() as u64, last)?;
    Ok(entries.into_values().collect())
}

/// The entries from a place on, `most` of them or as many as there are, in the order they were handed over.
///
/// `place` moves behind them. Call it inside one transaction. Errors: as `recall`, of what is looked at.
pub(crate) fn recall_behind(
    connection: &Connection,
    run: &RunId,
    head: &TrialHead,
    place: &mut Place,
    most: u32,
) -> Result<Vec<Entry>, ReadError> {
    let (from, to) = (place.position, place.position.saturating_add(u64::from(most)));
    // Positions come from a column that holds no more.
    let (from_i64, to_i64) = (from as i64, to as i64);
    // The key is the second's number, and seconds are handed over in its order.
    let behind = "run = ?1 AND trial = ?2 AND interval >= ?3 AND position < ?4";
    let mut seconds =
        intervals(connection, head, behind, params![run.as_str(), head.seq, place.second, to_i64])?;
    let next_second = seconds.last_key_value().map(|(index, _)| index.saturating_add(1));
    if let Some(next) = next_second {
        let of_these = "run = ?1 AND trial = ?2 AND interval >= ?3 AND interval < ?4";
        add_parts(connection, &mut seconds, of_these, params![run.as_str(), head.seq, place.second, next])?;
    }
    let mut entries = whole(run, head, seconds)?;
    let others = params![run.as_str(), head.seq, from_i64, to_i64];
    let behind = "run = ?1 AND trial = ?2 AND position >= ?3 AND position < ?4";
    add_others(connection, &mut entries, behind, others)?;
    let sql = format!("SELECT count(*) FROM ledger WHERE {behind}");
    let has_books = connection.prepare_cached(&sql)?.query_row(others, |row| row.get::<_, i64>(0))? > 0;
    if let Some((position, books)) =
        has_books.then(|| recall_books(connection, run, head)).transpose()?.flatten()
    {
        entries.insert(position, Entry::Books(Box::new(books)));
    }
    let (found, last) = (entries.len() as u64, entries.last_key_value().map(|(position, _)| *position));
    if found < u64::from(most) {
        all_there(connection, run, head.seq, from + found, last.or(from.checked_sub(1)))?;
    } else if last != Some(to - 1) {
        return Err(ReadError::Damaged(format!("trial {} of {run} lacks entries before {to}", head.seq)));
    }
    place.position = from + found;
    place.second = next_second.unwrap_or(place.second);
    Ok(entries.into_values().collect())
}

/// How many whole seconds of the bots were committed, without their contents, but sure that no entry is missing.
pub(crate) fn whole_seconds(connection: &Connection, run: &RunId, trial: u32) -> Result<u32, ReadError> {
    let (mut whole_s, mut found, mut last) = (0, 0, None);
    INTERVAL.for_each(connection, OF_TRIAL, params![run.as_str(), trial], |row| {
        whole_s = row.u32("interval")?.saturating_add(1);
        last = last.max(Some(row.u64("position")?));
        found += 1;
        Ok(())
    })?;
    for table in [&TICK, &SAMPLE, &EVENT, &LEDGER] {
        let sql = format!("SELECT count(*), max(position) FROM {} WHERE {OF_TRIAL}", table.name);
        let (count, furthest): (u64, Option<u64>) =
            connection.prepare_cached(&sql)?.query_row(params![run.as_str(), trial], |row| {
                let furthest: Option<i64> = row.get(1)?;
                Ok((row.get::<_, i64>(0)?.unsigned_abs(), furthest.map(i64::unsigned_abs)))
            })?;
        found += count;
        last = last.max(furthest);
    }
    all_there(connection, run, trial, found, last)?;
    Ok(whole_s)
}

/// Positions have no gaps, and a trial that ended says how many there are.
fn all_there(
    connection: &Connection,
    run: &RunId,
    trial: u32,
    found: u64,
    last: Option<u64>,
) -> Result<(), ReadError> {
    let mut expected = last.map_or(0, |position| position.saturating_add(1));
    TRIAL_END.for_each(connection, OF_TRIAL, params![run.as_str(), trial], |row| {
        expected = row.u64("entries")?;
        Ok(())
    })?;
    if found == expected {
        return Ok(());
    }
    Err(ReadError::Damaged(format!(
        "trial {trial} of {run} should have {expected} entries but {found} are there"
    )))
}

/// A second of which not all parts may have been found yet.
struct Second {
    position: u64,
    parts_missing: i64,
    interval: Box<Interval>,
}

fn intervals(
    connection: &Connection,
    head: &TrialHead,
    condition: &str,
    params: &[&dyn ToSql],
) -> Result<BTreeMap<u32, Second>, ReadError> {
    let mut seconds = BTreeMap::new();
    INTERVAL.for_each(connection, condition, params, |row| {
        let mut interval = Box::new(Interval::new(&head.words));
        interval.index = row.u32("interval")?;
        interval.workers = row.u32("workers")?;
        interval.connections = Connections {
            asked: row.u64("asked")?,
            opened: row.u64("opened")?,
            closed: row.u64("closed")?,
            failed: std::mem::take(&mut interval.connections.failed),
            open_min: row.u64("open_min")?,
            open_end: row.u64("open_end")?,
        };
        interval.ticks = TickCounts {
            due: row.u64("ticks_due")?,
            on_time: row.u64("ticks_on_time")?,
            over: row.u64("ticks_over")?,
            under: row.u64("ticks_under")?,
            missed: row.u64("ticks_missed")?,
        };
        interval.bytes_sent = row.u64("bytes_sent")?;
        interval.bytes_received = row.u64("bytes_received")?;
        interval.busy_ns = row.u64("busy_ns")?;
        interval.busy_share_max = row.real("busy_share_max")?.unwrap_or(f64::NAN);
        let second =
            Second { position: row.u64("position")?, parts_missing: i64::from(row.u32("parts")?), interval };
        seconds.insert(second.interval.index, second);
        Ok(())
    })?;
    Ok(seconds)
}

fn add_parts(
    connection: &Connection,
    seconds: &mut BTreeMap<u32, Second>,
    condition: &str,
    params: &[&dyn ToSql],
) -> Result<(), ReadError> {
    FLOW.for_each(connection, condition, params, |row| part(seconds, &row, add_flow))?;
    DISTRIBUTION.for_each(connection, condition, params, |row| part(seconds, &row, add_distribution))?;
    TALLY.for_each(connection, condition, params, |row| part(seconds, &row, add_tally))
}

/// The seconds as entries by position. Errors: one that lacks a row or does not balance.
fn whole(
    run: &RunId,
    head: &TrialHead,
    seconds: BTreeMap<u32, Second>,
) -> Result<BTreeMap<u64, Entry>, ReadError> {
    let mut entries = BTreeMap::new();
    for second in seconds.into_values() {
        let (index, interval) = (second.interval.index, second.interval);
        if second.parts_missing != 0 {
            let lost = second.parts_missing;
            return Err(ReadError::Damaged(format!(
                "second {index} of trial {} of {run} lacks {lost} of its rows",
                head.seq
            )));
        }
        if let Err(imbalance) = interval.balance() {
            return Err(ReadError::Damaged(format!(
                "second {index} of trial {} of {run} does not balance: {imbalance}",
                head.seq
            )));
        }
        entries.insert(second.position, Entry::Interval(interval));
    }
    Ok(entries)
}

fn add_others(
    connection: &Connection,
    entries: &mut BTreeMap<u64, Entry>,
    condition: &str,
    params: &[&dyn ToSql],
) -> Result<(), ReadError> {
    TICK.for_each(connection, condition, params, |row| add(entries, &row, tick_second(&row)?))?;
    SAMPLE.for_each(connection, condition, params, |row| add(entries, &row, sample(&row)?))?;
    EVENT.for_each(connection, condition, params, |row| add(entries, &row, event(&row)?))
}

fn part(
    seconds: &mut BTreeMap<u32, Second>,
    row: &Row,
    add: impl FnOnce(&mut Interval, &Row) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let second = seconds
        .get_mut(&row.u32("interval")?)
        .ok_or_else(|| ReadError::Damaged(format!("{} belongs to a second that is missing", row.place())))?;
    second.parts_missing -= 1;
    add(&mut second.interval, row)
}

fn add_flow(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let op = index_of(&interval.words.ops, row, "op")?;
    let phase = row.text("phase")?;
    let phase = Phase::ALL
        .into_iter()
        .find(|known| known.name() == phase)
        .ok_or_else(|| row.odd("phase", row.value("phase")))?;
    *interval.flow_mut(op, phase) = Flow {
        offered: row.u64("offered")?,
        not_sent: row.u64("not_sent")?,
        sent: row.u64("sent")?,
        told: row.u64("told")?,
        answered: row.u64("answered")?,
        late: row.u64("late")?,
        failed: row.u64("failed")?,
        lost: row.u64("lost")?,
        open_before: row.u64("open_before")?,
        open_after: row.u64("open_after")?,
    };
    Ok(())
}

fn add_distribution(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let measure = Measure::named(row.text("name")?).ok_or_else(|| row.odd("name", row.value("name")))?;
    let in_hold = row.u64("in_hold")? == 1;
    *interval.distribution_mut(measure, in_hold) = distribution(row, "v2")?.unwrap_or_default();
    Ok(())
}

fn add_tally(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let words = interval.words.clone();
    let (names, counts) = match row.text("kind")? {
        tally::ERROR => (&words.errors, &mut interval.errors),
        tally::COUNTER => (&words.counters, &mut interval.counters),
        tally::CONNECT_FAILURE => (&words.connect_failures, &mut interval.connections.failed),
        _ => return Err(row.odd("kind", row.value("kind"))),
    };
    counts[index_of(names, row, "name")?] = row.u64("count")?;
    Ok(())
}

fn index_of(names: &[String], row: &Row, column: &str) -> Result<usize, ReadError> {
    let name = row.text(column)?;
    names.iter().position(|known| known == name).ok_or_else(|| row.odd(column, row.value(column)))
}

fn distribution(row: &Row, column: &str) -> Result<Option<Distribution>, ReadError> {
    row.blob(column)?
        .map(|bytes| {
            Distribution::from_v2(bytes)
                .map_err(|error| ReadError::Damaged(format!("{} ({column}): {error}", row.place())))
        })
        .transpose()
}

fn tick_second(row: &Row) -> Result<Entry, ReadError> {
    let counters = serde_json::from_str(row.text("counters")?)
        .map_err(|_| row.odd("counters", row.value("counters")))?;
    Ok(Entry::Ticks(Box::new(TickSecond {
        source: row.text("source")?.to_owned(),
        from_ns: row.u64("from_ns")?,
        to_ns: row.u64("to_ns")?,
        counts: TickCounts {
            due: row.u64("due")?,
            on_time: row.u64("on_time")?,
            over: row.u64("over")?,
            under: row.u64("under")?,
            missed: row.u64("missed")?,
        },
        interval: distribution(row, "interval_v2")?.unwrap_or_default(),
        busy: distribution(row, "busy_v2")?,
        lateness: distribution(row, "lateness_v2")?,
        isr_numerator_ns: row.real("isr_numerator_ns")?,
        counters,
    })))
}

fn sample(row: &Row) -> Result<Entry, ReadError> {
    Ok(Entry::Sample(Sample {
        at_ns: row.u64("at_ns")?,
        who: interned(row.text("who")?),
        name: interned(row.text("name")?),
        value: row.real("value")?.unwrap_or(f64::NAN),
    }))
}

fn event(row: &Row) -> Result<Entry, ReadError> {
    Ok(Entry::Event(Event {
        at_ns: row.u64("at_ns")?,
        kind: row.text("kind")?.to_owned(),
        text: row.text("text")?.to_owned(),
    }))
}

fn add(entries: &mut BTreeMap<u64, Entry>, row: &Row, entry: Entry) -> Result<(), ReadError> {
    entries.insert(row.u64("position")?, entry);
    Ok(())
}

/// The same text, living for ever. A sampler's names are a few dozen literals, so what is kept here stays small.
fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    // A panic elsewhere cannot leave a set half changed that is only ever added to.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    match known.get(text) {
        Some(same) => same,
        None => {
            let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
            known.insert(kept);
            kept
        }
    }
}
