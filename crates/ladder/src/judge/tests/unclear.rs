//! Ticks that their source does not tell to be late or on time, and sources that fail: neither makes a verdict that is not safe.

use measure::trial::kind;
use measure::{Entry, Trial};

use super::*;
use crate::testing::HOLD_FROM_S;

/// 20 games, this share of their ticks late at most and so much of all ticks unclear.
fn of(late_most: f64, unclear_share: f64) -> TrialBuilder {
    TrialBuilder { unclear_share, ..TrialBuilder::arena(20.0).late(late_most) }
}

#[test]
fn a_bound_is_used_only_where_it_is_safe() {
    let late = "ticks.late_share";
    passes(&of(0.2, 0.2), &arena_terms());
    check(&of(0.4, 0.1), &arena_terms(), Fail, late, "between 30 % and 40 % … < 25%");
    check(&of(1.0, 0.5), &arena_terms(), Fail, late, "between 50 % and 100 %");
    for (most, unclear) in [(1.0, 1.0), (0.3, 0.1), (0.26, 0.26)] {
        let (_, judgement) = of(most, unclear).judged(&arena_terms());
        assert_eq!(judgement.verdict, Inconclusive, "{most} {unclear}: {:?}", judgement.reason);
        assert!(judgement.reason.unwrap().contains("does not tell ticks on time and late ones apart"));
    }
    for (objective, verdict) in [
        ("ticks.over == 0", Inconclusive),
        ("ticks.over < 100000", Pass),
        ("ticks.over > 100000", Fail),
        ("ticks.under == 0", Pass),
        ("ticks.late_share > 10%", Inconclusive),
        ("ticks.late_share == 10%", Inconclusive),
        ("ticks.late_share == 90%", Fail),
        ("ticks.late_share != 90%", Pass),
    ] {
        let (_, judgement) = of(0.2, 0.2).judged(&terms(objective));
        assert_eq!(judgement.verdict, verdict, "{objective}: {:?}", judgement.reason);
    }
}

#[test]
fn clients_contradict_only_what_lies_beyond_both_bounds() {
    let seen = |late_most, unclear| {
        let builder = of(late_most, unclear)
            .edit(|_, interval| crate::testing::see_ticks(interval, 1_000, 500, 23_000_000));
        builder.judged(&terms("ticks.late_share <= 100%")).1
    };
    assert_eq!(seen(0.6, 0.6).verdict, Pass);
    let judgement = seen(0.2, 0.2);
    assert_eq!((judgement.verdict, judgement.signal.as_deref()), (Inconclusive, Some("inconsistent")));
}

/// The same trial of 60 s without the server's ticks in these seconds of the hold, when its source failed.
fn failed(seconds: std::ops::Range<u32>, is_loss: bool) -> Trial {
    let mut builder = TrialBuilder::arena(20.0);
    if is_loss {
        builder = builder.event(HOLD_FROM_S + seconds.start, kind::TICKS_LOST, "the answer has status 500");
    }
    let lost_ns = |second: u32| u64::from(HOLD_FROM_S + second) * SECOND_NS;
    let (from_ns, to_ns) = (lost_ns(seconds.start), lost_ns(seconds.end));
    let mut entries = builder.entries();
    entries
        .retain(|entry| !matches!(entry, Entry::Ticks(second) if (from_ns..to_ns).contains(&second.from_ns)));
    Trial::from_entries(builder.build().head, &entries, 0)
}

#[test]
fn a_source_that_fails_passes_nothing_and_is_no_silent_server() {
    for seconds in [0..60, 0..20, 20..40, 40..60] {
        let judgement = judge(&failed(seconds.clone(), true), None, &arena_terms());
        let remark = judgement.remark.unwrap_or_default();
        assert_eq!(judgement.verdict, Inconclusive, "{seconds:?}: {:?}", judgement.reason);
        assert!(remark.contains("the answer has status 500"), "{remark}");
    }
    // An interval that a restart of the server cost is left out.
    assert_eq!(judge(&failed(20..21, true), None, &arena_terms()).verdict, Pass);
    assert_eq!(judge(&failed(40..60, false), None, &arena_terms()).verdict, Fail, "silence counts");
}
