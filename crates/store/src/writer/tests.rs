//! A full disk, simulated here because the limit belongs to the writer's own connection.

use std::sync::Arc;

use measure::{Entry, Event, LoadUnit, Purpose};

use super::*;
use crate::file;
use crate::run::RunState;
use crate::store::Store;

fn seconds_of_text(at: u64) -> Vec<Entry> {
    vec![Entry::Event(Event { at_ns: at, kind: "note".to_owned(), text: "x".repeat(3_000) })]
}

fn trial_head(seq: u32) -> TrialHead {
    TrialHead {
        seq,
        purpose: Purpose::Rung,
        load: 500.0,
        load_unit: LoadUnit::Games,
        bots: 1,
        connections: 1,
        tick_period_ns: 0,
        cell: Default::default(),
        metric_names: Arc::default(),
    }
}

#[test]
fn a_full_disk_stops_the_writer_cleanly_and_what_was_committed_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepladder.db");
    let store = Store::open_or_create(&path).unwrap();
    let connection = file::open(&path).unwrap();
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    connection.pragma_update(None, "max_page_count", pages + 30).unwrap();
    let head = RunHead {
        subject: "arena".to_owned(),
        plan: "{}".to_owned(),
        environment: "{}".to_owned(),
        ..RunHead::default()
    };
    let (told, committed) = std::sync::mpsc::channel();
    let writer = begin(&path, connection, &head, None, Some(told)).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&trial_head(0), 1).unwrap();
    (0..5).for_each(|at| writer.append(seconds_of_text(at)).unwrap());
    writer.end_trial(2).unwrap();
    writer.begin_trial(&trial_head(1), 3).unwrap();
    let refused = (0..10_000).find_map(|at| writer.append(seconds_of_text(at)).err()).unwrap();
    let StoreError::WriterStopped { cause, .. } = &refused else { panic!("{refused}") };
    assert!(matches!(**cause, StoreError::DiskFull { .. }), "{cause}");
    assert!(
        refused.to_string().starts_with("run arena-1 is no longer recorded: the disk that holds "),
        "{refused}"
    );
    assert!(writer.end_trial(4).is_err(), "nothing more is written after the first error");
    drop(writer);

    let kept = committed.iter().count();
    assert_eq!(store.trial_entries(&run, 0).unwrap().len(), 5);
    assert_eq!(store.trial_entries(&run, 1).unwrap().len(), kept - 5, "what was shown is what was kept");
    assert!(matches!(store.run(&run).unwrap().state, RunState::CutOff(_)));
    assert_eq!(store.check().unwrap(), [""; 0]);
    let next = store.begin_run(&head, None).unwrap();
    assert_eq!(next.id().as_str(), "arena-2", "with room again, recording goes on");
}
