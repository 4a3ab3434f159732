//! The history of a capacity: whether it changed along comparable runs, and at which of them.
//!
//! A run knows its capacity between two bounds, so runs are compared by both of them and never by a point in between. Each run
//! gets a score: how many of the others it is above, less how many it is below (`above`). Where the scores behind a place
//! add up to more than chance brings about, the capacity changed there: the sum is divided by its standard deviation, the
//! largest of all places is compared with that of shuffled histories, and a history with a change is searched on both
//! sides of it. Scores have no unit and bounded weight, so that one odd run is no change.
//! False alarms: at most `ALARM_SHARE` of the histories without a change, measured in the tests; it takes `FEWEST` runs to find any.
//! Not known here: why. Whatever changed with time changed with the commits, the machine as well (docs/method/history.md).
//! Sources: Pettitt 1979 (sums of ranks behind a place), Gehan 1965 (scores of what is known between bounds).

use crate::capacity::Capacity;
use crate::differing::{COMMIT, Difference, Origin, SCENARIO, VERSION, differences};
use crate::wording::show_number;

/// With fewer runs no order of them would be rare enough to be told from chance.
pub const FEWEST: usize = 10;
/// The share of histories without a change in which one may be reported.
pub const ALARM_SHARE: f64 = 0.01;
/// Fewer runs than this on a side are no change yet, but odd runs.
const SIDE_LEAST: usize = 3;
const SHUFFLES: u32 = 999;
/// The same runs always give the same page.
const SEED: u64 = 0x5EED;

/// What a run knows of its capacity, in the unit of its loads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Between {
    /// the largest load that held; `None`: not known
    pub lower: Option<f64>,
    /// the smallest that did not; `None`: not known
    pub upper: Option<f64>,
}

/// A place where the capacity changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// the first run behind it, by its place among all
    pub at: usize,
    /// share of the shuffled histories in which chance brought about as much
    pub p: f64,
    /// medians of the bounds from the change before to this one
    pub before: Between,
    /// and from this one to the next
    pub after: Between,
    /// whether it rose
    pub is_rise: bool,
}

/// What differs between two runs so that their capacities cannot stand on one line; empty: they can.
///
/// A commit and a version of Stepladder are what a history is about; gates, names and permissions measure nothing.
pub fn incomparable(old: &Origin, new: &Origin) -> Vec<Difference> {
    const OF_NO_MATTER: [&str; 7] = [VERSION, COMMIT, SCENARIO, "seed", "gates", "may_load", "profile"];
    let mut found = differences(old, new);
    found.retain(|one| !OF_NO_MATTER.contains(&one.what.as_str()));
    found
}

impl Between {
    /// Of a run.
    pub fn of(capacity: &Capacity) -> Between {
        Between { lower: capacity.lower_bound, upper: capacity.upper_bound }
    }

    /// `1000 to 1500`, `1000 or more`, `less than 500`, `not known`
    pub fn in_words(&self) -> String {
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => format!("{} to {}", show_number(lower), show_number(upper)),
            (Some(lower), None) => format!("{} or more", show_number(lower)),
            (None, Some(upper)) => format!("less than {}", show_number(upper)),
            (None, None) => "not known".to_owned(),
        }
    }

    fn is_known(&self) -> bool {
        self.lower.is_some() || self.upper.is_some()
    }

    /// How surely it is above another: 1 where it is at all events, 0 where nothing says so or both are alike, −1 where it is
    /// below. Bounds that overlap count half for each of the two that differs.
    fn above(&self, other: &Between) -> f64 {
        let order = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => one.total_cmp(&other) as i8,
            _ => 0,
        };
        if self.lower.zip(other.upper).is_some_and(|(lower, upper)| lower >= upper) {
            return 1.0;
        }
        if other.lower.zip(self.upper).is_some_and(|(lower, upper)| lower >= upper) {
            return -1.0;
        }
        f64::from(order(self.lower, other.lower) + order(self.upper, other.upper)) / 2.0
    }

    /// The median of each bound, over the runs that know it.
    fn median(runs: &[Between]) -> Between {
        let of = |bound: fn(&Between) -> Option<f64>| {
            let mut known: Vec<f64> = runs.iter().filter_map(bound).collect();
            known.sort_by(f64::total_cmp);
            // A bound that most runs do not know is not known.
            (known.len() * 2 > runs.len()).then(|| known[(known.len() - 1) / 2])
        };
        Between { lower: of(|run| run.lower), upper: of(|run| run.upper) }
    }
}

/// The changes of a capacity, in the order of time. `None`: fewer than `FEWEST` of the runs know anything of it.
pub fn changes(runs: &[Between]) -> Option<Vec<Change>> {
    // A run that knows nothing is alike to all others; it would only make histories look longer.
    let (places, known): (Vec<usize>, Vec<Between>) =
        runs.iter().enumerate().filter(|(_, run)| run.is_known()).map(|(at, run)| (at, *run)).unzip();
    if known.len() < FEWEST {
        return None;
    }
    let mut found = Vec::new();
    let mut waiting = Vec::from([(0, known.len())]);
    while let Some((from, to)) = waiting.pop() {
        if let Some((at, p, is_rise)) = strongest(&known[from..to]) {
            let at = from + at;
            found.push((at, p, is_rise));
            waiting.extend([(from, at), (at, to)]);
        }
    }
    found.sort_by_key(|(at, ..)| *at);
    let ends: Vec<usize> = found.iter().map(|(at, ..)| *at).chain([known.len()]).collect();
    let mut from = 0;
    let change = |(nth, (at, p, is_rise)): (usize, &(usize, f64, bool))| {
        let before = Between::median(&known[from..*at]);
        from = *at;
        Change {
            at: places[*at],
            p: *p,
            before,
            after: Between::median(&known[*at..ends[nth + 1]]),
            is_rise: *is_rise,
        }
    };
    Some(found.iter().enumerate().map(change).collect())
}

/// The place in which a history most likely changed, how probable as much is by chance, and whether it rose; `None`: chance will do.
fn strongest(runs: &[Between]) -> Option<(usize, f64, bool)> {
    if runs.len() < FEWEST {
        return None;
    }
    let score = |one: &Between| runs.iter().map(|other| one.above(other)).sum::<f64>();
    let mut scores: Vec<f64> = runs.iter().map(score).collect();
    let (at, sum) = largest(&scores);
    // As much as that, whatever rounding does to it.
    let least = sum.abs() * (1.0 - 1e-9);
    if least == 0.0 {
        return None;
    }
    let most = (ALARM_SHARE * f64::from(SHUFFLES + 1)) as u32;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut as_much = 1;
    for _ in 0..SHUFFLES {
        random.shuffle(&mut scores);
        as_much += u32::from(largest(&scores).1.abs() >= least);
        if as_much > most {
            return None;
        }
    }
    Some((at, f64::from(as_much) / f64::from(SHUFFLES + 1), sum > 0.0))
}

/// The place behind which the scores add up to most, and that sum by its standard deviation, up to a factor that all orders share.
///
/// The scores of the runs behind a place among themselves cancel out: what is left compares them with those before.
fn largest(scores: &[f64]) -> (usize, f64) {
    let count = scores.len();
    let (mut behind, mut found) = (0.0, (SIDE_LEAST, 0.0_f64));
    for at in (SIDE_LEAST..count).rev() {
        behind += scores[at];
        if count - at < SIDE_LEAST {
            continue;
        }
        let sum = behind / ((at * (count - at)) as f64).sqrt();
        if sum.abs() > found.1.abs() {
            found = (at, sum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capacity between two neighbours of a ladder of loads, 10 % apart, the way a search finds it.
    fn held(capacity: f64) -> Between {
        let step = (capacity.ln() / 1.1_f64.ln()).floor();
        Between { lower: Some(1.1_f64.powf(step)), upper: Some(1.1_f64.powf(step + 1.0)) }
    }

    /// About `level`, within some percent, with an odd run now and then.
    fn noisy(random: &mut fastrand::Rng, level: f64) -> Between {
        let spread = (0..4).map(|_| random.f64() - 0.5).sum::<f64>() * 0.2;
        let odd = if random.u32(..20) == 0 { 0.6 } else { 1.0 };
        held(level * (1.0 + spread) * odd)
    }

    #[test]
    fn a_history_without_a_change_is_rarely_said_to_have_one() {
        let mut random = fastrand::Rng::with_seed(38);
        let histories = 1_000;
        let mut alarms = 0;
        for at in 0..histories {
            let runs: Vec<Between> = (0..FEWEST + at % 50).map(|_| noisy(&mut random, 1_000.0)).collect();
            alarms += u32::from(!changes(&runs).unwrap().is_empty());
        }
        // Three standard deviations above the 10 that are allowed.
        assert!(alarms <= 19, "{alarms} of {histories}");
        // It is a rate and no test that cannot alarm.
        assert!(alarms > 0);
    }

    /// The table of docs/method/history.md: `cargo test --release -p stepladder-ladder --lib -- --ignored --nocapture how_often`
    #[test]
    #[ignore = "measures"]
    fn how_often_it_errs() {
        let mut random = fastrand::Rng::with_seed(2026);
        let histories =
            |random: &mut fastrand::Rng, before: usize, after: usize, level: f64| -> Vec<Between> {
                let mut runs: Vec<Between> = (0..before).map(|_| noisy(random, 1_000.0)).collect();
                runs.extend((0..after).map(|_| noisy(random, level)));
                runs
            };
        let count = 10_000;
        let alarms = (0..count)
            .filter(|at| !changes(&histories(&mut random, FEWEST + at % 50, 0, 0.0)).unwrap().is_empty())
            .count();
        println!("no change: {alarms} of {count} histories of 10 to 59 runs are said to have one");
        let count = 2_000;
        for (level, behind) in
            [(500.0, [3, 4, 5]), (700.0, [3, 5, 8]), (850.0, [5, 10, 20]), (1_500.0, [3, 5, 8])]
        {
            for after in behind {
                let found: Vec<Change> = (0..count)
                    .filter_map(|_| changes(&histories(&mut random, 20, after, level)).unwrap().pop())
                    .collect();
                let near = found.iter().filter(|change| change.at.abs_diff(20) <= 2).count();
                println!(
                    "20 runs of 1000, then {after} of {level}: found in {} of {count}, within two runs in {near}",
                    found.len()
                );
            }
        }
    }

    #[test]
    fn planted_changes_are_found_where_they_are() {
        // Capacity before and after; runs before and after; how many runs off the change may be found; in at least so many of 100 histories.
        for (before, after, counts, off, least) in [
            (1_000.0, 700.0, (20, 20), 2, 85),
            (1_000.0, 1_500.0, (20, 5), 2, 62),
            (1_000.0, 500.0, (20, 4), 2, 65),
        ] {
            let mut random = fastrand::Rng::with_seed(7);
            let is_found = |_: &u32| {
                let mut runs: Vec<Between> = (0..counts.0).map(|_| noisy(&mut random, before)).collect();
                runs.extend((0..counts.1).map(|_| noisy(&mut random, after)));
                let found = changes(&runs).unwrap();
                let [one] = &found[..] else { return false };
                one.at.abs_diff(counts.0) <= off && one.is_rise == (after > before)
            };
            let found = (0..100).filter(is_found).count();
            assert!(found >= least, "{before} to {after}, {counts:?} runs: {found}");
        }
    }

    #[test]
    fn two_changes_are_both_found_and_have_the_medians_of_their_sides() {
        let levels = [(1_000.0, 12), (500.0, 12), (2_000.0, 12)];
        let runs: Vec<Between> =
            levels.iter().flat_map(|(level, count)| vec![held(*level); *count]).collect();
        let found = changes(&runs).unwrap();
        let sides: Vec<_> = found.iter().map(|one| (one.at, one.before, one.after, one.is_rise)).collect();
        let expected = [(12, held(1_000.0), held(500.0), false), (24, held(500.0), held(2_000.0), true)];
        assert_eq!(sides, expected);
        assert!(found.iter().all(|one| one.p <= ALARM_SHARE));
    }

    #[test]
    fn what_bounds_do_not_say_is_no_change() {
        let known = |lower: f64, upper: f64| Between { lower: Some(lower), upper: Some(upper) };
        let open = |lower: f64| Between { lower: Some(lower), upper: None };
        let check = |runs: Vec<Between>, expected: Option<Vec<usize>>| {
            let found = changes(&runs).map(|all| all.iter().map(|one| one.at).collect::<Vec<_>>());
            assert_eq!(found, expected, "{runs:?}");
        };
        check(vec![known(500.0, 1_000.0); 9], None);
        check([vec![Between::default(); 9], vec![known(500.0, 1_000.0); 9]].concat(), None);
        check(vec![known(500.0, 1_000.0); 30], Some(vec![]));
        // Where nothing failed, the capacity may be the same as where it did.
        check([vec![known(500.0, 1_000.0); 20], vec![open(500.0); 20]].concat(), Some(vec![]));
        // Not where more was held than had failed.
        check([vec![known(500.0, 1_000.0); 20], vec![open(1_000.0); 20]].concat(), Some(vec![20]));
        // Runs that know nothing are counted as places and not as runs.
        let unknown = vec![Between::default(); 2];
        check(
            [vec![known(500.0, 1_000.0); 12], unknown, vec![known(250.0, 500.0); 12]].concat(),
            Some(vec![14]),
        );
        // One odd run, and two.
        check([vec![known(500.0, 1_000.0); 20], vec![known(10.0, 20.0); 2]].concat(), Some(vec![]));
    }

    #[test]
    fn runs_are_comparable_whatever_their_commit_seed_and_gates_but_not_on_other_machines_or_loads() {
        let origin = |plan: &str, cores: u32, git: &str| Origin {
            git: Some(git.to_owned()),
            plan: serde_json::from_str(plan).unwrap(),
            environment: serde_json::json!({ "online_cores": cores }),
            ..Origin::default()
        };
        let of = |other: Origin| {
            let found = incomparable(
                &origin(r#"{"seed": 1, "gates": [], "ladder": {"rungs": [1]}}"#, 2, "a"),
                &other,
            );
            found.into_iter().map(|one| one.what).collect::<Vec<_>>()
        };
        assert!(
            of(origin(r#"{"seed": 2, "gates": ["capacity >= 5"], "ladder": {"rungs": [1]}}"#, 2, "b"))
                .is_empty()
        );
        assert_eq!(
            of(origin(r#"{"seed": 1, "gates": [], "ladder": {"rungs": [2]}}"#, 2, "a")),
            ["ladder.rungs"]
        );
        assert_eq!(
            of(origin(r#"{"seed": 1, "gates": [], "ladder": {"rungs": [1]}}"#, 4, "a")),
            ["machine, online cores"]
        );
    }
}
