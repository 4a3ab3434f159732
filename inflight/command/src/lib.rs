//! `stepladder bench --target`: client libraries of several languages on one server, by the same rules.
//!
//! For each client a process executes one plan (`inflight/clients/README.md`): N operations in flight, each completion
//! starting the next. Runs are interleaved in random order, block by block, so that disturbances of the machine affect
//! all of them; clients are compared by the ratio within a block. The processes' output is stored line by line, and
//! everything shown is derived from these lines (`inflight_analysis`). A duel of two libraries is started like one of
//! servers (`versus`).

mod compare;
mod comparison;
mod duel;
mod lines;
mod member;
mod options;
mod profile;
mod runner;
mod rust;
mod show;
mod stored;
mod sweep;
mod table;
mod timeline;

pub use self::compare::page as compared;
pub use self::comparison::run;
pub use self::duel::{duel, stored_answer as stored_duel};
pub use self::options::Options;
pub use self::rust::{Fault, run as run_plan};
pub use self::show::{answer, is_duel, show};
