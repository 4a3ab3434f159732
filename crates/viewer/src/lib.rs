//! The viewer: stored runs as a page, live while they grow, and as one self-contained file.
//!
//! It reads only the store, so what it shows is what was committed; it writes labels and deletes whole runs. It follows
//! a growing run by asking SQLite whether anything was committed: no worker calls into it, and it wakes none. The
//! server has its own low-priority thread, answers on loopback only, requires its token (`gate`), and allows few
//! connections without it (`connections`).
//! It does not interpret plans: the caller passes a `Judge`. Only a plan's note and loads are read.
//! Units: `_ns` since the start of a trial, null where a figure may not be stated.

mod api;
mod archive;
mod bench;
mod bundle;
mod comparison;
mod connections;
mod decimate;
mod error;
mod fold;
mod gate;
mod history;
mod live;
mod metrics;
mod profile;
mod report;
mod routes;
mod server;
mod tick_files;
#[cfg(test)]
mod typescript;

pub use api::{BenchPage, Kind, MainFigure, ProcessPage, RunPage, RunRow, TickFile, TrialPage};
pub use archive::{Answers, Archive, Detail};
pub use bundle::page_is_built;
pub use comparison::{NotComparable, beside, origin};
pub use error::{Unjudged, ViewError};
pub use gate::{Gate, Ruling};
pub use history::{HistoryPage, history};
pub use live::{Follower, Message};
pub use metrics::{MakeText, MetricsServer, listen_for_metrics, serve_metrics};
pub use profile::ProfileGraph;
pub use report::report;
pub use server::{FIRST_PORT, Options, Viewer, serve, yield_to_others};

use ladder::duel::DuelAnswers;
use ladder::{Climb, Objective};
use store::{RunId, Store};

/// Interprets a stored run; implemented by code that can read its plan.
pub trait Judge: Send + Sync + 'static {
    /// The answers of a run from its stored trials, as far as they are complete; `None` while no rung was held.
    fn climb(&self, store: &Store, run: &RunId) -> Result<Option<Climb>, Unjudged>;

    /// Of a duel: its rungs in the form of a climb, and what is known block by block; `None` while no trial was held.
    fn duel(&self, store: &Store, run: &RunId) -> Result<Option<(Climb, DuelAnswers)>, Unjudged>;

    /// What its rungs must meet, in the order of its plan.
    fn objectives(&self, store: &Store, run: &RunId) -> Result<Vec<Objective>, Unjudged>;
}
