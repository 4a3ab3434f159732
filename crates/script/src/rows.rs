//! Rows that bots take from a file: CSV with a head, or JSON lines.
//!
//! A file is read once, before any load, and its rows are shared by all workers. Each is kept as the text of a JSON object,
//! which the engine parses when a bot takes it: ten thousand rows cost their text, not ten thousand objects per worker.
//! Values of CSV are strings. Pure: the caller reads files.

use std::path::Path;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::bundle::{ReadFile, ScriptMistake};

/// No file has more rows.
const ROWS_MAX: usize = 10_000_000;

/// Which row is a bot's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// the one with the bot's number, which no other bot has
    #[default]
    Unique,
    /// one by chance, from the seed and the bot's number; other bots may have it too
    Shared,
    /// the one with the bot's number, from the start again after the last
    Wrap,
}

impl FromStr for How {
    type Err = String;

    fn from_str(how: &str) -> Result<How, String> {
        match how {
            "unique" => Ok(How::Unique),
            "shared" => Ok(How::Shared),
            "wrap" => Ok(How::Wrap),
            other => Err(format!("bot.row: \"{other}\" is none of \"unique\", \"shared\" and \"wrap\"")),
        }
    }
}

/// The rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    file: String,
    how: How,
    rows: Vec<Box<str>>,
}

impl Rows {
    /// Reads a file: JSON lines where its name ends in `.jsonl` or `.ndjson`, else CSV whose first line names the columns.
    /// Errors: the file, the line and what is wrong there.
    pub fn read(path: &Path, read: ReadFile<'_>, how: How) -> Result<Rows, ScriptMistake> {
        let file = path.to_string_lossy().into_owned();
        let refused = |line: Option<u64>, what: String| ScriptMistake {
            file: file.clone(),
            at: line.map(|line| (u32::try_from(line).unwrap_or(u32::MAX), 1)),
            what,
            line: String::new(),
        };
        let text = read(path).map_err(|error| refused(None, format!("cannot be read: {error}")))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_json = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson");
        let rows = if is_json { of_json_lines(text) } else { of_csv(text) };
        let rows = rows.map_err(|(line, what)| refused(line, what))?;
        if rows.is_empty() {
            return Err(refused(None, "it has no rows".to_owned()));
        }
        Ok(Rows { file, how, rows })
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Refuses a load whose bots cannot have a row each. Errors: how many there are, how many are needed.
    pub fn suffice_for(&self, bots: u64) -> Result<(), ScriptMistake> {
        if self.how != How::Unique || bots <= self.count() {
            return Ok(());
        }
        let what = format!(
            "it has {} rows and {bots} bots take one each; add rows, lower the load, or write \"wrap\" or \"shared\" in bot.row",
            self.count()
        );
        Err(ScriptMistake { file: self.file.clone(), at: None, what, line: String::new() })
    }

    /// A bot's row, as the text of a JSON object. `chance`: in [0, 1). `None`: there are fewer rows than bots.
    pub(crate) fn of(&self, bot: u64, how: How, chance: f64) -> Option<&str> {
        let count = self.rows.len();
        let at = match how {
            How::Unique => usize::try_from(bot).ok()?,
            How::Wrap => (bot % count as u64) as usize,
            How::Shared => ((chance * count as f64) as usize).min(count - 1),
        };
        self.rows.get(at).map(|row| &**row)
    }
}

type Mistake = (Option<u64>, String);

fn of_csv(text: &str) -> Result<Vec<Box<str>>, Mistake> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
    let mut columns: Option<Vec<String>> = None;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record
            .map_err(|error| (error.position().map(csv::Position::line), format!("it is no CSV: {error}")))?;
        // It is the end of the record before: blank lines may lie between.
        let line = record.position().map(|position| line_of(text, position.byte()));
        let Some(columns) = &columns else {
            columns = Some(head_of(&record).map_err(|what| (line, what))?);
            continue;
        };
        if record.len() != columns.len() {
            let what = format!(
                "this row has {} values and the head names {}; quote values that have a comma or a line break",
                record.len(),
                columns.len()
            );
            return Err((line, what));
        }
        let row: Map<String, Value> =
            columns.iter().cloned().zip(record.iter().map(|value| Value::String(value.to_owned()))).collect();
        push(&mut rows, line, row)?;
    }
    Ok(rows)
}

fn head_of(record: &csv::StringRecord) -> Result<Vec<String>, String> {
    let columns: Vec<String> = record.iter().map(|name| name.trim().to_owned()).collect();
    if columns.iter().any(String::is_empty) {
        return Err("a column of the head has no name; the first line names the columns".to_owned());
    }
    match columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
        Some((_, twice)) => Err(format!("the head names the column \"{twice}\" twice")),
        None => Ok(columns),
    }
}

/// From 1. The reader counts line breaks; those before the record are skipped.
fn line_of(text: &str, byte: u64) -> u64 {
    let byte = usize::try_from(byte).unwrap_or(usize::MAX).min(text.len());
    let blank = text[byte..].len() - text[byte..].trim_start_matches(['\r', '\n']).len();
    let before = &text.as_bytes()[..byte + blank];
    before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

fn of_json_lines(text: &str) -> Result<Vec<Box<str>>, Mistake> {
    let mut rows = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(row)) => push(&mut rows, Some(line), row)?,
            Ok(_) => return Err((Some(line), "this line is no JSON object; each line is a row".to_owned())),
            Err(error) => return Err((Some(line), format!("this line is no JSON: {error}"))),
        }
    }
    Ok(rows)
}

fn push(rows: &mut Vec<Box<str>>, line: Option<u64>, row: Map<String, Value>) -> Result<(), Mistake> {
    if rows.len() == ROWS_MAX {
        return Err((line, format!("it has more than {ROWS_MAX} rows")));
    }
    rows.push(Value::Object(row).to_string().into_boxed_str());
    Ok(())
}

#[cfg(test)]
mod tests;
