use super::*;
use crate::duel::world::{Noise, World, duel};

/// Bisects a history whose revisions are looked at by `look`; returns what is found and how many comparisons it took.
fn bisect(revisions: usize, mut look: impl FnMut(usize, usize) -> Look) -> (Found, usize) {
    let mut made = Vec::new();
    loop {
        match next(revisions, &made) {
            Next::Done(found) => return (found, made.len()),
            Next::Look { revision, .. } => made.push(Made::Looked { revision, look: look(0, revision) }),
            Next::Confirm { before, changed } => made.push(Made::Confirmed(look(before, changed))),
        }
        assert!(made.len() <= 3 * revisions, "it goes on for ever: {made:?}");
    }
}

#[test]
fn the_first_changed_revision_is_found_wherever_it_is() {
    for revisions in 2..70 {
        for culprit in 1..revisions {
            let truth = |a: usize, b: usize| {
                if (a < culprit) == (b < culprit) { Look::Unchanged } else { Look::Changed }
            };
            let (found, took) = bisect(revisions, truth);
            assert_eq!(found, Found::Revision { revision: culprit, before: culprit - 1 });
            assert!(took as u32 <= comparisons(revisions), "{revisions}: {took}");
        }
    }
}

#[test]
fn revisions_that_cannot_be_compared_are_passed_over_and_said() {
    let truth = |broken: &'static [usize]| {
        move |_: usize, revision: usize| match revision {
            _ if broken.contains(&revision) => Look::Untestable,
            _ if revision >= 9 => Look::Changed,
            _ => Look::Unchanged,
        }
    };
    assert_eq!(bisect(16, truth(&[7, 11])).0, Found::Revision { revision: 9, before: 8 });
    assert_eq!(bisect(16, truth(&[7, 8])).0, Found::Between { before: 6, changed: 9 });
    assert_eq!(bisect(16, truth(&[1, 2, 3, 4, 5, 6, 7, 8])).0, Found::Between { before: 0, changed: 9 });
}

#[test]
fn what_is_undecided_is_repeated_once_and_then_passed_over() {
    let mut asked = Vec::new();
    let mut made = Vec::new();
    while let Next::Look { revision, is_repeated } = next(5, &made) {
        asked.push((revision, is_repeated));
        let look = if revision == 2 { Look::Undecided } else { Look::Changed };
        made.push(Made::Looked { revision, look });
    }
    assert_eq!(asked, [(2, false), (2, true), (1, false)]);
    assert_eq!(next(5, &made), Next::Confirm { before: 0, changed: 1 });
}

#[test]
fn an_answer_that_its_own_comparison_does_not_show_is_none() {
    let made = [Made::Looked { revision: 1, look: Look::Changed }];
    for look in [Look::Unchanged, Look::Undecided, Look::Untestable] {
        let all = [&made[..], &[Made::Confirmed(look)]].concat();
        assert_eq!(next(3, &all), Next::Done(Found::NotConfirmed { revision: 1, look }));
    }
}

#[test]
fn where_nothing_changed_there_is_no_effect() {
    let mut found = 0;
    for seed in 0..100 {
        let plan = duel(1, 24, 0.02, seed);
        let standing = World::new(Noise::Independent, 0.05, &[1.0], seed).standing(&plan, &plan.rules());
        found += usize::from(effect(&standing.loads[0].findings).is_some());
    }
    assert!(found <= 12, "{found} of 100, where 5 are to be expected");
}

#[test]
fn the_gate_lies_half_way_in_the_direction_of_the_effect() {
    let check = |ratio: f64, before: &str, percent: f64| {
        let plan = duel(1, 24, 0.02, 1);
        let standing = World::new(Noise::Independent, 0.001, &[ratio], 1).standing(&plan, &plan.rules());
        let gate =
            gate(effect(&standing.loads[0].findings).expect("a difference")).expect("a size").to_string();
        let number = gate
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix('%'))
            .and_then(|rest| rest.parse().ok());
        assert!(number.is_some_and(|number: f64| (number - percent).abs() < 0.2), "{gate}");
    };
    check(1.21, "response.p50 <= +", 10.0);
    check(1.0 / 1.21, "response.p50 >= -", 9.09);
}
