//! SEARCH: searches on planted capacities: how many lead astray, at which cost beside plain bisection, and how often bounds and
//! intervals contain the capacity.

use ladder::testing::{FINAL_TRIAL_NS, search};
use ladder::{Judged, SearchSchedule, capacity};
use measure::LoadUnit;

use crate::{Form, Row};

const ID: &str = "SEARCH";

pub(crate) fn rows(form: Form) -> Vec<Row> {
    let searches = 2_000;
    let strict = search(5, 0.02);
    let mut rows = Vec::new();
    for (spurious, most) in [(0.05, 0.005), (0.1, 0.01)] {
        let (off, cost) = campaign(spurious, searches, |planted| searched(&strict, planted));
        let (_, bisected) = campaign(spurious, searches, |planted| bisected(&strict, planted));
        let planted = format!("{searches} searches, {} % of the holds fail for no reason", spurious * 100.0);
        rows.push(Row::share((ID, format!("{planted}: more than 5 % off")), "none", off, (0.0, most)));
        let name = (ID, format!("{planted}: their trials, of those of bisection by the best of five"));
        rows.push(Row::share(name, "fewer", cost / bisected, (0.0, 0.6)));
    }
    rows.extend(intervals(form));
    rows
}

/// How often intervals and bounds contain the capacity. What is stated of the bounds is careful rather than bold up to a pass
/// curve of 4 %; no search sees which curve it met, and wider ones are a known limit.
fn intervals(form: Form) -> Vec<Row> {
    let searches = form.of(60, 1_000);
    let mut rows = Vec::new();
    let (mut errors, mut covered) = (Vec::new(), Vec::new());
    for (preset, sum, width) in [("standard", 3, 0.05), ("strict", 5, 0.02)] {
        for curve in form.of(&[0.003, 0.01, 0.04][..], &[0.003, 0.01, 0.03, 0.04, 0.06, 0.08]) {
            let (stated, between, inside) = contained((sum, width, *curve, 0.03), searches);
            let is_known_limit = *curve > 0.05;
            let least = if is_known_limit || form == Form::Short { 0.85 } else { 0.93 };
            let named =
                |what: &str| format!("{preset}, pass curve {:.1} %, {searches} {what}", curve * 100.0);
            let what = named("intervals contain the capacity");
            rows.push(Row::share((ID, what), "95 %", inside, (least, 1.0)));
            let what = named("bounds contain it; expected is what they state");
            let stated_text = format!("{:.0} %", stated * 100.0);
            let least = if is_known_limit { 0.05 } else { (stated - form.of(0.2, 0.1)).max(0.0) };
            rows.push(Row::share((ID, what), &stated_text, between, (least, 1.0)));
            if !is_known_limit {
                errors.push(between - stated);
                covered.push(inside);
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let name = (ID, "intervals that contain the capacity, mean up to 4 %");
    rows.push(Row::share(name, "95 %", mean(&covered), (0.94, 1.0)));
    let mean = mean(&errors);
    let name = (ID, "bounds that contain the capacity, less what they state, mean up to 4 %");
    let got = format!("{:+.1} points", mean * 100.0);
    rows.push(Row::new(name, "0 or more", got, "−5 to +20 points", (-0.05..0.2).contains(&mean)));
    rows
}

/// A server that holds `capacity`, seen through noise: near it either verdict may come, and a share of holds fails anyway.
struct Planted {
    capacity: f64,
    /// of the pass curve, relative
    width: f64,
    spurious: f64,
    random: fastrand::Rng,
}

impl Planted {
    fn holds(&mut self, load: f64) -> bool {
        let chance = 1.0 / (1.0 + ((load / self.capacity).ln() / self.width).exp());
        self.random.f64() < chance && self.random.f64() >= self.spurious
    }
}

/// Longer trials than three times the shortest, in the units of one final trial.
fn cost(done: &[Judged]) -> f64 {
    done.iter().map(|trial| trial.held_ns as f64 / FINAL_TRIAL_NS as f64).sum()
}

/// How far the middle of the bounds lies off, and the cost.
fn searched(search: &SearchSchedule, planted: &mut Planted) -> (f64, f64) {
    let done = search.followed(|_, load| planted.holds(load));
    let found = search.bounds(&done);
    let middle = match (found.lower, found.upper) {
        (Some(lower), Some(upper)) => (lower * upper).sqrt(),
        (one, other) => one.or(other).unwrap(),
    };
    ((middle / planted.capacity).ln().abs(), cost(&done))
}

/// Plain bisection from the same start: doubles or halves until both sides are known, then halves the interval down to the
/// width; each load is held five times and the majority decides.
fn bisected(search: &SearchSchedule, planted: &mut Planted) -> (f64, f64) {
    let mut trials = 0;
    let mut holds = |load: f64, planted: &mut Planted| {
        trials += 5;
        (0..5).filter(|_| planted.holds(load)).count() >= 3
    };
    let (mut lower, mut upper) = (None, None);
    let mut load = search.start;
    loop {
        if holds(load, planted) {
            lower = Some(load)
        } else {
            upper = Some(load)
        }
        load = match (lower, upper) {
            (Some(lower), Some(upper)) if 1.0 - lower / upper <= search.goal.width => {
                let middle: f64 = (lower * upper).sqrt();
                return ((middle / planted.capacity).ln().abs(), f64::from(trials));
            }
            (Some(lower), Some(upper)) => (lower * upper).sqrt(),
            (Some(lower), None) => 2.0 * lower,
            (None, Some(upper)) => 0.5 * upper,
            (None, None) => unreachable!("one was set"),
        };
    }
}

/// Share of searches that land more than 5 % off, and the mean cost.
fn campaign(spurious: f64, count: u64, find: impl Fn(&mut Planted) -> (f64, f64)) -> (f64, f64) {
    let found: Vec<(f64, f64)> = (0..count)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let capacity = 500.0 * (4.0 * random.f64() - 2.0).exp();
            find(&mut Planted { capacity, width: 0.01, spurious, random })
        })
        .collect();
    let off = found.iter().filter(|(off, _)| *off > 0.05).count() as f64 / count as f64;
    (off, found.iter().map(|(_, cost)| cost).sum::<f64>() / count as f64)
}

/// Trials that decide, width of the search, width of the pass curve, failures without a cause.
type Case = (u64, f64, f64, f64);

/// The mean confidence, and the shares of searches whose bounds and whose intervals contain the planted capacity.
fn contained((sum, width, curve, spurious): Case, searches: u64) -> (f64, f64, f64) {
    let search = search(sum, width);
    let (mut stated, mut between, mut inside, mut count) = (0.0, 0.0, 0.0, 0.0);
    for seed in 0..searches {
        let mut random = fastrand::Rng::with_seed(seed);
        let truth = 500.0 * (4.0 * random.f64() - 2.0).exp();
        let mut planted = Planted { capacity: truth, width: curve, spurious, random };
        let done = search.followed(|_, load| planted.holds(load));
        let found = capacity(LoadUnit::Clients, &done, Some(&search));
        let (Some(lower), Some(upper)) = (found.lower_bound, found.upper_bound) else { continue };
        let (Some(confidence), Some((least, most))) = (found.confidence, found.interval) else { continue };
        let share = |is_in: bool| f64::from(u8::from(is_in));
        stated += confidence;
        between += share((lower..=upper).contains(&truth));
        inside += share((least..=most).contains(&truth));
        count += 1.0;
    }
    let (stated, between, inside) = (stated / count, between / count, inside / count);
    (stated, between, inside)
}
