use proptest::prelude::*;

use super::*;
use crate::testing::{FINAL_TRIAL_NS, search};

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

/// The trials of a search to its end, each as `judged` says, which sees those before it.
fn held(search: &SearchSchedule, mut judged: impl FnMut(&[Judged], Judged) -> Judged) -> Vec<Judged> {
    let mut done: Vec<Judged> = Vec::new();
    while let Next::Trial(order) = search.next(&done) {
        let (purpose, load, held_ns) = (order.purpose, order.load, order.hold_ns.unwrap());
        done.push(judged(&done, Judged { purpose, load, held_ns, ..Judged::default() }));
        assert!(done.len() <= TRIALS_MOST + 1, "a search must end");
    }
    done
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
        let done = held(&search, |done, trial| Judged { met: verdicts[done.len() % verdicts.len()], ..trial });
        for trial in &done {
            prop_assert!(trial.load >= search.least && trial.load <= search.most);
            prop_assert!(!is_whole || trial.load.fract() == 0.0);
            prop_assert!(trial.held_ns >= SHORTEST_TRIAL_NS);
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
        let done = search.followed(|_, load| load <= capacity);
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
    let done = search.followed(|_, load| load <= 5.0);
    let found = search.bounds(&done);
    assert_eq!((found.lower, found.upper), (Some(5.0), Some(6.0)));
}

#[test]
fn what_holds_to_the_end_of_the_range_has_a_lower_bound_only() {
    let search = SearchSchedule { most: 900.0, ..search(3, 0.05) };
    let found = search.bounds(&search.followed(|_, _| true));
    assert_eq!((found.lower, found.upper), (Some(900.0), None));
    let search = SearchSchedule { least: 400.0, ..search };
    let found = search.bounds(&search.followed(|_, _| false));
    assert_eq!((found.lower, found.upper), (None, Some(400.0)));
}

#[test]
fn loads_that_disturbances_hide_are_passed_over_and_the_bounds_lie_around_them() {
    let search = search(3, 0.02);
    // Near the edge the outcome is undecidable; further away it is clear despite the disturbances.
    let met = |load: f64| (!(950.0..=1_080.0).contains(&load)).then_some(load < 950.0);
    let done = held(&search, |_, trial| Judged { met: met(trial.load), ..trial });
    let found = search.bounds(&done);
    let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
    assert!((850.0..950.0).contains(&lower) && (1_080.0..1_250.0).contains(&upper), "{found:?}");
    assert!(done.len() < 60, "{} trials", done.len());
}

#[test]
fn loads_that_this_machine_cannot_make_end_the_way_up_and_are_no_bound() {
    let search = search(3, 0.05);
    let done = held(&search, |_, trial| {
        let met = (trial.load <= 3_000.0).then_some(true);
        let verdict = if met.is_some() { Verdict::Pass } else { Verdict::GeneratorLimited };
        Judged { met, verdict: Some(verdict), ..trial }
    });
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
        let done = held(&search, |_, trial| {
            let met = trial.load <= 800.0;
            let held_ns = if met { trial.held_ns } else { 0 };
            Judged { met: Some(met), subject_exited: !met, held_ns, ..trial }
        });
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
    let done = search.followed(|_, load| load <= 1_234.0);
    let takes: u64 = done.iter().map(|trial| trial.held_ns + around_ns(trial.load)).sum();
    assert!(least <= takes && takes <= most * 11 / 10, "{least} {takes} {most}");
}

/// A search with further goals. Their objectives are never evaluated: tests plant whether a trial meets them.
fn with_goals(further: usize) -> SearchSchedule {
    let goal = |at: usize| vec![format!("response.p99 < {}ms", 10 * (at + 1)).parse().unwrap()];
    SearchSchedule { goals: (0..further).map(goal).collect(), ..search(3, 0.05) }
}

#[test]
fn each_of_several_goals_gets_its_own_bounds_and_they_share_their_trials() {
    for capacities in [[1_000.0, 400.0, 5_000.0], [1_000.0, 950.0, 1_040.0], [2.0, 70_000.0, 2.0]] {
        let search = with_goals(2);
        let done = search.followed(|goal, load| load <= capacities[goal]);
        let found = crate::capacity::capacity(measure::LoadUnit::Requests, &done, Some(&search));
        let of_goals = std::iter::once(&found).chain(found.goals.iter().map(|goal| &goal.capacity));
        for (bounds, capacity) in of_goals.zip(capacities) {
            let (lower, upper) = (bounds.lower_bound.unwrap(), bounds.upper_bound.unwrap());
            assert!(lower <= capacity && capacity < upper, "{lower} {capacity} {upper} of {capacities:?}");
            assert!(bounds.search.unwrap().width.unwrap() <= 0.05);
        }
        let alone = capacities.map(|capacity| with_goals(0).followed(|_, load| load <= capacity).len());
        assert!(done.len() < alone.iter().sum(), "{} trials together, {alone:?} alone", done.len());
    }
}

#[test]
fn goals_that_are_met_alike_cost_no_trial_more() {
    let alone = with_goals(0).followed(|_, load| load <= 1_234.0);
    let together = with_goals(2).followed(|_, load| load <= 1_234.0);
    assert_eq!(together.len(), alone.len());
}

#[test]
fn a_goal_that_no_trial_can_tell_ends_and_has_no_bounds() {
    let search = with_goals(1);
    let done = held(&search, |_, trial| {
        let untold = Met { verdict: Verdict::Inconclusive, signal: None, met: None, times_as_many: 0.0 };
        Judged { met: Some(trial.load <= 300.0), goals: vec![untold], ..trial }
    });
    let found = crate::capacity::capacity(measure::LoadUnit::Requests, &done, Some(&search));
    let (lower, upper) = (found.lower_bound.unwrap(), found.upper_bound.unwrap());
    assert!(lower <= 300.0 && 300.0 < upper, "{lower} {upper}");
    let untold = &found.goals[0].capacity;
    assert_eq!((untold.lower_bound, untold.upper_bound, untold.confidence), (None, None, None));
    assert!(done.len() < 100, "{} trials", done.len());
}

/// A server that holds 1,367 and for which every other trial near that load says nothing about it.
#[test]
fn a_load_that_can_be_judged_every_other_time_is_judged_and_the_search_stays_near_the_edge() {
    let search = SearchSchedule { is_whole: true, ..search(3, 0.05) };
    let mut near = 0;
    let done = held(&search, |_, trial| {
        let is_near = (trial.load / 1_367.0).ln().abs() < 0.1;
        near += usize::from(is_near);
        let (verdict, met) = match trial.load <= 1_367.0 {
            _ if is_near && near % 2 == 0 => (Verdict::GeneratorLimited, None),
            true => (Verdict::Pass, Some(true)),
            false => (Verdict::Fail, Some(false)),
        };
        Judged { verdict: Some(verdict), met, ..trial }
    });
    let found = search.bounds(&done);
    assert!(found.width().is_some_and(|width| width <= 0.05), "{found:?}");
    let long = done.iter().filter(|trial| trial.held_ns == FINAL_TRIAL_NS);
    let far = long.filter(|trial| (trial.load / 1_367.0).ln().abs() > 0.3).count();
    assert_eq!(far, 0, "no full-length trial far from the edge");
}

/// A search whose objective needs at least 59 samples, at one sample per second and unit of load.
fn of_percentile() -> SearchSchedule {
    SearchSchedule {
        start: 20.0,
        least: 20.0,
        most: 200.0,
        samples: 59.0,
        rate_per_load: 1.0,
        ..search(1, 0.1)
    }
}

#[test]
fn no_trial_is_too_short_to_decide_and_each_phase_keeps_its_length() {
    let search = of_percentile();
    assert_eq!([0, 1, 2].map(|phase| search.trial_ns(phase, 20.0) / SECOND_NS), [5, 10, 30]);
    assert_eq!([0, 1, 2].map(|phase| search.trial_ns(phase, 200.0) / SECOND_NS), [3, 10, 30]);
    // 59 samples and four deviations take 45 s at two per second.
    assert_eq!([0, 1, 2].map(|phase| search.trial_ns(phase, 2.0) / SECOND_NS), [43, 44, 45]);
    let trial = |held_s: u64| Judged { load: 2.0, held_ns: held_s * SECOND_NS, ..Judged::default() };
    assert_eq!([43, 44, 45].map(|held_s| search.phase_of(&trial(held_s))), [0, 1, 2]);
}

#[test]
fn a_trial_that_too_few_samples_left_open_is_followed_by_a_longer_one_or_the_load_is_left() {
    // This many samples decide the loads around 80; any trial decides the others.
    for (needed_s, is_told) in [(70.0, true), (100.0, true), (1_000.0, false)] {
        let search = of_percentile();
        let done = held(&search, |done, trial| {
            let mut open =
                done.iter().filter(|before| before.load == trial.load && before.times_as_many > 0.0);
            let is_longer = open.all(|before| before.held_ns < trial.held_ns);
            assert!(is_longer, "{} was held for {} ns again", trial.load, trial.held_ns);
            let times = needed_s * SECOND_NS as f64 / trial.held_ns as f64;
            let is_open = trial.purpose == Purpose::Rung && (75.0..85.0).contains(&trial.load) && times > 1.0;
            let met = trial.load <= 80.0;
            let verdict = match (is_open, met) {
                (true, _) => Verdict::Inconclusive,
                (_, true) => Verdict::Pass,
                (_, false) => Verdict::Fail,
            };
            let times_as_many = if is_open { times } else { 0.0 };
            Judged { verdict: Some(verdict), met: Some(met), times_as_many, ..trial }
        });
        let found = search.bounds(&done);
        let (lower, upper) = (found.lower.unwrap(), found.upper.unwrap());
        assert!(lower <= 80.0 && 80.0 < upper, "{found:?}");
        let is_bound_open = [lower, upper].iter().any(|load| (75.0..85.0).contains(load));
        assert!(is_told || !is_bound_open, "a load that no trial decided is no bound: {found:?}");
        let longest_s = done.iter().map(|trial| trial.held_ns / SECOND_NS).max().unwrap();
        assert!(longest_s <= 30 * LONGER_MOST && done.len() < 25, "{} trials, {longest_s} s", done.len());
    }
}
