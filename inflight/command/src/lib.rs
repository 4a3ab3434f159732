//! `stepladder bench --target`: client libraries of several languages on one server, by the same rules.
//!
//! For each client a process carries out one plan (`inflight/clients/README.md`): N operations in flight, each one that ends
//! starts the next. Runs are interleaved in random order, block by block, so that what disturbs the machine meets all of
//! them; clients are compared by the ratio within a block. What the processes write is stored line by line, and everything
//! that is shown is made of these lines (`inflight_analysis`). A duel of two libraries is asked for as one of servers is (`versus`).

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
