//! What is said of a search that did not get to its end.

use super::*;
use crate::schedule::Goal;

/// A search whose full-length trials last a minute.
fn search() -> SearchSchedule {
    SearchSchedule {
        start: 100.0,
        least: 10.0,
        most: 1_000.0,
        is_whole: true,
        goal: Goal {
            final_trial_ns: 60_000_000_000,
            duration_sum_ns: 180_000_000_000,
            exceed_ratio: 0.5,
            width: 0.05,
        },
        samples: 0.0,
        rate_per_load: 0.0,
        restarts_subject: true,
        cell: None,
    }
}

/// A trial of ten seconds.
fn short(load: f64, late: f64) -> Rung {
    judged(&Scene { hold_s: 10, ..Scene::arena(load).late(late) }, "ticks.late_share < 25%")
}

fn ended_early(rungs: &[Rung]) -> Climb {
    let search = search();
    let asked = Asked { search: Some(&search), ended_early: Some("interrupted"), ..Asked::default() };
    let climb = answers(&facts(), None, rungs.to_vec(), asked);
    check_contract(&climb);
    assert!(climb.capacity.lower_bound.is_none(), "{:?}", climb.capacity);
    climb
}

#[test]
fn short_trials_alone_are_told_as_what_they_are() {
    let held = ended_early(&[short(100.0, 0.0), short(200.0, 0.0)]);
    let many = text_of(&held, "how_many");
    assert!(many.contains("before any load had enough full-length trials"), "{many}");
    assert!(many.contains("200 games (400 clients) met the objectives."), "{many}");
    assert_ne!(held.verdict, Verdict::Pass);
    let why = text_of(&held, "why_not_more");
    assert_eq!(why, "The run ended before any load was decided on.");
}

#[test]
fn without_any_trial_that_tells_something_nothing_is_told() {
    let exhausted = Scene { hold_s: 10, send_lag_ns: 40_000_000, ..Scene::arena(100.0) };
    let climb = ended_early(&[judged(&exhausted, "ticks.late_share < 25%")]);
    let many = text_of(&climb, "how_many");
    assert!(many.starts_with("Unknown: no load could be judged."), "{many}");
}
