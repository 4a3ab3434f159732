//! A climb: from a plan to the three answers, with the subject started, loaded and watched.
//!
//! `climb` is the main loop, `trial` runs one trial, `phases` decides when a phase begins, `judging` derives the
//! answers from the store, and `outputs` writes them in several formats. Other commands (duel, `try`, doctor) use the
//! public parts. Nothing is judged from memory.

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
pub mod profile;
pub mod progress;
pub mod resume;
pub mod secrets;
pub mod stored;
pub mod subject;
pub mod trial;
pub mod viewing;

pub use self::climb::{Climbing, SubjectTrial, climb, stop};
pub use self::planned::planned;
pub use self::trial::addresses;
