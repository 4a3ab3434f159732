//! A table of frames: PresentMon, CapFrameX, Unreal's and Unity's captures, or any table with a column of intervals.
//!
//! The header is found by its names, behind comments if there are any. Which character separates the fields follows from
//! it; with semicolons or tabs a decimal comma is read too. Without a header a column is named by its number.

use std::borrow::Cow;

use super::json::instant_ns;
use super::{Frame, Parsed, TimeUnit, duration_ns};

/// What columns of intervals are called, without case, spaces and units.
const INTERVALS: &[&str] =
    &["msbetweenpresents", "frametime", "frametimems", "framems", "tickinterval", "dt"];
/// What the time that a frame's work took is called.
const BUSY: &[&str] = &["mscpubusy", "cpubusy", "gamethreadtime", "gamethread", "busy"];
/// When the frame was: used where it is a reading of the realtime clock.
const TIMES: &[&str] = &["t", "time", "timestamp", "datetime"];
/// A header comes within the first lines.
const HEADER_WITHIN: u32 = 50;
const FIELDS_MAX: usize = 1_000;
/// Names that a message lists.
const NAMES_SHOWN: usize = 12;

/// A table, as far as it is known.
#[derive(Debug)]
pub(super) struct Table {
    column: Option<String>,
    unit: Option<TimeUnit>,
    lines: u32,
    columns: Option<Columns>,
}

#[derive(Debug)]
struct Columns {
    separator: u8,
    /// of the header; `None` without one
    count: Option<usize>,
    interval: (usize, TimeUnit),
    busy: Option<(usize, TimeUnit)>,
    time: Option<usize>,
    /// the last of these
    last: usize,
}

impl Table {
    pub(super) fn new(column: Option<String>, unit: Option<TimeUnit>) -> Table {
        Table { column, unit, lines: 0, columns: None }
    }

    pub(super) fn awaits_header(&self) -> bool {
        self.columns.is_none()
    }

    /// Takes a line apart. Errors: what is wrong with it.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<Parsed<'static>, String> {
        let line = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        match &self.columns {
            Some(columns) => columns.row(line),
            None => {
                self.lines += 1;
                let text = String::from_utf8_lossy(line);
                self.look_for_columns(text.trim_start_matches('\u{feff}'))
            }
        }
    }

    fn look_for_columns(&mut self, line: &str) -> Result<Parsed<'static>, String> {
        if line.starts_with("//") || line.starts_with('#') {
            return Ok(Parsed::Other);
        }
        let separator = [b';', b'\t', b','].into_iter().max_by_key(|separator| {
            line.bytes().filter(|byte| byte == separator).count() * 4 + usize::from(*separator != b',')
        });
        let separator = separator.filter(|separator| line.as_bytes().contains(separator)).unwrap_or(b',');
        let names: Vec<String> =
            fields(line.as_bytes(), separator).map(|field| text_of(field).into_owned()).collect();
        if names.len() > FIELDS_MAX {
            return Err(format!("more than {FIELDS_MAX} columns"));
        }
        let number =
            self.column.as_ref().and_then(|column| column.parse::<usize>().ok()).filter(|number| *number > 0);
        let is_header =
            names.iter().all(|name| name.is_empty() || as_number(name.as_bytes(), true).is_none());
        let place = |known: &[&str]| {
            known.iter().find_map(|known| names.iter().position(|name| plain(name).0 == *known))
        };
        let interval = match (&self.column, number) {
            (_, Some(number)) => (number <= names.len()).then_some(number - 1),
            (Some(asked), None) => {
                let same = |name: &String| {
                    name.trim().eq_ignore_ascii_case(asked.trim()) || plain(name) == plain(asked)
                };
                names.iter().position(same)
            }
            (None, None) => place(INTERVALS),
        };
        let Some(interval) = interval.filter(|_| is_header || number.is_some()) else {
            return self.no_column(&names, is_header);
        };
        let unit_of = |column: usize| plain(&names[column]).1.unwrap_or(TimeUnit::Ms);
        let busy = place(BUSY)
            .filter(|column| is_header && *column != interval)
            .map(|column| (column, unit_of(column)));
        let time = place(TIMES).filter(|column| is_header && *column != interval);
        let last = [Some(interval), busy.map(|busy| busy.0), time].into_iter().flatten().max().unwrap_or(0);
        let columns = Columns {
            separator,
            count: is_header.then_some(names.len()),
            interval: (interval, self.unit.unwrap_or_else(|| unit_of(interval))),
            busy,
            time,
            last,
        };
        let row = if is_header { Ok(Parsed::Other) } else { columns.row(line.as_bytes()) };
        self.columns = Some(columns);
        row
    }

    fn no_column(&self, names: &[String], is_header: bool) -> Result<Parsed<'static>, String> {
        let wanted = match &self.column {
            Some(column) => format!("a column \"{column}\""),
            None => "a column of intervals (MsBetweenPresents, FrameTime …)".to_owned(),
        };
        if !is_header {
            return Err(format!(
                "no header with {wanted} comes before the first numbers; name a column by its number: csv=FILE:1"
            ));
        }
        if names.len() > 1 || self.lines > HEADER_WITHIN {
            let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(|name| name.trim()).collect();
            return Err(format!("no header with {wanted}; it has {}", shown.join(", ")));
        }
        Ok(Parsed::Other)
    }
}

impl Columns {
    fn row(&self, line: &[u8]) -> Result<Parsed<'static>, String> {
        let may_have_commas = self.separator != b',';
        let (mut interval, mut busy, mut time, mut seen) = (None, None, None, 0);
        for (column, field) in fields(line, self.separator).enumerate() {
            seen = column + 1;
            if column == self.interval.0 {
                interval = Some(field);
            } else if self.busy.is_some_and(|(busy, _)| busy == column) {
                busy = Some(field);
            } else if self.time == Some(column) {
                time = Some(field);
            }
            // The rest matters only where too many fields would show decimal commas.
            if column >= self.last && may_have_commas {
                break;
            }
        }
        if self.count.is_some_and(|count| seen > count) {
            return Err(format!(
                "{seen} fields below a header of {}; with decimal commas the fields must be separated by semicolons",
                self.count.unwrap_or(0)
            ));
        }
        let field = interval.ok_or("it ends before its interval")?;
        let number = as_number(field, may_have_commas)
            .ok_or_else(|| format!("its interval is {:?}, not a number", shown(&text_of(field))))?;
        let interval_ns = duration_ns(number, self.interval.1, "its interval")?;
        // What is no number there is left out: captures write NA where they know nothing.
        let busy_ns = busy.zip(self.busy).and_then(|(field, (_, unit))| {
            duration_ns(as_number(field, may_have_commas)?, unit, "busy").ok()
        });
        let at_ns = time.and_then(|field| match as_number(field, may_have_commas) {
            Some(number) => TimeUnit::realtime_ns(number),
            None => instant_ns(&text_of(field)).ok(),
        });
        Ok(Parsed::Frame(Frame { at_ns, interval_ns: Some(interval_ns), busy_ns, id: Cow::Borrowed("") }))
    }
}

/// The fields of a line; one within quotes may hold the separator.
fn fields(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut is_quoted = false;
        let end = line.iter().position(|&byte| {
            is_quoted ^= byte == b'"';
            byte == separator && !is_quoted
        });
        let (field, after) = match end {
            Some(end) => (&line[..end], Some(&line[end + 1..])),
            None => (line, None),
        };
        rest = after;
        Some(field)
    })
}

/// A field without spaces and quotes around it.
fn bare(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

fn text_of(field: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bare(field))
}

/// As much of a hostile text as a message needs.
fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

fn as_number(field: &[u8], may_have_commas: bool) -> Option<f64> {
    let text = std::str::from_utf8(bare(field)).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) if may_have_commas && text.contains(',') => text.replacen(',', ".", 1).parse().ok(),
        Err(_) => None,
    }
}

/// A name without case, spaces, signs and its unit; and that unit, where it says one: `Frame Time (ms)`, `dt_us`.
fn plain(name: &str) -> (String, Option<TimeUnit>) {
    let name = name.trim().to_lowercase();
    let words = name.rsplit_once(['(', '[', '_', ' ']);
    let of_word = words
        .and_then(|(name, word)| Some((name, TimeUnit::named(word.trim_end_matches([')', ']']).trim())?)));
    let (name, unit) = match of_word {
        Some((name, unit)) => (name, Some(unit)),
        None => (name.as_str(), None),
    };
    (name.chars().filter(|c| c.is_alphanumeric()).collect(), unit)
}
