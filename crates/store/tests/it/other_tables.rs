//! A file with our marks but foreign tables, views or triggers: its SQL would run as part of every statement, so it is
//! refused before any of it runs.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;
use store::Store;
use tempfile::TempDir;

use crate::given::{self, Given};

/// Endless rows, none of which passes the condition.
const ENDLESS: &str = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)";

/// Far longer than opening takes, far shorter than what the forged files ask for.
const SOON: Duration = Duration::from_secs(20);

/// A closed store with a whole run, changed by these statements as an SQLite shell runs them.
fn changed(sql: &str) -> (TempDir, PathBuf) {
    let Given { path: original, store, _folder: folder } = given::store();
    let writer = store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer.append(given::one_of_each()).unwrap();
    writer.end_trial(2).unwrap();
    writer.end_run(given::finished()).unwrap();
    drop(store);
    let shell = Connection::open(&original).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA writable_schema = ON;").unwrap();
    shell.execute_batch(sql).unwrap();
    drop(shell);
    (folder, original)
}

/// Errors: what `Store::open` and the others say, which must be the same.
fn opened(path: &Path) -> Result<usize, String> {
    let (done, answer) = mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || {
        let said = |opened: Result<Store, store::StoreError>| {
            opened.and_then(|store| Ok(store.runs()?.runs.len())).map_err(|error| error.to_string())
        };
        let _ = done.send([
            said(Store::open(&path)),
            said(Store::open_to_read(&path)),
            said(Store::open_or_create(&path)),
        ]);
    });
    let [said, others @ ..] = answer.recv_timeout(SOON).expect("no SQL of the file runs");
    others.into_iter().for_each(|other| assert_eq!(other, said));
    said
}

#[track_caller]
fn refused(sql: &str, expected: &str) {
    let (_folder, path) = changed(sql);
    let before = std::fs::read(&path).unwrap();
    let said = opened(&path).unwrap_err();
    let expected = format!(
        "{} does not have the tables and triggers that Stepladder makes ({expected})",
        path.display()
    );
    assert!(said.starts_with(&expected), "{said}\nshould begin with\n{expected}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "a refused file stays as it was");
}

#[test]
fn a_view_in_place_of_a_table_is_refused() {
    let sql = format!(
        "DROP TRIGGER run_is_never_edited; DROP TRIGGER run_goes_whole; ALTER TABLE run RENAME TO real; \
         CREATE VIEW run AS {ENDLESS} SELECT real.* FROM real, t WHERE n < 0;"
    );
    refused(&sql, "table \"real\" is not one of them");
}

#[test]
fn a_generated_column_or_a_further_constraint_is_refused() {
    let of_run = |from: &str, to: &str| {
        format!("UPDATE sqlite_master SET sql = replace(sql, '{from}', '{to}') WHERE name = 'run';")
    };
    let column = of_run("crc INTEGER NOT NULL", "crc INTEGER NOT NULL, more AS (hex(zeroblob(300000000)))");
    refused(&column, "table \"run\" is another one");
    let check =
        of_run("PRIMARY KEY (run)", "CHECK (length(hex(zeroblob(300000000))) > 0), PRIMARY KEY (run)");
    refused(&check, "table \"run\" is another one");
}

#[test]
fn a_change_that_only_looks_like_a_comment_or_a_space_is_refused() {
    // SQLite treats a no-break space as part of a name.
    let sql = "UPDATE sqlite_master SET sql = replace(sql, '-- when', char(160)) WHERE name = 'event';";
    refused(sql, "table \"event\" is another one");
    let sql = "UPDATE sqlite_master SET sql = replace(sql, '-- when', '-- when' || char(10) || 'more AS (1),') \
               WHERE name = 'event';";
    refused(sql, "table \"event\" is another one");
}

#[test]
fn whatever_else_is_in_the_file_is_refused() {
    let endless = format!("{ENDLESS} SELECT n FROM t");
    refused("CREATE TABLE more (a);", "table \"more\" is not one of them");
    refused(&format!("CREATE VIEW more AS {endless};"), "view \"more\" is not one of them");
    refused("CREATE INDEX more ON event (length(text));", "index \"more\" is not one of them");
    refused(
        &format!(
            "CREATE TRIGGER more AFTER INSERT ON run BEGIN \
             INSERT INTO label SELECT NEW.run, n, n FROM ({endless}); END;"
        ),
        "trigger \"more\" is not one of them",
    );
    refused(
        "INSERT INTO sqlite_master VALUES ('table', 'more', 'more', 0, 'CREATE VIRTUAL TABLE more USING missing(1)');",
        "table \"more\" is not one of them",
    );
    refused("ANALYZE;", "table \"sqlite_stat1\" is not one of them");
    refused("DROP TRIGGER flow_is_never_edited;", "trigger \"flow_is_never_edited\" is missing");
}

#[test]
fn a_table_on_the_page_of_another_is_refused() {
    // One flipped bit can do it: with no end in the store every run would seem to have been killed.
    let sql = "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'label') \
               WHERE name = 'run_end';";
    refused(sql, "table \"label\" is on the page of another");
}

#[test]
fn a_view_with_the_name_of_a_table_of_sqlite_does_not_run() {
    let sql = format!(
        "CREATE VIEW pragma_application_id AS {ENDLESS} SELECT n AS application_id FROM t WHERE n < 0"
    );
    refused(&sql, "view \"pragma_application_id\" is not one of them");
}

#[test]
fn statistics_that_sqlite_reads_with_the_schema_cost_little() {
    let rows =
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 20000) SELECT n, n FROM t";
    let text = |length| format!("replace(hex(zeroblob({length} + tbl % 9)), ''0'', ''a'')");
    let slow = format!("instr({}, {} || ''b'')", text(2_000), text(1_000));
    for stat in ["hex(zeroblob(100000000 + tbl))", &vec![slow; 20].join(" + ")] {
        let sql = format!(
            "CREATE TABLE more (tbl, idx); INSERT INTO more {rows}; \
             UPDATE sqlite_master SET name = 'sqlite_stat1', tbl_name = 'sqlite_stat1', \
             sql = 'CREATE TABLE sqlite_stat1(tbl, idx, stat AS ({stat}))' WHERE name = 'more';"
        );
        refused(&sql, "table \"sqlite_stat1\" is not one of them");
    }
}

#[test]
fn names_of_the_file_are_said_in_one_short_line() {
    for length in [100, 10_000] {
        let name = "é\u{1b}[2J\n".repeat(length);
        for columns in ["a", "a, a"] {
            let (_folder, path) = changed("CREATE TABLE more (a);");
            let shell = Connection::open(&path).unwrap();
            shell.execute_batch("PRAGMA writable_schema = ON;").unwrap();
            let sql = format!("CREATE TABLE \"{name}\" ({columns})");
            let edit = "UPDATE sqlite_master SET name = ?1, tbl_name = ?1, sql = ?2 WHERE name = 'more'";
            shell.execute(edit, [&name, &sql]).unwrap();
            drop(shell);
            let said = opened(&path).unwrap_err();
            assert!(said.len() < 600 && !said.contains(['\n', '\u{1b}']), "{said:?}");
        }
    }
}

#[test]
fn a_store_with_other_comments_or_in_another_order_of_pages_is_read() {
    let sql = "UPDATE sqlite_master SET sql = replace(sql, '-- when it began', '-- the beginning') WHERE name = 'run';";
    let (_folder, path) = changed(sql);
    assert_eq!(opened(&path), Ok(1));
    let (_folder, path) = changed("VACUUM;");
    assert_eq!(opened(&path), Ok(1));
}
