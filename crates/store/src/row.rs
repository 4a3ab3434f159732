//! Rows that carry their own checksum: how every row but a label is written and read.
//!
//! SQLite notices a broken page but not a flipped bit inside a number. So each row ends with the CRC-32 of its table's
//! name and its columns, and a row whose CRC does not fit is an error, never a figure. CRC-32 finds every damage of up
//! to 32 neighbouring bits and all but one in four billion of the others.

use std::borrow::Cow;
use std::cmp::Ordering;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Params, params_from_iter};

use crate::error::StoreError;

/// How a column is shown outside the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// a number or a text
    Plain,
    /// 0 or 1
    Flag,
    /// JSON text
    Json,
    /// an HDR histogram in V2 bytes
    Histogram,
    /// any bytes
    Bytes,
}

/// A table as the code sees it; `schema.sql` says what each column means.
pub(crate) struct Table {
    pub name: &'static str,
    /// without `crc`; the first `key` of them are the primary key
    pub columns: &'static [(&'static str, Kind)],
    pub key: usize,
}

macro_rules! table {
    ($const:ident, $name:literal, key $key:literal, [$($column:ident $(: $kind:ident)?),* $(,)?]) => {
        pub(crate) const $const: Table = Table {
            name: $name,
            columns: &[$((stringify!($column), table!(@ $($kind)?))),*],
            key: $key,
        };
    };
    (@) => { Kind::Plain };
    (@ $kind:ident) => { Kind::$kind };
}

table!(USED_ID, "used_id", key 1, [run, stem, count, number]);
table!(RUN, "run", key 1, [
    run, name, subject, scenario, seed: Json, arrivals, command, git, stepladder, started_unix_ms,
    shared_cores: Flag, plan: Json, environment: Json,
]);
table!(RUN_END, "run_end", key 1, [run, outcome, reason, ended_unix_ms, parts, climb: Json]);
table!(TRIAL, "trial", key 2, [
    run, trial, purpose, load, load_unit, bots, connections, tick_period_ns, cell: Json, metric_names: Json,
    started_unix_ms,
]);
table!(TRIAL_END, "trial_end", key 2, [run, trial, entries, ended_unix_ms]);
table!(INTERVAL, "interval", key 3, [
    run, trial, interval, position, parts, workers, asked, opened, closed, open_min, open_end, ticks_due,
    ticks_on_time, ticks_over, ticks_under, ticks_missed, bytes_sent, bytes_received, busy_ns, busy_share_max,
]);
table!(FLOW, "flow", key 5, [
    run, trial, interval, phase, op, offered, not_sent, sent, told, answered, late, failed, lost, open_before,
    open_after,
]);
table!(DISTRIBUTION, "distribution", key 5, [run, trial, interval, name, in_hold: Flag, count, v2: Histogram]);
table!(TALLY, "tally", key 5, [run, trial, interval, kind, name, count]);
table!(TICK, "tick", key 3, [
    run, trial, position, source, from_ns, to_ns, due, on_time, over, under, missed, interval_v2: Histogram,
    busy_v2: Histogram, lateness_v2: Histogram, isr_numerator_ns, counters: Json,
]);
table!(SAMPLE, "sample", key 3, [run, trial, position, at_ns, who, name, value]);
table!(EVENT, "event", key 3, [run, trial, position, at_ns, kind, text]);
table!(LEDGER, "ledger", key 2, [
    run, trial, position, receivers, pairs, sent, unknown_messages, drops_are_told: Flag,
]);
table!(BOOKS, "books", key 3, [
    run, trial, receiver, is_excluded: Flag, owed_min, owed_max, delivered, late, lost, duplicated, reordered, dropped,
    in_flight, residual, unowed, not_caught_up, latency_mean_ns, latency_max_ns, told_owed, told_delivered,
]);
table!(PAIR, "pair", key 3, [run, trial, place, sender, receiver, owed_min, owed_max, delivered, lost]);
table!(VERDICT, "verdict", key 3, [run, trial, number, judge, verdict, reason, cut_s, evidence: Json]);
table!(ARTIFACT, "artifact", key 2, [run, name, content: Bytes]);

/// Every table whose rows belong to a run and carry a checksum, parents before children.
pub(crate) const TABLES: [&Table; 16] = [
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
    &EVENT,
    &LEDGER,
    &BOOKS,
    &PAIR,
    &VERDICT,
    &ARTIFACT,
];

impl Table {
    /// Adds one row: `values` in the order of `columns`.
    pub fn insert(&self, connection: &Connection, mut values: Vec<Value>) -> rusqlite::Result<()> {
        debug_assert_eq!(values.len(), self.columns.len(), "one value for each column of {}", self.name);
        let crc = self.crc(values.iter().map(ValueRef::from));
        values.push(Value::Integer(crc));
        let places = vec!["?"; values.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}, crc) VALUES ({places})", self.name, self.column_list());
        connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        Ok(())
    }

    /// Reads the rows that fulfil `condition` in the order of the key, each checked, into `each`.
    pub fn for_each<P: Params>(
        &'static self,
        connection: &Connection,
        condition: &str,
        params: P,
        mut each: impl FnMut(Row) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut question = self.question(connection, condition)?;
        let mut rows = self.rows(&mut question, params)?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }

    /// Asks for the rows that fulfil `condition`, in the order of the key; `rows` reads them.
    pub fn question<'c>(
        &self,
        connection: &'c Connection,
        condition: &str,
    ) -> rusqlite::Result<CachedStatement<'c>> {
        let key = self.columns[..self.key].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let sql =
            format!("SELECT {}, crc FROM {} WHERE {condition} ORDER BY {key}", self.column_list(), self.name);
        connection.prepare_cached(&sql)
    }

    /// The rows of a `question` one after the other.
    pub fn rows<'q, P: Params>(
        &'static self,
        question: &'q mut CachedStatement<'_>,
        params: P,
    ) -> Result<Rows<'q>, ReadError> {
        Ok(Rows { table: self, rows: question.query(params)?, before: None })
    }

    /// All such rows at once.
    pub fn select<P: Params>(
        &'static self,
        connection: &Connection,
        condition: &str,
        params: P,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = Vec::new();
        self.for_each(connection, condition, params, |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    fn column_list(&self) -> String {
        self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    fn crc<'a>(&self, values: impl Iterator<Item = ValueRef<'a>>) -> i64 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(self.name.as_bytes());
        for value in values {
            // The kind and the length go in too, so that no two rows have the same bytes.
            let (kind, bytes): (u8, Cow<'_, [u8]>) = match value {
                ValueRef::Null => (0, Cow::Borrowed(&[])),
                ValueRef::Integer(integer) => (1, Cow::Owned(integer.to_le_bytes().to_vec())),
                ValueRef::Real(real) => (2, Cow::Owned(real.to_bits().to_le_bytes().to_vec())),
                ValueRef::Text(text) => (3, Cow::Borrowed(text)),
                ValueRef::Blob(blob) => (4, Cow::Borrowed(blob)),
            };
            sum.update(&[kind]);
            sum.update(&(bytes.len() as u64).to_le_bytes());
            sum.update(&bytes);
        }
        i64::from(sum.finalize())
    }
}

/// Rows of a table in the order of its key, each read and checked when it is asked for.
pub(crate) struct Rows<'q> {
    table: &'static Table,
    rows: rusqlite::Rows<'q>,
    /// key of the last one
    before: Option<Vec<Value>>,
}

impl Rows<'_> {
    /// The next row. Errors: one that is not what was written, or that does not come behind the one before: a damaged
    /// page may lead to the same rows twice instead of to others, and their number would still be right.
    pub fn next(&mut self) -> Result<Option<Row>, ReadError> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let count = self.table.columns.len();
        let values = (0..count).map(|at| row.get(at)).collect::<Result<Vec<Value>, _>>()?;
        let read = Row { table: self.table, values };
        let crc: Value = row.get(count)?;
        if crc != Value::Integer(self.table.crc(read.values.iter().map(ValueRef::from))) {
            return Err(ReadError::Damaged(format!("{} is not what was written", read.place())));
        }
        let key = &read.values[..self.table.key];
        if self.before.as_deref().is_some_and(|before| !is_behind(before, key)) {
            return Err(ReadError::Damaged(format!("{} is not in its place", read.place())));
        }
        match &mut self.before {
            Some(before) => before.clone_from_slice(key),
            None => self.before = Some(key.to_vec()),
        }
        Ok(Some(read))
    }
}

/// Whether `key` comes behind `before` in the order of the table; keys hold whole numbers and texts.
fn is_behind(before: &[Value], key: &[Value]) -> bool {
    let orders = before.iter().zip(key).map(|(before, key)| match (before, key) {
        (Value::Integer(before), Value::Integer(key)) => before.cmp(key),
        (Value::Text(before), Value::Text(key)) => before.cmp(key),
        // SQLite sorts numbers before texts; our writer mixes them in no column.
        (Value::Integer(_), Value::Text(_)) => Ordering::Less,
        _ => Ordering::Greater,
    });
    orders.into_iter().find(|order| order.is_ne()) == Some(Ordering::Less)
}

/// Why a row could not be read; the store adds its path.
#[derive(Debug)]
pub(crate) enum ReadError {
    Sqlite(rusqlite::Error),
    Damaged(String),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        ReadError::Sqlite(error)
    }
}

/// One row that was read and checked.
pub(crate) struct Row {
    pub table: &'static Table,
    /// in the order of the table's columns
    pub values: Vec<Value>,
}

impl Row {
    /// Where it stands, for people: `flow (master-3, 0, 12, hold, shot)`.
    pub fn place(&self) -> String {
        let key: Vec<String> = self.values[..self.table.key].iter().map(shown).collect();
        format!("{} ({})", self.table.name, key.join(", "))
    }

    pub fn u64(&self, column: &str) -> Result<u64, ReadError> {
        match self.value(column) {
            Value::Integer(integer) if *integer >= 0 => Ok(*integer as u64),
            other => Err(self.odd(column, other)),
        }
    }

    pub fn u32(&self, column: &str) -> Result<u32, ReadError> {
        let wide = self.u64(column)?;
        u32::try_from(wide).map_err(|_| self.odd(column, self.value(column)))
    }

    pub fn i64(&self, column: &str) -> Result<i64, ReadError> {
        match self.value(column) {
            Value::Integer(integer) => Ok(*integer),
            other => Err(self.odd(column, other)),
        }
    }

    pub fn optional_u64(&self, column: &str) -> Result<Option<u64>, ReadError> {
        match self.value(column) {
            Value::Null => Ok(None),
            _ => self.u64(column).map(Some),
        }
    }

    pub fn flag(&self, column: &str) -> Result<bool, ReadError> {
        match self.value(column) {
            Value::Integer(0) => Ok(false),
            Value::Integer(1) => Ok(true),
            other => Err(self.odd(column, other)),
        }
    }

    pub fn real(&self, column: &str) -> Result<Option<f64>, ReadError> {
        match self.value(column) {
            Value::Real(real) => Ok(Some(*real)),
            Value::Null => Ok(None),
            other => Err(self.odd(column, other)),
        }
    }

    pub fn text(&self, column: &str) -> Result<&str, ReadError> {
        match self.value(column) {
            Value::Text(text) => Ok(text),
            other => Err(self.odd(column, other)),
        }
    }

    pub fn optional_text(&self, column: &str) -> Result<Option<String>, ReadError> {
        match self.value(column) {
            Value::Null => Ok(None),
            _ => self.text(column).map(|text| Some(text.to_owned())),
        }
    }

    pub fn blob(&self, column: &str) -> Result<Option<&[u8]>, ReadError> {
        match self.value(column) {
            Value::Blob(blob) => Ok(Some(blob)),
            Value::Null => Ok(None),
            other => Err(self.odd(column, other)),
        }
    }

    /// The row holds something that our writer would not have written there.
    pub fn odd(&self, column: &str, value: &Value) -> ReadError {
        ReadError::Damaged(format!("{} holds {} as {column}", self.place(), shown(value)))
    }

    pub fn value(&self, column: &str) -> &Value {
        let at = self.table.columns.iter().position(|(name, _)| *name == column);
        at.map_or(&Value::Null, |at| &self.values[at])
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(blob) => format!("{} bytes", blob.len()),
    }
}

/// A count as the store holds it; SQLite's integers end at 2^63 − 1.
pub(crate) fn count(what: &str, value: u64) -> Result<Value, StoreError> {
    i64::try_from(value).map(Value::Integer).map_err(|_| StoreError::Unstorable {
        what: what.to_owned(),
        detail: format!("{value} is larger than 2^63 - 1"),
    })
}

/// A number as the store holds it: NaN becomes NULL and −0 becomes 0, which SQLite would do behind the checksum's back.
pub(crate) fn real(value: f64) -> Value {
    if value.is_nan() { Value::Null } else { Value::Real(value + 0.0) }
}

/// A text as the store holds it.
pub(crate) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// A text that may be absent.
pub(crate) fn optional(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table that lost its key, as a damaged page makes of one.
    fn read(positions: &[i64]) -> Result<Vec<Row>, ReadError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("CREATE TABLE event (run, trial, position, at_ns, kind, text, crc)")?;
        for &position in positions {
            let numbers = [0, position, 7].map(Value::Integer);
            let row = [vec![text("a-1")], numbers.to_vec(), vec![text("hold"), text("")]].concat();
            EVENT.insert(&connection, row)?;
        }
        EVENT.select(&connection, "1", [])
    }

    #[test]
    fn a_row_that_comes_twice_is_damage_though_each_is_sound() {
        assert_eq!(read(&[0, 1, 2]).map(|rows| rows.len()).ok(), Some(3));
        let Err(ReadError::Damaged(what)) = read(&[0, 1, 1]) else { panic!("it was read") };
        assert_eq!(what, "event (a-1, 0, 1) is not in its place");
    }

    #[test]
    fn keys_are_ordered_by_their_columns_from_the_left() {
        let check = |before: [Value; 2], key: [Value; 2], expected| {
            assert_eq!(is_behind(&before, &key), expected, "{before:?} {key:?}");
        };
        let number = Value::Integer;
        check([text("a"), number(9)], [text("b"), number(1)], true);
        check([text("a"), number(1)], [text("a"), number(2)], true);
        check([text("a"), number(2)], [text("a"), number(2)], false);
        check([text("b"), number(1)], [text("a"), number(2)], false);
        // By bytes, as SQLite does.
        check([text("Z"), number(1)], [text("a"), number(1)], true);
    }
}
