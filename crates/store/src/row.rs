//! Rows with their own checksum: how every row but a label is written and read.
//!
//! SQLite detects a broken page but not a flipped bit inside a number. So each row ends with the CRC-32 of its table's
//! name and its columns, and a row whose CRC does not match is an error, never a figure. CRC-32 detects every error of
//! up to 32 neighbouring bits and all but one in four billion of the others.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::path::Path;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Params, params_from_iter};

use crate::entries::Packs;
use crate::error::StoreError;
use crate::form::{Count, Form, Kind, Loads, Text};

/// A column.
pub(crate) struct Column {
    pub name: &'static str,
    /// what it means; empty where its name says it
    pub about: &'static str,
    /// `INTEGER NOT NULL`
    pub form: &'static str,
    pub kind: Kind,
    /// what SQLite checks of it by its form
    pub check: fn(&str) -> String,
    /// what else follows it
    pub more: &'static str,
}

/// A table; `tables` declares them.
pub(crate) struct Table {
    pub name: &'static str,
    pub about: &'static [&'static str],
    /// to what its rows belong: the first columns, which are in the primary key
    pub of: &'static [Column],
    /// its own columns without `crc`; the first `key` of them are in the primary key
    pub columns: &'static [Column],
    pub key: usize,
    pub constraints: &'static [&'static str],
    /// what one of its rows is stored as again, after the columns of `of`
    #[cfg(feature = "fuzz")]
    pub again: fn(&Row) -> Result<Vec<Value>, ReadError>,
}

const OF: Column = Column {
    name: "run",
    about: "",
    form: Text::TYPE,
    kind: Text::KIND,
    check: <Text as Form>::check,
    more: "",
};

/// Rows of a run.
pub(crate) static OF_RUN: [Column; 1] = [OF];

/// Rows of a trial.
pub(crate) static OF_TRIAL: [Column; 2] =
    [OF, Column { name: "trial", form: Count::TYPE, check: <Count as Form>::check, ..OF }];

impl Table {
    /// The statement that makes it.
    pub fn create(&self) -> String {
        let comment = |lines: &[&str]| lines.iter().map(|line| format!("--{line}\n")).collect::<String>();
        let mut sql = format!("\n{}CREATE TABLE {} (\n", comment(self.about), self.name);
        for column in self.columns() {
            let Column { name, form, more, .. } = column;
            let after = |sign: &str, text: &str, end: &str| match text {
                "" => String::new(),
                text => format!(" {sign}{text}{end}"),
            };
            let check = after("CHECK (", &(column.check)(name), ")");
            let (more, about) = (after("", more, ""), after("-- ", column.about, ""));
            sql += &format!("  {name} {form}{check}{more},{about}\n");
        }
        sql += &format!("  crc INTEGER NOT NULL,\n  PRIMARY KEY ({})", self.key_list());
        self.constraints.iter().for_each(|constraint| sql += &format!(",\n  {constraint}"));
        sql + "\n) WITHOUT ROWID;\n"
    }

    /// All its columns but `crc`, in their order.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.of.iter().chain(self.columns)
    }

    /// Adds one row of a run: what follows the run's id, in the order of the columns.
    pub fn insert(&self, connection: &Connection, run: &str, values: Vec<Value>) -> rusqlite::Result<()> {
        let mut row = vec![Value::Text(run.to_owned())];
        row.extend(values);
        self.insert_row(connection, row)
    }

    /// Adds one row of a trial: what follows its number, in the order of the columns.
    pub fn insert_in_trial(
        &self,
        connection: &Connection,
        run: &str,
        trial: u32,
        values: Vec<Value>,
    ) -> rusqlite::Result<()> {
        let mut row = vec![Value::Text(run.to_owned()), Value::Integer(i64::from(trial))];
        row.extend(values);
        self.insert_row(connection, row)
    }

    /// Whether each of its rows belongs to a trial, or is one.
    pub fn is_of_trials(&self) -> bool {
        self.columns().nth(1).is_some_and(|column| column.name == "trial")
    }

    /// Adds one row: the values of all columns.
    pub fn insert_row(&self, connection: &Connection, mut row: Vec<Value>) -> rusqlite::Result<()> {
        debug_assert_eq!(row.len(), self.columns().count(), "one value for each column of {}", self.name);
        row.push(Value::Integer(self.crc(row.iter().map(ValueRef::from))));
        let places = vec!["?"; row.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}, crc) VALUES ({places})", self.name, self.column_list());
        connection.prepare_cached(&sql)?.execute(params_from_iter(row))?;
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
        let (columns, key) = (self.column_list(), self.key_list());
        let sql = format!("SELECT {columns}, crc FROM {} WHERE {condition} ORDER BY {key}", self.name);
        connection.prepare_cached(&sql)
    }

    /// The rows of a `question` one after the other.
    pub fn rows<'q, P: Params>(
        &'static self,
        question: &'q mut CachedStatement<'_>,
        params: P,
    ) -> Result<Rows<'q>, ReadError> {
        Ok(Rows { table: self, rows: question.query(params)?, packs: None, ahead: None, before: None })
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
        self.columns().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    fn key_list(&self) -> String {
        self.columns().take(self.key_columns()).map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    fn key_columns(&self) -> usize {
        self.of.len() + self.key
    }

    fn crc<'a>(&self, values: impl Iterator<Item = ValueRef<'a>>) -> i64 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(self.name.as_bytes());
        for value in values {
            // The type and the length are included, so that no two rows have the same bytes.
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

/// Rows of a table in key order, each read and checked on demand.
pub(crate) struct Rows<'q> {
    table: &'static Table,
    rows: rusqlite::Rows<'q>,
    /// those of them that are packed
    packs: Option<Packs<'q>>,
    /// one that comes behind those of a pack
    ahead: Option<Row>,
    /// key of the last one
    before: Option<Vec<Value>>,
}

impl<'q> Rows<'q> {
    /// The same with those that are packed.
    pub fn behind(self, packs: Packs<'q>) -> Self {
        Rows { packs: Some(packs), ..self }
    }

    /// The next row. Errors: one that is not what was written, or that does not come after the one before: a damaged
    /// page may lead to the same rows twice instead of to others, and their number would still be right.
    pub fn next(&mut self) -> Result<Option<Row>, ReadError> {
        let Some(read) = self.next_of_any()? else { return Ok(None) };
        let key = read.key();
        if self.before.as_deref().is_some_and(|before| !is_behind(before, key)) {
            return Err(ReadError::Damaged(format!("{} is not in its place", read.place())));
        }
        match &mut self.before {
            Some(before) => before.clone_from_slice(key),
            None => self.before = Some(key.to_vec()),
        }
        Ok(Some(read))
    }

    /// The next one, packed or not.
    fn next_of_any(&mut self) -> Result<Option<Row>, ReadError> {
        let Some(mut packs) = self.packs.take() else { return self.next_in_table() };
        if self.ahead.is_none() {
            self.ahead = self.next_in_table()?;
        }
        let trial = self.ahead.as_ref().map(Row::trial).transpose()?;
        let packed = packs.next(trial)?;
        self.packs = Some(packs);
        Ok(packed.or_else(|| self.ahead.take()))
    }

    /// The next row of the table, checked.
    fn next_in_table(&mut self) -> Result<Option<Row>, ReadError> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let count = self.table.columns().count();
        let values = (0..count).map(|at| row.get(at)).collect::<Result<Vec<Value>, _>>()?;
        let read = Row { table: self.table, values };
        let crc: Value = row.get(count)?;
        if crc != Value::Integer(self.table.crc(read.values.iter().map(ValueRef::from))) {
            return Err(ReadError::Damaged(format!("{} is not what was written", read.place())));
        }
        Ok(Some(read))
    }
}

/// Whether `key` comes after `before` in the order of the table; keys hold whole numbers and texts.
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

impl ReadError {
    /// The same of the store at `path`.
    pub fn into_store(self, path: &Path) -> StoreError {
        match self {
            ReadError::Sqlite(error) => StoreError::from_sqlite(path, error),
            ReadError::Damaged(what) => StoreError::Damaged { path: path.to_owned(), what },
        }
    }
}

/// One row that was read and checked.
pub(crate) struct Row {
    pub table: &'static Table,
    /// in the order of the table's columns
    pub values: Vec<Value>,
}

impl Row {
    /// What it is found by.
    pub fn key(&self) -> &[Value] {
        &self.values[..self.table.key_columns()]
    }

    /// Its location, for people: `flow (master-3, 0, 12, hold, shot)`.
    pub fn place(&self) -> String {
        let key: Vec<String> = self.key().iter().map(shown).collect();
        format!("{} ({})", self.table.name, key.join(", "))
    }

    /// The trial that it belongs to.
    pub fn trial(&self) -> Result<u32, ReadError> {
        Count::load(&self.values[1]).map_err(|why| self.odd(1, why))
    }

    /// Its first own column, if that is a number.
    pub fn number(&self) -> Result<u64, ReadError> {
        let at = self.table.of.len();
        Count::load(&self.values[at]).map_err(|why| self.odd(at, why))
    }

    /// The row holds at `at` something that our writer would not have written there.
    pub fn odd(&self, at: usize, why: Option<String>) -> ReadError {
        let column = self.table.columns().nth(at).map_or("?", |column| column.name);
        ReadError::Damaged(match why {
            Some(why) => format!("{} ({column}): {why}", self.place()),
            None => format!("{} holds {} as {column}", self.place(), shown(&self.values[at])),
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::EVENT;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// A table that lost its key, as a damaged page makes of one.
    fn read(positions: &[i64]) -> Result<Vec<Row>, ReadError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("CREATE TABLE event (run, trial, position, at_ns, kind, text, crc)")?;
        for &position in positions {
            let numbers = [position, 7].map(Value::Integer);
            let row = [numbers.to_vec(), vec![text("hold"), text("")]].concat();
            EVENT.insert_in_trial(&connection, "a-1", 0, row)?;
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
