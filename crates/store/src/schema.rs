//! Whether the tables and triggers of a file are exactly those that Stepladder creates.
//!
//! SQLite runs what a file defines as part of our own statements: a view in place of a table, a generated column, a
//! CHECK, an extra trigger or an index on an expression could cost any amount of time, memory or disk. So before
//! anything else is read, `sqlite_master` is compared with what `tables` and `guard` create.
//!
//! This check must itself run almost none of it. SQLite parses all definitions when it first reads the schema and runs
//! none of them, with one exception: it reads `sqlite_stat1` at once, even if that table's columns are generated. No
//! setting prevents it, so [`Limits`] bound what it can cost.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};

use crate::{guard, tables};

/// A row of `sqlite_master` except for the page, which is the file's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    kind: String,
    name: String,
    table: String,
    /// without comments
    sql: String,
}

/// What is in every store of this version.
static OURS: LazyLock<BTreeSet<Object>> = LazyLock::new(|| {
    let made = || {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(&tables::schema())?;
        connection.execute_batch(&guard::triggers())?;
        objects(&connection, usize::MAX)
    };
    made().expect("every new store is made with the same statements").into_iter().collect()
});

/// Longest definition, in bytes, and longest value that an expression can make before the tables were compared.
const LONGEST_DEFINITION: i32 = 4 << 10;
/// Steps of SQLite's virtual machine that a statement may take before the tables were compared: ours take some hundreds.
const STEPS_MAX: i32 = 2_000;
/// No value of a store is longer, in bytes: the largest are artifacts and the answers of a run, of some megabytes.
const LONGEST_VALUE: i32 = 256 << 20;
/// No statement is longer. The longest one makes all tables at once.
const LONGEST_SQL: i32 = 128 << 10;
/// SQLite's own limit.
const LONGEST_PATTERN: i32 = 50_000;

/// What statements may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limits {
    /// until the tables were compared
    OfUnknown,
    /// afterwards
    OfOurs,
}

impl Limits {
    pub fn set(self, connection: &mut Connection) -> rusqlite::Result<()> {
        let (value, sql, pattern, steps) = match self {
            Limits::OfUnknown => (LONGEST_DEFINITION, LONGEST_DEFINITION, 16, Some(|| true)),
            Limits::OfOurs => (LONGEST_VALUE, LONGEST_SQL, LONGEST_PATTERN, None),
        };
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, value)?;
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, sql)?;
        // Matching takes time proportional to the product of both lengths, or worse.
        connection.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern)?;
        connection.progress_handler(STEPS_MAX, steps)
    }
}

/// Whether SQLite gave up because of these limits.
pub(crate) fn is_beyond_limits(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::TooBig | ErrorCode::OperationInterrupted))
}

/// Whether nothing was made yet.
pub(crate) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM main.sqlite_master)", [], |row| row.get(0))
}

/// What differs from a store of ours, in words; `None`: nothing does.
pub(crate) fn difference(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let found = objects(connection, OURS.len() + 1)?;
    let other = found.iter().find(|object| !OURS.contains(object));
    Ok(if let Some(Object { kind, name, .. }) = other {
        let is_ours = OURS.iter().any(|ours| (&ours.kind, &ours.name) == (kind, name));
        let how = if is_ours { "another one" } else { "not one of them" };
        Some(format!("{} {} is {how}", shown(kind), quoted(name)))
    } else if let Some(Object { kind, name, .. }) = OURS.iter().find(|ours| !found.contains(ours)) {
        Some(format!("{kind} {} is missing", quoted(name)))
    } else if found.len() != OURS.len() {
        Some("one is there twice".to_owned())
    } else {
        on_the_page_of_another(connection)?
    })
}

/// A table whose page is that of another: it would read as the other does, and as if nothing had been stored where that one
/// is empty. A damaged bit is enough.
fn on_the_page_of_another(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare("SELECT rootpage, type, name FROM main.sqlite_master")?;
    let (mut rows, mut taken) = (statement.query([])?, BTreeSet::new());
    while let Some(row) = rows.next()? {
        // Triggers have none.
        let page: i64 = row.get(0)?;
        if page != 0 && !taken.insert(page) {
            let (kind, name): (String, String) = (row.get(1)?, row.get(2)?);
            return Ok(Some(format!("{} {} is on the page of another", shown(&kind), quoted(&name))));
        }
    }
    Ok(None)
}

/// At most `most` of them.
fn objects(connection: &Connection, most: usize) -> rusqlite::Result<Vec<Object>> {
    let mut statement = connection.prepare("SELECT type, name, tbl_name, sql FROM main.sqlite_master")?;
    let mut rows = statement.query([])?;
    let mut objects = Vec::new();
    while objects.len() < most
        && let Some(row) = rows.next()?
    {
        let sql: Option<String> = row.get(3)?;
        let sql = without_comments(&sql.unwrap_or_default());
        objects.push(Object { kind: row.get(0)?, name: row.get(1)?, table: row.get(2)?, sql });
    }
    Ok(objects)
}

/// SQL without the comments at the ends of its lines, so that what is said of a column may change within a version.
///
/// Two texts that are the same without them are the same to SQLite as long as no line of ours ends within a text or a
/// comment of several lines. Spaces alone are trimmed: SQLite reads other white space of Unicode as letters.
fn without_comments(sql: &str) -> String {
    let lines = sql.split('\n').map(|line| line.split("--").next().unwrap_or_default().trim_end_matches(' '));
    lines.collect::<Vec<_>>().join("\n")
}

fn quoted(name: &str) -> String {
    format!("{:?}", shown(name))
}

/// Of what the file says as much as an error repeats.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_ours_ends_within_a_text_or_a_comment_of_several_lines() {
        for Object { sql, .. } in OURS.iter() {
            let sql = sql.replace("'[0-9]*'", "''");
            assert!(!sql.contains("/*") && !sql.contains(['"', '`', '[']), "{sql}");
            for line in sql.split('\n') {
                assert_eq!(line.matches('\'').count() % 2, 0, "{line}");
            }
        }
        assert!(OURS.len() > 50);
    }

    #[test]
    fn definitions_of_ours_are_within_the_limits() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stepladder.db");
        drop(crate::file::open_or_create(&path).expect("a store"));
        let connection = Connection::open(&path).expect("a connection");
        let longest = "SELECT max(length(CAST(sql AS BLOB))) FROM sqlite_master";
        let longest: i32 = connection.query_row(longest, [], |row| row.get(0)).expect("definitions");
        assert!(longest * 5 / 4 < LONGEST_DEFINITION, "{longest}");
        // A quarter of the steps is enough.
        drop(connection);
        let mut connection = Connection::open(&path).expect("a connection");
        Limits::OfUnknown.set(&mut connection).expect("limits");
        connection.progress_handler(STEPS_MAX / 4, Some(|| true)).expect("a handler");
        assert_eq!(difference(&connection), Ok(None));
    }

    #[test]
    fn comments_do_not_count_and_anything_else_does() {
        let check = |one: &str, other: &str, expected| {
            assert_eq!(without_comments(one) == without_comments(other), expected, "{one:?} {other:?}");
        };
        check("a INTEGER, -- when\nb", "a INTEGER, -- how often\nb", true);
        check("a INTEGER,\nb", "a INTEGER, -- how often\nb", true);
        check("a INTEGER,\nb", "a INTEGER,\u{a0}\nb", false);
        check("a INTEGER,\nb", "a INTEGER, -- when\rc,\nb", true);
        check("a INTEGER,\nb", "a INTEGER, -- when\nc,\nb", false);
        check("a INTEGER,\nb", "a INTEGER, /* -- */ c,\nb", false);
    }
}
