//! The lines of a run for programs that follow it: the same while it is recorded and afterwards.

use measure::ProcessMetric;
use proptest::prelude::*;
use serde_json::{Value, json};
use store::export::SecondLines;
use store::{Outcome, RunEnd, RunId, Store, StoredVerdict, export};

use crate::given::{self, Given};

fn exported(store: &Store, run: &RunId) -> Vec<String> {
    let mut bytes = Vec::new();
    export::seconds(store, run, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn parsed(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

fn verdict(name: &str) -> StoredVerdict {
    StoredVerdict {
        judge: "climb".to_owned(),
        verdict: name.to_owned(),
        evidence: "{\"late\":1}".to_owned(),
        ..StoredVerdict::default()
    }
}

fn recorded() -> (Given, RunId) {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(Some("master")), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer.append(given::one_of_each()).unwrap();
    writer.append(vec![given::second(1, 1_000)]).unwrap();
    writer.end_trial(2).unwrap();
    writer.verdict(0, verdict("PASS")).unwrap();
    writer.begin_trial(&given::trial_head(1, 1000.0), 3).unwrap();
    writer.append(vec![given::second(0, 20)]).unwrap();
    writer.end_trial(4).unwrap();
    writer.verdict(1, verdict("FAIL")).unwrap();
    let climb = json!({ "verdict": "FAIL", "capacity": { "lower_bound": 500 }, "rungs": [] });
    writer.end_run(RunEnd { climb: Some(climb.to_string()), ..given::finished() }).unwrap();
    (given, run)
}

#[test]
fn a_line_stands_for_each_second_and_each_event_in_their_order() {
    let (given, run) = recorded();
    let lines = parsed(&exported(&given.store, &run));
    assert!(lines.iter().all(|line| line["run"] == "master-1"));
    let order = types(&lines);
    assert_eq!(order[..3], ["run_begin", "trial_begin", "interval"]);
    assert_eq!(
        order[order.len() - 6..],
        ["verdict", "trial_begin", "interval", "trial_end", "verdict", "run_end"]
    );
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("interval").len(), of("ticks").len(), of("books").len()), (3, 1, 1));
    let second = of("interval")[1];
    assert_eq!((&second["trial"], &second["second"]), (&json!(0), &json!(1)));
    assert_eq!(second["operations"]["shot"]["hold"]["sent"], 1_000);
    assert_eq!(second["durations_ns"]["send_lag"]["hold"]["count"], 1_000);
    assert_eq!(of("verdict")[0]["evidence"], json!({ "late": 1 }));
    let end = of("run_end")[0];
    assert_eq!((&end["outcome"], &end["verdict"]), (&json!("finished"), &json!("FAIL")));
    assert_eq!(end["capacity"]["lower_bound"], 500);
}

#[test]
fn readings_of_one_round_are_one_line_and_the_next_round_is_another() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    let of = |at_s, name, value| given::sample(at_s, name, value);
    // A round may span two transactions.
    writer.append(vec![of(1, ProcessMetric::CpuTime, 0.5)]).unwrap();
    writer.append(vec![of(1, ProcessMetric::Rss, 7.0), of(2, ProcessMetric::CpuTime, f64::NAN)]).unwrap();
    writer.end_trial(2).unwrap();
    writer.end_run(given::finished()).unwrap();
    let lines = parsed(&exported(&given.store, &run));
    let samples: Vec<_> = lines.iter().filter(|line| line["type"] == "samples").collect();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0]["values"], json!({ "subject": { "cpu_s": 0.5, "rss_bytes": 7.0 } }));
    assert_eq!(samples[1]["values"], json!({ "subject": { "cpu_s": null } }));
}

#[test]
fn a_run_that_was_cut_off_ends_with_a_line_that_says_so() {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
    let run = writer.id().clone();
    writer.begin_trial(&given::trial_head(0, 500.0), 1).unwrap();
    writer.append(vec![given::second(0, 20)]).unwrap();
    drop(writer);
    let lines = parsed(&exported(&given.store, &run));
    assert_eq!(types(&lines), ["run_begin", "trial_begin", "interval", "run_end"]);
    assert_eq!(lines[3]["outcome"], "cut_off");
    assert!(lines[3]["reason"].as_str().unwrap().contains("was interrupted"), "{}", lines[3]);
}

#[test]
fn a_comparison_of_client_libraries_has_no_seconds() {
    let given = given::store();
    let head = store::RunHead { kind: store::RunKind::Bench, ..given::run_head(None) };
    let writer = given.store.begin_run(&head, None).unwrap();
    let run = writer.id().clone();
    writer.end_run(given::finished()).unwrap();
    let said = export::seconds(&given.store, &run, &mut Vec::new()).unwrap_err().to_string();
    assert!(said.contains("compared client libraries") && said.contains("stepladder export"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn lines_that_were_followed_are_those_that_are_exported(
        entries in given::any_entries(),
        looks in proptest::collection::vec(any::<bool>(), 1..40),
        is_broken in any::<bool>(),
    ) {
        let given = given::store();
        let reader = Store::open_to_read(&given.path).unwrap();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        let run = writer.id().clone();
        let mut following = SecondLines::new(run.clone());
        let mut lines = Vec::new();
        let mut looks = looks.iter().cycle();
        let mut look = |lines: &mut Vec<String>| {
            for _ in 0..3 {
                if looks.next() == Some(&true) {
                    lines.extend(following.step(&reader).unwrap());
                }
            }
        };
        look(&mut lines);
        for seq in 0..2 {
            writer.begin_trial(&given::trial_head(seq, 500.0), 0).unwrap();
            for entry in &entries {
                look(&mut lines);
                writer.append(vec![entry.clone()]).unwrap();
            }
            writer.end_trial(1).unwrap();
            look(&mut lines);
            writer.verdict(seq, verdict("PASS")).unwrap();
        }
        look(&mut lines);
        let outcome = if is_broken { Outcome::Broken } else { Outcome::Finished };
        writer.end_run(RunEnd { outcome, ..given::finished() }).unwrap();
        while !following.has_ended() {
            lines.extend(following.step(&reader).unwrap());
        }
        prop_assert_eq!(lines, exported(&given.store, &run));
    }
}

/// A run of `count` trials without entries, each with a verdict.
fn of_trials(count: u32) -> (Given, RunId) {
    let given = given::store();
    let writer = given.store.begin_run(&given::run_head(Some("long")), None).unwrap();
    let run = writer.id().clone();
    for seq in 0..count {
        writer.begin_trial(&given::trial_head(seq, f64::from(seq + 1)), 1).unwrap();
        writer.end_trial(2).unwrap();
        let evidence = format!("{{\"late\":{seq},\"text\":\"{}\"}}", "x".repeat(2_000));
        writer.verdict(seq, StoredVerdict { evidence, ..verdict("PASS") }).unwrap();
    }
    writer.end_run(given::finished()).unwrap();
    (given, run)
}

#[test]
fn each_of_many_trials_has_its_own_verdict() {
    let (given, run) = of_trials(60);
    let lines = parsed(&exported(&given.store, &run));
    let verdicts: Vec<&Value> = lines.iter().filter(|line| line["type"] == "verdict").collect();
    assert_eq!(verdicts.len(), 60);
    for (seq, line) in verdicts.into_iter().enumerate() {
        assert_eq!((&line["trial"], &line["evidence"]["late"]), (&json!(seq), &json!(seq)));
    }
}
