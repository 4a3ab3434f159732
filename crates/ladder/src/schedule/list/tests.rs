use super::*;
use crate::schedule::{Loads, Schedule};

fn repeated(repeats: Repeats) -> Schedule {
    let rungs = vec![2000.0, 500.0, 1000.0];
    Schedule {
        calibrations: vec![(Purpose::CalibrationLatency, 100.0), (Purpose::CalibrationCeiling, 64.0)],
        loads: Loads::List(ListSchedule { rungs, repeats, seed: 7, ..ListSchedule::default() }),
    }
}

fn schedule() -> Schedule {
    repeated(Repeats::Times(1))
}

/// Follows a schedule; `verdict` says how each rung goes.
fn follow(schedule: &Schedule, held: impl Fn(&NextTrial) -> Judged) -> (Vec<NextTrial>, Stop) {
    let (mut done, mut orders) = (Vec::new(), Vec::new());
    loop {
        match schedule.next(&done) {
            Next::Done(stop) => return (orders, stop),
            Next::Trial(order) => {
                done.push(held(&order));
                orders.push(order);
                assert!(orders.len() < 4_000, "a schedule must end");
            }
        }
    }
}

fn passes(order: &NextTrial) -> Judged {
    let verdict = (order.purpose == Purpose::Rung).then_some(Verdict::Pass);
    Judged {
        purpose: order.purpose,
        load: order.load,
        cell: order.cell.map_or_else(BTreeMap::new, |cell| cells()[cell].clone()),
        verdict,
        ..Judged::default()
    }
}

fn cells() -> Vec<BTreeMap<String, String>> {
    let cell = |service: &str, view: &str| {
        [("service", service), ("view", view)].map(|(axis, value)| (axis.to_owned(), value.to_owned())).into()
    };
    vec![cell("root", "background"), cell("object", "background"), cell("root", "foreground")]
}

/// Cells of requesters; `open` without an end.
fn sweep(rungs: &[f64], is_open_ended: bool) -> Schedule {
    let list =
        ListSchedule { rungs: rungs.to_vec(), cells: cells(), is_open_ended, ..ListSchedule::default() };
    Schedule { calibrations: vec![(Purpose::CalibrationLatency, 1.0)], loads: Loads::List(list) }
}

fn loads(orders: &[NextTrial]) -> Vec<f64> {
    orders.iter().filter(|order| order.purpose == Purpose::Rung).map(|order| order.load).collect()
}

#[test]
fn calibrations_come_first_then_each_rung_once_upwards() {
    let (orders, stop) = follow(&schedule(), passes);
    assert_eq!(stop, Stop::Complete);
    assert_eq!(orders.iter().map(|order| order.seq).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(orders[0].purpose, Purpose::CalibrationLatency);
    assert_eq!(orders[1].purpose, Purpose::CalibrationCeiling);
    assert_eq!(loads(&orders), [500.0, 1000.0, 2000.0]);
}

#[test]
fn a_disturbed_calibration_is_held_again_and_once_more_after_the_climb() {
    let purposes = |orders: &[NextTrial]| orders.iter().map(|order| order.purpose).collect::<Vec<_>>();
    let latency = Purpose::CalibrationLatency;
    let noisy = |until: u32| {
        follow(&schedule(), move |order| Judged {
            was_disturbed: order.purpose == latency && order.seq < until,
            ..passes(order)
        })
    };
    let count = |until| purposes(&noisy(until).0).iter().filter(|purpose| **purpose == latency).count();
    assert_eq!((count(0), count(1), count(2)), (1, 2, 3));
    let (orders, stop) = noisy(u32::MAX);
    assert_eq!((count(u32::MAX), stop), (4, Stop::Complete));
    assert_eq!(purposes(&orders).last(), Some(&latency));
    assert_eq!(loads(&orders), [500.0, 1000.0, 2000.0], "and it keeps no load from being held");
}

#[test]
fn failed_limited_and_invalid_rungs_are_held_once_and_do_not_end_the_climb() {
    for verdict in [Verdict::Fail, Verdict::GeneratorLimited, Verdict::Inconclusive, Verdict::Invalid] {
        let (orders, stop) = follow(&schedule(), |order| Judged { verdict: Some(verdict), ..passes(order) });
        assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0, 2000.0], Stop::Complete), "{verdict}");
    }
}

#[test]
fn nothing_follows_a_dead_subject_or_an_interruption() {
    let dies = |order: &NextTrial| Judged { subject_exited: order.load == 1000.0, ..passes(order) };
    let (orders, stop) = follow(&schedule(), dies);
    assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0], Stop::SubjectExited));
    let stops = |order: &NextTrial| Judged { was_interrupted: order.load == 64.0, ..passes(order) };
    let (orders, stop) = follow(&schedule(), stops);
    assert_eq!((loads(&orders), stop), (vec![], Stop::Interrupted));
}

#[test]
fn the_null_server_of_a_calibration_may_end() {
    let ends = |order: &NextTrial| Judged { subject_exited: order.purpose != Purpose::Rung, ..passes(order) };
    assert_eq!(follow(&schedule(), ends).1, Stop::Complete);
}

/// The capacity is between 1000 and 2000.
fn holds_1000(order: &NextTrial) -> Judged {
    let verdict = if order.load > 1000.0 { Verdict::Fail } else { Verdict::Pass };
    Judged { verdict: (order.purpose == Purpose::Rung).then_some(verdict), ..passes(order) }
}

#[test]
fn repeats_hold_all_loads_round_by_round_each_in_an_order_of_its_own() {
    let held = loads(&follow(&repeated(Repeats::Times(8)), passes).0);
    assert_eq!(held[..3], [500.0, 1000.0, 2000.0], "upwards first");
    let rounds: Vec<&[f64]> = held.chunks(3).collect();
    assert_eq!(rounds.len(), 8);
    for round in &rounds {
        let mut sorted = round.to_vec();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(sorted, [500.0, 1000.0, 2000.0], "each load once in a round");
    }
    assert!(rounds.iter().any(|round| *round != rounds[0]), "not always in the same order");
}

#[test]
fn until_sure_repeats_the_two_loads_beside_the_capacity_until_it_is_certain() {
    let (orders, stop) = follow(&repeated(Repeats::UntilSure), holds_1000);
    let held = loads(&orders);
    assert_eq!((stop, &held[..3]), (Stop::Complete, &[500.0, 1000.0, 2000.0][..]));
    let count = |load: f64| held.iter().filter(|one| **one == load).count();
    assert_eq!(count(500.0), 1, "it says nothing about the bounds");
    assert!((2..6).contains(&count(1000.0)) && (2..6).contains(&count(2000.0)), "{held:?}");
}

#[test]
fn until_sure_gives_up_on_a_server_that_holds_a_load_every_other_time() {
    // 1000 passes two holds of three, so that it stays the lower bound without certainty.
    let wavers = |order: &NextTrial| {
        let holds = order.load < 1000.0 || order.load == 1000.0 && !order.seq.is_multiple_of(3);
        let verdict = if holds { Verdict::Pass } else { Verdict::Fail };
        Judged { verdict: (order.purpose == Purpose::Rung).then_some(verdict), ..passes(order) }
    };
    let (orders, stop) = follow(&repeated(Repeats::UntilSure), wavers);
    assert_eq!(stop, Stop::Complete);
    assert!(loads(&orders).len() <= 3 * HOLDS_MOST, "{:?}", loads(&orders));
    let (orders, _) = follow(&repeated(Repeats::UntilSure), passes);
    assert_eq!(loads(&orders), [500.0, 1000.0, 2000.0, 2000.0, 2000.0, 2000.0, 2000.0], "a lone bound");
}

#[test]
fn the_next_trial_follows_from_the_stored_ones_in_any_order() {
    let mut done: Vec<Judged> = follow(&schedule(), passes).0.iter().take(3).map(passes).collect();
    let next = schedule().next(&done);
    done.reverse();
    assert_eq!(schedule().next(&done), next);
    assert_eq!(
        next,
        Next::Trial(NextTrial {
            seq: 3,
            purpose: Purpose::Rung,
            load: 1000.0,
            cell: None,
            hold_ns: None,
            recovery_load: None
        })
    );
}

fn places(orders: &[NextTrial]) -> Vec<(Option<usize>, f64)> {
    let rungs = orders.iter().filter(|order| order.purpose == Purpose::Rung);
    rungs.map(|order| (order.cell, order.load)).collect()
}

#[test]
fn cells_are_climbed_one_after_the_other_and_calibrated_once() {
    let (orders, stop) = follow(&sweep(&[2.0, 1.0], false), passes);
    assert_eq!(stop, Stop::Complete);
    let expected = [(0, 1.0), (0, 2.0), (1, 1.0), (1, 2.0), (2, 1.0), (2, 2.0)];
    assert_eq!(places(&orders), expected.map(|(cell, load)| (Some(cell), load)));
    assert_eq!((orders.len(), orders[0].cell), (7, None));
}

#[test]
fn an_open_end_goes_on_in_each_cell_until_a_request_fails_in_it() {
    // The cells refuse from 3, 5 and 2 requesters on.
    let first_refusal = [3.0, 5.0, 2.0];
    let refuses = |order: &NextTrial| {
        let limit = order.cell.map_or(f64::INFINITY, |cell| first_refusal[cell]);
        Judged { request_failed: order.load >= limit, ..passes(order) }
    };
    let (orders, stop) = follow(&sweep(&[1.0], true), refuses);
    assert_eq!(stop, Stop::Complete);
    for (cell, limit) in first_refusal.iter().enumerate() {
        let held: Vec<f64> = orders.iter().filter(|one| one.cell == Some(cell)).map(|one| one.load).collect();
        assert_eq!(held, (1..=*limit as u32).map(f64::from).collect::<Vec<_>>(), "cell {cell}");
    }
    // A refusal within the list is already the end; the rest of the list is held anyway.
    let (orders, _) = follow(&sweep(&[1.0, 2.0, 4.0], true), refuses);
    assert_eq!(places(&orders).iter().filter(|(cell, _)| *cell == Some(2)).count(), 3);
    assert_eq!(places(&orders)[..4].last(), Some(&(Some(1), 1.0)));
}

#[test]
fn an_open_end_has_an_end() {
    let (orders, stop) = follow(&sweep(&[998.0], true), passes);
    assert_eq!((orders.len(), stop), (1 + 3 * 3, Stop::Complete));
    let proves_nothing = |order: &NextTrial| Judged { verdict: Some(Verdict::Invalid), ..passes(order) };
    assert_eq!(follow(&sweep(&[1.0], true), proves_nothing).0.len(), 1 + 3);
    let dies = |order: &NextTrial| Judged { subject_exited: order.load == 4.0, ..passes(order) };
    let (orders, stop) = follow(&sweep(&[1.0], true), dies);
    assert_eq!((loads(&orders), stop), (vec![1.0, 2.0, 3.0, 4.0], Stop::SubjectExited));
}

#[test]
fn a_sweep_that_was_cut_off_anywhere_goes_on_as_if_it_had_not_been() {
    let refuses = |order: &NextTrial| Judged { request_failed: order.load >= 6.0, ..passes(order) };
    let schedule = sweep(&[1.0, 3.0], true);
    let (orders, _) = follow(&schedule, refuses);
    let done: Vec<Judged> = orders.iter().map(refuses).collect();
    for held in 0..orders.len() {
        let mut before = done[..held].to_vec();
        before.reverse();
        assert_eq!(schedule.next(&before), Next::Trial(orders[held].clone()));
    }
    let mut places = places(&orders);
    places.dedup();
    assert_eq!(places.len(), 3 * 5, "nothing twice");
}

/// Loads of a list with an overload; `holds` says which loads pass.
fn overloaded(overload: &[f64], repeats: Repeats, holds: impl Fn(f64) -> bool) -> Vec<f64> {
    let (rungs, overload) = (vec![100.0, 200.0, 400.0], overload.to_vec());
    let list = ListSchedule { rungs, overload, repeats, seed: 7, ..ListSchedule::default() };
    let schedule = Schedule { calibrations: Vec::new(), loads: Loads::List(list) };
    let held = |order: &NextTrial| Judged {
        verdict: Some(if holds(order.load) { Verdict::Pass } else { Verdict::Fail }),
        ..passes(order)
    };
    let (orders, stop) = follow(&schedule, held);
    assert_eq!(stop, Stop::Complete);
    loads(&orders)
}

#[test]
fn multiples_of_the_largest_load_that_held_come_last_and_once() {
    let once = Repeats::Times(1);
    let all = overloaded(&[1.1, 1.5, 2.0], once, |load| load < 250.0);
    assert_eq!(all, [100.0, 200.0, 400.0, 220.0, 300.0], "400 was held already");
    // A multiple that holds does not change the capacity that the others are multiples of.
    let all = overloaded(&[1.2, 1.5], once, |load| load < 300.0);
    assert_eq!(all, [100.0, 200.0, 400.0, 240.0, 300.0]);
    let twice = overloaded(&[1.5], Repeats::Times(2), |load| load < 250.0);
    assert_eq!((twice.len(), twice.last()), (7, Some(&300.0)));
    let sure = overloaded(&[1.5], Repeats::UntilSure, |load| load < 250.0);
    assert_eq!(sure.iter().filter(|load| **load == 300.0).count(), 1);
}

#[test]
fn after_an_overload_four_fifths_of_the_largest_load_that_held_go_on() {
    let recovery_loads = |recovers| {
        let (rungs, overload) = (vec![100.0, 202.0, 400.0], vec![1.5]);
        let list = ListSchedule { rungs, overload, recovers, ..ListSchedule::default() };
        let schedule = Schedule { calibrations: Vec::new(), loads: Loads::List(list) };
        let held = |order: &NextTrial| Judged {
            verdict: Some(if order.load < 250.0 { Verdict::Pass } else { Verdict::Fail }),
            ..passes(order)
        };
        follow(&schedule, held).0.iter().map(|order| order.recovery_load).collect::<Vec<_>>()
    };
    assert_eq!(recovery_loads(true), [None, None, None, Some(161.0)]);
    assert_eq!(recovery_loads(false), [None; 4]);
}

#[test]
fn without_both_bounds_nothing_is_known_to_lie_beyond_the_capacity() {
    assert_eq!(overloaded(&[1.5, 2.0], Repeats::Times(1), |_| true).len(), 3);
    assert_eq!(overloaded(&[1.5, 2.0], Repeats::Times(1), |_| false).len(), 3);
}

/// A server that holds up to 1000. After a load above that it holds only 500, for so many rungs.
struct Remembers {
    rungs: usize,
}

impl Remembers {
    /// Climbs it from above; each load with its verdict, in the order held.
    fn climbed(&self, repeats: Repeats) -> Vec<(f64, Verdict)> {
        let rungs = vec![1000.0, 500.0, 2000.0, 750.0];
        let list = ListSchedule { rungs, repeats, from_above: true, seed: 7, ..ListSchedule::default() };
        let schedule = Schedule { calibrations: Vec::new(), loads: Loads::List(list) };
        let (mut done, mut shaken) = (Vec::new(), 0);
        while let Next::Trial(order) = schedule.next(&done) {
            let holds = if shaken > 0 { 500.0 } else { 1000.0 };
            shaken = if order.load > 1000.0 { self.rungs } else { shaken.saturating_sub(1) };
            let verdict = if order.load <= holds { Verdict::Pass } else { Verdict::Fail };
            done.push(Judged { verdict: Some(verdict), ..passes(&order) });
            assert!(done.len() < 100, "a schedule must end");
        }
        done.iter().filter_map(|trial| Some((trial.load, trial.verdict?))).collect()
    }
}

use Verdict::{Fail, Pass};

const UPWARDS: [(f64, Verdict); 4] = [(500.0, Pass), (750.0, Pass), (1000.0, Pass), (2000.0, Fail)];

#[test]
fn from_above_each_load_below_the_top_is_held_once_more_downwards() {
    let forgets = Remembers { rungs: 0 }.climbed(Repeats::Times(1));
    assert_eq!(forgets, [&UPWARDS[..], &[(1000.0, Pass), (750.0, Pass), (500.0, Pass)]].concat());
    let remembers = Remembers { rungs: 2 }.climbed(Repeats::Times(1));
    assert_eq!(remembers, [&UPWARDS[..], &[(1000.0, Fail), (750.0, Fail), (500.0, Pass)]].concat());
    let never = Remembers { rungs: usize::MAX }.climbed(Repeats::Times(1));
    assert_eq!(never, remembers);
}

#[test]
fn a_load_that_a_server_holds_only_before_a_higher_one_is_no_lower_bound() {
    let of = |rungs: usize| {
        let held = Remembers { rungs }.climbed(Repeats::Times(1));
        let judged = |(load, verdict)| Judged { load, verdict: Some(verdict), ..Judged::default() };
        let found = capacity(LoadUnit::Games, &held.into_iter().map(judged).collect::<Vec<_>>(), None);
        (found.lower_bound, found.upper_bound)
    };
    assert_eq!(of(0), (Some(1000.0), Some(2000.0)));
    assert_eq!(of(1), (Some(750.0), Some(1000.0)));
    assert_eq!(of(2), (Some(500.0), Some(750.0)));
}

#[test]
fn repeats_come_after_the_way_down_and_count_it() {
    let held = Remembers { rungs: 0 }.climbed(Repeats::Times(3));
    let loads: Vec<f64> = held.iter().map(|(load, _)| *load).collect();
    assert_eq!(loads[..7], [500.0, 750.0, 1000.0, 2000.0, 1000.0, 750.0, 500.0]);
    for load in [500.0, 750.0, 1000.0, 2000.0] {
        assert_eq!(loads.iter().filter(|one| **one == load).count(), 3, "{load}");
    }
}

#[test]
fn nothing_is_held_downwards_on_a_dead_server_and_cells_and_open_ends_come_down_each_by_itself() {
    let from_above = |schedule: Schedule| match schedule.loads {
        Loads::List(list) => {
            Schedule { loads: Loads::List(ListSchedule { from_above: true, ..list }), ..schedule }
        }
        Loads::Search(_) => unreachable!(),
    };
    let dies = |order: &NextTrial| Judged { subject_exited: order.load == 2000.0, ..passes(order) };
    let (orders, stop) = follow(&from_above(schedule()), dies);
    assert_eq!((loads(&orders), stop), (vec![500.0, 1000.0, 2000.0], Stop::SubjectExited));
    let refuses = |order: &NextTrial| Judged { request_failed: order.load > 3.0, ..passes(order) };
    let (orders, _) = follow(&from_above(sweep(&[2.0], true)), refuses);
    assert_eq!(loads(&orders), [2.0, 3.0, 4.0, 3.0, 2.0].repeat(3));
    let cells: Vec<_> = orders.iter().filter_map(|order| order.cell).collect();
    assert_eq!(cells, [[0; 5], [1; 5], [2; 5]].concat());
}

/// The holds of a list in which a second gives `per_load` samples per unit of load, and 300 decide; s, 10 where the
/// plan says.
fn holds_s(list: ListSchedule, per_load: f64, needed: f64) -> Vec<u64> {
    let schedule = Schedule { calibrations: Vec::new(), loads: Loads::List(list) };
    let held_s = |order: &NextTrial| order.hold_ns.map_or(10, |ns| ns / 1_000_000_000);
    let (orders, _) = follow(&schedule, |order| {
        let times = needed / (held_s(order) as f64 * per_load * order.load);
        let is_open = times > 1.0;
        Judged {
            purpose: order.purpose,
            load: order.load,
            verdict: Some(if is_open { Verdict::Inconclusive } else { Verdict::Pass }),
            times_as_many: if is_open { times } else { 0.0 },
            held_ns: held_s(order) * 1_000_000_000,
            ..Judged::default()
        }
    });
    orders.iter().map(held_s).collect()
}

#[test]
fn a_load_is_held_as_long_as_its_samples_need_where_nobody_fixed_the_hold() {
    let list =
        |repeats: Repeats| ListSchedule { rungs: vec![1.0, 2.0, 50.0], repeats, ..ListSchedule::default() };
    let once = || list(Repeats::Times(1));
    let learns = |list: ListSchedule| ListSchedule { learns_from_ns: 10_000_000_000, ..list };
    // Fixed: each as the plan says, even if that is too short.
    assert_eq!(holds_s(once(), 10.0, 300.0), [10, 10, 10]);
    // Known in advance: planned.
    let planned = ListSchedule { lengthened: vec![(1.0, 37_000_000_000)], ..learns(once()) };
    assert_eq!(holds_s(planned, 10.0, 300.0), [37, 10, 10]);
    // A closed loop: the first trial shows the rate, and the next load is held longer, up to four times.
    let closed = |list: ListSchedule| ListSchedule { learns_from_lower: true, ..learns(list) };
    assert_eq!(holds_s(closed(once()), 10.0, 300.0), [10, 30, 10]);
    assert_eq!(holds_s(closed(once()), 1.0, 300.0), [10, 40, 40]);
    // At a known rate a lower load says nothing about a higher one; the same load again is held longer.
    assert_eq!(holds_s(learns(once()), 10.0, 300.0), [10, 10, 10]);
    let mut twice = holds_s(learns(list(Repeats::Times(2))), 10.0, 300.0);
    twice[3..].sort_unstable();
    assert_eq!(twice, [10, 10, 10, 10, 15, 30]);
}
