//! What is written is read back, in order and bit for bit, and a reader sees it grow.

use std::sync::mpsc;

use measure::trial::kind;
use measure::{Entry, Interval, Phase, ProcessMetric, Reading, Sample, Trial};
use proptest::prelude::*;
use store::{RunState, Store, StoreError, StoredVerdict};

use crate::given;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn entries_come_back_equal_to_the_bit(entries in given::any_entries(), batch in 1usize..5) {
        let given = given::store();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
        entries.chunks(batch).for_each(|part| writer.append(part.to_vec()).unwrap());
        writer.end_trial(2).unwrap();
        prop_assert_eq!(given.store.trial_entries(writer.id(), 0).unwrap(), entries);
    }
}

#[test]
fn heads_ends_verdicts_and_artifacts_come_back_as_they_were() {
    let given = given::store();
    let head = store::RunHead {
        scenario: Some("scenarios/arena.yaml".to_owned()),
        git: Some("abc".to_owned()),
        ..given::run_head(Some("master"))
    };
    let writer = given.store.begin_run(&head, None).unwrap();
    let run = writer.id().clone();
    let trial = given::trial_head(0, 0.1 + 0.2);
    writer.begin_trial(&trial, 7).unwrap();
    writer.end_trial(8).unwrap();
    let verdict = |judge: &str, cut_s| StoredVerdict {
        judge: judge.to_owned(),
        verdict: "FAIL".to_owned(),
        reason: Some("ticks.late_share 0.3".to_owned()),
        cut_s,
        evidence: r#"{"late_share":0.3}"#.to_owned(),
    };
    writer.verdict(0, verdict("ladder", 3)).unwrap();
    writer.verdict(0, verdict("ladder", 5)).unwrap();
    writer.artifact("run.json", b"{}").unwrap();
    let end = store::RunEnd {
        reason: Some("done".to_owned()),
        climb: Some("{\"lower\":500}".to_owned()),
        ..given::finished()
    };
    writer.end_run(end.clone()).unwrap();

    let record = given.store.run(&run).unwrap();
    assert_eq!(record.head, head);
    assert_eq!(record.state, RunState::Ended(end));
    let trials = given.store.trials(&run).unwrap();
    assert_eq!(trials[0].head, trial);
    assert_eq!((trials[0].started_unix_ms, trials[0].ended_unix_ms, trials[0].whole_s), (7, Some(8), 0));
    assert_eq!(given.store.verdicts(&run, 0).unwrap(), [verdict("ladder", 3), verdict("ladder", 5)]);
    assert_eq!(given.store.artifact(&run, "run.json").unwrap().unwrap(), b"{}");
    assert_eq!(given.store.artifact(&run, "other").unwrap(), None);
}

#[test]
fn a_stored_trial_is_the_same_sum_as_a_live_one() {
    let given = given::store();
    let (told, committed) = mpsc::channel();
    let writer = given.store.begin_run(&given::run_head(None), Some(told)).unwrap();
    given::record_trial(&writer, 0, 500.0, 5);
    let run = writer.id().clone();
    writer.end_run(given::finished()).unwrap();
    let shown: Vec<Entry> = committed.iter().flat_map(|batch| batch.entries).collect();
    for cut_s in [0, 2] {
        let live = Trial::from_entries(given::trial_head(0, 500.0), &shown, cut_s);
        assert_eq!(given.store.trial(&run, 0, cut_s).unwrap(), live);
    }
    assert_eq!(given.store.trial(&run, 0, 0).unwrap().flow().told, 5_000);
}

#[test]
fn a_reader_sees_a_growing_run() {
    let given = given::store();
    let reader = Store::open(&given.path).unwrap();
    let (told, committed) = mpsc::channel();
    let writer = given.store.begin_run(&given::run_head(None), Some(told)).unwrap();
    let run = writer.id().clone();
    assert_eq!(reader.run(&run).unwrap().state, RunState::Recording);
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    for index in 0..4 {
        writer.append(vec![given::second(index, 10)]).unwrap();
        let batch = committed.recv().unwrap();
        assert_eq!((batch.run, batch.trial, batch.entries.len()), (run.clone(), 0, 1));
        assert_eq!(reader.trial_entries(&run, 0).unwrap().len() as u32, index + 1);
        assert_eq!(reader.trials(&run).unwrap()[0].whole_s, index + 1);
    }
    assert_eq!(reader.trials(&run).unwrap()[0].ended_unix_ms, None);
}

#[test]
fn a_reader_beside_a_busy_writer_always_sees_whole_batches() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for index in 0..300 {
                let at_s = u64::from(index);
                writer
                    .append(vec![given::sample(at_s, ProcessMetric::Fds, 1.0), given::second(index, 10)])
                    .unwrap();
            }
        });
        let reader = Store::open(&given.path).unwrap();
        loop {
            let whole_s = reader.trials(&run).unwrap()[0].whole_s;
            let entries = reader.trial_entries(&run, 0).unwrap();
            assert!(entries.len().is_multiple_of(2) && entries.len() as u32 >= 2 * whole_s);
            assert_eq!(reader.run(&run).unwrap().state, RunState::Recording);
            if whole_s == 300 {
                break;
            }
        }
    });
}

#[test]
fn several_sources_hand_over_to_one_writer() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    std::thread::scope(|threads| {
        for source in 0..4u64 {
            let sender = writer.sender();
            threads.spawn(move || {
                (0..50).for_each(|at| {
                    sender.append(vec![given::sample(at, ProcessMetric::Fds, source as f64)]).unwrap()
                });
            });
        }
    });
    writer.end_trial(2).unwrap();
    assert_eq!(given.store.trial_entries(writer.id(), 0).unwrap().len(), 200);
}

#[test]
fn a_reading_that_is_not_a_number_stays_one() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer
        .append(
            [f64::NAN, -0.0, f64::INFINITY].map(|value| given::sample(1, ProcessMetric::Rss, value)).to_vec(),
        )
        .unwrap();
    writer.end_trial(2).unwrap();
    let values: Vec<f64> = given
        .store
        .trial_entries(writer.id(), 0)
        .unwrap()
        .iter()
        .map(
            |entry| {
                if let Entry::Sample(Sample { value, .. }) = entry { *value } else { panic!("{entry:?}") }
            },
        )
        .collect();
    assert!(values[0].is_nan());
    assert_eq!(values[1..], [0.0, f64::INFINITY]);
}

#[test]
fn the_name_of_a_program_comes_back_as_it_was_whatever_is_in_it() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    let sample = |of: fn(String) -> Reading, name: &str| {
        Entry::Sample(Sample { at_ns: 1, what: of(measure::plain_name(name)), value: 0.5 })
    };
    let names = ["<script>\u{1b}[2J", "cc \"1\", 'x'; --", "ß\u{202e}é", "", &"long".repeat(20)];
    let of_later: fn(String) -> Reading = |name| Reading::Other { who: "subject".to_owned(), name };
    let entries: Vec<Entry> = [Reading::Program, Reading::Thread, of_later]
        .into_iter()
        .flat_map(|of| names.map(|name| sample(of, name)))
        .collect();
    writer.append(entries.clone()).unwrap();
    writer.end_trial(2).unwrap();
    assert_eq!(given.store.trial_entries(writer.id(), 0).unwrap(), entries);
}

#[test]
fn a_second_that_does_not_balance_stops_the_writer_and_harms_nothing_before() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer.append(vec![given::second(0, 10)]).unwrap();
    let mut bad = Interval::new(&given::names());
    bad.index = 1;
    bad.flow_mut(0, Phase::Hold).told = 1;
    writer.append(vec![given::second(2, 10), Entry::Interval(Box::new(bad))]).unwrap();
    let refused = writer.end_trial(2).unwrap_err();
    let StoreError::WriterStopped { cause, .. } = &refused else { panic!("{refused}") };
    assert!(matches!(**cause, StoreError::Unbalanced { second: 1, .. }), "{cause}");
    assert!(writer.failure().is_some());
    assert!(writer.append(vec![given::event(1, kind::END)]).is_err());
    assert_eq!(given.store.trial_entries(writer.id(), 0).unwrap(), [given::second(0, 10)]);
}

#[test]
fn books_come_back_once_and_only_when_they_balance() {
    let given = given::store();
    let begun = || {
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
        writer
    };
    let writer = begun();
    writer.append(vec![Entry::Books(Box::new(given::books()))]).unwrap();
    writer.end_trial(2).unwrap();
    assert_eq!(given.store.trial(writer.id(), 0, 0).unwrap().books, Some(given::books()));

    let refused = |entries: Vec<Entry>, expected: &str| {
        let writer = begun();
        writer.append(entries).unwrap();
        let message = writer.end_trial(2).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let mut unbalanced = given::books();
    unbalanced.receivers[1].sum.residual = 0;
    refused(vec![Entry::Books(Box::new(unbalanced))], "receiver 1: the residual is not what");
    let mut beside = given::books();
    beside.judged.lost += 1;
    refused(vec![Entry::Books(Box::new(beside))], "the judged receivers do not add up");
    let twice = || Entry::Books(Box::new(given::books()));
    refused(vec![twice(), twice()], "UNIQUE constraint failed: ledger.run");
}

#[test]
fn what_is_out_of_order_is_refused() {
    let check = |act: &dyn Fn(&store::RunWriter) -> Result<(), StoreError>, expected: &str| {
        let given = given::store();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        let message = act(&writer).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(
        &|writer| writer.begin_trial(&given::trial_head(1, 1.0), 1),
        "trial 1 was to begin where trial 0 is next",
    );
    check(&|writer| writer.end_trial(1), "while none was open");
    check(
        &|writer| {
            writer.append(vec![given::second(0, 1)])?;
            writer.end_trial(1)
        },
        "entries came while no trial was open",
    );
    check(
        &|writer| {
            writer.begin_trial(&given::trial_head(0, 1.0), 1)?;
            writer.append(vec![given::second(0, 1)])?;
            writer.append(vec![given::second(0, 1)])?;
            writer.end_trial(1)
        },
        "UNIQUE constraint failed: interval.run, interval.trial, interval.interval",
    );
    let not_json = StoredVerdict {
        judge: "ladder".to_owned(),
        verdict: "PASS".to_owned(),
        reason: None,
        cut_s: 0,
        evidence: "{".to_owned(),
    };
    check(
        &|writer| writer.verdict(0, not_json.clone()),
        "a verdict's evidence cannot be stored: it is not JSON",
    );
}
