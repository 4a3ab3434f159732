use super::*;

fn conduct(hold: HoldLength, story: &[(u64, Seen)]) -> Vec<PhaseTransition> {
    let mut phases = PhaseController::new(hold, 2 * SECOND_NS, 10, 20, SECOND_NS);
    let mut cues = Vec::new();
    for (now_ms, seen) in story {
        while let Some(cue) = phases.decide(now_ms * 1_000_000, seen) {
            cues.push(cue);
        }
    }
    cues
}

const ALL_IN: Seen = Seen {
    open: 20,
    joined: 10,
    ticks_in_hold: 0,
    games_in_hold: 0,
    can_be_judged: true,
    has_recovered: false,
    ends: None,
};

#[test]
fn a_hold_of_a_time_begins_and_ends_on_whole_seconds() {
    let story: Vec<_> = (1_000..20_000).step_by(20).map(|ms| (ms, ALL_IN)).collect();
    let cues = conduct(HoldLength::Time(5 * SECOND_NS), &story);
    let expected = vec![
        PhaseTransition::Settle { at_ns: SECOND_NS, open: 20 },
        PhaseTransition::Hold { at_ns: 4 * SECOND_NS },
        PhaseTransition::Drain { at_ns: 9 * SECOND_NS, ended_by: "5s".to_owned() },
    ];
    assert_eq!(cues, expected);
}

#[test]
fn a_hold_ends_on_the_second_when_the_subject_is_told_to_end_and_never_later() {
    // Including one that cannot be judged yet.
    let undecided = Seen { can_be_judged: false, ..ALL_IN };
    let mut phases = PhaseController::new(HoldLength::Time(60 * SECOND_NS), 2 * SECOND_NS, 10, 20, SECOND_NS)
        .stopping_subject(Some(3 * SECOND_NS));
    let mut cues = Vec::new();
    for now_ms in (1_000..20_000).step_by(20) {
        while let Some(cue) = phases.decide(now_ms * 1_000_000, &undecided) {
            cues.push((now_ms, cue));
        }
    }
    let (now_ms, last) = cues.pop().unwrap();
    assert_eq!(last, PhaseTransition::StopSubject { at_ns: 7 * SECOND_NS });
    assert!(now_ms < 6_990, "workers see it before it comes: {now_ms}");
}

#[test]
fn a_hold_that_cannot_be_judged_yet_goes_on_to_twice_its_length_at_most() {
    let undecided = Seen { can_be_judged: false, ..ALL_IN };
    let ends = |decided_ms: u64| {
        let at = |ms: u64| (ms, if ms < decided_ms { undecided } else { ALL_IN });
        let story: Vec<_> = (1_000..20_000).step_by(20).map(at).collect();
        conduct(HoldLength::Time(5 * SECOND_NS), &story).pop().unwrap()
    };
    let more = |s: u64| format!("5s and {s} s more, to see undisturbed seconds");
    assert_eq!(ends(0), PhaseTransition::Drain { at_ns: 9 * SECOND_NS, ended_by: "5s".to_owned() });
    assert_eq!(ends(10_500), PhaseTransition::Drain { at_ns: 11 * SECOND_NS, ended_by: more(2) });
    assert_eq!(ends(u64::MAX), PhaseTransition::Drain { at_ns: 14 * SECOND_NS, ended_by: more(5) });
}

#[test]
fn a_hold_of_games_ends_when_they_are_played() {
    let played = Seen { games_in_hold: 1_000, ..ALL_IN };
    let cues = conduct(
        HoldLength::Games(1_000),
        &[(1_000, ALL_IN), (3_990, ALL_IN), (9_000, ALL_IN), (9_100, played), (9_970, played)],
    );
    assert_eq!(
        cues.last(),
        Some(&PhaseTransition::Drain { at_ns: 10 * SECOND_NS, ended_by: "1000games".to_owned() })
    );
}

#[test]
fn a_ramp_that_never_ends_holds_with_those_that_are_in() {
    let few = |open| Seen { open, joined: 10, ..Seen::default() };
    let slow: Vec<_> = (1..32).map(|s| (s * 1_000, few(s / 2))).chain([(32_000, few(15))]).collect();
    let cues = conduct(HoldLength::Time(SECOND_NS), &slow);
    assert_eq!(cues, vec![PhaseTransition::Settle { at_ns: 32 * SECOND_NS, open: 15 }]);
}

#[test]
fn a_ramp_that_stands_still_is_over_ten_seconds_later() {
    let seen = |joined, open| Seen { open, joined, ..Seen::default() };
    let story = [
        (1_000, seen(9, 3)),
        (9_000, seen(9, 3)),
        (12_000, seen(10, 3)),
        (18_900, seen(10, 3)),
        (19_000, seen(10, 3)),
    ];
    let cues = conduct(HoldLength::Time(SECOND_NS), &story);
    assert_eq!(cues, vec![PhaseTransition::Settle { at_ns: 19 * SECOND_NS, open: 3 }]);
}

#[test]
fn a_part_of_the_load_goes_on_until_the_server_has_recovered_or_its_time_is_up() {
    let ends = |recovered_ms: u64, interrupted_ms: u64| {
        let mut phases =
            PhaseController::new(HoldLength::Time(5 * SECOND_NS), 2 * SECOND_NS, 10, 20, SECOND_NS)
                .recovering(Some(10 * SECOND_NS));
        let mut cues = Vec::new();
        for ms in (1_000..30_000).step_by(20) {
            let has_recovered = ms >= recovered_ms;
            let seen =
                Seen { has_recovered, ends: (ms >= interrupted_ms).then_some("interrupted"), ..ALL_IN };
            while let Some(cue) = phases.decide(ms * 1_000_000, &seen) {
                cues.push(cue);
            }
        }
        cues.split_off(2)
    };
    let recover = PhaseTransition::Recover { at_ns: 9 * SECOND_NS, ended_by: "5s".to_owned() };
    let end = |at_ns, cut_by| vec![recover.clone(), PhaseTransition::EndRecovery { at_ns, cut_by }];
    assert_eq!(ends(u64::MAX, u64::MAX), end(19 * SECOND_NS, None));
    assert_eq!(ends(14_500, u64::MAX), end(15 * SECOND_NS, None));
    assert_eq!(ends(u64::MAX, 12_000), end(12_020_000_000, Some("interrupted")));
}

#[test]
fn who_ends_the_trial_ends_it_in_any_phase() {
    let ended = Seen { ends: Some("interrupted"), ..Seen::default() };
    let cues = conduct(HoldLength::Time(SECOND_NS), &[(500, ended), (600, ended)]);
    assert_eq!(cues, vec![PhaseTransition::Drain { at_ns: 520_000_000, ended_by: "interrupted".to_owned() }]);
}
