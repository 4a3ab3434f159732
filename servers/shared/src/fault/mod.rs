//! Faults to inject into a reference server, so that an instrument can be tested against known truth.
//!
//! `KIND[@TIME][:AMOUNT]`, for instance `freeze@8s:1s` or `late-ticks:40%`. TIME counts from the first connection that
//! the server accepts, so that 0 is where a climb's ramp begins. Shares are exact and deterministic: every n-th
//! message, tick or game of a thread, never a random one.
//! All kinds are in one table (`kinds`), which feeds the parser, the help text and the error messages. Process-wide
//! faults run on one thread (`process`), those of new connections in the listener; for the rest a server checks once
//! per turn which faults are active (`ThreadFaults`). A server without faults checks nothing.

mod error;
mod kinds;
mod parse;
pub mod process;
mod schedule;
mod share;

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

pub use error::FaultError;
pub use kinds::{FORM, HELP, help};
pub use kinds::{Kind, Server};
pub use schedule::{Faults, ThreadFaults};
pub use share::Share;

/// One fault: what, from when on, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    kind: Kind,
    /// Since the first connection was accepted.
    at: Duration,
}

impl Fault {
    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Loses every n-th delivery, from the beginning: `lose:1/n`.
    pub fn lose_one_in(n: NonZeroU64) -> Fault {
        Fault { kind: Kind::Lose(Share::one_in(n)), at: Duration::ZERO }
    }
}

/// Whether a fault without an amount is among these.
pub fn is_planted(faults: &[Fault], kind: Kind) -> bool {
    faults.iter().any(|fault| fault.kind == kind)
}

/// The fault's kind and time; amounts are left out.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if self.at.is_zero() { Ok(()) } else { write!(f, "@{:?}", self.at) }
    }
}
