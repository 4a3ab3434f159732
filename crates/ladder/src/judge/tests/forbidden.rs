//! What a server must not do whatever the user asks: late echoes and errors that it reports besides. A machine can
//! cause both.

use super::disturbed::{beside, steal};
use super::*;
use measure::Phase;

const LATE: &str = "late.share <= 1%";
const REFUSED: &str = "refused == 0";

/// In these seconds of the hold so many of 100 answers come after the patience.
fn late_in(seconds: std::ops::Range<u32>, late: u64) -> TrialBuilder {
    TrialBuilder::asking(100.0).edit(move |at, interval| {
        interval.flow_mut(1, Phase::Hold).late = if seconds.contains(&at) { late } else { 0 };
    })
}

/// In these seconds of the hold the server reports an error.
fn refuses_in(seconds: std::ops::Range<u32>) -> TrialBuilder {
    TrialBuilder::chat(100).event(6, kind::ERROR, "refused by the server: \"-ERR 'no'\"").edit(
        move |at, interval| {
            interval.errors[6] = u64::from(seconds.contains(&at));
        },
    )
}

#[test]
fn a_server_that_answers_late_or_with_errors_fails_and_one_that_does_neither_passes() {
    let late = terms(LATE);
    passes(&late_in(0..60, 0), &late);
    passes(&late_in(0..60, 1), &late);
    check(&late_in(0..60, 2), &late, Fail, "late.share", "late.share was 2 %");
    check(&late_in(30..60, 100), &late, Fail, "late.share", "late.share was 50 %");
    let refused = terms(REFUSED);
    passes(&refuses_in(0..0), &refused);
    check(&refuses_in(7..8), &refused, Fail, "refused", "refused was 1 … -ERR 'no'");
}

#[test]
fn what_comes_while_the_machine_is_disturbed_fails_nobody_and_what_comes_in_fair_seconds_does() {
    for (asked, builder) in [
        (LATE, (|seconds| late_in(seconds, 100)) as fn(std::ops::Range<u32>) -> TrialBuilder),
        (REFUSED, refuses_in),
    ] {
        let terms = terms(asked);
        passes(&beside(builder(0..20), 0..28, 1.1, 0.45), &terms);
        check(&steal(builder(0..60), 0.12), &terms, Inconclusive, "disturbed", "stole 12 %");
        let (_, judgement) = beside(builder(0..60), 0..28, 1.1, 0.45).judged(&terms);
        let reason = judgement.reason.unwrap();
        assert_eq!(judgement.verdict, Fail, "{asked}: {reason}");
        assert!(reason.contains("in the undisturbed seconds"), "{reason}");
    }
}
