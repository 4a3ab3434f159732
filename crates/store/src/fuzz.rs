//! One row as arbitrary bytes, for the fuzz target `store_rows`: what a foreign store can contain, past SQLite and past
//! the checksum, which anyone who forges a store can compute.

use rusqlite::types::Value;

use crate::error::StoreError;
use crate::export::{cells, object};
use crate::form::Kind;
use crate::row::{Row, Table};
use crate::run::RunId;
use crate::store::Store;
use crate::tables::{TABLES, USED_ID};

/// Reads a row as its table does and as exports do. Panics where what was read is stored as something else, or is not read
/// again as the same.
///
/// Shape of `input`: a byte for the table, then its columns; each is a byte for the kind (as in SQLite: NULL, integer, real,
/// text, blob) and 8 bytes, or a 16-bit length and as many bytes; all big-endian. What is missing is NULL.
pub fn read_row(input: &[u8]) {
    let Some(row) = row(input) else { return };
    let shown = object(&row).ok();
    assert_eq!(
        shown.is_some(),
        cells(&row).is_ok(),
        "one export shows {} and the other does not",
        row.place()
    );
    let table = row.table;
    let Ok(values) = (table.again)(&row) else { return };
    let own = &row.values[table.of.len()..];
    for ((column, before), after) in table.columns.iter().zip(own).zip(&values) {
        // JSON and histograms can be written in more than one way, and so can a real number.
        if column.kind != Kind::Json && matches!(before, Value::Integer(_) | Value::Text(_) | Value::Null) {
            assert_eq!(before, after, "{} of {}", column.name, table.name);
        }
    }
    let again = Row { table, values: [&row.values[..table.of.len()], &values].concat() };
    assert_eq!((table.again)(&again).ok(), Some(values), "what was stored again is read as something else");
    assert!(shown.is_some() && object(&again).is_ok(), "what is read is exported");
}

/// The rows of a run as inputs.
pub fn rows_of(store: &Store, run: &RunId) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut inputs = Vec::new();
    for (at, table) in (0..).zip(tables()) {
        let rows = table.select(store.connection(), "run = ?1", [run.as_str()]);
        for row in rows.map_err(|error| store.read(error))? {
            inputs.push(input(at, &row.values));
        }
    }
    Ok(inputs)
}

fn tables() -> impl Iterator<Item = &'static Table> {
    TABLES.into_iter().chain([&USED_ID])
}

fn row(input: &[u8]) -> Option<Row> {
    let (table, mut rest) = input.split_first()?;
    let table = tables().nth(usize::from(*table))?;
    let values = table.columns().map(|_| value(&mut rest)).collect::<Option<_>>()?;
    Some(Row { table, values })
}

/// `None`: no text that SQLite would give out.
fn value(rest: &mut &[u8]) -> Option<Value> {
    let eight = |rest: &mut &[u8]| rest.split_off(..8).map(|eight| eight.try_into().expect("eight bytes"));
    let bytes = |rest: &mut &[u8]| {
        let length = u16::from_be_bytes(rest.split_off(..2)?.try_into().expect("two bytes"));
        rest.split_off(..usize::from(length).min(rest.len())).map(<[u8]>::to_vec)
    };
    match rest.split_off_first() {
        Some(1) => eight(rest).map(|eight| Value::Integer(i64::from_be_bytes(eight))),
        Some(2) => eight(rest).map(|eight| match f64::from_be_bytes(eight) {
            // SQLite has none.
            real if real.is_nan() => Value::Null,
            real => Value::Real(real),
        }),
        Some(3) => String::from_utf8(bytes(rest)?).ok().map(Value::Text),
        Some(4) => bytes(rest).map(Value::Blob),
        _ => Some(Value::Null),
    }
}

fn input(table: u8, values: &[Value]) -> Vec<u8> {
    let mut bytes = vec![table];
    for value in values {
        let mut sized = |kind, content: &[u8]| {
            let length = content.len().min(usize::from(u16::MAX));
            bytes.push(kind);
            bytes.extend((length as u16).to_be_bytes());
            bytes.extend(&content[..length]);
        };
        match value {
            Value::Text(text) => sized(3, text.as_bytes()),
            Value::Blob(blob) => sized(4, blob),
            Value::Null => bytes.push(0),
            Value::Integer(integer) => bytes.extend([&[1], &integer.to_be_bytes()[..]].concat()),
            Value::Real(real) => bytes.extend([&[2], &real.to_be_bytes()[..]].concat()),
        }
    }
    bytes
}
