//! What a load counts.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use ts_rs::TS;

/// What a load counts.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    TS,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LoadUnit {
    /// each with a loop of its own and connections that come and go with it
    Games,
    /// connections that take part
    #[default]
    Clients,
    /// clients of which each waits for its reply before it asks again
    Requesters,
    /// requests that are planned per second
    #[serde(rename = "req/s")]
    #[strum(serialize = "req/s")]
    Requests,
    /// updates that are planned per second, several of them in one request
    #[serde(rename = "updates/s")]
    #[strum(serialize = "updates/s")]
    Updates,
    /// bots that begin per second, each of which ends with what it does
    #[serde(rename = "sessions/s")]
    #[strum(serialize = "sessions/s")]
    Sessions,
    /// operations that wait for their reply
    InFlight,
}

impl LoadUnit {
    /// Its name in the store and in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// As people read it behind a number.
    pub fn text(self) -> &'static str {
        match self {
            LoadUnit::InFlight => "in flight",
            _ => self.name(),
        }
    }

    /// The same behind this load, `game` behind 1.
    pub fn text_of(self, load: f64) -> &'static str {
        match self {
            _ if load != 1.0 => self.text(),
            LoadUnit::Games => "game",
            LoadUnit::Clients => "client",
            LoadUnit::Requesters => "requester",
            LoadUnit::Sessions => "session/s",
            LoadUnit::Requests | LoadUnit::Updates | LoadUnit::InFlight => self.text(),
        }
    }

    /// Whether it counts requests, each of which owes a reply.
    pub fn counts_requests(self) -> bool {
        matches!(self, LoadUnit::Requesters | LoadUnit::Requests | LoadUnit::Updates)
    }
}

/// As people read it.
impl fmt::Display for LoadUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}
