//! Reads the entries of a trial: every row checked, every second complete, every interval balanced.

use std::collections::BTreeMap;
use std::sync::Arc;

use measure::{Entry, Event, Interval, Reading, Sample, TrialHead};
use rusqlite::{Connection, params};

use super::books::recall_books;
use super::packs::Which;
use super::seconds::visit_seconds;
use crate::follow::Place;
use crate::row::ReadError;
use crate::run::RunId;
use crate::tables::{self, EVENT, INTERVAL, LEDGER, SAMPLE, TICK, TRIAL_END};

const OF_TRIAL: &str = "run = ?1 AND trial = ?2";

/// Hands every committed entry of a trial to `each`, with its position: seconds, ticks, readings, marks and books, each
/// kind in its own order. No more than one of them is in memory.
///
/// Call it inside one transaction: the tables must be of the same moment. Errors: `Damaged`, or what SQLite says. What was
/// handed over before an error is part of a trial that cannot be read.
pub(crate) fn visit(
    connection: &Connection,
    run: &RunId,
    head: &TrialHead,
    mut each: impl FnMut(u64, Entry),
) -> Result<(), ReadError> {
    let (mut found, mut last) = (0, None);
    // Rows come in key order, so none is counted twice.
    let mut count = |position, entry| {
        found += 1;
        last = last.max(Some(position));
        each(position, entry);
    };
    visit_seconds(connection, run, head, None, &mut count)?;
    visit_others(connection, Which::of_trial(run, head.seq), &mut count)?;
    if let Some((position, books)) = recall_books(connection, run, head)? {
        count(position, Entry::Books(Box::new(books)));
    }
    all_there(connection, run, head.seq, found, last)
}

/// All committed entries of a trial in the order they were handed over. Errors: as `visit`.
pub(crate) fn read(connection: &Connection, run: &RunId, head: &TrialHead) -> Result<Vec<Entry>, ReadError> {
    let mut entries = BTreeMap::new();
    visit(connection, run, head, |position, entry| {
        entries.insert(position, entry);
    })?;
    Ok(entries.into_values().collect())
}

/// The marks of a trial in the order they were handed over. Only `visit` knows whether one is missing.
pub(crate) fn marks(connection: &Connection, run: &RunId, head: &TrialHead) -> Result<Vec<Event>, ReadError> {
    let mut marks = Vec::new();
    EVENT.for_each(connection, OF_TRIAL, params![run.as_str(), head.seq], |row| {
        let (_, event) = tables::event::read(&row)?;
        marks.push(event);
        Ok(())
    })?;
    Ok(marks)
}

/// The entries from a place on, `most` of them or as many as there are, in the order they were handed over.
///
/// `place` moves behind them. Call it inside one transaction. Errors: as `visit`, of what is looked at.
pub(crate) fn read_behind(
    connection: &Connection,
    run: &RunId,
    head: &TrialHead,
    place: &mut Place,
    most: u32,
) -> Result<Vec<Entry>, ReadError> {
    let (from, to) = (place.position, place.position.saturating_add(u64::from(most)));
    // Positions come from a 64-bit signed column.
    let (from_i64, to_i64) = (from as i64, to as i64);
    let mut entries = BTreeMap::new();
    let mut next_second = place.second;
    // The key is the second's number, and seconds are handed over in order.
    visit_seconds(connection, run, head, Some((place.second, to_i64)), &mut |position, entry| {
        if let Entry::Interval(interval) = &entry {
            next_second = interval.index.saturating_add(1);
        }
        entries.insert(position, entry);
    })?;
    let others = params![run.as_str(), head.seq, from_i64, to_i64];
    let behind = "run = ?1 AND trial = ?2 AND position >= ?3 AND position < ?4";
    let these = Which::of_trial(run, head.seq).within(from_i64, to_i64);
    visit_others(connection, these, &mut |position, entry| {
        entries.insert(position, entry);
    })?;
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
    place.second = next_second;
    Ok(entries.into_values().collect())
}

/// How many whole seconds of the bots were committed for each of these trials, without their contents, but certain that
/// no entry is missing. `ends` gives the entry counts of those that ended. Each table is read once, however many trials
/// there are.
pub(crate) fn whole_seconds(
    connection: &Connection,
    run: &RunId,
    trials: impl IntoIterator<Item = u32>,
    ends: &Ends,
) -> Result<BTreeMap<u32, u32>, ReadError> {
    #[derive(Default)]
    struct Counted {
        whole_s: u32,
        found: u64,
        last: Option<u64>,
    }
    let mut of_trial: BTreeMap<i64, Counted> = BTreeMap::new();
    // Only the counts of a second are read.
    let mut parts = (0, 0, Box::new(Interval::new(&Arc::default())));
    INTERVAL.for_each(connection, "run = ?1", [run.as_str()], |row| {
        tables::interval::read_into(&row, &mut parts)?;
        let counted = of_trial.entry(row.trial()?.into()).or_default();
        counted.whole_s = parts.2.index.saturating_add(1);
        counted.last = counted.last.max(Some(parts.0));
        counted.found += 1;
        Ok(())
    })?;
    let of_rows = [&TICK, &SAMPLE, &EVENT, &LEDGER].map(|table| {
        format!("SELECT trial, count(*), max(position) FROM {} WHERE run = ?1 GROUP BY trial", table.name)
    });
    let of_packs = "SELECT trial, sum(rows), max(last) FROM pack WHERE run = ?1 \
                    AND of_table IN ('tick', 'sample') GROUP BY trial";
    for sql in of_rows.iter().map(String::as_str).chain([of_packs]) {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([run.as_str()])?;
        while let Some(row) = rows.next()? {
            // A damaged page may have a trial twice.
            let counted = of_trial.entry(row.get(0)?).or_default();
            counted.found += row.get::<_, i64>(1)?.unsigned_abs();
            counted.last = counted.last.max(row.get::<_, Option<i64>>(2)?.map(i64::unsigned_abs));
        }
    }
    let checked = trials.into_iter().map(|trial| {
        let Counted { whole_s, found, last } = of_trial.remove(&trial.into()).unwrap_or_default();
        enough(run, trial, found, last, ends.get(&trial).map(|(entries, _)| *entries))?;
        Ok((trial, whole_s))
    });
    checked.collect()
}

/// How many entries each ended trial of a run has, and when it ended.
pub(crate) type Ends = BTreeMap<u32, (u64, u64)>;

/// Reads all of the run rather than by trial: a row whose key is damaged is then seen and not just missing.
pub(crate) fn ends(connection: &Connection, run: &RunId) -> Result<Ends, ReadError> {
    let mut ends = Ends::new();
    TRIAL_END.for_each(connection, "run = ?1", [run.as_str()], |row| {
        ends.insert(row.trial()?, tables::trial_end::read(&row)?);
        Ok(())
    })?;
    Ok(ends)
}

/// Positions have no gaps, and a trial that ended says how many there are.
fn all_there(
    connection: &Connection,
    run: &RunId,
    trial: u32,
    found: u64,
    last: Option<u64>,
) -> Result<(), ReadError> {
    let mut expected = None;
    TRIAL_END.for_each(connection, OF_TRIAL, params![run.as_str(), trial], |row| {
        let (entries, _) = tables::trial_end::read(&row)?;
        expected = Some(entries);
        Ok(())
    })?;
    enough(run, trial, found, last, expected)
}

fn enough(
    run: &RunId,
    trial: u32,
    found: u64,
    last: Option<u64>,
    expected: Option<u64>,
) -> Result<(), ReadError> {
    let expected = expected.unwrap_or(last.map_or(0, |position| position.saturating_add(1)));
    if found == expected {
        return Ok(());
    }
    Err(ReadError::Damaged(format!(
        "trial {trial} of {run} should have {expected} entries but {found} are there"
    )))
}

/// Hands ticks, readings and marks to `each`, with their positions.
fn visit_others(
    connection: &Connection,
    which: Which<'_>,
    each: &mut dyn FnMut(u64, Entry),
) -> Result<(), ReadError> {
    which.for_each(connection, &TICK, |row| {
        let (position, second) = tables::tick::read(&row)?;
        each(position, Entry::Ticks(Box::new(second)));
        Ok(())
    })?;
    which.for_each(connection, &SAMPLE, |row| {
        let (position, at_ns, (who, name), value) = tables::sample::read(&row)?;
        each(position, Entry::Sample(Sample { at_ns, what: Reading::of_texts(&who, &name), value }));
        Ok(())
    })?;
    which.for_each(connection, &EVENT, |row| {
        let (position, event) = tables::event::read(&row)?;
        each(position, Entry::Event(event));
        Ok(())
    })
}
