//! What a coordinator asks of an agent that watches the server on its own machine, and what that answers.

use std::net::SocketAddr;
use std::time::Duration;

use plan::TickSource;
use serde::{Deserialize, Serialize};
use watch::profile::runtime::{Asked, Served};

/// A server that is to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// where the bots go
    pub address: SocketAddr,
    /// it takes datagrams
    pub is_datagrams: bool,
}

/// The same, found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// its process
    pub pid: u32,
    /// the name of that
    pub name: String,
}

/// A source of its ticks that is read on its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Followed {
    /// as the plan says it
    pub source: TickSource,
    /// the name under which it is compared with the judged one; `None`: it is judged
    pub compared_as: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// none: nothing is read
    pub followed: Vec<Followed>,
    /// Hz; 0 where it is to be found
    pub rate_hz: f64,
}

/// A trial in which it is watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// number of the trial in the session
    pub trial: u32,
    /// the zero of the trial's clock, as the agent's own clock reads it, ns
    pub zero_ns: u64,
    /// processes on that machine that make the load
    pub load_pids: Vec<u32>,
}

/// A step of a server's profile, over one load. Each is taken after the one before was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// before the load
    Start(Asked, Served),
    /// the load begins
    Begin,
    /// the hold begins; it lasts so long at most
    HoldBegins(Duration),
    /// the hold has ended
    HoldEnds,
    /// what was seen in the hold is wanted, ns by the agent's CLOCK_MONOTONIC
    End {
        /// from
        from_ns: u64,
        /// to
        to_ns: u64,
    },
}
