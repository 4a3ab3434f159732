//! Capacity: the largest load that held below the smallest that did not.
//!
//! Only PASS and FAIL count: a rung that says more about the generator or the machine moves neither bound. Without a
//! failing rung there is only a lower bound, and a knee is none before a breach bounds it from above.
//! Invariant: one more failing rung never raises the capacity.
//! Units: loads, in the unit of the climb.

use measure::LoadUnit;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::judge::Verdict;

/// Fewer holds of the same load than this support no figure of confidence.
const FEWEST_HOLDS: u32 = 3;

/// What is known about the capacity, as in the JSON contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Capacity {
    /// `games`, `clients` …
    pub unit: LoadUnit,
    /// the largest load that held; `None` when none did below the first failure
    pub lower_bound: Option<f64>,
    /// the smallest load that did not hold; `None` when all held
    pub upper_bound: Option<f64>,
    /// what gave at the smallest failing load
    pub first_failing_signal: Option<String>,
    /// how surely the bounds are on their sides, in [0, 1]; `None` when nothing supports a figure
    ///
    /// A load exactly at the knee would pass as often as fail. Confidence is the chance that such a load would not
    /// have shown verdicts as one-sided as those of the two bounding loads (exact sign test, one-sided, the product of
    /// both). It needs at least three holds of each bounding load: a load held once says *that* it held, not how often.
    pub confidence: Option<f64>,
    /// loads that held although a smaller one failed, ascending: the verdicts are not monotone
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held_above_a_failure: Vec<f64>,
    /// of a sweep: each cell's own, in the order in which they were held; the bounds above are those of the smallest
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellCapacity>,
}

/// The capacity in one cell of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct CellCapacity {
    /// axis and value
    pub cell: BTreeMap<String, String>,
    /// in it
    pub capacity: Capacity,
}

/// One trial as far as the capacity is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// its load
    pub load: f64,
    /// axis and value; empty where there is but one cell
    pub cell: BTreeMap<String, String>,
    /// its verdict
    pub verdict: Verdict,
    /// what gave
    pub signal: Option<String>,
}

/// All trials of one load. The majority decides; a tie fails, since a load that holds every other time does not hold.
struct Rung<'a> {
    load: f64,
    passed: u32,
    failed: u32,
    signal: Option<&'a str>,
}

impl Rung<'_> {
    fn holds(&self) -> bool {
        self.passed > self.failed
    }

    fn confidence(&self) -> Option<f64> {
        let holds = self.passed + self.failed;
        (holds >= FEWEST_HOLDS).then(|| 1.0 - chance_of_at_least(self.passed.max(self.failed), holds))
    }
}

/// The capacity shown by these trials. Of several cells it is that of the cell that gives first, since a server must hold
/// in all of them; each one's own stands beside it.
///
/// The trials of a cell may come in any order; the cells are told in the order in which they first appear.
pub fn capacity(unit: LoadUnit, trials: &[Held]) -> Capacity {
    let mut cells: Vec<(&BTreeMap<String, String>, Vec<&Held>)> = Vec::new();
    for trial in trials {
        match cells.iter_mut().find(|(cell, _)| *cell == &trial.cell) {
            Some((_, of_cell)) => of_cell.push(trial),
            None => cells.push((&trial.cell, vec![trial])),
        }
    }
    if cells.len() <= 1 {
        return of_cell(unit, &trials.iter().collect::<Vec<_>>());
    }
    let cells: Vec<CellCapacity> = cells
        .into_iter()
        .map(|(cell, trials)| CellCapacity { cell: cell.clone(), capacity: of_cell(unit, &trials) })
        .collect();
    // Where nothing failed the least that was held; a cell that says nothing about the server says nothing here.
    let bounds = |one: &&CellCapacity| {
        let of = |bound: Option<f64>| bound.unwrap_or(f64::INFINITY);
        (of(one.capacity.upper_bound), of(one.capacity.lower_bound))
    };
    let order = |a: &&CellCapacity, b: &&CellCapacity| {
        let (a, b) = (bounds(a), bounds(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    };
    let smallest = cells.iter().min_by(order).map(|one| one.capacity.clone());
    let smallest = smallest.unwrap_or_else(|| of_cell(unit, &[]));
    Capacity { cells, ..smallest }
}

fn of_cell(unit: LoadUnit, trials: &[&Held]) -> Capacity {
    let mut rungs: Vec<Rung<'_>> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.verdict.counts()) {
        let at = rungs.iter().position(|rung| rung.load == trial.load).unwrap_or_else(|| {
            rungs.push(Rung { load: trial.load, passed: 0, failed: 0, signal: None });
            rungs.len() - 1
        });
        let rung = &mut rungs[at];
        if trial.verdict == Verdict::Pass {
            rung.passed += 1;
        } else {
            rung.failed += 1;
            rung.signal = rung.signal.or(trial.signal.as_deref());
        }
    }
    rungs.sort_by(|a, b| a.load.total_cmp(&b.load));
    let upper = rungs.iter().find(|rung| !rung.holds());
    let is_below = |rung: &&Rung<'_>| upper.is_none_or(|upper| rung.load < upper.load);
    let lower = rungs.iter().filter(is_below).rfind(|rung| rung.holds());
    let above = rungs.iter().filter(|rung| rung.holds() && !is_below(rung)).map(|rung| rung.load);
    let confidence = match (lower, upper) {
        (Some(lower), Some(upper)) => {
            lower.confidence().zip(upper.confidence()).map(|(low, high)| low * high)
        }
        _ => None,
    };
    Capacity {
        unit: unit.to_owned(),
        lower_bound: lower.map(|rung| rung.load),
        upper_bound: upper.map(|rung| rung.load),
        first_failing_signal: upper.and_then(|rung| rung.signal).map(str::to_owned),
        confidence,
        held_above_a_failure: above.collect(),
        cells: Vec::new(),
    }
}

/// P(X ≥ k) for n fair coins.
fn chance_of_at_least(k: u32, n: u32) -> f64 {
    let mut chance_of_exactly = 0.5f64.powi(n as i32);
    let mut sum = 0.0;
    for heads in 0..=n {
        if heads >= k {
            sum += chance_of_exactly;
        }
        chance_of_exactly *= f64::from(n - heads) / f64::from(heads + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held(load: f64, verdict: Verdict) -> Held {
        let signal = (verdict != Verdict::Pass).then(|| format!("signal at {load}"));
        Held { load, cell: BTreeMap::new(), verdict, signal }
    }

    fn check(trials: &[(f64, Verdict)], lower: Option<f64>, upper: Option<f64>) -> Capacity {
        let trials: Vec<Held> = trials.iter().map(|&(load, verdict)| held(load, verdict)).collect();
        let found = capacity(LoadUnit::Games, &trials);
        assert_eq!((found.lower_bound, found.upper_bound), (lower, upper), "{trials:?}");
        found
    }

    use Verdict::{Fail, GeneratorLimited, Inconclusive, Invalid, Pass};

    #[test]
    fn it_lies_between_the_last_load_that_held_and_the_first_that_did_not() {
        let found = check(&[(500.0, Pass), (1000.0, Pass), (2000.0, Fail)], Some(1000.0), Some(2000.0));
        assert_eq!(found.first_failing_signal.as_deref(), Some("signal at 2000"));
        assert_eq!(found.confidence, None);
    }

    #[test]
    fn without_a_failure_there_is_only_a_lower_bound() {
        let found = check(&[(500.0, Pass), (1000.0, Pass)], Some(1000.0), None);
        assert_eq!(found.first_failing_signal, None);
        check(&[(500.0, Fail)], None, Some(500.0));
        check(&[], None, None);
    }

    #[test]
    fn rungs_that_say_nothing_about_the_server_count_for_neither_bound() {
        check(&[(500.0, Pass), (1000.0, GeneratorLimited), (2000.0, Fail)], Some(500.0), Some(2000.0));
        check(&[(500.0, Pass), (1000.0, Inconclusive), (2000.0, Invalid)], Some(500.0), None);
    }

    #[test]
    fn a_load_that_held_above_a_failure_is_noted_and_not_counted() {
        let found = check(&[(500.0, Pass), (1000.0, Fail), (2000.0, Pass)], Some(500.0), Some(1000.0));
        assert_eq!(found.held_above_a_failure, [2000.0]);
    }

    #[test]
    fn the_majority_of_holds_decides_and_a_tie_fails() {
        check(&[(500.0, Pass), (500.0, Fail), (500.0, Pass)], Some(500.0), None);
        check(&[(500.0, Pass), (500.0, Fail)], None, Some(500.0));
    }

    #[test]
    fn confidence_needs_three_holds_of_either_bound() {
        let of = |lower: usize, upper: usize| {
            let mut trials = vec![(500.0, Pass); lower];
            trials.extend(vec![(1000.0, Fail); upper]);
            check(&trials, Some(500.0), Some(1000.0)).confidence
        };
        assert_eq!(of(2, 3), None);
        assert_eq!(of(3, 3), Some(0.875 * 0.875));
        assert!(of(8, 8).unwrap() > 0.99);
    }

    #[test]
    fn of_several_cells_the_one_that_gives_first_counts_and_each_is_told() {
        let cell = |name: &str| BTreeMap::from([("service".to_owned(), name.to_owned())]);
        let in_cell = |name: &str, load, verdict| Held { cell: cell(name), ..held(load, verdict) };
        let trials = [
            in_cell("short", 14.0, Pass),
            in_cell("short", 15.0, Fail),
            in_cell("long", 5.0, Pass),
            in_cell("long", 6.0, Fail),
            in_cell("unjudged", 1.0, Inconclusive),
        ];
        let found = capacity(LoadUnit::Requesters, &trials);
        assert_eq!((found.lower_bound, found.upper_bound), (Some(5.0), Some(6.0)));
        let bounds = |at: usize| (found.cells[at].capacity.lower_bound, found.cells[at].capacity.upper_bound);
        assert_eq!(
            (bounds(0), bounds(1), bounds(2)),
            ((Some(14.0), Some(15.0)), (Some(5.0), Some(6.0)), (None, None))
        );
        assert_eq!(found.cells[1].cell, cell("long"));
        // Without a failure: the least that held.
        let held_only = [in_cell("short", 14.0, Pass), in_cell("long", 5.0, Pass)];
        let found = capacity(LoadUnit::Requesters, &held_only);
        assert_eq!((found.lower_bound, found.upper_bound), (Some(5.0), None));
        // One cell is told as if it had no name.
        assert_eq!(capacity(LoadUnit::Requesters, &trials[..2]).cells, []);
    }

    fn verdicts() -> impl Strategy<Value = Verdict> {
        prop_oneof![Just(Pass), Just(Fail), Just(GeneratorLimited), Just(Inconclusive), Just(Invalid)]
    }

    proptest! {
        #[test]
        fn one_more_failing_rung_never_raises_the_capacity(
            trials in proptest::collection::vec((1u32..20, verdicts()), 0..12), load in 1u32..20
        ) {
            let mut trials: Vec<Held> =
                trials.into_iter().map(|(load, verdict)| held(f64::from(load), verdict)).collect();
            let before = capacity(LoadUnit::Games, &trials);
            trials.push(held(f64::from(load), Fail));
            let after = capacity(LoadUnit::Games, &trials);
            prop_assert!(after.lower_bound.unwrap_or(0.0) <= before.lower_bound.unwrap_or(0.0));
            prop_assert!(after.upper_bound.unwrap_or(f64::INFINITY) <= before.upper_bound.unwrap_or(f64::INFINITY));
        }

        #[test]
        fn the_lower_bound_lies_below_the_upper_and_order_does_not_matter(
            trials in proptest::collection::vec((1u32..20, verdicts()), 0..12)
        ) {
            let mut trials: Vec<Held> =
                trials.into_iter().map(|(load, verdict)| held(f64::from(load), verdict)).collect();
            let found = capacity(LoadUnit::Games, &trials);
            if let (Some(lower), Some(upper)) = (found.lower_bound, found.upper_bound) {
                prop_assert!(lower < upper);
            }
            trials.reverse();
            let reversed = capacity(LoadUnit::Games, &trials);
            prop_assert_eq!((reversed.lower_bound, reversed.upper_bound), (found.lower_bound, found.upper_bound));
        }
    }
}
