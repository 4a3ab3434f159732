//! Old seconds, packed: of a long trial the rows of five tables become rows of `pack`, which hold those of some seconds each,
//! compressed. Nothing is rounded or merged: what is read is what was written, row for row, and whoever reads rows through
//! [`Which`] does not see where they are.
//!
//! An hour of rows is 84 MB, packed 22: histograms leave most of their pages empty, and neighbouring readings are alike.
//! Only the writer packs, behind the second that it has just committed, so that a long trial is never in the file as rows.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, ToSql, params};

use crate::row::{ReadError, Row, Rows, Table};
use crate::run::RunId;
use crate::tables::{self, DISTRIBUTION, FLOW, PACK, SAMPLE, TALLY, TICK};

/// The tables whose rows are packed; each is ordered within a trial by its first own column.
pub(crate) static PACKED: [&Table; 5] = [&FLOW, &DISTRIBUTION, &TALLY, &TICK, &SAMPLE];
/// How many seconds of a trial stay rows: ordinary holds are never packed.
const KEPT_S: usize = 300;
/// How many seconds are packed at once: a moment's work beside the load.
const PACKED_S: usize = 15;
/// No pack is larger, unpacked, in bytes: ours have a few megabytes. A trial that would have a larger one stays as it is.
const LARGEST: usize = 128 << 20;

pub(crate) fn is_packed(table: &Table) -> bool {
    PACKED.iter().any(|packed| packed.name == table.name)
}

/// The seconds of the trial that is being written and that are rows still: the number of each and the position of its entry.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    seconds: VecDeque<(u32, u64)>,
    is_too_large: bool,
}

impl Unpacked {
    /// A second was committed.
    pub fn add(&mut self, second: u32, position: u64) {
        self.seconds.push_back((second, position));
    }

    /// Whether there are enough seconds for the oldest to be packed.
    pub fn is_due(&self) -> bool {
        !self.is_too_large && self.seconds.len() >= KEPT_S + PACKED_S
    }

    /// Packs the oldest. Errors: what the disk says.
    pub fn pack(&mut self, connection: &Connection, run: &RunId, trial: u32) -> Result<(), ReadError> {
        self.seconds.drain(..PACKED_S);
        let Some(&(second, position)) = self.seconds.front() else { return Ok(()) };
        for table in PACKED {
            let before = if table.columns[0].name == "position" { position } else { u64::from(second) };
            // Packed rows of a trial come before those that are not, so one that is left out is the last.
            self.is_too_large |= !pack(connection, run, trial, table, before)?;
        }
        Ok(())
    }
}

/// Rows of a table before a second or a position become one row of `pack`; false: it would be too large.
fn pack(
    connection: &Connection,
    run: &RunId,
    trial: u32,
    table: &'static Table,
    before: u64,
) -> Result<bool, ReadError> {
    // Seconds and positions come from 64-bit signed columns.
    let condition = format!("run = ?1 AND trial = ?2 AND {} < ?3", table.columns[0].name);
    let key = params![run.as_str(), trial, before as i64];
    let rows = table.select(connection, &condition, key)?;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(true) };
    let plain = in_one(table, &rows);
    if plain.len() > LARGEST {
        return Ok(false);
    }
    let row = Pack {
        of_table: table.name.to_owned(),
        first: first.number()?,
        last: last.number()?,
        rows: rows.len() as u64,
        content: deflated(&plain),
    };
    // Numbers and texts of rows that were stored.
    let values = tables::pack::values(&row).map_err(|error| ReadError::Damaged(error.to_string()))?;
    PACK.insert_in_trial(connection, run.as_str(), trial, values)?;
    let sql = format!("DELETE FROM {} WHERE {condition}", table.name);
    connection.prepare_cached(&sql)?.execute(key)?;
    Ok(true)
}

/// A row of `pack`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pack {
    pub of_table: String,
    pub first: u64,
    pub last: u64,
    pub rows: u64,
    pub content: Vec<u8>,
}

/// Rows one after the other, without the columns of the trial. A value is a byte for its kind and 8 bytes, or 4 for a length
/// and as many bytes; little-endian.
fn in_one(table: &Table, rows: &[Row]) -> Vec<u8> {
    let mut plain = Vec::new();
    for value in rows.iter().flat_map(|row| &row.values[table.of.len()..]) {
        let mut sized = |kind, bytes: &[u8]| {
            plain.push(kind);
            plain.extend((bytes.len() as u32).to_le_bytes());
            plain.extend(bytes);
        };
        match value {
            Value::Null => plain.push(0),
            Value::Integer(integer) => plain.extend([&[1], &integer.to_le_bytes()[..]].concat()),
            Value::Real(real) => plain.extend([&[2], &real.to_bits().to_le_bytes()[..]].concat()),
            Value::Text(text) => sized(3, text.as_bytes()),
            Value::Blob(blob) => sized(4, blob),
        }
    }
    plain
}

fn deflated(plain: &[u8]) -> Vec<u8> {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    let written = deflated.write_all(plain).and_then(|()| deflated.finish());
    written.expect("memory takes every byte")
}

/// The rows of a pack, one after the other.
pub(crate) struct Unpacking {
    table: &'static Table,
    /// the columns of the trial
    of: Vec<Value>,
    plain: Vec<u8>,
    /// where the next row begins
    at: usize,
    /// first and last that it should have, and how many
    expected: (u64, u64, u64),
    /// the same of those that were there
    found: Option<(u64, u64, u64)>,
}

impl Unpacking {
    /// Errors, here and of `next`: it is nothing that we write, in words.
    pub fn new(table: &'static Table, of: &[Value], pack: &Pack) -> Result<Self, String> {
        let mut plain = Vec::new();
        let read =
            DeflateDecoder::new(pack.content.as_slice()).take(LARGEST as u64 + 1).read_to_end(&mut plain);
        read.map_err(|error| format!("is not compressed as ours are: {error}"))?;
        let expected = (pack.first, pack.last, pack.rows);
        Ok(Unpacking { table, of: of.to_vec(), plain, at: 0, expected, found: None })
    }

    pub fn next(&mut self) -> Result<Option<Row>, String> {
        let mut rest = &self.plain[self.at..];
        if rest.is_empty() {
            let is_whole = self.found == Some(self.expected);
            return if is_whole { Ok(None) } else { Err("holds other rows than it says".to_owned()) };
        }
        let own = self.table.columns.iter().map(|_| value(&mut rest));
        let own = own.collect::<Option<Vec<Value>>>().ok_or("ends within a row")?;
        self.at = self.plain.len() - rest.len();
        let row = Row { table: self.table, values: self.of.iter().cloned().chain(own).collect() };
        let key = row.number().map_err(|_| "has a row without a place")?;
        let (first, _, rows) = self.found.unwrap_or((key, key, 0));
        self.found = Some((first, key, rows + 1));
        Ok(Some(row))
    }
}

fn value(rest: &mut &[u8]) -> Option<Value> {
    fn some<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
        rest.split_off(..N)?.try_into().ok()
    }
    let bytes = |rest: &mut &[u8]| {
        let length = u32::from_le_bytes(some(rest)?);
        rest.split_off(..usize::try_from(length).ok()?).map(<[u8]>::to_vec)
    };
    Some(match rest.split_off_first()? {
        0 => Value::Null,
        1 => Value::Integer(i64::from_le_bytes(some(rest)?)),
        2 => Value::Real(f64::from_bits(u64::from_le_bytes(some(rest)?))),
        3 => Value::Text(String::from_utf8(bytes(rest)?).ok()?),
        4 => Value::Blob(bytes(rest)?),
        _ => return None,
    })
}

/// Which rows of a table: those of a run, of one of its trials, or of a trial from a second or position on and before another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which<'a> {
    run: &'a str,
    trial: Option<u32>,
    /// of the first own column
    from: i64,
    before: i64,
}

impl<'a> Which<'a> {
    pub fn of_run(run: &'a RunId) -> Self {
        Which { run: run.as_str(), trial: None, from: 0, before: i64::MAX }
    }

    pub fn of_trial(run: &'a RunId, trial: u32) -> Self {
        Which { trial: Some(trial), ..Which::of_run(run) }
    }

    /// Of a trial only.
    pub fn within(self, from: i64, before: i64) -> Self {
        Which { from, before, ..self }
    }

    fn is_part(&self) -> bool {
        (self.from, self.before) != (0, i64::MAX)
    }

    fn condition(&self, key: &str) -> String {
        match (self.trial, self.is_part()) {
            (None, _) => "run = ?1".to_owned(),
            (Some(_), false) => "run = ?1 AND trial = ?2".to_owned(),
            (Some(_), true) => format!("run = ?1 AND trial = ?2 AND {key} >= ?3 AND {key} < ?4"),
        }
    }

    /// Hands `parameters` of the condition to `ask`.
    fn asked<T>(&self, ask: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        let all: [&dyn ToSql; 4] = [&self.run, &self.trial, &self.from, &self.before];
        ask(match (self.trial, self.is_part()) {
            (None, _) => &all[..1],
            (Some(_), false) => &all[..2],
            (Some(_), true) => &all,
        })
    }

    /// Asks for them, in the order of the key; `rows` reads them.
    pub fn question<'c>(
        &self,
        connection: &'c Connection,
        table: &Table,
    ) -> rusqlite::Result<CachedStatement<'c>> {
        table.question(connection, &self.condition(table.columns[0].name))
    }

    /// The rows of a `question` one after the other, packed or not.
    pub fn rows<'q>(
        &self,
        connection: &'q Connection,
        table: &'static Table,
        question: &'q mut CachedStatement<'_>,
    ) -> Result<Rows<'q>, ReadError> {
        let rows = self.asked(|parameters| table.rows(question, parameters))?;
        Ok(if is_packed(table) { rows.behind(Packs::of(connection, table, self)?) } else { rows })
    }

    /// Each of them into `each`.
    pub fn for_each(
        &self,
        connection: &Connection,
        table: &'static Table,
        mut each: impl FnMut(Row) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut question = self.question(connection, table)?;
        let mut rows = self.rows(connection, table, &mut question)?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }
}

/// The packs that may hold rows of a question, each looked up and unpacked when its turn comes.
pub(crate) struct Packs<'q> {
    connection: &'q Connection,
    table: &'static Table,
    run: String,
    from: i64,
    before: i64,
    /// that have packs which were not looked at
    trials: VecDeque<u32>,
    /// first row of the next pack of the first of these trials, or before it
    next_first: i64,
    /// the pack that is being read, and its own row
    reading: Option<(Unpacking, Row)>,
}

impl<'q> Packs<'q> {
    fn of(
        connection: &'q Connection,
        table: &'static Table,
        which: &Which<'_>,
    ) -> Result<Packs<'q>, ReadError> {
        let &Which { run, trial, from, before } = which;
        let (trials, next_first) = match trial {
            Some(trial) => {
                let sql = "SELECT max(first) FROM pack WHERE run = ?1 AND trial = ?2 AND of_table = ?3 AND first <= ?4";
                let asked = params![run, trial, table.name, from];
                let first: Option<i64> =
                    connection.prepare_cached(sql)?.query_row(asked, |row| row.get(0))?;
                (VecDeque::from([trial]), first.unwrap_or(from))
            }
            None => {
                let sql = "SELECT DISTINCT trial FROM pack WHERE run = ?1 AND of_table = ?2 ORDER BY trial";
                let mut question = connection.prepare_cached(sql)?;
                let trials = question.query_map([run, table.name], |row| row.get(0))?;
                (trials.collect::<Result<_, _>>()?, 0)
            }
        };
        let run = run.to_owned();
        Ok(Packs { connection, table, run, from, before, trials, next_first, reading: None })
    }

    /// The next row, if it is of a trial up to `trial`: packed rows of a trial come before the others.
    pub fn next(&mut self, trial: Option<u32>) -> Result<Option<Row>, ReadError> {
        loop {
            while let Some((unpacking, pack)) = &mut self.reading {
                let Some(row) = unpacking.next().map_err(|why| odd(pack, why))? else {
                    self.reading = None;
                    break;
                };
                let key = i64::try_from(row.number()?).unwrap_or(i64::MAX);
                if key >= self.before {
                    self.reading = None;
                } else if key >= self.from {
                    return Ok(Some(row));
                }
            }
            match self.trials.front() {
                Some(&of) if trial.is_none_or(|trial| of <= trial) => self.unpack(of)?,
                _ => return Ok(None),
            }
        }
    }

    /// The next pack of the first trial; behind its last, the trial is done.
    fn unpack(&mut self, trial: u32) -> Result<(), ReadError> {
        let next = "run = ?1 AND trial = ?2 AND of_table = ?3 AND first = (SELECT min(first) FROM pack \
                    WHERE run = ?1 AND trial = ?2 AND of_table = ?3 AND first >= ?4 AND first < ?5)";
        let asked = params![self.run, trial, self.table.name, self.next_first, self.before];
        let Some(row) = PACK.select(self.connection, next, asked)?.pop() else {
            self.trials.pop_front();
            self.next_first = 0;
            return Ok(());
        };
        let pack = tables::pack::read(&row)?;
        self.next_first = i64::try_from(pack.last).unwrap_or(i64::MAX).saturating_add(1);
        let of = &row.values[..self.table.of.len()];
        let unpacking = Unpacking::new(self.table, of, &pack).map_err(|why| odd(&row, why))?;
        self.reading = Some((unpacking, row));
        Ok(())
    }
}

fn odd(pack: &Row, why: String) -> ReadError {
    pack.odd(pack.values.len() - 1, Some(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First, last, number and content of a pack with these rows.
    type Said = fn(Vec<u8>) -> (u64, u64, u64, Vec<u8>);

    /// Two rows of `tally` in a pack that says this of itself.
    fn read(pack: Said) -> Result<Vec<Vec<Value>>, String> {
        let row = |second: i64| {
            let text = |text: &str| Value::Text(text.to_owned());
            let own = [Value::Integer(second), text("error"), text("reset"), Value::Integer(7)];
            Row { table: &TALLY, values: [&of()[..], &own].concat() }
        };
        let (first, last, rows, content) = pack(in_one(&TALLY, &[row(3), row(4)]));
        let pack = Pack { of_table: "tally".to_owned(), first, last, rows, content };
        let mut unpacking = Unpacking::new(&TALLY, &of(), &pack)?;
        let rows = std::iter::from_fn(|| unpacking.next().transpose()).map(|row| row.map(|row| row.values));
        rows.collect()
    }

    fn of() -> [Value; 2] {
        [Value::Text("a-1".to_owned()), Value::Integer(0)]
    }

    #[test]
    fn a_pack_is_its_rows_or_an_error() {
        let rows = read(|plain| (3, 4, 2, deflated(&plain))).unwrap();
        assert_eq!(
            rows.iter().map(|row| &row[2]).collect::<Vec<_>>(),
            [&Value::Integer(3), &Value::Integer(4)]
        );
        let check = |pack: Said, expected: &str| {
            let said = read(pack).unwrap_err();
            assert!(said.starts_with(expected), "{said}");
        };
        check(|plain| (3, 4, 3, deflated(&plain)), "holds other rows");
        check(|plain| (2, 4, 2, deflated(&plain)), "holds other rows");
        check(|plain| (3, 5, 2, deflated(&plain)), "holds other rows");
        check(|_| (3, 4, 2, deflated(&[])), "holds other rows");
        check(|plain| (3, 4, 2, deflated(&plain[..plain.len() - 1])), "ends within a row");
        check(|plain| (3, 4, 2, deflated(&[&[9], &plain[..]].concat())), "ends within a row");
        check(|plain| (3, 4, 2, deflated(&[&[0; 4], &plain[..]].concat())), "has a row without a place");
        check(|plain| (3, 4, 2, plain), "is not compressed");
        // A text or blob of four gigabytes that is not there.
        check(|_| (3, 4, 2, deflated(&[4, 255, 255, 255, 255])), "ends within a row");
    }
}
