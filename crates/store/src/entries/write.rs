//! Writes an entry's rows, inside the writer's transaction.

use std::path::Path;

use measure::{Entry, Interval, Measure, Phase, Sample, TrialHead};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::error::StoreError;
use crate::form::{Recorded, Tally};
use crate::row::Table;
use crate::run::RunId;
use crate::tables;

/// Where an entry goes.
pub(crate) struct RowWriter<'a> {
    pub path: &'a Path,
    pub connection: &'a Connection,
    pub run: &'a RunId,
    pub head: &'a TrialHead,
}

/// Adds the rows of one entry. Errors: `Unbalanced`, `OutOfOrder`, `Unstorable`, or what the disk says.
pub(crate) fn keep(keeper: &RowWriter<'_>, position: u64, entry: &Entry) -> Result<(), StoreError> {
    match entry {
        Entry::Interval(interval) => keeper.interval(position, interval),
        Entry::Sample(Sample { at_ns, what, value }) => {
            let row = (position, *at_ns, what.texts(), *value);
            keeper.insert(&tables::SAMPLE, tables::sample::values(&row)?)
        }
        Entry::Ticks(second) => {
            keeper.insert(&tables::TICK, tables::tick::values(&(position, second.as_ref()))?)
        }
        Entry::Event(event) => keeper.insert(&tables::EVENT, tables::event::values(&(position, event))?),
        Entry::Books(books) => keeper.books(position, books),
    }
}

impl RowWriter<'_> {
    fn interval(&self, position: u64, interval: &Interval) -> Result<(), StoreError> {
        if *interval.metric_names != *self.head.metric_names {
            return Err(StoreError::OutOfOrder {
                run: self.run.clone(),
                what: format!(
                    "second {} has other metric names than trial {}",
                    interval.index, self.head.seq
                ),
            });
        }
        interval.balance().map_err(|imbalance| StoreError::Unbalanced {
            run: self.run.clone(),
            trial: self.head.seq,
            second: interval.index,
            imbalance,
        })?;
        let parts = self.parts(interval)?;
        let second = (position, parts.len() as u64, interval);
        self.insert(&tables::INTERVAL, tables::interval::values(&second)?)?;
        parts.into_iter().try_for_each(|(table, row)| self.insert(table, row))
    }

    /// The rows that belong to a second besides its own.
    fn parts(&self, interval: &Interval) -> Result<Vec<(&'static Table, Vec<Value>)>, StoreError> {
        let mut parts: Vec<(&'static Table, Vec<Value>)> = Vec::new();
        let (index, names) = (interval.index, &interval.metric_names);
        for (op, phases) in names.ops.iter().zip(&interval.flows) {
            for &phase in Phase::ALL {
                let flow = &phases[phase as usize];
                if !flow.is_empty() {
                    parts.push((&tables::FLOW, tables::flow::values(&(index, phase, op.as_str(), flow))?));
                }
            }
        }
        for &measure in Measure::ALL {
            for in_hold in [false, true] {
                let values = interval.distribution(measure, in_hold);
                if !values.is_empty() {
                    let row = (index, Recorded::Of(measure), in_hold, values.count(), values);
                    parts.push((&tables::DISTRIBUTION, tables::distribution::values(&row)?));
                }
            }
        }
        for (op, name) in names.ops.iter().enumerate().take(names.timed_ops) {
            if let Some(values) = interval.of_op(op).filter(|values| !values.is_empty()) {
                let row = (index, Recorded::ResponseOf(name.clone()), true, values.count(), values);
                parts.push((&tables::DISTRIBUTION, tables::distribution::values(&row)?));
            }
        }
        for (value, name) in names.values.iter().enumerate() {
            let values = interval.value(value);
            if !values.is_empty() {
                let row = (index, Recorded::ValueOf(name.clone()), true, values.count(), values);
                parts.push((&tables::DISTRIBUTION, tables::distribution::values(&row)?));
            }
        }
        for (kind, names, counts) in [
            (Tally::Error, &names.errors, &interval.errors),
            (Tally::Counter, &names.counters, &interval.counters),
            (Tally::ConnectFailure, &names.connect_failures, &interval.connections.failed),
        ] {
            for (name, &number) in names.iter().zip(counts).filter(|&(_, &number)| number > 0) {
                parts.push((&tables::TALLY, tables::tally::values(&(index, kind, name.as_str(), number))?));
            }
        }
        Ok(parts)
    }

    pub(super) fn insert(&self, table: &Table, row: Vec<Value>) -> Result<(), StoreError> {
        table
            .insert_in_trial(self.connection, self.run.as_str(), self.head.seq, row)
            .map_err(|error| StoreError::from_sqlite(self.path, error))
    }
}
