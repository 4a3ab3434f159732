//! Keeping an entry: its rows, inside the writer's transaction.

use std::path::Path;

use measure::{Distribution, Entry, Event, Flow, Interval, Measure, Phase, Sample, TickSecond, TrialHead};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::tally;
use crate::error::StoreError;
use crate::row::{DISTRIBUTION, EVENT, FLOW, INTERVAL, SAMPLE, TALLY, TICK, Table, count, real, text};
use crate::run::RunId;

/// Where an entry goes.
pub(crate) struct Keeper<'a> {
    pub path: &'a Path,
    pub connection: &'a Connection,
    pub run: &'a RunId,
    pub head: &'a TrialHead,
}

/// Adds the rows of one entry. Errors: `Unbalanced`, `OutOfOrder`, `Unstorable`, or what the disk says.
pub(crate) fn keep(keeper: &Keeper<'_>, position: u64, entry: &Entry) -> Result<(), StoreError> {
    let position = count("position", position)?;
    match entry {
        Entry::Interval(interval) => keeper.interval(position, interval),
        Entry::Sample(sample) => keeper.sample(position, sample),
        Entry::Ticks(second) => keeper.ticks(position, second),
        Entry::Event(event) => keeper.event(position, event),
        Entry::Books(books) => keeper.books(position, books),
    }
}

impl Keeper<'_> {
    fn interval(&self, position: Value, interval: &Interval) -> Result<(), StoreError> {
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
        let connections = &interval.connections;
        let ticks = &interval.ticks;
        let mut row = self.key();
        row.extend([Value::Integer(i64::from(interval.index)), position, Value::Integer(parts.len() as i64)]);
        for (what, number) in [
            ("workers", u64::from(interval.workers)),
            ("asked", connections.asked),
            ("opened", connections.opened),
            ("closed", connections.closed),
            ("open_min", connections.open_min),
            ("open_end", connections.open_end),
            ("ticks_due", ticks.due),
            ("ticks_on_time", ticks.on_time),
            ("ticks_over", ticks.over),
            ("ticks_under", ticks.under),
            ("ticks_missed", ticks.missed),
            ("bytes_sent", interval.bytes_sent),
            ("bytes_received", interval.bytes_received),
            ("busy_ns", interval.busy_ns),
        ] {
            row.push(count(what, number)?);
        }
        row.push(real(interval.busy_share_max));
        self.insert(&INTERVAL, row)?;
        parts.into_iter().try_for_each(|(table, row)| self.insert(table, row))
    }

    /// The rows that belong to a second besides its own.
    fn parts(&self, interval: &Interval) -> Result<Vec<(&'static Table, Vec<Value>)>, StoreError> {
        let mut parts: Vec<(&'static Table, Vec<Value>)> = Vec::new();
        let key = || {
            let mut key = self.key();
            key.push(Value::Integer(i64::from(interval.index)));
            key
        };
        let names = &interval.metric_names;
        for (op, phases) in names.ops.iter().zip(&interval.flows) {
            for phase in Phase::ALL {
                let flow = &phases[phase as usize];
                if !flow.is_empty() {
                    let mut row = key();
                    row.extend([text(phase.name()), text(op)]);
                    push_flow(&mut row, flow)?;
                    parts.push((&FLOW, row));
                }
            }
        }
        for measure in Measure::ALL {
            for in_hold in [false, true] {
                let distribution = interval.distribution(measure, in_hold);
                if !distribution.is_empty() {
                    let mut row = key();
                    row.extend([text(measure.name()), Value::Integer(i64::from(in_hold))]);
                    row.extend([count("a distribution's count", distribution.count())?, v2(distribution)]);
                    parts.push((&DISTRIBUTION, row));
                }
            }
        }
        for (kind, names, counts) in [
            (tally::ERROR, &names.errors, &interval.errors),
            (tally::COUNTER, &names.counters, &interval.counters),
            (tally::CONNECT_FAILURE, &names.connect_failures, &interval.connections.failed),
        ] {
            for (name, &number) in names.iter().zip(counts).filter(|&(_, &number)| number > 0) {
                let mut row = key();
                row.extend([text(kind), text(name), count(name, number)?]);
                parts.push((&TALLY, row));
            }
        }
        Ok(parts)
    }

    fn ticks(&self, position: Value, second: &TickSecond) -> Result<(), StoreError> {
        let counts = &second.counts;
        let mut row = self.key();
        row.extend([position, text(&second.source)]);
        for (what, number) in [
            ("from_ns", second.from_ns),
            ("to_ns", second.to_ns),
            ("due", counts.due),
            ("on_time", counts.on_time),
            ("over", counts.over),
            ("under", counts.under),
            ("missed", counts.missed),
        ] {
            row.push(count(what, number)?);
        }
        row.push(v2(&second.interval));
        row.push(second.busy.as_ref().map_or(Value::Null, v2));
        row.push(second.lateness.as_ref().map_or(Value::Null, v2));
        row.push(second.isr_numerator_ns.map_or(Value::Null, real));
        row.push(text(
            serde_json::Value::from_iter(
                second.counters.iter().map(|(name, number)| serde_json::json!([name, number])),
            )
            .to_string(),
        ));
        self.insert(&TICK, row)
    }

    fn sample(&self, position: Value, sample: &Sample) -> Result<(), StoreError> {
        let mut row = self.key();
        row.extend([position, count("at_ns", sample.at_ns)?]);
        let (who, name) = sample.what.texts();
        row.extend([text(who), text(name), real(sample.value)]);
        self.insert(&SAMPLE, row)
    }

    fn event(&self, position: Value, event: &Event) -> Result<(), StoreError> {
        let mut row = self.key();
        row.extend([position, count("at_ns", event.at_ns)?, text(&event.kind), text(&event.text)]);
        self.insert(&EVENT, row)
    }

    pub(super) fn key(&self) -> Vec<Value> {
        vec![text(self.run.as_str()), Value::Integer(i64::from(self.head.seq))]
    }

    pub(super) fn insert(&self, table: &Table, row: Vec<Value>) -> Result<(), StoreError> {
        table.insert(self.connection, row).map_err(|error| StoreError::from_sqlite(self.path, error))
    }
}

fn push_flow(row: &mut Vec<Value>, flow: &Flow) -> Result<(), StoreError> {
    for (what, number) in [
        ("offered", flow.offered),
        ("not_sent", flow.not_sent),
        ("sent", flow.sent),
        ("told", flow.told),
        ("answered", flow.answered),
        ("late", flow.late),
        ("failed", flow.failed),
        ("lost", flow.lost),
        ("open_before", flow.open_before),
        ("open_after", flow.open_after),
    ] {
        row.push(count(what, number)?);
    }
    Ok(())
}

fn v2(distribution: &Distribution) -> Value {
    Value::Blob(distribution.to_v2())
}
