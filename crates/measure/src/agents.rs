//! What a trial keeps of the agents that made its load, where they did: an event before its end (`kind::AGENTS`, a list of
//! `AgentFacts` as JSON). So the store needs nothing new.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::trial::{Trial, kind};

/// One agent, over the hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct AgentFacts {
    /// as it calls itself; by default its host
    pub name: String,
    /// bots that it played
    pub bots: u64,
    /// worker threads
    pub workers: u32,
    /// p99 of its sends; null: too few
    pub send_lag_p99_ns: Option<u64>,
    /// its busiest worker's share of the hold, in [0, 1]
    pub busy_share_max: Option<f64>,
    /// CPU that it used, cores
    pub cpu_cores: Option<f64>,
    /// how far its clock may be from that of the coordinator, ns
    pub clock_bound_ns: u64,
    /// by how much its clock was corrected, ns
    pub clock_offset_ns: i64,
    /// the quickest exchange with it through the broker, ns
    pub round_trip_ns: u64,
    /// the way from it to the subject: `lo`, `eth0, 10 Gbit/s`
    pub link: String,
    /// why its share is missing; null: it is whole
    pub lost: Option<String>,
}

impl Trial {
    /// The agents that made its load; empty: this process did.
    pub fn agents(&self) -> Vec<AgentFacts> {
        let told = self.event(kind::AGENTS);
        told.and_then(|event| serde_json::from_str(&event.text).ok()).unwrap_or_default()
    }
}
