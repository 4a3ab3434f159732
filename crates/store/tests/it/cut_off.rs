//! A run whose process was killed: whole seconds are intact, and the run says how far it came.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use measure::trial::kind;
use measure::{Entry, Measure, ProcessMetric, Trial};
use store::{RunState, Store};

use crate::given;

const VICTIM: &str = "cut_off::the_victim_records_until_it_is_killed";
const VICTIM_PATH: &str = "STORE_TEST_VICTIM_PATH";

/// Not a test: what a child of the tests below does. Says `committed N` for each second.
#[test]
#[ignore = "records until it is killed; the tests below start it"]
fn the_victim_records_until_it_is_killed() {
    let Ok(path) = std::env::var(VICTIM_PATH) else { return };
    let store = Store::open_or_create(path).unwrap();
    let (told, committed) = std::sync::mpsc::channel();
    let writer = store.begin_run(&given::run_head(Some("master")), Some(told)).unwrap();
    given::record_trial(&writer, 0, 500.0, 3);
    writer.begin_trial(&given::trial_head(1, 1_000.0), 1).unwrap();
    std::thread::spawn(move || {
        for batch in committed.iter().filter(|batch| batch.trial == 1) {
            let Some(Entry::Interval(interval)) = batch.entries.first() else { continue };
            println!("\ncommitted {}", interval.index);
        }
    });
    for index in 0.. {
        writer
            .append(vec![
                given::second(index, 1_000),
                given::sample(u64::from(index), ProcessMetric::CpuTime, 1.0),
            ])
            .unwrap();
    }
}

/// Lets a child record, kills it after `seconds` were committed; returns how many it said were committed.
fn killed_after(path: &std::path::Path, seconds: u32) -> u32 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", VICTIM, "--ignored", "--nocapture"])
        .env(VICTIM_PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut last = 0;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for line in lines.by_ref() {
        let Some(said) = line.strip_prefix("committed ") else { continue };
        last = said.parse().unwrap();
        if last + 1 >= seconds {
            child.kill().unwrap();
            break;
        }
    }
    child.wait().unwrap();
    last + 1
}

#[test]
fn a_killed_process_leaves_whole_seconds_and_the_run_says_so() {
    for seconds in [1, 41] {
        let given = given::store();
        let told = killed_after(&given.path, seconds);
        let run = given.store.find_run("master").unwrap();
        let record = given.store.run(&run).unwrap();
        let RunState::CutOff(cut_off) = record.state else { panic!("{:?}", record.state) };
        let within = cut_off.within.clone().unwrap();
        assert!(within.whole_s >= told, "what was said to be committed is there");
        assert_eq!(cut_off.after, Some((measure::Purpose::Rung, 500.0)));
        let (minutes, rest) = (within.whole_s / 60, within.whole_s % 60);
        let expected = format!(
            "run master-1 was interrupted at {minutes}:{rest:02} of rung 1000; the {} s before are intact and shown as \
             INVALID(interrupted)",
            within.whole_s
        );
        assert_eq!(cut_off.to_string(), expected);

        let trial = given.store.trial(&run, 1, 0).unwrap();
        assert!(!trial.complete);
        assert_eq!(trial.seconds.len() as u32, within.whole_s);
        assert!(trial.seconds.iter().all(|second| second.flow.told == 1_000));
        let entries = given.store.trial_entries(&run, 1).unwrap();
        assert_eq!(
            entries.len() as u32,
            2 * within.whole_s,
            "each second came with its sample or not at all"
        );
        assert_eq!(given.store.trial(&run, 0, 0).unwrap().flow().told, 3_000);
        assert_eq!(given.store.check().unwrap(), [""; 0]);
        let beside = |end: &str| std::fs::exists(format!("{}{end}", given.path.display())).unwrap();
        assert!(beside("-live-master-1"), "a reader takes nothing away, not even the lock of the dead");
    }
}

#[test]
fn a_run_that_is_being_recorded_by_another_process_is_not_dead() {
    let given = given::store();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", VICTIM, "--ignored", "--nocapture"])
        .env(VICTIM_PATH, &given.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("committed ")));
    let run = given.store.find_run("master").unwrap();
    let state = given.store.run(&run).unwrap().state;
    let delete = given.store.delete_run(&run);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state, RunState::Recording);
    assert!(delete.unwrap_err().to_string().contains("is being recorded at this moment"));
    given.store.delete_run(&run).unwrap();
}

#[test]
fn a_writer_that_is_dropped_keeps_what_was_handed_over() {
    let given = given::store();
    let check = |act: &dyn Fn(&store::RunWriter), expected: &str| {
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        let run = writer.id().clone();
        act(&writer);
        drop(writer);
        let RunState::CutOff(cut_off) = given.store.run(&run).unwrap().state else {
            panic!("must be cut off")
        };
        assert_eq!(cut_off.to_string(), format!("run {run} was interrupted {expected}"));
    };
    check(&|_| {}, "before its first trial; nothing was measured");
    check(
        &|writer| given::record_trial(writer, 0, 500.0, 2),
        "after rung 500; everything up to there is intact",
    );
    check(
        &|writer| writer.begin_trial(&given::trial_head(0, 0.5), 1).unwrap(),
        "at 0:00 of rung 0.5; no whole second of it was measured",
    );
    check(
        &|writer| {
            writer.begin_trial(&given::trial_head(0, 1_000.0), 1).unwrap();
            (0..61).for_each(|index| writer.append(vec![given::second(index, 1)]).unwrap());
        },
        "at 1:01 of rung 1000; the 61 s before are intact and shown as INVALID(interrupted)",
    );
}

#[test]
fn the_sum_of_a_cut_off_trial_ends_at_its_last_whole_second() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 1_000.0), 1).unwrap();
    writer.append(vec![given::event(0, kind::HOLD)]).unwrap();
    (0..7).for_each(|index| writer.append(vec![given::second(index, 10)]).unwrap());
    drop(writer);
    let trial: Trial = given.store.trial(&run, 0, 0).unwrap();
    let hold = trial.hold.clone().unwrap();
    assert_eq!((hold.seconds(), hold.ended_by.as_str()), (7.0, "interrupted"));
    assert_eq!(trial.distribution(Measure::SendLag).count(), 70);
}
