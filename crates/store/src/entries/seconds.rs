//! The seconds of the bots, assembled from four tables that are read side by side.
//!
//! A second says how many rows of flows, distributions and tallies belong to it, so missing rows are detected, and so
//! are rows whose second is missing. Only one second is in memory, however long the trial.

use measure::{Entry, Interval, TrialHead};
use rusqlite::Connection;

use super::packs::Which;
use crate::form::{Recorded, Tally};
use crate::row::{ReadError, Row, Rows};
use crate::run::RunId;
use crate::tables::{self, DISTRIBUTION, FLOW, INTERVAL, TALLY};

/// Hands the seconds of a trial to `each`, with their positions, in the order of their numbers: all of them, or those from
/// a second on up to the first that does not stand before a position.
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
    let (from, before) = behind.unwrap_or((0, i64::MAX));
    let which = Which::of_trial(run, head.seq).within(from.into(), i64::MAX);
    let mut question = which.question(connection, &INTERVAL)?;
    let mut rows = which.rows(connection, &INTERVAL, &mut question)?;
    let mut question = which.question(connection, &FLOW)?;
    let mut flows = Parts::of(which.rows(connection, &FLOW, &mut question)?)?;
    let mut question = which.question(connection, &DISTRIBUTION)?;
    let mut distributions = Parts::of(which.rows(connection, &DISTRIBUTION, &mut question)?)?;
    let mut question = which.question(connection, &TALLY)?;
    let mut tallies = Parts::of(which.rows(connection, &TALLY, &mut question)?)?;
    while let Some(row) = rows.next()? {
        let mut read = (0, 0, Box::new(Interval::new(&head.metric_names)));
        tables::interval::read_into(&row, &mut read)?;
        let (position, parts, mut interval) = read;
        // Asked of SQLite, it would look at every later second for each piece of a trial.
        if behind.is_some() && i64::try_from(position).is_ok_and(|position| position >= before) {
            break;
        }
        let found = flows.add_to(&mut interval, add_flow)?
            + distributions.add_to(&mut interval, add_distribution)?
            + tallies.add_to(&mut interval, add_tally)?;
        let index = interval.index;
        let damaged =
            |what| Err(ReadError::Damaged(format!("second {index} of trial {} of {run} {what}", head.seq)));
        if found != parts {
            return damaged(format!("should have {parts} rows but {found} are there"));
        }
        if let Err(imbalance) = interval.balance() {
            return damaged(format!("does not balance: {imbalance}"));
        }
        each(position, Entry::Interval(interval));
    }
    // After a part of the trial come the rows of later seconds.
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
            let index = row.number()?;
            if index > u64::from(interval.index) {
                break;
            }
            if index < u64::from(interval.index) {
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

fn add_flow(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let (_, phase, op, flow) = tables::flow::read(row)?;
    let op = index_of(&interval.metric_names.ops, &op, row)?;
    *interval.flow_mut(op, phase) = flow;
    Ok(())
}

fn add_distribution(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let (_, name, in_hold, _, values) = tables::distribution::read(row)?;
    let place = match name {
        Recorded::Of(measure) => interval.distribution_mut(measure, in_hold),
        Recorded::ResponseOf(op) => {
            let index = index_of(&interval.metric_names.ops, &op, row)?;
            interval.of_op_mut(index).ok_or_else(|| unknown(row))?
        }
        Recorded::ValueOf(name) => {
            let index = index_of(&interval.metric_names.values, &name, row)?;
            interval.value_mut(index)
        }
    };
    *place = values;
    Ok(())
}

fn add_tally(interval: &mut Interval, row: &Row) -> Result<(), ReadError> {
    let (_, kind, name, count) = tables::tally::read(row)?;
    let names = interval.metric_names.clone();
    let (names, counts) = match kind {
        Tally::Error => (&names.errors, &mut interval.errors),
        Tally::Counter => (&names.counters, &mut interval.counters),
        Tally::ConnectFailure => (&names.connect_failures, &mut interval.connections.failed),
    };
    counts[index_of(names, &name, row)?] = count;
    Ok(())
}

fn index_of(names: &[String], name: &str, row: &Row) -> Result<usize, ReadError> {
    names.iter().position(|known| known == name).ok_or_else(|| unknown(row))
}

fn unknown(row: &Row) -> ReadError {
    ReadError::Damaged(format!("{} has a name that its trial does not know", row.place()))
}
