//! Duels: planted trials of both sides, as a page.

use ladder::duel::{Duel, DuelAnswers, DuelStop, HeldTrial};
use ladder::{Climb, Conclusion, Criteria, Judged, Objective, judge};
use measure::TrialHead;
use serde_json::{Value, json};
use store::{Outcome, RunEnd, RunHead, RunId, RunKind, RunWriter, Store};
use viewer::{Judge, Unjudged};

use crate::given::{self, ByRules, Client};

/// What is known of the trials of a run, judged by the usual figures.
pub fn answers(store: &Store, run: &RunId, climb: Option<Climb>) -> Option<(Climb, DuelAnswers)> {
    let mut climb = climb?;
    let duel = Duel {
        seed: 7,
        loads: vec![climb.rungs.first()?.load],
        calibrations: Vec::new(),
        figures: Duel::usual_figures(false),
        gates: vec!["response.p50 < +5%".parse().unwrap()],
        delta: 0.05,
        blocks_most: 20,
        disturbed_share_most: 1.0,
        budget_ns: 600_000_000_000,
    };
    let mut held = Vec::new();
    for mark in store.trial_marks(run).unwrap().into_iter().filter(|mark| mark.is_ended()) {
        let trial = store.trial(run, mark.head.seq, 0).unwrap();
        held.push(HeldTrial {
            seq: mark.head.seq,
            judged: Judged::of(&trial, Some(&judge(&trial, None, &Criteria::default()))),
            unfair: None,
            figures: duel.read(&trial),
            took_ns: 4_000_000_000,
        });
    }
    let rules = duel.rules();
    let standing = duel.standing(&held, &rules);
    let texts = ["arena".to_owned(), "arena -- --ticker catch-up".to_owned()];
    let options = "subject.source.built_in.options".to_owned();
    let differs =
        vec![ladder::Difference { what: options, old: json!([]), new: json!(["--ticker", "catch-up"]) }];
    let duel = DuelAnswers::of(&duel, &standing, &rules, &texts, Some(DuelStop::Known), differs);
    let blocks = duel.loads.first().map_or(0, |load| load.blocks);
    let text = format!("At 500 games, {blocks} blocks: response.p50 is slower with B.");
    climb.conclusions.insert(0, Conclusion::new("duel", &[text], json!({})));
    Some((climb, duel))
}

/// Judges climbs and duels alike by the rules of `given`.
struct OfDuels;

impl Judge for OfDuels {
    fn climb(&self, store: &Store, run: &RunId) -> Result<Option<Climb>, Unjudged> {
        ByRules.climb(store, run)
    }

    fn duel(&self, store: &Store, run: &RunId) -> Result<Option<(Climb, DuelAnswers)>, Unjudged> {
        Ok(answers(store, run, ByRules.climb(store, run)?))
    }

    fn objectives(&self, store: &Store, run: &RunId) -> Result<Vec<Objective>, Unjudged> {
        ByRules.objectives(store, run)
    }
}

fn head() -> RunHead {
    RunHead { kind: RunKind::Duel, ..given::run_head("duel") }
}

/// Two blocks of 3 s, B's ticks later.
fn hold(writer: &RunWriter) {
    for (seq, side) in (0..).zip(["A", "B", "B", "A"]) {
        let cell = [("side".to_owned(), side.to_owned())].into();
        let late = if side == "A" { 0.02 } else { 0.1 };
        given::record_in(writer, &TrialHead { cell, ..given::trial_head(seq, 500.0) }, 3, late);
    }
}

fn serve(given: &given::Given) -> viewer::Viewer {
    let options =
        viewer::Options { store: given.path.clone(), listen: ([127, 0, 0, 1], 0).into(), ticks: Vec::new() };
    viewer::serve(&options, std::sync::Arc::new(OfDuels)).unwrap()
}

#[test]
fn a_duel_has_a_page_while_it_goes_on_and_the_told_one_afterwards() {
    let given = given::store();
    let writer = given.store.begin_run(&head(), None).unwrap();
    let run = writer.id().clone();
    hold(&writer);
    let viewer = serve(&given);
    let client = Client::of(&viewer);
    let page = || client.get(&format!("/api/runs/{run}")).json();
    let going_on = page();
    assert_eq!((&going_on["run"]["kind"], &going_on["run"]["state"]), (&"duel".into(), &"running".into()));
    let load = &going_on["duel"]["loads"][0];
    assert_eq!((&load["blocks"], going_on["trials"].as_array().unwrap().len()), (&2.into(), 4));
    let late =
        load["figures"].as_array().unwrap().iter().find(|one| one["figure"] == "ticks.late_share").unwrap();
    assert!((late["estimate"].as_f64().unwrap() - 0.08).abs() < 1e-6, "{late}");
    assert_eq!((&late["by_block"][1]["estimate"], &late["low"]), (&late["estimate"], &Value::Null));
    // The verdicts of both sides together would be no verdict of either.
    assert_eq!((&going_on["run"]["verdict"], &going_on["run"]["capacity"]), (&Value::Null, &Value::Null));

    let (climb, duel) = OfDuels.duel(&given.store, &run).unwrap().unwrap();
    let mut told = serde_json::to_value(climb).unwrap();
    told["duel"] = serde_json::to_value(DuelAnswers { a: "as it was told".to_owned(), ..duel }).unwrap();
    let end =
        RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 0, climb: Some(told.to_string()) };
    writer.end_run(end).unwrap();
    let ended = page();
    assert_eq!(ended["duel"]["a"], "as it was told");
    assert_eq!(ended["duel"]["loads"], going_on["duel"]["loads"], "digit by digit");
    let rows = client.get("/api/runs").json();
    assert_eq!(rows["runs"][0]["answer"], "At 500 games, 2 blocks: response.p50 is slower with B.");
}

#[test]
fn a_duel_without_a_block_says_how_it_ended() {
    let given = given::store();
    let writer = given.store.begin_run(&head(), None).unwrap();
    let run = writer.id().clone();
    let reason = Some("the server of B did not start".to_owned());
    writer.end_run(RunEnd { outcome: Outcome::Broken, reason, ended_unix_ms: 0, climb: None }).unwrap();
    let viewer = serve(&given);
    let page = Client::of(&viewer).get(&format!("/api/runs/{run}")).json();
    assert_eq!((&page["duel"], &page["problem"]), (&Value::Null, &Value::Null));
    assert_eq!(page["run"]["answer"], "the server of B did not start");
}
