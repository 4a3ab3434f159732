//! One suite for every implementation: behaviour, histories against a model, concurrency, linearizability.
//!
//! A check takes a function that creates boards and returns what is wrong, instead of panicking: so the same checks run
//! over the boards that are wrong on purpose, and a test asserts that they find something.

mod behaviour;
mod concurrency;
mod histories;
mod linearizability;
mod model;

pub use histories::check_small_histories;

#[cfg(test)]
use super::Implementation;
#[cfg(test)]
use super::implementations::wrong::{CheckThenAct, Pause, UnsynchronisedPair};
use super::{Leaderboard, Options};

/// Makes an empty board.
pub type Make<'a> = &'a dyn Fn(Options) -> Box<dyn Leaderboard>;

/// What is wrong with the boards that `Make` makes.
pub type Verdict = Result<(), String>;

/// A check: its name, and what runs it over boards.
pub type Check = (&'static str, fn(Make<'_>) -> Verdict);

/// Returns an error with both values unless they are equal.
macro_rules! same {
    ($got:expr, $wanted:expr, $($what:tt)+) => {{
        let (got, wanted) = (&$got, &$wanted);
        if got != wanted {
            return Err(format!("{}: {got:?} instead of {wanted:?}", format_args!($($what)+)));
        }
    }};
}
use same;

/// All checks but that of the histories.
pub fn all_checks() -> impl Iterator<Item = Check> {
    behaviour::CHECKS.iter().chain(concurrency::CHECKS).chain(linearizability::CHECKS).copied()
}

#[test]
fn every_implementation_passes_every_check() {
    for implementation in Implementation::ALL {
        for (name, check) in all_checks() {
            if let Err(wrong) = check(&|options| implementation.create(options)) {
                panic!("{implementation}, {name}: {wrong}");
            }
        }
    }
}

/// The checks that find something wrong with boards whose first update pauses in the middle.
#[cfg(test)]
fn found(create: fn(Options, std::sync::Arc<Pause>) -> Box<dyn Leaderboard>) -> Vec<&'static str> {
    let make = |options| create(options, Pause::armed());
    concurrency::CHECKS
        .iter()
        .chain(linearizability::CHECKS)
        .filter(|(_, check)| check(&make).is_err())
        .map(|(name, _)| *name)
        .collect()
}

#[test]
fn the_suite_finds_an_unsynchronised_pair_of_structures() {
    let found = found(UnsynchronisedPair::create);
    for name in ["two_increments_meet", "histories_are_linearizable"] {
        assert!(found.contains(&name), "{name} found nothing; found: {found:?}");
    }
}

#[test]
fn the_suite_finds_a_check_that_is_separate_from_its_act() {
    let found = found(CheckThenAct::create);
    for name in ["two_increments_meet", "increments_add_up", "histories_are_linearizable"] {
        assert!(found.contains(&name), "{name} found nothing; found: {found:?}");
    }
}

#[test]
fn wrong_boards_are_wrong_only_when_threads_meet() {
    for (name, check) in behaviour::CHECKS {
        for create in [UnsynchronisedPair::create, CheckThenAct::create] {
            // A pause that is not armed blocks nothing.
            if let Err(wrong) = check(&|options| create(options, std::sync::Arc::default())) {
                panic!("{name}: {wrong}");
            }
        }
    }
}
