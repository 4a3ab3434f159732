use ladder::duel::GateState::{Met, NotMet, Undecided};

use super::super::tests::{parsed, states};
use super::*;
use crate::outputs::planted::duel;

#[test]
fn a_figure_decides_nothing_and_a_gate_does() {
    let suite = &parsed(&report(&duel(&[Met, NotMet, Undecided], Exit::NotMet)).expect("memory takes it"))
        .children[0];
    let expected = [
        "ticks.late_share at 500 games: passed",
        "response.p99 at 500 games: skipped",
        "gate ticks.late_share <= +0pp at 500 games: passed",
        "gate ticks.late_share <= +1pp at 500 games: failure",
        "gate ticks.late_share <= +2pp at 500 games: error",
    ];
    assert_eq!(states(suite), expected);
    let about = &suite.children.last().expect("system-out").text;
    assert!(about.contains("A  arena\n") && !about.contains('\u{1b}') && !about.contains("u001b"), "{about}");
}

/// Every exit code that a duel may end with, over gates with which it may.
#[test]
fn there_is_a_failure_or_an_error_exactly_if_the_exit_code_is_not_0() {
    for (gates, exit) in [
        (&[][..], Exit::Met),
        (&[], Exit::NotMet),
        (&[], Exit::NotMeasured),
        (&[], Exit::Interrupted),
        (&[Met], Exit::Met),
        (&[Met], Exit::NotMeasured),
        (&[Met], Exit::Interrupted),
        (&[Met, NotMet], Exit::NotMet),
        (&[Undecided], Exit::NotMeasured),
        (&[Undecided], Exit::Interrupted),
    ] {
        let suite = &parsed(&report(&duel(gates, exit)).expect("memory takes it")).children[0];
        let bad = suite.number("failures") + suite.number("errors");
        assert_eq!(bad > 0, exit != Exit::Met, "{gates:?} {exit:?}");
        let shown = states(suite);
        let is_said = shown.iter().any(|case| case == "duel: error");
        assert_eq!(
            is_said,
            exit == Exit::Interrupted || (exit == Exit::NotMeasured && !gates.contains(&Undecided))
        );
    }
}
