//! Agents: workers on other machines, over a NATS server with JetStream.
//!
//! Everyone dials out to the broker, so no firewall is in the way. A climb's coordinator (`coordinator`) takes a lease in the broker's
//! key-value store, finds agents, hands each its share of a trial's workers, sets a common zero of the trial's clock, and
//! announces the phases; what the agents' workers measure comes up through a stream, numbered, and merges as the seconds of the
//! coordinator's own workers would. The phases, the books, the store and the judge do not know the difference.
//! Invariants: a number in the stream is taken once and in order, or the agent is lost; what a lost agent did not send is
//! missing, and nothing is scaled up; agents end by themselves when nothing was heard of the coordinator for `GONE_NS`; no
//! control message is handled on a worker's thread.
//! How to use it: docs/scale.md. Units: ns unless a name says otherwise.

mod agent;
mod both;
mod broker;
mod clocks;
mod coordinator;
mod limits;
mod link;
mod merge;
mod messages;
mod share;
#[cfg(feature = "simulation")]
pub mod simulation;

pub use agent::{AgentArgs, run};
pub use broker::{UpArgs, up};
pub use coordinator::{Coordinator, WithWatcher};

/// Silence for so long means that the other side is gone, while the broker is there.
const GONE_NS: u64 = 5_000_000_000;
/// A broker that is away for longer ends the trial.
const BROKER_GONE_NS: u64 = 60_000_000_000;

#[cfg(feature = "fuzz")]
pub mod fuzz {
    //! What comes from other machines, for a fuzz target.

    pub use crate::messages::{examples, read_any as measured};
}
