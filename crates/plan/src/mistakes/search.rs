//! Mistakes in a search, in repeats, or in the placement of a gate.

use thiserror::Error;

/// What is wrong with `--search` and what belongs to it.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SearchError {
    /// a width without a search
    #[error("it belongs to a search; add --search, or leave it out")]
    NoSearch,
    /// `--goal ''`
    #[error("a goal is one objective or several with commas between them, for example 'response.p99 < 20ms'")]
    EmptyGoal,
    /// a goal that is another one
    #[error("\"{0}\" is what the climb or another goal asks already; name another bound, or leave it out")]
    SameGoal(String),
    /// `--search fast`
    #[error(
        "there is no search {0:?}; write quick, standard or strict, or --search alone at the end (the subject goes first: \
         stepladder climb arena --search)"
    )]
    NoPreset(String),
    /// repeats besides
    #[error(
        "a search repeats by itself where that says something; leave --repeat out, or raise --search-trials"
    )]
    Repeats,
    /// the subject is told to end
    #[error("with --stop-at every trial ends the subject; climb a list of loads instead (--rungs, --rate)")]
    Stops,
    /// several cells
    #[error(
        "a search finds one capacity, and this climb sweeps {0} combinations; name one value of each axis (--services root --views background), or climb the sweep"
    )]
    Sweep(usize),
    /// `--requesters 1..`
    #[error("a search needs an end of its range; write --requesters 1,20 or leave the range out")]
    OpenEnd,
    /// `--hold 2Mticks`
    #[error("trials of a search are compared by their length; give --hold as a time, for example --hold 30s")]
    CountedHold,
    /// both say how narrow
    #[error("--budget and --search-width both say how narrow the bounds become; give one of them")]
    WidthAndBudget,
    /// not even the widest interval
    #[error(
        "{budget} are too few: bounds {:.0} % apart need up to {needs}; give more time, a narrower range of loads, a \
         shorter --hold or fewer --search-trials",
        width * 100.0
    )]
    SmallBudget {
        /// as given
        budget: String,
        /// the widest
        width: f64,
        /// what it takes
        needs: String,
    },
}

/// `--overload` where the capacity is not one load of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "multiples of the capacity are held after a list of loads in one cell; leave --overload out, or name loads \
     (--rungs, --rate) without --search, --stop-at, an open end and a sweep"
)]
pub struct OverloadError;

/// Why no recovery is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecoveryError {
    /// nothing to recover from
    #[error("a recovery follows an overload; add --overload, for example --overload 1.5, or leave it out")]
    NoOverload,
    /// games and rooms end as a whole
    #[error("the load of {0} does not go down under way, so no recovery is seen; leave it out")]
    NotOfTheseBots(&'static str),
}

/// Why loads cannot be held downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FromAboveError {
    /// a search has an order of its own
    #[error(
        "a search chooses the order of its loads; leave --search out and name loads (--rungs, --rate, --requesters)"
    )]
    Search,
    /// nothing is left of a higher load
    #[error("with --restart-per-rung no server has held a higher load before; leave one of the two out")]
    Restarts,
    /// the server ends under each load
    #[error(
        "with --stop-at every load ends the server, so none comes after a higher one; leave one of the two out"
    )]
    Stops,
    /// nothing lies below it
    #[error("there is only one load and none below it; name at least two, for example --rungs 500,1000")]
    OneLoad,
}

/// A gate about a load that is not held.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GatePlaceError {
    /// a list without it
    #[error(
        "this climb does not hold {load}, so the gate could never be told; add the load, for example --rungs {load}"
    )]
    NotHeld {
        /// the load
        load: String,
    },
    /// a search chooses its loads
    #[error(
        "a search chooses its loads, so nobody knows whether it holds {load}; gate its capacity (capacity >= {load}) or climb a \
         list of loads"
    )]
    Search {
        /// the load
        load: String,
    },
}
