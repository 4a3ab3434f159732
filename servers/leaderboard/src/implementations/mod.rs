//! The kinds of board, which differ in how threads share one.

mod actor;
mod concurrent_map;
mod map_board;
mod named;
mod one_lock;
mod sharded;
mod waits;
#[cfg(test)]
pub(super) mod wrong;

use std::str::FromStr;
use std::{fmt, io};

pub use waits::LockWaits;

use super::flat_board::FlatBoard;
use super::{Leaderboard, Options};
use map_board::MapBoard;

/// A way to build a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Implementation {
    /// Flat member table and rank tree behind one readers-writer lock. The product's choice.
    OneLock,
    /// Members spread over maps with a lock each; one lock around the rank tree.
    Sharded,
    /// Members in a concurrent map (`dashmap`); one lock around the rank tree.
    ConcurrentMap,
    /// A thread that owns the board and answers messages.
    Actor,
    /// The peer: std `HashMap` and `indexset::BTreeSet` behind one lock.
    HashMapIndexSet,
}

impl Implementation {
    /// All kinds, in the order of the tables.
    pub const ALL: [Self; 5] =
        [Self::OneLock, Self::Sharded, Self::ConcurrentMap, Self::Actor, Self::HashMapIndexSet];

    /// What it is called on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneLock => "one-lock",
            Self::Sharded => "sharded",
            Self::ConcurrentMap => "concurrent-map",
            Self::Actor => "actor",
            Self::HashMapIndexSet => "hashmap-indexset",
        }
    }

    /// An empty board of this kind.
    ///
    /// Errors: an actor's thread cannot be started.
    pub fn try_create(self, options: Options) -> io::Result<Box<dyn Leaderboard>> {
        Ok(match self {
            Self::OneLock => Box::new(one_lock::OneLock::<FlatBoard>::new(options)),
            Self::Sharded => Box::new(sharded::Sharded::new(options)),
            Self::ConcurrentMap => Box::new(concurrent_map::ConcurrentMap::new(options)),
            Self::Actor => Box::new(actor::Actor::<FlatBoard>::new(options)?),
            Self::HashMapIndexSet => Box::new(one_lock::OneLock::<MapBoard>::new(options)),
        })
    }

    /// The same where few boards are made.
    ///
    /// Panics: an actor's thread cannot be started.
    pub fn create(self, options: Options) -> Box<dyn Leaderboard> {
        self.try_create(options).expect("a process that can start threads")
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// A name that no implementation has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no implementation is called {0}; there are one-lock, sharded, concurrent-map, actor and hashmap-indexset"
)]
pub struct UnknownImplementation(String);

impl FromStr for Implementation {
    type Err = UnknownImplementation;

    fn from_str(name: &str) -> Result<Self, UnknownImplementation> {
        let found = Self::ALL.into_iter().find(|each| each.name() == name);
        found.ok_or_else(|| UnknownImplementation(name.to_owned()))
    }
}
