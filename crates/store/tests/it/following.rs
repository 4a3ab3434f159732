//! A trial read piece by piece, and one that grows while it is read.

use measure::{Entry, ProcessMetric};
use proptest::prelude::*;
use store::{Place, Store};

use crate::given;

/// Everything after a place, in pieces of `most`.
fn in_pieces(store: &Store, run: &store::RunId, place: &mut Place, most: u32) -> Vec<Entry> {
    let head = store.trial_marks(run).unwrap().remove(0).head;
    let mut all = Vec::new();
    loop {
        let piece = store.entries_behind(run, &head, place, most).unwrap();
        if piece.is_empty() {
            return all;
        }
        assert!(piece.len() <= most as usize);
        all.extend(piece);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn pieces_of_any_size_are_the_whole_trial(entries in given::any_entries(), most in 1u32..9) {
        let given = given::store();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        let run = writer.id().clone();
        writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
        entries.iter().for_each(|entry| writer.append(vec![entry.clone()]).unwrap());
        writer.end_trial(1).unwrap();
        writer.end_run(given::finished()).unwrap();
        let pieces = in_pieces(&given.store, &run, &mut Place::default(), most);
        prop_assert_eq!(pieces, given.store.trial_entries(&run, 0).unwrap());
    }
}

#[test]
fn a_follower_sees_each_entry_once_while_the_trial_grows() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    let reader = Store::open_to_read(&given.path).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 0).unwrap();
    let (mut place, mut seen) = (Place::default(), Vec::new());
    for index in 0..5 {
        let before = reader.version().unwrap();
        writer
            .append(vec![
                given::second(index, 10),
                given::sample(u64::from(index), ProcessMetric::CpuTime, 0.5),
            ])
            .unwrap();
        while reader.version().unwrap() == before {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let piece = in_pieces(&reader, &run, &mut place, 1_000);
        assert_eq!(piece.len(), 2, "second {index}");
        seen.extend(piece);
    }
    assert!(!reader.trial_marks(&run).unwrap()[0].is_ended());
    writer.end_trial(1).unwrap();
    assert!(reader.trial_marks(&run).unwrap()[0].is_ended());
    assert_eq!(seen, reader.trial_entries(&run, 0).unwrap());
}

#[test]
fn an_entry_that_is_missing_from_a_piece_is_damage() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    given::record_trial(&writer, 0, 500.0, 6);
    writer.end_run(given::finished()).unwrap();
    let other = rusqlite::Connection::open(&given.path).unwrap();
    other
        .execute_batch("DROP TRIGGER sample_goes_with_its_run; DELETE FROM sample WHERE at_ns = 3000000000;")
        .unwrap();
    let head = given.store.trial_marks(&run).unwrap().remove(0).head;
    for most in [4, 100] {
        let mut place = Place::default();
        let outcome =
            (0..4).try_for_each(|_| given.store.entries_behind(&run, &head, &mut place, most).map(|_| ()));
        assert!(matches!(outcome, Err(store::StoreError::Damaged { .. })), "{most}: {outcome:?}");
    }
}

#[test]
fn a_store_opened_to_be_read_lets_nothing_be_written() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.end_run(given::finished()).unwrap();
    let reader = Store::open_to_read(&given.path).unwrap();
    assert!(reader.set_label(&run, "name", Some("master")).is_err());
    assert!(reader.delete_run(&run).is_err());
    assert_eq!(reader.run(&run).unwrap().labels.len(), 0);
}
