//! A climb: from a plan to the three answers, with the subject started, loaded and watched.
//!
//! `climb` is the one loop, `trial` runs one trial, `phases` says when a phase begins, `judging` makes answers of what is stored.
//! `outputs` are the forms in which these are written. What other commands need of a climb (a duel, a script that is tried, the
//! doctor) is open to them. Nothing is judged from memory.

mod calibration;
pub mod certificates;
mod climb;
pub mod consent;
mod context;
pub mod doctor;
pub mod judging;
pub mod lookup;
pub mod options;
pub mod outputs;
pub mod page;
mod phases;
mod planned;
pub mod preflight;
mod probe;
pub mod progress;
pub mod secrets;
pub mod stored;
pub mod subject;
mod trial;
pub mod viewing;

pub use self::climb::{Climbing, SubjectTrial, climb, stop};
pub use self::planned::planned;
pub use self::trial::addresses;
