//! A run as a folder of CSV files, one per table, with percentile tables beside them.

use std::io::Write;
use std::path::Path;

use measure::Distribution;
use rusqlite::types::Value;

use super::files::{NewFile, create, failed};
use super::{exported, hgrm, histogram, readable, rows};
use crate::error::StoreError;
use crate::form::Kind;
use crate::row::{Column, ReadError, Row, Table};
use crate::run::RunId;
use crate::store::Store;
use crate::tables::{self, ARTIFACT};

/// The figures in the columns next to a histogram column.
const FIGURES: [&str; 7] = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "mean_ns", "stddev_ns"];

/// Writes a run into the folder `dir`, which is made if need be; each file is whole or not
/// there, and none that exists is overwritten.
///
/// Shape: `run.csv`, `label.csv`, `trial.csv`, `flow.csv` … one file per table that has rows of this run, RFC 4180, a
/// first line of column names, rows in the order of the key. A histogram column `v2` (`interval_v2`, …) is base64 and
/// is followed by `p50_ns p90_ns p99_ns p999_ns max_ns mean_ns stddev_ns` (`interval_p50_ns`, …). NULL is empty. For
/// each trial and measure `trial-N-NAME.hgrm`: the percentile table of HdrHistogram's plotter, of the messages that were
/// planned in the hold (handshakes: of the whole trial), no warm-up cut off. Artifacts are files in `artifacts/`.
/// A text that a spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@`, a tab or a line's end) has a `'`
/// before it; the export as JSON has every text as it is.
/// Units: in the columns' names; values of the percentile tables are ms.
/// Errors: `UnknownRun`, `Damaged` before anything is written, `Output` with the path that failed.
pub fn csv(store: &Store, run: &RunId, dir: &Path) -> Result<(), StoreError> {
    store.check_run(run)?;
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    tables(store, run, dir)?;
    hgrm::of_run(store, run, dir)
}

fn tables(store: &Store, run: &RunId, dir: &Path) -> Result<(), StoreError> {
    let _moment = store.moment()?;
    for table in exported().filter(|table| table.name != "artifact") {
        one_table(store, run, table, dir)?;
    }
    artifacts(store, run, dir)?;
    let labels = store.labels(run)?;
    if labels.is_empty() {
        return Ok(());
    }
    let mut sheet = Sheet::create(dir, "label")?;
    sheet.write(["run", "key", "value"].map(str::to_owned))?;
    for (key, value) in labels {
        sheet.write([run.to_string(), no_formula(&key), no_formula(&value)])?;
    }
    sheet.finish()
}

fn one_table(store: &Store, run: &RunId, table: &'static Table, dir: &Path) -> Result<(), StoreError> {
    let mut sheet = None;
    rows(store, run, table, |row| {
        if sheet.is_none() {
            let mut fresh = Sheet::create(dir, table.name)?;
            fresh.write(heads(table))?;
            sheet = Some(fresh);
        }
        let cells = cells(row).map_err(|error| store.read(error))?;
        sheet.as_mut().map_or(Ok(()), |sheet| sheet.write(cells))
    })?;
    sheet.map_or(Ok(()), Sheet::finish)
}

fn heads(table: &Table) -> Vec<String> {
    let mut heads = Vec::new();
    for Column { name, kind, .. } in table.columns() {
        heads.push((*name).to_owned());
        if *kind == Kind::Histogram {
            let prefix = name.strip_suffix("v2").unwrap_or(name);
            heads.extend(FIGURES.iter().map(|figure| format!("{prefix}{figure}")));
        }
    }
    heads
}

/// A row as it is exported.
pub(crate) fn cells(row: &Row) -> Result<Vec<String>, ReadError> {
    let mut cells = Vec::new();
    for (column, value) in row.table.columns().zip(&row.values) {
        match (column.kind, value) {
            (Kind::Histogram, _) => match histogram(row, value)? {
                Some((base64, distribution)) => {
                    cells.push(base64);
                    cells.extend(figures(&distribution));
                }
                None => cells.extend(std::iter::repeat_n(String::new(), 1 + FIGURES.len())),
            },
            (_, Value::Null) => cells.push(String::new()),
            (_, Value::Integer(integer)) => cells.push(integer.to_string()),
            (_, Value::Real(real)) => cells.push(real.to_string()),
            (_, Value::Text(text)) => cells.push(no_formula(text)),
            (_, Value::Blob(bytes)) => cells.push(no_formula(&readable(bytes))),
        }
    }
    Ok(cells)
}

/// A text that no spreadsheet carries out: servers and scenarios write some of them. Source: OWASP, "CSV Injection".
fn no_formula(text: &str) -> String {
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    if begins { format!("'{text}") } else { text.to_owned() }
}

fn figures(distribution: &Distribution) -> [String; FIGURES.len()] {
    let Some(summary) = distribution.summary() else { return Default::default() };
    let whole = |ns: Option<u64>| ns.map(|ns| ns.to_string()).unwrap_or_default();
    let real = |ns: Option<f64>| ns.map(|ns| ns.to_string()).unwrap_or_default();
    [
        whole(summary.p50),
        whole(summary.p90),
        whole(summary.p99),
        whole(summary.p999),
        whole(summary.max),
        real(summary.mean),
        real(summary.stddev),
    ]
}

fn artifacts(store: &Store, run: &RunId, dir: &Path) -> Result<(), StoreError> {
    rows(store, run, &ARTIFACT, |row| {
        let (name, content) = tables::artifact::read(row).map_err(|error| store.read(error))?;
        let folder = dir.join("artifacts");
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        // A name is not a path: whatever a foreign store contains, nothing is written elsewhere.
        let path = folder.join(name.replace(['/', '\\'], "_").trim_start_matches('.'));
        let mut file = create(&path)?;
        file.write_all(&content).map_err(|error| failed(&path, error))?;
        file.finish()
    })
}

/// One CSV file under way.
struct Sheet {
    path: std::path::PathBuf,
    writer: csv::Writer<NewFile>,
}

impl Sheet {
    fn create(dir: &Path, table: &str) -> Result<Sheet, StoreError> {
        let path = dir.join(format!("{table}.csv"));
        let writer = csv::Writer::from_writer(create(&path)?);
        Ok(Sheet { path, writer })
    }

    fn write(&mut self, cells: impl IntoIterator<Item = String>) -> Result<(), StoreError> {
        self.writer
            .write_record(cells.into_iter().map(String::into_bytes))
            .map_err(|error| failed(&self.path, error))
    }

    fn finish(self) -> Result<(), StoreError> {
        self.writer.into_inner().map_err(|error| failed(&self.path, error))?.finish()
    }
}
