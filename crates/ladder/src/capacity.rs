//! Capacity: the largest load that held below the smallest that did not.
//!
//! For a list of rungs, the majority of a load's holds decides; for a search, the classification of RFC 9971.
//! Only PASS and FAIL count: a rung that says more about the generator or the machine moves neither bound. Without a
//! failing rung there is only a lower bound, and no knee is reported until a breach bounds it from above.
//! Invariant: one more failing rung never raises the capacity.
//! Units: loads, in the unit of the climb.

use std::collections::BTreeMap;

use measure::LoadUnit;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::confidence::{Holds, whereabouts};
use crate::judge::Verdict;
use crate::objective::Objective;
use crate::schedule::{Judged, SearchSchedule};

/// Fewer holds of a bounding load than this support no figure of confidence: one says *that* it held, not how often.
const FEWEST_HOLDS: f64 = 2.0;

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
    /// how surely the capacity lies between the two bounds, in [0, 1]; `None` when nothing supports a figure
    ///
    /// The capacity is the load of which half of the holds would pass (docs/method/capacity.md). It needs both bounds, and
    /// two holds of each: a load held once says *that* it held, not how often.
    pub confidence: Option<f64>,
    /// the load of which half of the holds would pass, most likely; `None` without a confidence
    #[serde(default)]
    pub estimate: Option<f64>,
    /// it lies between these loads with a probability of 95 %
    #[serde(default)]
    pub interval: Option<(f64, f64)>,
    /// loads that held although a smaller one failed, ascending: the verdicts are not monotone
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held_above_a_failure: Vec<f64>,
    /// what was searched for; absent where rungs were given
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub search: Option<SearchFigures>,
    /// of a search: the capacity by each further goal, in their order
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub goals: Vec<GoalCapacity>,
    /// of a sweep: each cell's own, in the order in which they were held; the bounds above are those of the smallest
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cells: Vec<CellCapacity>,
}

/// What a search was to reach, and what it reached (RFC 9971).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct SearchFigures {
    /// length of a full-length trial, seconds
    pub final_trial_s: f64,
    /// full-length trials of this total length decide whether a load holds, seconds
    pub duration_sum_s: f64,
    /// share of them that may miss the objectives, in [0, 1)
    pub exceed_ratio: f64,
    /// (upper − lower) / upper at most
    pub width_goal: f64,
    /// as it was reached; null without both bounds
    pub width: Option<f64>,
    /// no smaller and no larger load was to be held
    pub range: (f64, f64),
    /// loads are whole numbers
    pub is_whole: bool,
    /// trials of the subject, short and long, without the warm-up
    pub trials: u32,
    /// of these, full-length
    pub full_trials: u32,
}

impl SearchFigures {
    /// Whether the search found what was requested: bounds near enough (of whole loads: neighbours), or a server that
    /// holds the largest load of the range.
    pub fn is_reached(&self, capacity: &Capacity) -> bool {
        match (capacity.lower_bound, capacity.upper_bound) {
            (Some(lower), Some(upper)) => {
                1.0 - lower / upper <= self.width_goal || self.is_whole && upper - lower <= 1.0
            }
            (Some(lower), None) => lower >= self.range.1,
            (None, _) => false,
        }
    }
}

/// The capacity by other objectives than those of the plan, from the same trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct GoalCapacity {
    /// what was asked instead
    pub objectives: Vec<String>,
    /// by them
    pub capacity: Capacity,
}

/// The capacity in one cell of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct CellCapacity {
    /// axis and value
    pub cell: BTreeMap<String, String>,
    /// in it
    pub capacity: Capacity,
}

/// Of several holds the majority decides; a tie fails, since a load that holds every other time does not hold.
pub(crate) fn is_majority<T: PartialOrd>(passed: T, failed: T) -> bool {
    passed > failed
}

/// All trials of one load.
struct Rung<'a> {
    holds: Holds,
    signal: Option<&'a str>,
}

impl Rung<'_> {
    fn is_held(&self) -> bool {
        is_majority(self.holds.passed, self.holds.failed)
    }
}

/// The capacity shown by these trials. Of several cells it is that of the cell that gives first, since a server must hold
/// in all of them; each one's own stands beside it.
///
/// The trials of a cell may come in any order; the cells are listed in the order in which they first appear. A search
/// has one cell.
pub fn capacity(unit: LoadUnit, trials: &[Judged], search: Option<&SearchSchedule>) -> Capacity {
    if let Some(search) = search {
        return of_goals(unit, trials, search);
    }
    let mut cells: Vec<(&BTreeMap<String, String>, Vec<&Judged>)> = Vec::new();
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
    // If nothing failed, the least that was held; a cell that says nothing about the server is left out.
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

/// By load, ascending; `passes` says whether a trial passed and for how much it counts, `None` where it says nothing about
/// the server.
fn rungs<'a>(trials: &[&'a Judged], passes: impl Fn(&Judged) -> Option<(bool, f64)>) -> Vec<Rung<'a>> {
    let mut rungs: Vec<Rung<'_>> = Vec::new();
    for trial in trials {
        let Some((has_passed, counts)) = passes(trial) else { continue };
        let at = rungs.iter().position(|rung| rung.holds.load == trial.load).unwrap_or_else(|| {
            rungs.push(Rung { holds: Holds { load: trial.load, passed: 0.0, failed: 0.0 }, signal: None });
            rungs.len() - 1
        });
        let rung = &mut rungs[at];
        if has_passed {
            rung.holds.passed += counts;
        } else {
            rung.holds.failed += counts;
            rung.signal = rung.signal.or(trial.signal.as_deref());
        }
    }
    rungs.sort_by(|a, b| a.holds.load.total_cmp(&b.holds.load));
    rungs
}

fn of_cell(unit: LoadUnit, trials: &[&Judged]) -> Capacity {
    let by_verdict = |trial: &Judged| match trial.verdict {
        Some(Verdict::Pass) => Some((true, 1.0)),
        Some(Verdict::Fail) => Some((false, 1.0)),
        _ => None,
    };
    let rungs = rungs(trials, by_verdict);
    let load = |rung: &Rung<'_>| rung.holds.load;
    let upper = rungs.iter().find(|rung| !rung.is_held()).map(load);
    let is_below = |load: &f64| upper.is_none_or(|upper| *load < upper);
    let held = || rungs.iter().filter(|rung| rung.is_held()).map(load);
    let lower = held().rfind(is_below);
    let above = held().filter(|load| !is_below(load)).collect();
    between(unit, &rungs, (lower, upper), above)
}

/// By the plan's objectives, and by each further goal.
fn of_goals(unit: LoadUnit, trials: &[Judged], search: &SearchSchedule) -> Capacity {
    let of_goal = |(goal, objectives): (usize, &Vec<Objective>)| {
        let seen: Vec<Judged> = trials.iter().map(|trial| trial.to_goal(goal)).collect();
        GoalCapacity {
            objectives: objectives.iter().map(ToString::to_string).collect(),
            capacity: of_search(unit, &seen, search),
        }
    };
    let goals = search.goals.iter().enumerate().map(of_goal).collect();
    Capacity { goals, ..of_search(unit, trials, search) }
}

fn of_search(unit: LoadUnit, trials: &[Judged], search: &SearchSchedule) -> Capacity {
    let found = search.bounds(trials);
    let of_subject: Vec<&Judged> = trials.iter().filter(|trial| trial.is_rung()).collect();
    let by_objectives = |trial: &Judged| Some((search.told(trial)?, search.share_of_full(trial)));
    let bounds = (found.lower, found.upper);
    let capacity = between(unit, &rungs(&of_subject, by_objectives), bounds, found.irregular.clone());
    let seconds = |ns: u64| ns as f64 / 1e9;
    let figures = SearchFigures {
        final_trial_s: seconds(search.goal.final_trial_ns),
        duration_sum_s: seconds(search.goal.duration_sum_ns),
        exceed_ratio: search.goal.exceed_ratio,
        width_goal: search.goal.width,
        width: found.width(),
        range: (search.least, search.most),
        is_whole: search.is_whole,
        trials: of_subject.len() as u32,
        full_trials: of_subject.iter().filter(|trial| search.share_of_full(trial) >= 1.0).count() as u32,
    };
    Capacity { search: Some(figures), ..capacity }
}

fn between(
    unit: LoadUnit,
    rungs: &[Rung<'_>],
    (lower, upper): (Option<f64>, Option<f64>),
    held_above_a_failure: Vec<f64>,
) -> Capacity {
    let at = |load: f64| rungs.iter().find(|rung| rung.holds.load == load);
    let is_enough =
        |load: f64| at(load).is_some_and(|rung| rung.holds.passed + rung.holds.failed >= FEWEST_HOLDS);
    let holds: Vec<Holds> = rungs.iter().map(|rung| rung.holds).collect();
    let both = lower.zip(upper).filter(|(lower, upper)| is_enough(*lower) && is_enough(*upper));
    let found = both.map(|(lower, upper)| whereabouts(&holds, lower, upper));
    Capacity {
        unit,
        lower_bound: lower,
        upper_bound: upper,
        first_failing_signal: upper.and_then(|upper| at(upper)?.signal).map(str::to_owned),
        confidence: found.map(|found| found.confidence),
        estimate: found.map(|found| found.quantiles[1]),
        interval: found.map(|found| (found.quantiles[0], found.quantiles[2])),
        held_above_a_failure,
        search: None,
        goals: Vec::new(),
        cells: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held(load: f64, verdict: Verdict) -> Judged {
        let signal = (verdict != Verdict::Pass).then(|| format!("signal at {load}"));
        Judged { load, verdict: Some(verdict), signal, ..Judged::default() }
    }

    fn check(trials: &[(f64, Verdict)], lower: Option<f64>, upper: Option<f64>) -> Capacity {
        let trials: Vec<Judged> = trials.iter().map(|&(load, verdict)| held(load, verdict)).collect();
        let found = capacity(LoadUnit::Games, &trials, None);
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
    fn confidence_needs_two_holds_of_either_bound_and_grows_with_them() {
        let of = |lower: usize, upper: usize| {
            let mut trials = vec![(500.0, Pass); lower];
            trials.extend(vec![(1000.0, Fail); upper]);
            check(&trials, Some(500.0), Some(1000.0)).confidence
        };
        assert_eq!((of(1, 3), of(3, 1)), (None, None));
        let (two, three, eight) = (of(2, 2).unwrap(), of(3, 3).unwrap(), of(8, 8).unwrap());
        assert!(two < three && three < eight, "{two} {three} {eight}");
        assert!((0.7..0.97).contains(&two) && eight > 0.98, "{two} {eight}");
    }

    #[test]
    fn verdicts_that_contradict_each_other_lower_the_confidence() {
        let of = |failed: usize| {
            let mut trials = vec![(500.0, Pass); 5];
            trials.extend(vec![(500.0, Fail); failed]);
            trials.extend(vec![(550.0, Fail); 5]);
            check(&trials, Some(500.0), Some(550.0)).confidence.unwrap()
        };
        assert!(of(0) > of(2) && of(2) > of(4), "{} {} {}", of(0), of(2), of(4));
    }

    #[test]
    fn of_several_cells_the_one_that_gives_first_counts_and_each_is_told() {
        let cell = |name: &str| BTreeMap::from([("service".to_owned(), name.to_owned())]);
        let in_cell = |name: &str, load, verdict| Judged { cell: cell(name), ..held(load, verdict) };
        let trials = [
            in_cell("short", 14.0, Pass),
            in_cell("short", 15.0, Fail),
            in_cell("long", 5.0, Pass),
            in_cell("long", 6.0, Fail),
            in_cell("unjudged", 1.0, Inconclusive),
        ];
        let found = capacity(LoadUnit::Requesters, &trials, None);
        assert_eq!((found.lower_bound, found.upper_bound), (Some(5.0), Some(6.0)));
        let bounds = |at: usize| (found.cells[at].capacity.lower_bound, found.cells[at].capacity.upper_bound);
        assert_eq!(
            (bounds(0), bounds(1), bounds(2)),
            ((Some(14.0), Some(15.0)), (Some(5.0), Some(6.0)), (None, None))
        );
        assert_eq!(found.cells[1].cell, cell("long"));
        // Without a failure: the least that held.
        let held_only = [in_cell("short", 14.0, Pass), in_cell("long", 5.0, Pass)];
        let found = capacity(LoadUnit::Requesters, &held_only, None);
        assert_eq!((found.lower_bound, found.upper_bound), (Some(5.0), None));
        // A single cell is reported without its name.
        assert_eq!(capacity(LoadUnit::Requesters, &trials[..2], None).cells, []);
    }

    fn verdicts() -> impl Strategy<Value = Verdict> {
        prop_oneof![Just(Pass), Just(Fail), Just(GeneratorLimited), Just(Inconclusive), Just(Invalid)]
    }

    proptest! {
        #[test]
        fn one_more_failing_rung_never_raises_the_capacity(
            trials in proptest::collection::vec((1u32..20, verdicts()), 0..12), load in 1u32..20
        ) {
            let mut trials: Vec<Judged> =
                trials.into_iter().map(|(load, verdict)| held(f64::from(load), verdict)).collect();
            let before = capacity(LoadUnit::Games, &trials, None);
            trials.push(held(f64::from(load), Fail));
            let after = capacity(LoadUnit::Games, &trials, None);
            prop_assert!(after.lower_bound.unwrap_or(0.0) <= before.lower_bound.unwrap_or(0.0));
            prop_assert!(after.upper_bound.unwrap_or(f64::INFINITY) <= before.upper_bound.unwrap_or(f64::INFINITY));
        }

        #[test]
        fn the_lower_bound_lies_below_the_upper_and_order_does_not_matter(
            trials in proptest::collection::vec((1u32..20, verdicts()), 0..12)
        ) {
            let mut trials: Vec<Judged> =
                trials.into_iter().map(|(load, verdict)| held(f64::from(load), verdict)).collect();
            let found = capacity(LoadUnit::Games, &trials, None);
            if let (Some(lower), Some(upper)) = (found.lower_bound, found.upper_bound) {
                prop_assert!(lower < upper);
            }
            trials.reverse();
            let reversed = capacity(LoadUnit::Games, &trials, None);
            prop_assert_eq!((reversed.lower_bound, reversed.upper_bound), (found.lower_bound, found.upper_bound));
        }
    }
}
