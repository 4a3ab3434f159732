//! Clients of a leaderboard: they update members' scores, read ranks, and audit the board after the hold.

use serde::{Deserialize, Serialize};

use super::{Demand, HttpBots, LoadKind, Workload};
use crate::plan::{Arrivals, Ramp};

/// Clients of a leaderboard over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaderboardBots {
    /// when requests are planned, and the connections that they go over; its `requests` are the kinds of requests by
    /// name and weight
    pub http: HttpBots,
    /// the board's name
    pub board: String,
    /// members that the bots update, over all workers
    pub members: u64,
    /// updates in one request; 1: a request of its own for each update
    pub bulk: u64,
}

impl Workload for LeaderboardBots {
    fn name(&self) -> &'static str {
        "leaderboard"
    }

    fn load_unit(&self) -> &'static str {
        self.http.load_unit()
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        self.http.unit_names()
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        self.http.arrivals()
    }

    fn default_ramp(&self) -> Ramp {
        self.http.default_ramp()
    }

    fn default_objectives(&self) -> &'static [&'static str] {
        &["audit == ok", "response.p99 < 50ms"]
    }

    fn default_loads(&self) -> &'static [f64] {
        &[1000.0, 2000.0, 5000.0]
    }

    fn loads(&self) -> LoadKind {
        self.http.loads()
    }

    fn units(&self, load: f64) -> u64 {
        self.http.units(load)
    }

    fn demand(&self, load: f64) -> Demand {
        self.http.demand(load)
    }

    fn rate_per_s(&self, load: f64) -> f64 {
        self.http.rate_per_s(load)
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        self.http.intended_per_s(load)
    }

    fn audits(&self) -> bool {
        true
    }

    fn sees_shutdown(&self) -> bool {
        self.http.sees_shutdown()
    }
}
