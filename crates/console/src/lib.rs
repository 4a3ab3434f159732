//! What every command stands on and what knows no command: the one place that prints, exit codes, signals.
//!
//! Nothing is printed but through `say`, which lets nothing out that a terminal would obey, and no secret that `masks` knows.

pub mod comparing;
pub mod exit;
pub mod layout;
pub mod masks;
pub mod other_runs;
pub mod say;
pub mod scratch;
pub mod signals;
