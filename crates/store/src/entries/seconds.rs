//! The seconds of the bots, put together from four tables that are read side by side.
//!
//! A second says how many rows of flows, distributions and tallies belong to it, so one that is missing is noticed; so is one
//! whose second is missing. One second is in memory, however long the trial.

use measure::{Connections, Entry, Flow, Interval, Measure, Phase, TickCounts, TrialHead};
use rusqlite::{Connection, params};

use super::recall::{OF_TRIAL, distribution};
use super::tally;
use crate::row::{DISTRIBUTION, FLOW, INTERVAL, ReadError, Row, Rows, TALLY};
use crate::run::RunId;

/// Hands the seconds of a trial to `each`, with their positions, in the order of their numbers: all of them, or those from
/// a second on that stand before a position.
///
/// Four tables are read side by side, so one second is in memory. Errors: a second that lacks a row or does not balance, a
/// row that belongs to none.
pub(super) fn visit_seconds(
    connection: &Connection,
    run: &RunId,
    head: &TrialHead,
    behind: Option<(u32, i64)>,
    each: &mut dyn FnMut(u64, Entry),
) -> Result<(), ReadError> {
    let trial = params![run.as_str(), head.seq];
    let (from, before) = behind.unwrap_or_default();
    let from_second = params![run.as_str(), head.seq, from];
    let before_position = params![run.as_str(), head.seq, from, before];
    let (condition, params, of_parts, params_of_parts) = match behind {
        None => (OF_TRIAL, trial, OF_TRIAL, trial),
        Some(_) => (
            "run = ?1 AND trial = ?2 AND interval >= ?3 AND position < ?4",
            before_position,
            "run = ?1 AND trial = ?2 AND interval >= ?3",
            from_second,
        ),
    };
    let mut question = INTERVAL.question(connection, condition)?;
    let mut rows = INTERVAL.rows(&mut question, params)?;
    let mut question = FLOW.question(connection, of_parts)?;
    let mut flows = Parts::of(FLOW.rows(&mut question, params_of_parts)?)?;
    let mut question = DISTRIBUTION.question(connection, of_parts)?;
    let mut distributions = Parts::of(DISTRIBUTION.rows(&mut question, params_of_parts)?)?;
    let mut question = TALLY.question(connection, of_parts)?;
    let mut tallies = Parts::of(TALLY.rows(&mut question, params_of_parts)?)?;
    while let Some(row) = rows.next()? {
        let mut interval = interval(&row, head)?;
        let found = flows.add_to(&mut interval, add_flow)?
            + distributions.add_to(&mut interval, add_distribution)?
            + tallies.add_to(&mut interval, add_tally)?;
        let (index, parts) = (interval.index, row.u64("parts")?);
        let damaged =
            |what| Err(ReadError::Damaged(format!("second {index} of trial {} of {run} {what}", head.seq)));
        if found != parts {
            return damaged(format!("should have {parts} rows but {found} are there"));
        }
        if let Err(imbalance) = interval.balance() {
            return damaged(format!("does not balance: {imbalance}"));
        }
        each(row.u64("position")?, Entry::Interval(interval));
    }
    // Behind a part of the trial lie those of later seconds.
    if behind.is_none() {
        [flows, distributions, tallies].iter().try_for_each(Parts::end)?;
    }
    Ok(())
}

/// The rows of one table that belong to seconds, read as far as the second that is put together.
struct Parts<'q> {
    rows: Rows<'q>,
    next: Option<Row>,
}

impl<'q> Parts<'q> {
    fn of(mut rows: Rows<'q>) -> Result<Self, ReadError> {
        Ok(Parts { next: rows.next()?, rows })
    }

    /// Adds those of this second; returns how many there are. Errors: one that belongs to a second before it.
    fn add_to(
        &mut self,
        interval: &mut Interval,
        add: fn(&mut Interval, &Row) -> Result<(), ReadError>,
    ) -> Result<u64, ReadError> {
        let mut found = 0;
        while let Some(row) = &self.next {
            let index = row.u32("interval")?;
            if index > interval.index {
                break;
            }
            if index < interval.index {
                self.end()?;
            }
            add(interval, row)?;
            found += 1;
            self.next = self.rows.next()?;
        }
        Ok(found)
    }

    /// There are no further seconds. Errors: there is a further row.
    fn end(&self) -> Result<(), ReadError> {
        self.next.as_ref().map_or(Ok(()), |row| {
            Err(ReadError::Damaged(format!("{} belongs to a second that is missing", row.place())))
        })
    }
}

/// A second without its parts.
fn interval(row: &Row, head: &TrialHead) -> Result<Box<Interval>, ReadError> {
    let mut interval = Box::new(Interval::new(&head.metric_names));
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
    Ok(interval)
}

fn add_flow(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let op = index_of(&interval.metric_names.ops, row, "op")?;
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
    let names = interval.metric_names.clone();
    let (names, counts) = match row.text("kind")? {
        tally::ERROR => (&names.errors, &mut interval.errors),
        tally::COUNTER => (&names.counters, &mut interval.counters),
        tally::CONNECT_FAILURE => (&names.connect_failures, &mut interval.connections.failed),
        _ => return Err(row.odd("kind", row.value("kind"))),
    };
    counts[index_of(names, row, "name")?] = row.u64("count")?;
    Ok(())
}

fn index_of(names: &[String], row: &Row, column: &str) -> Result<usize, ReadError> {
    let name = row.text(column)?;
    names.iter().position(|known| known == name).ok_or_else(|| row.odd(column, row.value(column)))
}
