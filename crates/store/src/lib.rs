//! The store: one SQLite file per project that keeps every run as it was measured.
//!
//! A run is recorded by one writer thread, one transaction per second of the trial, and read by anybody at the same
//! time. What was stored is never edited, only superseded; labels and the deletion of whole runs are all that people
//! may change, and triggers in the file see to it. Every row carries a checksum, so damage is an error and never a
//! wrong number. A process that is killed leaves whole seconds, and its run says how far it came.
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
