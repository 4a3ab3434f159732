use measure::{Measure, Trial};

use super::*;
use crate::testing::TrialBuilder;

const MS: u64 = 1_000_000;

/// A hold of 8 s with so many quick responses per second, and these slow ones (ns) in its third second.
fn held(quick_per_s: u64, slow: Vec<u64>) -> Trial {
    let builder = TrialBuilder { hold_s: 8, response_ns: MS, ..TrialBuilder::asking(quick_per_s as f64) };
    let builder = builder.edit(move |at, interval| {
        let response = interval.distribution_mut(Measure::Response, true);
        slow.iter().filter(|_| at == 2).for_each(|&ns| response.record(ns));
    });
    builder.build()
}

fn is_missed(objective: &str, trial: &Trial, kept_away: f64) -> bool {
    objective.parse::<Objective>().unwrap().is_missed_without(trial, kept_away)
}

#[test]
fn waits_that_are_shorter_together_than_a_delay_cannot_have_caused_it() {
    let stalled = held(150, vec![1_000 * MS; 5]);
    // 0.32 s of waits, plus those too short to be seen.
    assert!(is_missed("response.max < 150ms", &stalled, 0.04));
    // 1.6 s of waits may have been a single wait of a second.
    assert!(!is_missed("response.max < 150ms", &stalled, 0.2));
}

#[test]
fn a_server_that_stood_still_for_a_second_misses_a_percentile_whatever_made_a_third_of_a_second_wait() {
    // Everything due in that second, each waiting for its end.
    let stalled = held(1_000, (1..=1_000).map(|n| n * MS).collect());
    assert!(is_missed("response.p99 < 50ms", &stalled, 0.04));
    assert!(!is_missed("response.p99 < 50ms", &stalled, 0.3));
}

#[test]
fn few_responses_that_are_all_late_are_explained_only_by_as_many_waits_as_are_long_enough() {
    let late = |ms: u64| {
        let builder = TrialBuilder { hold_s: 8, response_ns: ms * MS, ..TrialBuilder::asking(4.0) };
        builder.build()
    };
    // 0.8 s of waits: many of 15 ms, few of a third of a second.
    assert!(is_missed("response.max < 150ms", &late(600), 0.1));
    assert!(!is_missed("response.max < 150ms", &late(170), 0.1));
}

#[test]
fn one_late_response_is_explained_by_one_wait() {
    let hit = held(150, vec![300 * MS]);
    assert!(!is_missed("response.max < 150ms", &hit, 0.05));
    assert!(!is_missed("response.max < 150ms", &hit, 0.01), "the waits that nobody saw are long enough");
    assert!(is_missed("response.max < 50ms", &held(150, vec![600 * MS]), 0.01));
}

#[test]
fn a_message_without_a_reply_is_no_longer_delay_than_others() {
    let unanswered =
        TrialBuilder { hold_s: 8, response_ns: MS, ..TrialBuilder::asking(150.0) }.edit(|at, interval| {
            let flow = interval.flow_mut(1, measure::Phase::Hold);
            if at == 7 {
                (flow.answered, flow.failed) = (flow.answered - 2, 2);
            }
        });
    let unanswered = unanswered.build();
    assert!(!is_missed("response.max < 150ms", &unanswered, 0.05), "two of 1,200 are within what waits hit");
}
