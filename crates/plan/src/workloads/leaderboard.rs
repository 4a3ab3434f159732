//! Clients of a leaderboard: they update members' scores, read ranks, and audit the board after the hold.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Demand, HttpBots, LoadKind, Workload};
use crate::mistakes::RequestConfigError;
use crate::plan::{Arrivals, Ramp};

/// Clients of a leaderboard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaderboardBots {
    /// when requests are planned, and the connections that they go over; its `requests` are the kinds of requests by
    /// name and weight
    pub http: HttpBots,
    /// what requests go over
    #[serde(default)]
    pub protocol: LeaderboardProtocol,
    /// the board's name
    pub board: String,
    /// members that the bots update, over all workers
    pub members: u64,
    /// updates in one request; 1: a request of its own for each update
    pub bulk: u64,
}

/// What the requests of a leaderboard go over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaderboardProtocol {
    /// JSON over HTTP
    #[default]
    Http,
    /// protobuf messages over WebSocket
    WebSocket,
    /// gRPC
    Grpc,
}

impl FromStr for LeaderboardProtocol {
    type Err = RequestConfigError;

    fn from_str(text: &str) -> Result<Self, RequestConfigError> {
        match text.trim() {
            "http" => Ok(LeaderboardProtocol::Http),
            "websocket" => Ok(LeaderboardProtocol::WebSocket),
            "grpc" => Ok(LeaderboardProtocol::Grpc),
            other => Err(RequestConfigError::UnknownProtocol(other.to_owned())),
        }
    }
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
}
