//! Shared by every command and dependent on none: the only place that prints, exit codes, signals.
//!
//! All printing goes through `say`, which lets through no terminal control sequences and no secret known to `masks`.

pub mod comparing;
pub mod exit;
pub mod layout;
pub mod masks;
pub mod other_runs;
pub mod say;
pub mod scratch;
pub mod signals;
