//! The store: one SQLite file per project that keeps every run as it was measured.
//!
//! A run is recorded by one writer thread, one transaction per second of the trial, and can be read concurrently. What
//! was stored is never edited, only superseded. Users may change only labels and delete whole runs; triggers in the
//! file enforce this. Every row carries a checksum, so damage is an error and never a wrong number. A killed process
//! leaves whole seconds, and its run says how far it came.
//! `tables.rs` documents every table and column. Not here: verdicts and sums (`ladder`, `measure`), clocks.

mod entries;
mod error;
pub mod export;
mod file;
mod follow;
mod form;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod guard;
mod live;
mod mark;
mod row;
mod run;
mod schema;
mod store;
mod sum;
mod tables;
mod writer;

pub use error::StoreError;
pub use file::VERSION;
pub use follow::{Place, TrialMark};
pub use run::{
    CutOff, CutOffTrial, LineSource, Outcome, RunEnd, RunHead, RunId, RunKind, RunRecord, RunState,
    StoredLine, StoredVerdict, TrialRecord,
};
pub use store::{RunList, Store};
pub use writer::{Committed, EntrySender, RunWriter};
