//! Clients of a leaderboard: they update members' scores, read ranks, and audit the board after the hold.

pub(crate) mod settings;

use std::str::FromStr;

use ladder::{Conclusion, LoadUnit, Rung};
use serde::{Deserialize, Serialize};

use super::http::planned_as_http;
use super::{Demand, HttpBots, HttpRequest, LoadKind, Workload};
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
    /// updates in one request; 1: a separate request for each update
    pub bulk: u64,
    /// a load counts updates per second and not requests
    #[serde(default)]
    pub counts_updates: bool,
    /// signs the updates; `None`: they are not signed
    #[serde(default)]
    pub key: Option<SigningKey>,
    /// requests of cheaters, of all requests; in [0, 1)
    #[serde(default)]
    pub cheaters: f64,
}

/// A key that signs updates.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    /// as the service knows it
    pub id: String,
    /// `${NAME}` in a plan; in a worker's plan the hexadecimal digits that the environment has there
    pub secret: String,
}

/// Without the secret.
impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// A secret has so many bytes at least, as the service wants it.
    const BYTES_LEAST: usize = 16;

    /// The bytes of a secret that was filled in; `None` where it is not hexadecimal digits, or too few.
    pub fn secret_bytes(&self) -> Option<Vec<u8>> {
        let digits: Vec<u32> =
            self.secret.trim().chars().map(|letter| letter.to_digit(16)).collect::<Option<_>>()?;
        let is_enough = digits.len() >= 2 * Self::BYTES_LEAST && digits.len().is_multiple_of(2);
        is_enough.then(|| digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
    }
}

impl LeaderboardBots {
    /// Requests per second of a load that is a rate.
    fn requests_of(&self, load: f64) -> f64 {
        if !self.counts_updates {
            return load;
        }
        let weights = |requests: &[HttpRequest]| requests.iter().map(|request| request.weight).sum::<f64>();
        // The first kind of request updates.
        let updating = weights(&self.http.requests[..1]) / weights(&self.http.requests);
        load / (self.bulk as f64 * updating * (1.0 - self.cheaters))
    }
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
    planned_as_http!();

    fn load_unit(&self) -> LoadUnit {
        if self.counts_updates { LoadUnit::Updates } else { self.http.load_unit() }
    }

    fn default_objectives(&self) -> &'static [&'static str] {
        &["audit == ok", "response.p99 < 50ms"]
    }

    fn default_loads(&self) -> &'static [f64] {
        &[1000.0, 2000.0, 5000.0]
    }

    fn demand(&self, load: f64) -> Demand {
        self.http.demand(self.requests_of(load))
    }

    fn rate_per_s(&self, load: f64) -> f64 {
        self.http.rate_per_s(self.requests_of(load))
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        // Cheaters' requests are judged separately.
        self.http.intended_per_s(self.requests_of(load)).map(|per_s| per_s * (1.0 - self.cheaters))
    }

    fn audits(&self) -> bool {
        true
    }
}
