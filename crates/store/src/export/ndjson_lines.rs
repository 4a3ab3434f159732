//! A run as JSON lines: one object per row, told apart by `table`.

use std::io::Write;

use rusqlite::types::Value;
use serde_json::{Map, json};

use super::{exported, histogram, readable, rows};
use crate::error::StoreError;
use crate::form::Kind;
use crate::row::{Column, ReadError, Row};
use crate::run::RunId;
use crate::store::Store;

/// Writes a run as JSON lines.
///
/// Shape: one object per line, `{"table": "flow", "run": "master-3", "trial": 0, …}`; first the run itself, then its
/// end, labels, trials and what belongs to them, each table in the order of its key. Columns whose text is JSON (`plan`,
/// `environment`, `cell`, `words`, `counters`, `evidence`, `climb`) are nested, `seed` is a number, 0/1 flags are booleans.
/// A histogram column is base64; its figures stand in `summary` (`interval_summary`, …): `p50 p90 p99 p999 max mean
/// stddev count`. An artifact's `content` is text, or base64 when it is not UTF-8.
/// Units: in the columns' names; figures of histograms are ns. NaN and infinity are null.
/// Errors: `UnknownRun`, `Damaged` before the first line is written, `Output` when `to` fails.
pub fn ndjson(store: &Store, run: &RunId, to: &mut dyn Write) -> Result<(), StoreError> {
    store.check_run(run)?;
    let _moment = store.moment()?;
    for table in exported() {
        rows(store, run, table, |row| line(to, &object(row).map_err(|error| store.read(error))?))?;
        if table.name == "run" {
            for (key, value) in store.labels(run)? {
                line(to, &json!({"table": "label", "run": run.as_str(), "key": key, "value": value}))?;
            }
        }
    }
    to.flush().map_err(failed)
}

fn line(to: &mut dyn Write, object: &serde_json::Value) -> Result<(), StoreError> {
    writeln!(to, "{object}").map_err(failed)
}

fn failed(error: std::io::Error) -> StoreError {
    StoreError::Output { to: "as JSON lines".to_owned(), detail: error.to_string() }
}

/// A row as it is exported.
pub(crate) fn object(row: &Row) -> Result<serde_json::Value, ReadError> {
    let mut object = Map::new();
    object.insert("table".to_owned(), json!(row.table.name));
    for (Column { name, kind, .. }, value) in row.table.columns().zip(&row.values) {
        let shown = match (kind, value) {
            (_, Value::Null) => serde_json::Value::Null,
            (Kind::Flag, Value::Integer(flag)) => json!(*flag == 1),
            // It was checked when it was stored; what does not parse any more stays text.
            (Kind::Json, Value::Text(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            (Kind::Histogram, _) => {
                let Some((base64, distribution)) = histogram(row, value)? else { continue };
                let summary = format!("{}summary", name.strip_suffix("v2").unwrap_or(name));
                object.insert((*name).to_owned(), json!(base64));
                object.insert(summary, json!(distribution.summary()));
                continue;
            }
            (_, Value::Integer(integer)) => json!(integer),
            (_, Value::Real(real)) => json!(real),
            (_, Value::Text(text)) => json!(text),
            (_, Value::Blob(bytes)) => json!(readable(bytes)),
        };
        object.insert((*name).to_owned(), shown);
    }
    Ok(serde_json::Value::Object(object))
}
