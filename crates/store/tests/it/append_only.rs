//! The file itself rejects forbidden changes, even from an SQLite shell that enforces no foreign keys.

use rusqlite::Connection;
use store::StoreError;

use crate::given::{self, Given};

const TABLES: [&str; 18] = [
    "run",
    "run_end",
    "trial",
    "trial_end",
    "interval",
    "flow",
    "distribution",
    "tally",
    "tick",
    "sample",
    "pack",
    "event",
    "ledger",
    "books",
    "pair",
    "verdict",
    "artifact",
    "line",
];

/// A store with two whole runs, each with a row in every table.
fn with_two_runs() -> (Given, Connection) {
    let given = given::store();
    for name in ["master", "branch"] {
        let writer = given.store.begin_run(&given::run_head(Some(name)), None).unwrap();
        given.store.set_label(writer.id(), "note", Some("first")).unwrap();
        writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
        // Enough seconds for the oldest to be packed.
        writer.append((0..320).map(|index| given::second(index, 10)).collect()).unwrap();
        writer.append(given::one_of_each_at(320)).unwrap();
        writer.end_trial(2).unwrap();
        let judged = store::StoredVerdict {
            judge: "ladder".to_owned(),
            verdict: "PASS".to_owned(),
            reason: None,
            cut_s: 0,
            evidence: "{}".to_owned(),
        };
        writer.verdict(0, judged).unwrap();
        writer.artifact("run.json", b"{}").unwrap();
        writer.line(given::line(0, "{}")).unwrap();
        writer.end_run(given::finished()).unwrap();
    }
    let shell = Connection::open(&given.path).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    (given, shell)
}

fn rows(shell: &Connection, table: &str) -> i64 {
    shell.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn every_table_is_listed_here() {
    let (_given, shell) = with_two_runs();
    let sql = "SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE type = 'table' \
               AND name NOT LIKE 'sqlite_%' AND name NOT IN ('label', 'used_id') ORDER BY name)";
    let mut listed = TABLES;
    listed.sort_unstable();
    assert_eq!(shell.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap(), listed.join(" "));
    assert!(TABLES.iter().all(|table| rows(&shell, table) >= 2), "each has rows of both runs");
}

#[test]
fn an_update_is_refused_in_every_table_but_label() {
    let (_given, shell) = with_two_runs();
    for table in TABLES.iter().chain(&["used_id"]) {
        let message = shell.execute(&format!("UPDATE {table} SET run = run"), []).unwrap_err().to_string();
        assert_eq!(message, format!("rows of {table} are never edited, only superseded"));
    }
    shell.execute("UPDATE label SET value = 'second'", []).unwrap();
    assert!(shell.execute("UPDATE label SET key = 'other'", []).is_err());
}

#[test]
fn nothing_is_deleted_but_whole_runs() {
    let (given, shell) = with_two_runs();
    for table in TABLES.iter().chain(&["label"]).filter(|table| **table != "run") {
        let message = shell.execute(&format!("DELETE FROM {table}"), []).unwrap_err().to_string();
        assert!(message.contains("only whole runs are deleted"), "{table}: {message}");
    }
    assert!(shell.execute("DELETE FROM used_id", []).is_err());

    shell.execute("DELETE FROM run WHERE run = 'master-1'", []).unwrap();
    for table in TABLES.iter().chain(&["label"]) {
        let of_run = |run| {
            let sql = format!("SELECT count(*) FROM {table} WHERE run = ?1");
            shell.query_row(&sql, [run], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(of_run("master-1"), 0, "{table}");
        assert!(of_run("branch-1") > 0, "{table}");
    }
    assert_eq!(given.store.check().unwrap(), [""; 0]);
}

#[test]
fn delete_run_takes_one_run_and_its_id_is_not_given_again() {
    let (given, shell) = with_two_runs();
    let master = given.store.find_run("master").unwrap();
    given.store.delete_run(&master).unwrap();
    assert!(matches!(given.store.delete_run(&master), Err(StoreError::UnknownRun { .. })));
    let ids: Vec<String> = given.store.runs().unwrap().runs.iter().map(|run| run.id.to_string()).collect();
    assert_eq!(ids, ["branch-1"]);
    assert!(rows(&shell, "flow") > 0);
    let writer = given.store.begin_run(&given::run_head(Some("master")), None).unwrap();
    assert_eq!(writer.id().as_str(), "master-2");
    assert!(matches!(given.store.delete_run(writer.id()), Err(StoreError::StillRecorded { .. })));
}

#[test]
fn a_deleted_run_gives_its_room_back() {
    let given = given::store();
    let shell = Connection::open(&given.path).unwrap();
    let pages = || shell.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0)).unwrap();
    let empty = pages();
    let writer = given.store.begin_run(&given::run_head(Some("master")), None).unwrap();
    let run = writer.id().clone();
    given::record_trial(&writer, 0, 500.0, 200);
    writer.end_run(given::finished()).unwrap();
    assert!(pages() > empty + 10);
    given.store.delete_run(&run).unwrap();
    assert_eq!(pages(), empty);
}

#[test]
fn the_conservation_laws_are_checks_of_the_file() {
    let (_given, shell) = with_two_runs();
    let check = |columns: &str, values: &str, expected: &str| {
        let sql = format!(
            "INSERT INTO flow (run, trial, interval, phase, op, offered, not_sent, sent, told, answered, late, failed, \
             lost, open_before, open_after, crc) SELECT 'master-1', 0, 0, 'drain', 'extra', {values}, 0"
        );
        let message =
            shell.execute(&sql, []).map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string());
        assert!(message.contains(expected), "{columns} {values}: {message}");
    };
    let columns = "offered, not_sent, sent, told, answered, late, failed, lost, open_before, open_after";
    check(columns, "5, 1, 3, 3, 0, 0, 0, 0, 0, 0", "offered_is_sent_or_not_sent");
    check(columns, "5, 0, 5, 3, 1, 0, 0, 0, 0, 0", "sent_leaves_by_one_door");
    check(columns, "5, 0, 5, 3, 2, 3, 0, 0, 0, 0", "late_is_answered");
    check(columns, "5, 0, 5, 6, 0, 0, 0, 0, 0, -1", "open_after");
    check(columns, "5, 1, 4, 2, 1, 1, 1, 1, 2, 1", "accepted");
}

#[test]
fn the_laws_of_the_books_are_checks_of_the_file() {
    let (_given, shell) = with_two_runs();
    let check_unread = |unread: u64, values: &str, expected: &str| {
        let sql = format!(
            "INSERT INTO books (run, trial, receiver, is_excluded, unread, owed_min, owed_max, delivered, late, lost, duplicated, \
             reordered, dropped, in_flight, residual, unowed, not_caught_up, crc) SELECT 'master-1', 0, 7, 0, {unread}, {values}, 0, 0"
        );
        let message =
            shell.execute(&sql, []).map(|_| "accepted".to_owned()).unwrap_or_else(|error| error.to_string());
        assert!(message.contains(expected), "{unread}, {values}: {message}");
    };
    let check = |values: &str, expected: &str| check_unread(0, values, expected);
    // owed_min, owed_max, delivered, late, lost, duplicated, reordered, dropped, in_flight, residual, unowed
    check("10, 10, 8, 0, 1, 0, 0, 0, 0, 1, 0", "what_was_owed_came_or_was_lost");
    check("10, 9, 9, 0, 1, 0, 0, 0, 0, 1, 0", "what_was_owed_came_or_was_lost");
    check("10, 10, 8, 9, 2, 0, 0, 0, 0, 2, 0", "what_is_late_or_unowed_was_delivered");
    check("10, 10, 8, 0, 2, 0, 0, 1, 0, 0, 0", "the_residual_is_what_nobody_accounts_for");
    check("10, 12, 8, 0, 2, 0, 0, 5, 0, 0, 0", "the_residual_is_what_nobody_accounts_for");
    check("10, 12, 8, 0, 2, 0, 0, 5, 0, -1, 0", "accepted");
    // What was not read in time is neither lost nor more than what the server reports as dropped.
    check_unread(2, "10, 10, 7, 0, 2, 0, 0, 2, 0, 0, 0", "what_was_owed_came_or_was_lost");
    check_unread(2, "11, 11, 7, 0, 2, 0, 0, 2, 0, 1, 0", "the_residual_is_what_nobody_accounts_for");
}
