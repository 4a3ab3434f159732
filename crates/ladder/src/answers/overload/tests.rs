use super::*;
use crate::answers::{Asked, answers, rung};
use crate::contract::RunFacts;
use crate::disturbance::Disturbance;
use crate::judge::{Criteria, SERVER_EXITED, Verdict};
use crate::testing::TrialBuilder;

const OBJECTIVE: &str = "response.p99 < 50ms";

/// A hold of ten seconds with this many answers per second in time, of `load` that were asked.
fn held(load: f64, good_per_s: f64) -> Rung {
    let terms = Criteria { objectives: vec![OBJECTIVE.parse().unwrap()], ..Criteria::default() };
    let (trial, judgement) = TrialBuilder::asking(100.0).judged(&terms);
    let mut rung = rung(&trial, &judgement);
    let verdict = if good_per_s >= load { Verdict::Pass } else { Verdict::Fail };
    (rung.load, rung.verdict, rung.signal, rung.disturbance) = (load, verdict, None, None);
    let goodput =
        json!({ "limit_ns": 5e7, "asked": load * 10.0, "good": good_per_s * 10.0, "seconds": 10.0 });
    rung.extra.insert("goodput".to_owned(), goodput);
    rung
}

fn facts() -> RunFacts {
    serde_json::from_value(json!({
        "id": "1", "name": null, "subject": "planted", "scenario": null, "seed": 1, "arrivals": "even",
        "started_unix_ms": 1, "stepladder": "0", "git": null, "command": "", "environment": {},
        "shared_cores": true, "capacity_unit": "req/s",
    }))
    .unwrap()
}

/// Class and text of what a climb concludes; `None`: nothing.
fn concluded(rungs: Vec<Rung>) -> Option<(String, String)> {
    let climb = answers(&facts(), None, rungs, Asked { has_overload: true, ..Asked::default() });
    let found = climb.conclusions.iter().find(|one| one.id == "overload")?;
    Some((found.evidence["class"].as_str().unwrap().to_owned(), found.text.clone()))
}

fn check(beyond: Rung, class: &str, words: &str) {
    let (found, text) = concluded(vec![held(100.0, 100.0), beyond]).unwrap();
    assert_eq!(found, class, "{text}");
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_server_that_sheds_load_is_told_from_one_that_collapses() {
    check(held(200.0, 98.0), "kept", "98/s at 200 (2.00 times; 49 % of what was asked)");
    check(held(200.0, 70.0), "degraded", "70 % of it is left at 200");
    check(held(200.0, 3.0), "collapsed", "collapses: 3 % of it is left at 200");
    check(held(200.0, 0.0), "collapsed", "0/s at 200");
}

#[test]
fn a_server_that_exits_is_said_to_have_exited() {
    let exited = Rung { signal: Some(SERVER_EXITED.to_owned()), ..held(200.0, 40.0) };
    check(exited, "exited", "it exited at 200");
}

#[test]
fn what_a_disturbance_could_explain_is_not_concluded() {
    let disturbed = |good, explains_messages| {
        let disturbance = Some(Disturbance { explains_messages, ..Disturbance::default() });
        Rung { disturbance, ..held(200.0, good) }
    };
    check(disturbed(3.0, 1.0), "unknown", "whether the server caused it is not known");
    check(disturbed(40.0, 0.3), "unknown", "whether the server caused it is not known");
    check(disturbed(95.0, 1.0), "kept", "keeps its goodput");
    // Two of 200 per second are explained.
    check(disturbed(3.0, 0.01), "collapsed", "at most 5 % of it is left at 200");
    check(disturbed(70.0, 0.01), "degraded", "at most 72 % of it is left at 200");
}

#[test]
fn what_a_late_generator_held_is_no_goodput_of_the_server() {
    let limited = Rung { verdict: Verdict::GeneratorLimited, ..held(400.0, 1.0) };
    let (class, text) = concluded(vec![held(100.0, 100.0), held(200.0, 95.0), limited]).unwrap();
    assert!(class == "kept" && !text.contains("400"), "{text}");
    assert_eq!(concluded(vec![held(100.0, 100.0)]), None, "nothing was held beyond it");
}

#[test]
fn only_answers_within_the_bound_are_good() {
    let counted = |objective: &str| {
        let terms = Criteria { objectives: vec![objective.parse().unwrap()], ..Criteria::default() };
        let (trial, judgement) = TrialBuilder::asking(100.0).judged(&terms);
        goodput(&trial, &judgement.evidence).unwrap()
    };
    let (all, none) = (counted("response.p99 < 60s"), counted("response.p99 < 1ns"));
    assert!(all["good"].as_u64().unwrap() > 0 && all["share"] == json!(1.0), "{all}");
    assert_eq!((&none["good"], &none["asked"]), (&json!(0), &all["asked"]));
}

#[test]
fn recoveries_are_said_with_the_load_they_came_after() {
    let recovered = |load: f64, recovery: serde_json::Value, verdict| {
        let mut rung = Rung { verdict, ..held(load, 40.0) };
        rung.extra.insert("recovery".to_owned(), recovery);
        rung
    };
    let after = json!({ "load": 80.0, "outcome": "recovered", "recovery_s": 7 });
    let never = json!({ "load": 80.0, "outcome": "not recovered", "not_within_s": 30 });
    let rungs = vec![
        held(100.0, 100.0),
        recovered(150.0, after.clone(), Verdict::Fail),
        recovered(200.0, never, Verdict::Fail),
        recovered(300.0, after, Verdict::GeneratorLimited),
    ];
    let (_, text) = concluded(rungs).unwrap();
    let said = "7 s after 150, not within 30 s after 200, unknown after 300 (GENERATOR_LIMITED).";
    assert!(text.contains("for 5 s in a row, at 80 req/s") && text.ends_with(said), "{text}");
    assert!(!concluded(vec![held(100.0, 100.0), held(200.0, 40.0)]).unwrap().1.contains("Recovery"));
}
