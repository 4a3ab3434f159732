//! Each of the five marks can turn, and none turns with another.

use measure::{MachineMetric, Reading};

use super::*;
use crate::testing::search;

fn standings(climb: &Climb) -> Vec<String> {
    let told = climb.conclusions.iter().find(|one| one.id == "can_i_trust_it").unwrap();
    let marks = told.evidence["marks"].as_array().unwrap();
    let ids: Vec<&str> = marks.iter().map(|mark| mark["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["generator", "books", "steady", "undisturbed", "certainty"]);
    // What a mark says is a part of the answer, but for the last, whose part is among the bounds.
    for mark in &marks[..4] {
        assert!(told.text.contains(mark["text"].as_str().unwrap()), "{mark} {}", told.text);
    }
    marks.iter().map(|mark| mark["standing"].as_str().unwrap().to_owned()).collect()
}

fn beside_others(load: f64, late: f64, seconds: u32) -> Rung {
    let used = move |at| if at < seconds { 1.2 } else { 0.0 };
    let of_others = move |at| vec![(Reading::Machine(MachineMetric::OthersCores), used(at))];
    judged(&TrialBuilder::arena(load).late(late).sampled(of_others), TICKS)
}

#[test]
fn each_mark_turns_for_its_own_reason() {
    let good = || arena(500.0, 0.02);
    let sent_late = |steal: f64| {
        let builder = TrialBuilder { send_lag_ns: 40_000_000, ..TrialBuilder::arena(1000.0) };
        judged(&TrialBuilder { steal_share: Box::new(move |_| steal), ..builder }, TICKS)
    };
    let short = judged(&TrialBuilder { hold_s: 4, ..TrialBuilder::arena(1000.0) }, TICKS);
    assert_eq!(short.steady, None);
    let twice = |late: f64| (0..6).map(move |_| arena(if late < 0.25 { 500.0 } else { 1000.0 }, late));
    for (rungs, expected, why) in [
        (vec![good(), arena(1000.0, 0.02)], "good good good good care", "only a lower bound"),
        (vec![good(), arena(1000.0, 0.9)], "good good good good care", "each bound was held once"),
        (vec![arena(1000.0, 0.9)], "good good good good care", "nothing held"),
        (
            twice(0.02).chain(twice(0.9)).collect(),
            "good good good good good",
            "each bound was held six times",
        ),
        (vec![good(), sent_late(0.0)], "bad good good good care", "a load has no verdict for it"),
        (
            vec![good(), sent_late(0.2)],
            "care good care care care",
            "late, met all the same, and never fair to tell more",
        ),
        (vec![good(), short], "good good care good care", "too short to tell"),
        (vec![good(), beside_others(1000.0, 0.02, 9)], "good good good care care", "met beside others"),
        (vec![arena(2000.0, 0.02), arena(1000.0, 0.9)], "good good good good bad", "not monotone"),
        (vec![judged(&faulty_chat(), CHAT)], "good bad good good bad", "a residual, and no other rung"),
    ] {
        assert_eq!(standings(&climb_of(&rungs)).join(" "), expected, "{why}");
    }
    // What others explain has no verdict: of the whole hold, since its fair seconds would be judged alone.
    let undecided = beside_others(1000.0, 0.4, 60);
    assert_eq!((undecided.verdict, undecided.signal.as_deref()), (Verdict::Inconclusive, Some("disturbed")));
    assert_eq!(standings(&climb_of(&[good(), undecided]))[3], "bad");
}

#[test]
fn a_search_that_reached_its_width_is_certain_without_a_figure_of_confidence() {
    let rungs = |upper| vec![arena(500.0, 0.02), arena(upper, 0.9)];
    for (upper, expected) in [(510.0, "good"), (1000.0, "care")] {
        let schedule = search(1, 0.05);
        let asked = Asked { search: Some(&schedule), ..Asked::default() };
        let climb = asked_of(&rungs(upper), asked);
        assert_eq!((climb.capacity.lower_bound, climb.capacity.upper_bound), (Some(500.0), Some(upper)));
        assert_eq!(standings(&climb)[4], expected);
    }
}
