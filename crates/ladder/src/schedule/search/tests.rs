use proptest::prelude::*;

use super::*;
use crate::scene::{FINAL_TRIAL_NS, search};

fn goal(sum_s: f64, exceed_ratio: f64) -> Goal {
    Goal { final_trial_ns: FINAL_TRIAL_NS, duration_sum_ns: (sum_s * 1e9) as u64, exceed_ratio, width: 0.05 }
}

/// Durations in tenths of a second, in the order of `Tally`.
type Tenths = [u64; 4];

fn tally([full_low, full_high, short_low, short_high]: Tenths) -> Tally {
    let ns = |tenths: u64| tenths as f64 * 1e8;
    Tally {
        full_low_ns: ns(full_low),
        full_high_ns: ns(full_high),
        short_low_ns: ns(short_low),
        short_high_ns: ns(short_high),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn a_share_of_exactly_the_exceed_ratio_is_within_it(times in 1u64..50, exceed in 1u64..10) {
        let (low, high) = (10 * times * (10 - exceed), 10 * times * exceed);
        let goal = goal(1.0, exceed as f64 / 10.0);
        prop_assert_eq!(tally([low, high, 0, 0]).class(&goal), LoadClass::Lower);
        prop_assert_eq!(tally([low, high + 1, 0, 0]).class(&goal), LoadClass::Upper);
    }

    #[test]
    fn short_trials_alone_are_no_lower_bound(low in 0u32..10_000, high in 0u32..100, tenths in 1u32..8) {
        let tally = Tally { short_low_ns: f64::from(low) * 1e9, short_high_ns: f64::from(high) * 1e9, ..Tally::default() };
        prop_assert_ne!(tally.class(&goal(60.0, f64::from(tenths) / 10.0)), LoadClass::Lower);
    }

    #[test]
    fn whatever_is_measured_the_search_ends_and_its_bounds_are_in_order(
        verdicts in proptest::collection::vec(prop_oneof![3 => Just(Some(true)), 3 => Just(Some(false)), 1 => Just(None)], 1..60),
        is_whole in any::<bool>(), start in 1u32..2_000, most in 2_000u32..100_000,
    ) {
        let search = SearchSchedule {
            is_whole, start: f64::from(start), most: f64::from(most), ..search(3, 0.05)
        };
        let mut done: Vec<Judged> = Vec::new();
        while let Next::Trial(order) = search.next(&done) {
            prop_assert!(order.load >= search.least && order.load <= search.most);
            prop_assert!(!is_whole || order.load.fract() == 0.0);
            prop_assert!(order.hold_ns >= Some(SHORTEST_TRIAL_NS));
            let met = verdicts[done.len() % verdicts.len()];
            done.push(Judged {
                purpose: order.purpose, load: order.load, met, held_ns: order.hold_ns.unwrap(), ..Judged::default()
            });
            prop_assert!(done.len() <= TRIALS_MOST + 1);
        }
        let found = search.bounds(&done);
        if let (Some(lower), Some(upper)) = (found.lower, found.upper) {
            prop_assert!(lower < upper);
        }
    }
}

#[test]
fn a_clear_edge_is_found_within_the_width_and_mostly_by_short_trials() {
    for capacity in [3.0, 236.0, 1000.0, 77_777.0] {
        let search = search(3, 0.02);
        let done = search.followed(|load| load <= capacity);
        let found = search.bounds(&done);
        let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
        assert!(lower <= capacity && capacity < upper, "{lower} {capacity} {upper}");
        assert!(found.width().unwrap() <= 0.02);
        let is_far = |trial: &&Judged| (trial.load / capacity).ln().abs() > 0.2;
        let far_and_long =
            done.iter().filter(is_far).filter(|trial| search.share_of_full(trial) == 1.0).count();
        assert_eq!(far_and_long, 0, "no long trial far from the edge");
    }
}

#[test]
fn whole_loads_end_at_neighbours() {
    let search = SearchSchedule { is_whole: true, start: 4.0, ..search(3, 0.01) };
    let done = search.followed(|load| load <= 5.0);
    let found = search.bounds(&done);
    assert_eq!((found.lower, found.upper), (Some(5.0), Some(6.0)));
}

#[test]
fn what_holds_to_the_end_of_the_range_has_a_lower_bound_only() {
    let search = SearchSchedule { most: 900.0, ..search(3, 0.05) };
    let found = search.bounds(&search.followed(|_| true));
    assert_eq!((found.lower, found.upper), (Some(900.0), None));
    let search = SearchSchedule { least: 400.0, ..search };
    let found = search.bounds(&search.followed(|_| false));
    assert_eq!((found.lower, found.upper), (None, Some(400.0)));
}

#[test]
fn loads_that_disturbances_hide_are_passed_over_and_the_bounds_lie_around_them() {
    let search = search(3, 0.02);
    let mut done: Vec<Judged> = Vec::new();
    while let Next::Trial(order) = search.next(&done) {
        // Near the edge nobody can tell; further away it is clear in spite of the disturbances.
        let met = if order.load < 950.0 {
            Some(true)
        } else if order.load > 1_080.0 {
            Some(false)
        } else {
            None
        };
        let held_ns = order.hold_ns.unwrap();
        done.push(Judged { purpose: order.purpose, load: order.load, met, held_ns, ..Judged::default() });
    }
    let found = search.bounds(&done);
    let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
    assert!((850.0..950.0).contains(&lower) && (1_080.0..1_250.0).contains(&upper), "{found:?}");
    assert!(done.len() < 60, "{} trials", done.len());
}

#[test]
fn loads_that_this_machine_cannot_make_end_the_way_up_and_are_no_bound() {
    let search = search(3, 0.05);
    let mut done: Vec<Judged> = Vec::new();
    while let Next::Trial(order) = search.next(&done) {
        let met = (order.load <= 3_000.0).then_some(true);
        let verdict = Some(if met.is_some() { Verdict::Pass } else { Verdict::GeneratorLimited });
        let held_ns = order.hold_ns.unwrap();
        done.push(Judged {
            purpose: order.purpose,
            load: order.load,
            met,
            verdict,
            held_ns,
            ..Judged::default()
        });
    }
    let found = search.bounds(&done);
    assert_eq!(found.upper, None);
    assert!((2_700.0..=3_000.0).contains(&found.lower.unwrap()), "{found:?}");
}

#[test]
fn a_percentile_lengthens_the_full_trials_of_small_loads() {
    let search = SearchSchedule { samples: 10_000.0, rate_per_load: 1.0, ..search(3, 0.05) };
    assert_eq!(search.full_ns(236.0) / SECOND_NS, 45, "10,000 samples and four deviations at 236/s");
    assert_eq!(search.full_ns(1_000.0), FINAL_TRIAL_NS);
}

#[test]
fn a_server_that_died_at_a_load_does_not_hold_it_and_a_lost_one_ends_the_search() {
    let dies = |restarts: bool| {
        let search = SearchSchedule { restarts_subject: restarts, ..search(3, 0.05) };
        let mut done: Vec<Judged> = Vec::new();
        while let Next::Trial(order) = search.next(&done) {
            let met = order.load <= 800.0;
            done.push(Judged {
                purpose: order.purpose,
                load: order.load,
                met: Some(met),
                subject_exited: !met,
                held_ns: if met { order.hold_ns.unwrap() } else { 0 },
                ..Judged::default()
            });
        }
        (search.bounds(&done), search.next(&done))
    };
    let (found, _) = dies(true);
    let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
    assert!(lower <= 800.0 && 800.0 < upper && found.width().unwrap() <= 0.05);
    assert_eq!(dies(false).1, Next::Done(Stop::SubjectExited));
}

#[test]
fn the_forecast_is_what_such_a_search_takes() {
    let search = SearchSchedule { most: 5_000.0, ..search(3, 0.05) };
    let around_ns = |_| 4 * SECOND_NS;
    let (least, most) = search.forecast(around_ns);
    let done = search.followed(|load| load <= 1_234.0);
    let takes: u64 = done.iter().map(|trial| trial.held_ns + around_ns(trial.load)).sum();
    assert!(least <= takes && takes <= most * 11 / 10, "{least} {takes} {most}");
}
