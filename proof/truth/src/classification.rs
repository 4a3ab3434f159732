//! RFC: how a load is classified, against the formulas of RFC 9971 in whole numbers.

use ladder::{Goal, LoadClass, Tally};

use crate::{Form, Row};

/// In the RFC's own words and order, and so exact: with an exceed ratio of `exceed` tenths all durations, in tenths of a
/// second, are multiplied by 10 − `exceed`, the only number that is divided by.
fn by_the_rfc([full_low, full_high, short_low, short_high]: [u64; 4], sum_s: u64, exceed: u64) -> LoadClass {
    let times = 10 - exceed;
    let balancing = short_low * exceed;
    let excess = (short_high * times).saturating_sub(balancing);
    let effective_high = full_high * times + excess;
    let effective_full = effective_high + full_low * times;
    let whole = effective_full.max(sum_s * 10 * times);
    let missing = whole - effective_full;
    match (10 * (effective_high + missing) <= exceed * whole, 10 * effective_high > exceed * whole) {
        (true, _) => LoadClass::Lower,
        (_, true) => LoadClass::Upper,
        _ => LoadClass::Undecided,
    }
}

/// Both forms ask for as many sets: the classification has no other test against the formulas.
pub(crate) fn rows(_: Form) -> Vec<Row> {
    const SETS: u64 = 10_000_000;
    let mut random = fastrand::Rng::with_seed(9971);
    let mut different = Vec::new();
    for _ in 0..SETS {
        let tenths = [400, 400, 400, 400].map(|most| random.u64(0..most));
        let (sum_s, exceed) = (random.u64(1..200), random.u64(0..10));
        let [full_low_ns, full_high_ns, short_low_ns, short_high_ns] = tenths.map(|tenth| tenth as f64 * 1e8);
        let goal = Goal {
            final_trial_ns: 30_000_000_000,
            duration_sum_ns: sum_s * 1_000_000_000,
            exceed_ratio: exceed as f64 / 10.0,
            width: 0.05,
        };
        let found = Tally { full_low_ns, full_high_ns, short_low_ns, short_high_ns }.class(&goal);
        let exact = by_the_rfc(tenths, sum_s, exceed);
        if found != exact {
            different.push(format!("{tenths:?} {sum_s} {exceed}: {found:?} instead of {exact:?}"));
        }
    }
    let name = ("RFC", format!("{SETS} random sets of trials, classified differently"));
    let got = match different.first() {
        None => "0".to_owned(),
        Some(first) => format!("{}, the first {first}", different.len()),
    };
    vec![Row::new(name, 0, got, 0, different.is_empty())]
}
