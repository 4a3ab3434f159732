//! Marks that another connection sets in a run while it is recorded.

use std::sync::mpsc::channel;

use measure::trial::kind;
use measure::{Entry, Purpose, TrialHead};
use store::{Committed, Place, Store, StoreError};

use crate::given;

/// The texts of the marks among entries, in their order.
fn marks(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::Event(event) if event.kind == kind::MARK => Some(event.text.clone()),
        _ => None,
    };
    entries.iter().filter_map(text).collect()
}

#[test]
fn marks_of_another_connection_are_entries_of_the_trial_like_any_other() {
    let given = given::store();
    let (to, committed) = channel::<Committed>();
    let writer = given.store.begin_run(&given::run_head(None), Some(to)).unwrap();
    let run = writer.id().clone();
    let other = Store::open(&given.path).unwrap();
    assert_eq!(other.being_recorded().unwrap(), std::slice::from_ref(&run));
    let mark = |text: &str, unix_ms: u64| {
        let kept = other.mark(&run, text, unix_ms).unwrap();
        kept.map(|(head, at_ns)| (head.seq, at_ns))
    };
    assert_eq!(mark("before the first load", 5_000), None);
    let calibration = TrialHead { purpose: Purpose::CalibrationLatency, ..given::trial_head(0, 1.0) };
    writer.begin_trial(&calibration, 0).unwrap();
    assert_eq!(mark("while nothing is loaded", 5_000), None);
    writer.end_trial(1_000).unwrap();
    writer.begin_trial(&given::trial_head(1, 500.0), 10_000).unwrap();
    assert_eq!(mark("first of all", 10_250), Some((1, 250_000_000)));
    writer.append(given::one_of_each_at(0)).unwrap();
    writer.append(vec![given::second(1, 10)]).unwrap();
    // It is committed before its mark is set, which therefore stands behind it.
    while committed.recv().unwrap().entries.len() > 1 {}
    assert_eq!(mark("asked before the load began", 9_000), Some((1, 0)));
    writer.append(vec![given::second(2, 10)]).unwrap();
    let told = committed.recv().unwrap();
    assert_eq!((told.trial, marks(&told.entries)), (1, vec!["asked before the load began".to_owned()]));
    assert_eq!(mark("last of all", 13_000), Some((1, 3_000_000_000)));
    writer.end_trial(14_000).unwrap();
    assert_eq!(marks(&committed.recv().unwrap().entries), ["last of all"]);
    assert_eq!(mark("after the load", 15_000), None);
    writer.end_run(given::finished()).unwrap();
    let ended = other.mark(&run, "too late", 16_000);
    assert!(matches!(ended, Err(StoreError::NotRecorded { .. })), "{ended:?}");
    assert_eq!(other.being_recorded().unwrap(), []);

    assert_eq!(other.check().unwrap(), Vec::<String>::new());
    let whole = other.trial_entries(&run, 1).unwrap();
    assert_eq!(marks(&whole), ["first of all", "asked before the load began", "last of all"]);
    assert_eq!(whole.len(), 3 + given::one_of_each().len() + 2);
    let (mut place, mut pieces) = (Place::default(), Vec::new());
    while let piece @ [_, ..] =
        &other.entries_behind(&run, &given::trial_head(1, 500.0), &mut place, 2).unwrap()[..]
    {
        pieces.extend_from_slice(piece);
    }
    assert_eq!(pieces, whole);
}

#[test]
fn of_marks_and_seconds_written_at_once_none_is_lost_and_none_stands_twice() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
    let marker = |who: usize| {
        let (path, run) = (given.path.clone(), run.clone());
        std::thread::spawn(move || {
            let store = Store::open(path).unwrap();
            for at in 0..30 {
                store.mark(&run, &format!("{who}.{at}"), at).unwrap().expect("the load goes on");
            }
        })
    };
    let markers = [marker(0), marker(1)];
    (0..40).for_each(|index| writer.append(vec![given::second(index, 10)]).unwrap());
    markers.into_iter().for_each(|marker| marker.join().unwrap());
    writer.end_trial(1).unwrap();
    writer.end_run(given::finished()).unwrap();
    let entries = given.store.trial_entries(&run, 0).unwrap();
    assert_eq!(entries.len(), 40 + 60);
    let texts = marks(&entries);
    for who in 0..2 {
        let prefix = format!("{who}.");
        let of_one: Vec<&String> = texts.iter().filter(|text| text.starts_with(&prefix)).collect();
        assert_eq!(
            of_one,
            (0..30).map(|at| format!("{who}.{at}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
    assert_eq!(given.store.check().unwrap(), Vec::<String>::new());
}
