use measure::trial::kind;
use proptest::prelude::*;

use super::*;
use crate::closing::closing;
use crate::judge::{Terms, judge};
use crate::scene::{Scene, see_ticks};

const SCHEMA_TEXT: &str = include_str!("../../tests/run.schema.json");

fn facts() -> RunFacts {
    let mut environment = Map::new();
    environment.insert("cores".to_owned(), json!(2));
    RunFacts {
        id: "7".to_owned(),
        name: Some("master".to_owned()),
        subject: "arena".to_owned(),
        scenario: None,
        seed: u64::MAX,
        arrivals: "even".to_owned(),
        started_unix_ms: 1_795_000_000_000,
        stepladder: "0.1.0".to_owned(),
        git: None,
        command: "stepladder climb arena".to_owned(),
        environment,
        shared_cores: true,
        capacity_unit: "games".to_owned(),
    }
}

fn judged(scene: &Scene, objective: &str) -> (Trial, Judgement) {
    let terms = Terms {
        objectives: vec![objective.parse().unwrap()],
        patience_ns: 1_000_000_000,
        ..Terms::default()
    };
    let trial = scene.build();
    let judgement = judge(&trial, &terms);
    (trial, judgement)
}

fn arena(load: f64, late: f64) -> (Trial, Judgement) {
    judged(&Scene::arena(load).late(late), "ticks.late_share < 25%")
}

fn climb_of(rungs: &[(Trial, Judgement)]) -> Climb {
    answers(&facts(), None, rungs)
}

fn check_contract(climb: &Climb) {
    let schema: Value = serde_json::from_str(SCHEMA_TEXT).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let json = serde_json::to_value(climb).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    // Through text, as files go; floats must come back as they were.
    let text = serde_json::to_string_pretty(climb).unwrap();
    assert_eq!(&serde_json::from_str::<Climb>(&text).unwrap(), climb);
}

fn text_of<'a>(climb: &'a Climb, id: &str) -> &'a str {
    &climb.conclusions.iter().find(|conclusion| conclusion.id == id).unwrap().text
}

#[test]
fn every_kind_of_rung_fits_the_contract() {
    let mut never_held = Scene::arena(500.0);
    (never_held.has_hold, never_held.is_complete) = (false, false);
    let mut untold = Scene::arena(500.0).edit(|_, interval| see_ticks(interval, 1_000, 100, 25_000_000));
    untold.late_share = None;
    let lossy = Scene::asking(1000.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, measure::Phase::Hold);
        (flow.answered, flow.lost) = (flow.answered - 30, 30);
        interval.errors[0] = 30;
        interval.connections.failed[0] = 1;
    });
    let rungs = [
        arena(500.0, 0.02),
        arena(1000.0, 0.4),
        judged(&never_held, "ticks.late_share < 25%"),
        judged(&untold, "client_ticks.late_share < 25%"),
        judged(&lossy, "response.p99 < 50ms"),
        judged(&Scene::arena(100.0).event(20, kind::SUBJECT_EXITED, "signal 11"), "errors == 0"),
    ];
    let calibration = Calibration {
        own_latency: Distribution::new().summary(),
        send_lag: rungs[0].0.distribution(Measure::SendLag).summary(),
        ceiling_per_s: Some(120_000.5),
    };
    check_contract(&answers(&facts(), Some(&calibration), &rungs));
    rungs.into_iter().for_each(|rung| check_contract(&climb_of(&[rung])));
}

#[test]
fn figures_are_those_of_the_trial() {
    let climb = climb_of(&[arena(500.0, 0.03)]);
    let rung = &climb.rungs[0];
    assert_eq!((rung.load, rung.bots, rung.hold_s, rung.ended_by.as_str()), (500.0, 1000, 60.0, "60s"));
    assert_eq!((rung.offered, rung.sent, rung.answered), (420_000, 420_000, 0));
    assert_eq!(rung.rate_per_s, 7_000.0);
    let ticks = rung.ticks.as_ref().unwrap();
    assert_eq!((ticks.source.as_str(), ticks.due, ticks.late_share), ("log", 1_800_000, Some(0.03)));
    let shots = &rung.extra["shots"];
    assert_eq!((&shots["server_received"], &shots["delivered_share"]), (&json!(420_000), &json!(1.0)));
    assert_eq!(rung.extra["events"][0]["kind"], "hold");
    assert_eq!(rung.extra["flows"]["shot"]["told"], 420_000);
    assert!((rung.subject.as_ref().unwrap().cpu_cores - 0.8).abs() < 1e-9);
}

#[test]
fn losses_cannot_make_a_response_look_fast() {
    let lossy = Scene::asking(1000.0).edit(|_, interval| {
        let flow = interval.flow_mut(1, measure::Phase::Hold);
        (flow.sent, flow.offered, flow.lost) = (flow.sent + 20, flow.offered + 20, 20);
    });
    let climb = climb_of(&[judged(&lossy, "response.p99 < 50ms")]);
    let response = climb.rungs[0].response_ns.as_ref().unwrap();
    assert!(response.p90.is_some());
    assert_eq!(response.p99, None);
    assert_eq!(climb.rungs[0].extra["never_answered"], 1_200);
}

#[test]
fn answers_are_worded_for_each_outcome() {
    let between = climb_of(&[arena(500.0, 0.02), arena(1000.0, 0.1), arena(2000.0, 0.312)]);
    assert_eq!(
        text_of(&between, "how_many"),
        "1000 games (2000 clients) held, 2000 games (4000 clients) did not: the capacity lies between the two."
    );
    assert_eq!(
        text_of(&between, "why_not_more"),
        "At 2000 games (4000 clients): ticks.late_share was 31.2 % (objective: ticks.late_share < 25%). The server used \
         0.80 cores (40 % of those it may use), the generator 0.30 of the same cores: on a machine of its own the server \
         may hold more."
    );
    assert_eq!(
        text_of(&between, "can_i_trust_it"),
        "Yes: generator fit (send lag p99 at most 200 µs, busiest worker 30 % busy), books balance, every hold steady, \
         nothing disturbed by others, generator not calibrated. Server and generator ran on the same 2 \
         cores, so each took from the other. Each load was held too seldom to say how firm its verdict is."
    );
    let lower = climb_of(&[arena(500.0, 0.02), arena(1000.0, 0.1)]);
    assert!(text_of(&lower, "how_many").contains("1000 games (2000 clients) held, and nothing failed"));
    assert!(text_of(&lower, "why_not_more").starts_with("Nothing failed: the climb ended at 1000 games"));
    let none = climb_of(&[arena(500.0, 0.9)]);
    assert!(text_of(&none, "how_many").starts_with("Fewer than 500 games (1000 clients)"));
    let limited = Scene { send_lag_ns: 40_000_000, ..Scene::arena(1000.0) };
    let limited = climb_of(&[arena(500.0, 0.02), judged(&limited, "ticks.late_share < 25%")]);
    assert!(text_of(&limited, "how_many").contains("1000 counted for neither bound (GENERATOR_LIMITED)"));
    assert!(text_of(&limited, "why_not_more").starts_with("This machine gave out before the server"));
    assert!(
        text_of(&limited, "can_i_trust_it").starts_with("With care: generator at its limit in 1 of 2 rungs")
    );
    let empty = climb_of(&[]);
    assert!(text_of(&empty, "how_many").starts_with("Unknown"));
    assert_eq!(empty.verdict, Verdict::Invalid);
}

#[test]
fn the_verdict_of_a_run_and_its_exit_code_follow_from_its_rungs() {
    use Verdict::{Fail, GeneratorLimited, Inconclusive, Invalid, Pass};
    for (rungs, verdict, code) in [
        (&[Pass, Pass][..], Pass, 0),
        (&[Pass, GeneratorLimited], Pass, 0),
        (&[Pass, Fail], Fail, 1),
        (&[Invalid, Fail], Fail, 1),
        (&[GeneratorLimited, Inconclusive], GeneratorLimited, 2),
        (&[GeneratorLimited, Invalid], Invalid, 2),
        (&[Inconclusive], Inconclusive, 2),
        (&[], Invalid, 2),
    ] {
        let found = run_verdict(rungs.iter().copied());
        assert_eq!((found, exit_code(found)), (verdict, code), "{rungs:?}");
    }
}

#[test]
fn the_closing_page_has_a_row_per_rung_and_three_answers() {
    let page = closing(&climb_of(&[arena(500.0, 0.02), arena(2000.0, 0.312)]));
    let text = page.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0].split_whitespace().next(), Some("games"));
    assert!(!lines[0].contains("resp."), "no bot asked anything: {}", lines[0]);
    assert!(
        lines[1].contains("PASS") && lines[1].contains("2 %") && lines[1].contains("1000/1000"),
        "{text}"
    );
    assert!(lines[2].contains("FAIL") && lines[2].contains("31.2 %"), "{text}");
    assert_eq!(lines[0].chars().count(), lines[2].chars().count(), "{text}");
    assert_eq!(
        lines[4],
        "2000 games: FAIL — ticks.late_share was 31.2 % (objective: ticks.late_share < 25%)"
    );
    for (line, question) in lines[6..].iter().zip(["How many", "Why not more", "Can I trust it"]) {
        assert!(line.starts_with(question), "{text}");
    }
    assert_eq!(
        page,
        closing(
            &serde_json::from_str(
                &serde_json::to_string(&climb_of(&[arena(500.0, 0.02), arena(2000.0, 0.312),])).unwrap()
            )
            .unwrap()
        )
    );
}

#[test]
fn a_run_without_rungs_still_has_a_closing_page() {
    assert!(closing(&climb_of(&[])).to_string().contains("Unknown"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn conservation_holds_in_every_published_rung(
        late in 0.0f64..1.0, lost in 0u64..200, failed in 0u64..200, unsent in 0u64..200
    ) {
        let mut scene = Scene::asking(1000.0).edit(move |_, interval| {
            let flow = interval.flow_mut(1, measure::Phase::Hold);
            (flow.lost, flow.failed, flow.not_sent) = (lost, failed, unsent);
            (flow.answered, flow.offered) = (flow.answered - lost - failed, flow.offered + unsent);
        }).late(late);
        scene.hold_s = 12;
        let climb = climb_of(&[judged(&scene, "errors == 0")]);
        let rung = &climb.rungs[0];
        prop_assert_eq!(rung.offered, rung.sent + rung.not_sent);
        prop_assert_eq!(rung.sent, rung.answered + rung.failed + rung.lost + rung.unanswered_at_stop);
        prop_assert_eq!(climb.verdict == Verdict::Pass, lost + failed == 0);
        check_contract(&climb);
    }
}
