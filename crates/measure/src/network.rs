//! What a trial keeps of its emulated networks: which there were, and how long bytes were under way in them.
//!
//! The networks are an event at the start of the trial (`kind::NETWORKS`, a list of `NetworkFacts` as JSON). What passed
//! in the hold is kept beside the bots' own distributions, under names that begin with `PREFIX`, in thousandths of a
//! microsecond: as ns. So the store needs nothing new.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::distribution::Distribution;
use crate::trial::{Trial, kind};

/// Names of networks' distributions begin with it.
pub const PREFIX: &str = "emulated network, us: ";
/// A retransmission timeout is not shorter, ns. Source: Linux, TCP_RTO_MIN; RFC 6298 asks for 1 s.
const RTO_NS_LEAST: u64 = 200_000_000;

/// One emulated network and who is behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct NetworkFacts {
    /// as asked for: `wifi`, `latency=80ms`
    pub name: String,
    /// of the bots, in (0, 1]
    pub share: f64,
    /// behind it
    pub bots: u64,
    /// round trip; half of it on each way, ns
    pub latency_ns: u64,
    /// a segment takes up to so much longer on each way, ns
    pub jitter_ns: u64,
    /// probability that a segment is lost
    pub loss: f64,
    /// on each way; null: no limit
    pub bits_per_s: Option<u64>,
}

impl NetworkFacts {
    /// A round trip as long as its p99 may be: `slow_round_trip_ns` of what it is made of.
    fn slow_round_trip_ns(&self) -> u64 {
        slow_round_trip_ns(self.latency_ns, self.jitter_ns, self.loss)
    }
}

/// After this time a lost segment is sent again, given the round trip, ns.
pub fn rto_ns(latency_ns: u64) -> u64 {
    RTO_NS_LEAST.max(latency_ns + latency_ns / 2)
}

/// What the slowest hundredth of round trips takes: with a lost segment where any are lost, and with two in a row where more than
/// one in a hundred round trips has one, ns.
pub fn slow_round_trip_ns(latency_ns: u64, jitter_ns: u64, loss: f64) -> u64 {
    let losses_ns = match loss {
        0.0 => 0,
        ..0.005 => rto_ns(latency_ns),
        _ => 3 * rto_ns(latency_ns),
    };
    latency_ns + 2 * jitter_ns + losses_ns
}

/// The names of all distributions of so many networks, in the order of `asked`, `applied` and `late`.
pub fn value_names(networks: usize) -> Vec<String> {
    if networks == 0 {
        return Vec::new();
    }
    let of_one = |index| [format!("{PREFIX}asked {index}"), format!("{PREFIX}applied {index}")];
    (0..networks).flat_map(of_one).chain([format!("{PREFIX}late")]).collect()
}

/// The place of a network's round trips as they were drawn, among the names.
pub fn asked(network: usize) -> usize {
    2 * network
}

/// The same for the round trips as they were.
pub fn applied(network: usize) -> usize {
    2 * network + 1
}

/// The same for how late bytes were released, over all networks.
pub fn late(networks: usize) -> usize {
    2 * networks
}

impl Trial {
    /// Its emulated networks; empty: there were none.
    pub fn networks(&self) -> Vec<NetworkFacts> {
        let told = self.event(kind::NETWORKS);
        told.and_then(|event| serde_json::from_str(&event.text).ok()).unwrap_or_default()
    }

    /// The slowest round trip that its emulated networks make likely, ns; 0: there were none.
    pub fn slow_round_trip_ns(&self) -> u64 {
        self.networks().iter().map(NetworkFacts::slow_round_trip_ns).max().unwrap_or(0)
    }

    /// True where each byte was under way as long as the next: nothing came earlier or later for the network's sake.
    pub fn has_even_network(&self) -> bool {
        let is_even = |one: &NetworkFacts| one.jitter_ns == 0 && one.loss == 0.0 && one.bits_per_s.is_none();
        self.networks().iter().all(is_even)
    }

    /// The distributions of its networks, in the order of `value_names`; what was never recorded is empty.
    pub fn network_values(&self, networks: usize) -> Vec<Distribution> {
        let of = |name: &String| self.values.get(name).cloned().unwrap_or_default();
        value_names(networks).iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_the_place_of_its_name() {
        let names = value_names(2);
        let found =
            [asked(0), applied(0), asked(1), applied(1), late(2)].map(|at| &names[at][PREFIX.len()..]);
        assert_eq!(found, ["asked 0", "applied 0", "asked 1", "applied 1", "late"]);
        assert!(value_names(0).is_empty(), "without a network nothing is kept");
    }
}
