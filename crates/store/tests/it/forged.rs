//! A store that somebody sent along: what it says leads to no file but its own.

use std::path::Path;

use rusqlite::Connection;
use store::Store;

use crate::given::{self, Given};

/// A store with one run of ours and one row for each of these ids, as an SQLite shell writes them.
fn with_ids(ids: &[&str]) -> Given {
    let given = given::store();
    given.store.begin_run(&given::run_head(None), None).unwrap().end_run(given::finished()).unwrap();
    let shell = Connection::open(&given.path).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF; CREATE TEMP TABLE one AS SELECT * FROM run;").unwrap();
    for id in ids {
        shell.execute("UPDATE one SET run = ?1", [id]).unwrap();
        shell.execute("INSERT INTO run SELECT * FROM one", []).unwrap();
    }
    given
}

fn beside(given: &Given, end: &str) -> std::path::PathBuf {
    let mut path = given.path.clone().into_os_string();
    path.push(end);
    path.into()
}

#[test]
fn an_id_that_is_a_path_removes_no_file() {
    let given = with_ids(&["x/../victim.txt", "x/../victim-1"]);
    // With this folder the two lead out of the names that belong to the store.
    std::fs::create_dir(beside(&given, "-live-x")).unwrap();
    let victims = ["victim.txt", "victim-1"].map(|name| given.path.with_file_name(name));
    victims.iter().for_each(|path| std::fs::write(path, "dear").unwrap());
    let list = given.store.runs().unwrap();
    assert_eq!(list.runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["arena-1"]);
    let said: Vec<String> = list.damaged.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.contains("\"x/../victim.txt\" is no id that Stepladder gives")),
        "{said:?}"
    );
    for id in ["x/../victim.txt", "x/../victim-1"] {
        assert!(given.store.find_run(id).is_err(), "{id}");
    }
    let damage = given.store.check().unwrap();
    assert!(damage.iter().any(|text| text.contains("victim-1")), "{damage:?}");
    for path in victims {
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear", "{}", path.display());
    }
}

#[test]
fn a_name_that_leads_to_a_path_is_no_run() {
    let given = with_ids(&["x/../victim-1"]);
    let shell = Connection::open(&given.path).unwrap();
    shell.execute_batch("PRAGMA foreign_keys = OFF;").unwrap();
    let copied = "INSERT INTO used_id SELECT 'x/../victim-1', 'gift', 1, 99, crc FROM used_id LIMIT 1";
    shell.execute(copied, []).unwrap();
    let said = given.store.find_run("gift").unwrap_err().to_string();
    assert!(said.contains("is no id that Stepladder gives"), "{said}");
}

#[test]
fn an_id_of_any_length_or_letter_is_said_in_one_short_line() {
    let long = "é\n".repeat(100_000);
    let given = with_ids(&[&long, "\u{1b}[2J-1"]);
    for error in given.store.runs().unwrap().damaged {
        let text = error.to_string();
        assert!(text.len() < 500 && !text.contains(['\n', '\u{1b}']), "{text:?}");
    }
}

#[test]
fn a_reader_takes_no_file_away_that_it_did_not_make() {
    let given = with_ids(&[]);
    let lock = beside(&given, "-live-arena-1");
    std::fs::write(&lock, "").unwrap();
    let look = |path: &Path| Store::open(path).unwrap().runs().unwrap().runs.len();
    assert_eq!(look(&given.path), 1);
    assert!(lock.exists());
}
