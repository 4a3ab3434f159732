//! Files that are not a store, not ours, of another version, truncated or damaged: reported, left alone, never misread.

use std::path::Path;

use rusqlite::Connection;
use store::{Store, StoreError, VERSION};

use crate::given::{self, Given};

fn refused(path: &Path) -> String {
    let before = std::fs::read(path).unwrap();
    let opened = Store::open(path).unwrap_err();
    let made = Store::open_or_create(path).unwrap_err();
    assert_eq!(opened.to_string(), made.to_string());
    assert_eq!(std::fs::read(path).unwrap(), before, "a refused file stays as it was");
    opened.to_string()
}

fn check(make: impl Fn(&Path), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    make(&path);
    let message = refused(&path);
    let expected = format!("{} {expected}", path.display());
    assert!(message.starts_with(&expected), "{message}\nshould begin with\n{expected}");
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_left_untouched() {
    check(|path| std::fs::write(path, "interval_ms\n16\n17\n".repeat(100)).unwrap(), "is not an SQLite file");
    check(
        |path| Connection::open(path).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap(),
        "is an SQLite database of another program (application id 0)",
    );
    check(
        |path| Connection::open(path).unwrap().execute_batch("PRAGMA application_id = 77").unwrap(),
        "is an SQLite database of another program (application id 77)",
    );
}

#[test]
fn a_store_of_another_version_is_refused_and_left_untouched() {
    let of_version = |version: i64| {
        move |path: &Path| {
            drop(Store::open_or_create(path).unwrap());
            let shell = Connection::open(path).unwrap();
            shell.pragma_update(None, "user_version", version).unwrap();
        }
    };
    let newer = VERSION + 1;
    check(
        of_version(newer),
        &format!("was written by a newer Stepladder (store version {newer}, this one reads {VERSION})"),
    );
    for older in [0, VERSION - 1] {
        check(
            of_version(older),
            &format!("was written by an older Stepladder (store version {older}, this one reads {VERSION})"),
        );
    }
}

#[test]
fn a_store_that_does_not_exist_is_not_made_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepladder.db");
    let message = Store::open(&path).unwrap_err().to_string();
    assert!(message.starts_with("there is no store at "), "{message}");
    assert!(!path.exists());
    let nowhere = Store::open_or_create(folder.path().join("missing/stepladder.db")).unwrap_err();
    assert!(matches!(nowhere, StoreError::CannotOpen { .. }), "{nowhere}");
    assert!(matches!(Store::open(folder.path()), Err(StoreError::CannotOpen { .. })));
}

#[test]
fn an_empty_file_becomes_a_store_only_when_one_is_to_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepladder.db");
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::NoStore { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    Store::open_or_create(&path).unwrap();
    Store::open(&path).unwrap();
}

fn recorded() -> (Given, Vec<u8>) {
    let given = given::store();
    for name in ["master", "branch"] {
        let writer = given.store.begin_run(&given::run_head(Some(name)), None).unwrap();
        for seq in 0..2 {
            writer.begin_trial(&given::trial_head(seq, 500.0), 1).unwrap();
            writer.append(given::one_of_each()).unwrap();
            (1..4).for_each(|index| writer.append(vec![given::second(index, 10)]).unwrap());
            writer.end_trial(2).unwrap();
        }
        writer.artifact("run.json", b"{}").unwrap();
        writer.end_run(given::finished()).unwrap();
    }
    let bytes = std::fs::read(&given.path).unwrap();
    (given, bytes)
}

#[test]
fn a_file_that_was_cut_short_is_refused() {
    let (_given, bytes) = recorded();
    for length in [bytes.len() - 4_096, bytes.len() / 2, 4_096, 200] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short.db");
        std::fs::write(&path, &bytes[..length]).unwrap();
        let message = refused(&path);
        let said = message.contains("short.db is damaged") || message.contains("is not an SQLite file");
        assert!(said, "{length} of {}: {message}", bytes.len());
    }
}

/// Everything that a store says, as text; what is damaged is named instead.
fn everything(path: &Path) -> Result<Vec<String>, StoreError> {
    let store = Store::open(path)?;
    let list = store.runs()?;
    let mut said: Vec<String> = list.damaged.iter().map(|_| "damaged".to_owned()).collect();
    for run in &list.runs {
        said.push(format!("{run:?}"));
        let Ok(trials) = store.trials(&run.id) else {
            said.push("damaged".to_owned());
            continue;
        };
        for trial in trials {
            said.push(format!("{trial:?}"));
            match store.trial(&run.id, trial.head.seq, 0) {
                Ok(sum) => said.push(format!("{sum:?}")),
                Err(error) => {
                    assert!(error.is_damage(), "{error}");
                    said.push("damaged".to_owned());
                }
            }
        }
        said.push(format!("{:?}", store.artifact(&run.id, "run.json").map_err(|_| "damaged")));
    }
    Ok(said)
}

/// Twenty thousand pass too, in four minutes.
const FLIPS: u32 = 150;

#[test]
fn a_flipped_bit_anywhere_is_noticed_or_harmless_but_never_a_wrong_number() {
    let (given, bytes) = recorded();
    let truth = everything(&given.path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flipped.db");
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut noticed, mut readable_beside) = (0, 0);
    for _ in 0..FLIPS {
        let (at, bit) = (random.usize(..bytes.len()), random.u32(..8));
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << bit;
        std::fs::write(&path, &damaged).unwrap();
        match everything(&path) {
            Ok(said) if said == truth => {}
            Ok(said) => {
                noticed += 1;
                readable_beside += usize::from(said.iter().any(|line| truth.contains(line)));
                let place = format!("seed {seed}, bit {bit} of byte {at}");
                let lost: Vec<_> = truth.iter().filter(|line| !said.contains(line)).collect();
                let named = said.iter().any(|line| line.contains("damaged"));
                assert!(named, "{place}: missing without a word: {lost:#?}");
                let invented: Vec<_> =
                    said.iter().filter(|line| !truth.contains(line) && !line.contains("damaged")).collect();
                assert!(invented.is_empty(), "{place}: {invented:#?}");
            }
            Err(_) => noticed += 1,
        }
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{beside}", path.display()));
        }
    }
    assert!(noticed > 5, "seed {seed}: only {noticed} noticed");
    assert!(readable_beside > 1, "seed {seed}: the rest was readable only {readable_beside} times");
}

#[test]
fn an_edit_behind_the_triggers_back_is_noticed_and_the_rest_is_readable() {
    let (given, _) = recorded();
    let shell = Connection::open(&given.path).unwrap();
    let edit = "DROP TRIGGER flow_is_never_edited; UPDATE flow SET offered = offered + 1, sent = sent + 1, told = told + 1 \
                WHERE run = 'master-1' AND trial = 1 AND interval = 2";
    shell.execute_batch(edit).unwrap();
    let run = given.store.find_run("master").unwrap();
    let message = given.store.trial(&run, 1, 0).unwrap_err().to_string();
    assert!(message.contains("flow (master-1, 1, 2, hold, shot) is not what was written"), "{message}");
    given.store.trial(&run, 0, 0).unwrap();
    given.store.trial(&given.store.find_run("branch").unwrap(), 1, 0).unwrap();
    assert_eq!(given.store.check().unwrap().len(), 1);
}

#[test]
fn a_row_that_went_missing_is_noticed() {
    for (table, condition) in [
        ("flow", "interval = 2"),
        ("distribution", "interval = 2"),
        ("interval", "interval = 2"),
        ("sample", "1"),
        ("event", "1"),
        ("tick", "1"),
        ("ledger", "1"),
        ("books", "receiver = 1"),
        ("pair", "1"),
    ] {
        let (given, _) = recorded();
        let shell = Connection::open(&given.path).unwrap();
        let sql = format!(
            "PRAGMA foreign_keys = OFF; DROP TRIGGER {table}_goes_with_its_run; \
             DELETE FROM {table} WHERE run = 'master-1' AND trial = 1 AND {condition}"
        );
        shell.execute_batch(&sql).unwrap();
        let run = given.store.find_run("master").unwrap();
        let error = given.store.trial_entries(&run, 1).unwrap_err();
        assert!(error.is_damage(), "{table}: {error}");
    }
}
