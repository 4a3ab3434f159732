//! What is reported for a search that did not finish.

use super::*;

/// A search whose full-length trials last a minute.
fn search() -> SearchSchedule {
    let mut search = crate::testing::search(3, 0.05);
    (search.start, search.is_whole, search.goal.final_trial_ns) = (100.0, true, 60_000_000_000);
    search.goal.duration_sum_ns = 3 * search.goal.final_trial_ns;
    search
}

/// A trial of ten seconds.
fn short(load: f64, late: f64) -> Rung {
    judged(&TrialBuilder { hold_s: 10, ..TrialBuilder::arena(load).late(late) }, TICKS)
}

fn ended_early(rungs: &[Rung]) -> Climb {
    let search = search();
    let asked = Asked { search: Some(&search), ended_early: Some("interrupted"), ..Asked::default() };
    let climb = asked_of(rungs, asked);
    check_contract(&climb);
    assert!(climb.capacity.lower_bound.is_none(), "{:?}", climb.capacity);
    climb
}

#[test]
fn short_trials_alone_are_told_as_what_they_are() {
    let held = ended_early(&[short(100.0, 0.0), short(200.0, 0.0)]);
    let many = "…before any load had enough full-length trials…200 games (400 clients) met the objectives.…";
    check_text(&held, "how_many", many);
    assert_ne!(held.verdict, Verdict::Pass);
    check_text(&held, "why_not_more", "The run ended before any load was decided on.");
}

#[test]
fn a_trial_that_failed_is_named_before_those_that_say_nothing() {
    let exhausted = TrialBuilder { hold_s: 10, send_lag_ns: 40_000_000, ..TrialBuilder::arena(150.0) };
    let untold = judged(&exhausted, TICKS);
    let climb = ended_early(&[short(100.0, 0.0), untold, short(200.0, 0.9)]);
    let why = "No upper bound was found. In a trial of 200 games (400 clients): …90 %…";
    check_text(&climb, "why_not_more", why);
}

#[test]
fn without_any_trial_that_tells_something_nothing_is_told() {
    let exhausted = TrialBuilder { hold_s: 10, send_lag_ns: 40_000_000, ..TrialBuilder::arena(100.0) };
    let climb = ended_early(&[judged(&exhausted, TICKS)]);
    check_text(&climb, "how_many", "Unknown: no load could be judged.…");
}

#[test]
fn each_goal_is_judged_by_its_own_objectives_and_told() {
    let goals = ["ticks.late_share < 1%", "ticks.late_share < 60%"];
    let parsed = |text: &str| vec![text.parse().unwrap()];
    let search = SearchSchedule { goals: goals.into_iter().map(parsed).collect(), ..search() };
    let held = |load: f64, late: f64| {
        let builder = TrialBuilder { hold_s: 60, ..TrialBuilder::arena(load).late(late) };
        let (trial, judgement) = builder.judged(&Criteria { goals: search.goals.clone(), ..terms(TICKS) });
        rung(&trial, &judgement)
    };
    let twice = |load: f64, late: f64| [held(load, late), held(load, late)];
    // 0.5 % late at 100, 10 % at 103, 40 % at 106.
    let rungs = [twice(100.0, 0.005), twice(103.0, 0.1), twice(106.0, 0.4)].concat();
    let climb = asked_of(&rungs, Asked { search: Some(&search), ..Asked::default() });
    check_contract(&climb);
    let bounds = |capacity: &Capacity| (capacity.lower_bound, capacity.upper_bound);
    assert_eq!(bounds(&climb.capacity), (Some(103.0), Some(106.0)));
    let of_goals: Vec<_> = climb.capacity.goals.iter().map(|goal| bounds(&goal.capacity)).collect();
    assert_eq!(of_goals, [(Some(100.0), Some(103.0)), (Some(106.0), None)]);
    let strict = &climb.capacity.goals[0].capacity;
    assert_eq!(strict.first_failing_signal.as_deref(), Some("ticks.late_share"));
    let strict = "…With ticks.late_share < 1%: 100 games (200 clients) held, 103 games (206 clients) did not (ticks.late_share).…";
    check_text(&climb, "goals", strict);
    let lax = "…With ticks.late_share < 60%: 106 games (212 clients) held, and nothing failed.…";
    check_text(&climb, "goals", lax);
    // One goal has no upper bound although larger loads were to be held, so the search is not over.
    assert_eq!(climb.verdict, Verdict::Inconclusive);
}
