//! Two subjects compared: a duel of two servers held in turns, and duels along the history of a repository.
//!
//! `ladder::duel` and `ladder::bisect` compute the next step and the findings; this crate starts the sides, holds them
//! (`climb`), stores and shows them. A duel of two client libraries has the same options and page, but is run by the
//! crate that knows the libraries.

pub mod bisect;
pub mod duel;
pub mod libraries;
mod replay;

pub use self::replay::Replay;
