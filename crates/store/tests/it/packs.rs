//! Long trials, whose old seconds are packed: they read as they were written, and the file guards them as it guards rows.

use measure::{Entry, ProcessMetric};
use rusqlite::Connection;
use store::export::ndjson;
use store::{Place, RunId, Store, StoreError, StoredVerdict};

use crate::given::{self, Given};

const SECONDS: u32 = 400;

/// What each second of the trial hands over.
fn entries(index: u32) -> Vec<Entry> {
    let Some(Entry::Ticks(mut ticks)) =
        given::one_of_each().into_iter().find(|entry| matches!(entry, Entry::Ticks(_)))
    else {
        unreachable!("there are ticks among them")
    };
    (ticks.from_ns, ticks.to_ns) = (u64::from(index) * 1_000_000_000, u64::from(index + 1) * 1_000_000_000);
    let Entry::Interval(mut interval) = given::second(index, 10) else { unreachable!("it is an interval") };
    interval.errors[0] = u64::from(index % 3);
    vec![
        Entry::Ticks(ticks),
        given::sample(u64::from(index), ProcessMetric::CpuTime, f64::from(index)),
        Entry::Interval(interval),
        given::sample(u64::from(index), ProcessMetric::Fds, 5.0),
    ]
}

/// A trial of 400 s, which a follower reads piece by piece meanwhile, and what was written.
fn long_trial() -> (Given, RunId, Vec<Entry>) {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
    let written: Vec<Entry> = (0..SECONDS).flat_map(entries).collect();
    for batch in written.chunks(401) {
        writer.append(batch.to_vec()).unwrap();
    }
    writer.end_trial(1).unwrap();
    writer.end_run(given::finished()).unwrap();
    (given, run, written)
}

fn count(given: &Given, of: &str) -> i64 {
    let shell = Connection::open(&given.path).unwrap();
    shell.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_run_that_goes_on_behind_another_has_its_trials_and_stands_alone() {
    let (given, old, written) = long_trial();
    let verdict = StoredVerdict {
        judge: "climb".to_owned(),
        verdict: "PASS".to_owned(),
        evidence: "{}".to_owned(),
        ..Default::default()
    };
    let head = given::run_head(Some("rest"));
    let none = given.store.begin_run_after(&head, (&old, 2), None).err();
    assert!(matches!(none, Some(StoreError::OutOfOrder { .. })), "there is no second trial: {none:?}");
    assert_eq!(given.store.runs().unwrap().runs.len(), 1, "and no run without one");
    let writer = given.store.begin_run_after(&head, (&old, 1), None).unwrap();
    let new = writer.id().clone();
    writer.verdict(0, verdict.clone()).unwrap();
    given::record_trial(&writer, 1, 1_000.0, 3);
    writer.end_run(given::finished()).unwrap();
    given.store.delete_run(&old).unwrap();
    assert_eq!(given.store.check().unwrap(), [""; 0]);
    assert_eq!(given.store.trial_entries(&new, 0).unwrap(), written);
    let trials = given.store.trials(&new).unwrap();
    assert_eq!(trials.iter().map(|trial| trial.head.load).collect::<Vec<_>>(), [500.0, 1_000.0]);
    // With a verdict, and taken from one that was itself taken.
    let writer = given.store.begin_run_after(&head, (&new, 2), None).unwrap();
    let third = writer.id().clone();
    writer.end_run(given::finished()).unwrap();
    assert_eq!(given.store.verdicts(&third, 0).unwrap(), [verdict]);
    assert_eq!(given.store.check().unwrap(), [""; 0]);
}

#[test]
fn what_is_packed_reads_as_it_was_written() {
    let (given, run, written) = long_trial();
    assert!(count(&given, "pack") >= 5 * 5, "nothing is packed");
    for (table, each) in [("tick", 1), ("sample", 2), ("flow", 1)] {
        let rows = count(&given, table);
        assert!((300 * each..=315 * each).contains(&rows), "{rows} rows of {table}");
    }
    assert_eq!(given.store.check().unwrap(), [""; 0]);
    assert_eq!(given.store.trial_entries(&run, 0).unwrap(), written);
    assert_eq!(given.store.trials(&run).unwrap()[0].whole_s, SECONDS);
    let head = given.store.trial_marks(&run).unwrap().remove(0).head;
    for most in [53, 1_000] {
        let (mut place, mut read) = (Place::default(), Vec::new());
        loop {
            let piece = given.store.entries_behind(&run, &head, &mut place, most).unwrap();
            if piece.is_empty() {
                break;
            }
            read.extend(piece);
        }
        assert_eq!(read, written, "in pieces of {most}");
    }
    let mut lines = Vec::new();
    ndjson(&given.store, &run, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let exported = |table: &str| lines.matches(&format!("{{\"table\":\"{table}\"")).count();
    assert_eq!((exported("flow"), exported("sample"), exported("pack")), (400, 800, 0));
}

#[test]
fn a_follower_reads_on_while_seconds_are_packed_behind_it() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    let head = given::trial_head(0, 500.0);
    writer.begin_trial(&head, 0).unwrap();
    let (mut place, mut read, mut written) = (Place::default(), Vec::new(), Vec::new());
    for from in (0..SECONDS).step_by(100) {
        let batch: Vec<Entry> = (from..from + 100).flat_map(entries).collect();
        written.extend(batch.clone());
        writer.append(batch).unwrap();
        // A commit of its own, behind the batch and what it packs.
        writer.artifact(&format!("{from}"), b"").unwrap();
        read.extend(given.store.entries_behind(&run, &head, &mut place, 300).unwrap());
    }
    while let piece @ [_, ..] = given.store.entries_behind(&run, &head, &mut place, 300).unwrap().as_slice() {
        read.extend(piece.to_vec());
    }
    assert_eq!(read, written);
}

#[test]
fn only_what_is_packed_may_go_before_its_run() {
    let (given, run, _) = long_trial();
    let shell = Connection::open(&given.path).unwrap();
    for (table, key) in [("flow", "interval"), ("sample", "position"), ("pack", "first")] {
        let all = format!("DELETE FROM {table} WHERE {key} >= 0");
        let said = shell.execute(&all, []).unwrap_err().to_string();
        assert!(said.contains("only whole runs are deleted"), "{table}: {said}");
    }
    given.store.delete_run(&run).unwrap();
    assert_eq!(count(&given, "pack"), 0);
}

#[test]
fn a_pack_that_is_missing_or_altered_is_damage() {
    let harms = ["flow", "distribution", "tally", "tick", "sample"].map(|table| {
        format!("DELETE FROM pack WHERE of_table = '{table}' AND first = (SELECT min(first) FROM pack WHERE of_table = '{table}')")
    });
    let others = [
        "UPDATE pack SET content = zeroblob(100) WHERE of_table = 'tick'",
        "UPDATE pack SET first = 1 WHERE of_table = 'flow' AND first = 0",
        "UPDATE pack SET of_table = 'tally' WHERE of_table = 'flow' AND first = 15",
        "UPDATE pack SET trial = 1 WHERE of_table = 'sample'",
    ];
    let (given, run, _) = long_trial();
    let unguarded =
        "PRAGMA foreign_keys = OFF; DROP TRIGGER pack_is_never_edited; DROP TRIGGER pack_goes_with_its_run;";
    for harm in harms.iter().map(String::as_str).chain(others) {
        let path = given.path.with_extension("harmed");
        std::fs::copy(&given.path, &path).unwrap();
        let shell = Connection::open(&path).unwrap();
        let guards =
            "SELECT group_concat(sql, ';') FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'pack'";
        let guards: String = shell.query_row(guards, [], |row| row.get(0)).unwrap();
        shell.execute_batch(unguarded).unwrap();
        assert!(shell.execute(harm, []).unwrap() > 0, "{harm}");
        shell.execute_batch(&guards).unwrap();
        drop(shell);
        let read = Store::open(&path).unwrap().trial_entries(&run, 0);
        assert!(matches!(read, Err(StoreError::Damaged { .. })), "{harm}: {:?}", read.map(|all| all.len()));
    }
}
