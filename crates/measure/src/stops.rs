//! What kept a server's own code from running, as its runtime tells.

use serde::{Deserialize, Serialize};

/// In one hold; null where the runtime does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stops {
    /// the part of the hold in which the garbage collector stopped all threads, in [0, 1]
    pub gc_share: Option<f64>,
    /// the longest of these stops, ns
    pub gc_max_ns: Option<u64>,
    /// the part in which the runtime stopped all threads for anything else, in [0, 1]
    pub other_share: Option<f64>,
    /// the longest of these stops
    pub other_max: Option<Operation>,
    /// how late the event loop came to its timers: p99 and worst, ns
    pub loop_delay_ns: Option<[u64; 2]>,
    /// the callback that held the event loop longest
    pub callback: Option<Callback>,
}

/// What a runtime stopped all threads for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operation {
    /// how long they stood
    pub ns: u64,
    /// what the runtime calls it
    pub name: String,
}

/// One callback of an event loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    /// from its begin to its end
    pub ns: u64,
    /// the function of the server's own code that took at least half of it; null where no function did. Text from the server under
    /// test is never markup
    pub function: Option<String>,
    /// callbacks that took 20 ms or longer
    pub long: u64,
}

impl Stops {
    /// Of two processes, each figure of the one that stood still longer.
    pub fn and(self, other: Stops) -> Stops {
        Stops {
            gc_share: [self.gc_share, other.gc_share].into_iter().flatten().reduce(f64::max),
            gc_max_ns: self.gc_max_ns.max(other.gc_max_ns),
            other_share: [self.other_share, other.other_share].into_iter().flatten().reduce(f64::max),
            other_max: self.other_max.max(other.other_max),
            loop_delay_ns: self.loop_delay_ns.max(other.loop_delay_ns),
            callback: [self.callback, other.callback].into_iter().flatten().max_by_key(|one| one.ns),
        }
    }
}
