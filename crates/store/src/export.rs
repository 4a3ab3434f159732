//! Exports: a run for other programs, as JSON lines, as CSV files, as percentile tables and interval logs of
//! HdrHistogram.
//!
//! `seconds` are the lines for programs that follow a run, with figures instead of rows, and `RunSums` its totals at
//! one moment, as `open_metrics` or `otlp`; the rest of this text is about the others.
//! A run is read and checked completely before the first line is written, so an export is complete or an error. A run
//! that is being recorded is exported as of one moment.
//! Columns are those of `tables.rs`, which documents each, without `crc`. Units are in their names; `_ns` counts from
//! the start of the trial. A histogram column `v2` or `…_v2` is HdrHistogram's V2 encoding in base64, which every HDR
//! library reads, with its figures in ns beside it.

mod csv_files;
mod files;
mod hdr;
mod hgrm;
mod ndjson_lines;
mod open_metrics;
#[cfg(feature = "otlp")]
mod otlp;
mod second_lines;
mod sums;

#[cfg(feature = "fuzz")]
pub(crate) use csv_files::cells;
pub use csv_files::csv;
pub use files::part_of;
pub use hdr::hdr;
pub use ndjson_lines::ndjson;
#[cfg(feature = "fuzz")]
pub(crate) use ndjson_lines::object;
pub use open_metrics::open_metrics;
#[cfg(feature = "otlp")]
pub use otlp::{Counted, otlp};
pub use second_lines::{SECOND_LINES_SCHEMA, SecondLines, seconds};
pub use sums::{Family, Kind, Point, RunSums, Value as FamilyValue};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use measure::Distribution;
use rusqlite::types::Value;

use crate::entries::Which;
use crate::error::StoreError;
use crate::row::{ReadError, Row, Table};
use crate::run::RunId;
use crate::store::Store;
use crate::tables::TABLES;

/// The tables of an export: where a row is packed shows nowhere.
fn exported() -> impl Iterator<Item = &'static Table> {
    TABLES.into_iter().filter(|table| table.name != "pack")
}

/// Every row of one table of a run, checked, in key order. `each` may fail for its own reasons.
fn rows(
    store: &Store,
    run: &RunId,
    table: &'static Table,
    mut each: impl FnMut(&Row) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut failed = None;
    let read = Which::of_run(run).for_each(store.connection(), table, |row| {
        each(&row).map_err(|error| {
            // The reader knows only read errors; ours is kept and takes precedence below.
            failed = Some(error);
            ReadError::Damaged(String::new())
        })
    });
    match failed {
        Some(error) => Err(error),
        None => read.map_err(|error| store.read(error)),
    }
}

/// A histogram column as base64 and as a distribution; `None` where the column is NULL.
fn histogram(row: &Row, value: &Value) -> Result<Option<(String, Distribution)>, ReadError> {
    let Value::Blob(bytes) = value else { return Ok(None) };
    match Distribution::from_v2(bytes) {
        Ok(distribution) => Ok(Some((STANDARD.encode(bytes), distribution))),
        Err(error) => Err(ReadError::Damaged(format!("{}: {error}", row.place()))),
    }
}

/// Bytes as text where they are UTF-8, else as base64.
fn readable(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| STANDARD.encode(bytes), str::to_owned)
}
