//! Two subjects compared: a duel of two servers held in turns, and duels along the history of a repository.
//!
//! What is asked next and what is known is reckoned in `ladder::duel` and `ladder::bisect`; here the sides are started, held
//! (`climb`), stored and shown. A duel of two client libraries has the same options and the same page; who knows the libraries runs it.

pub mod bisect;
pub mod duel;
pub mod libraries;
mod replay;

pub use self::replay::Replay;
