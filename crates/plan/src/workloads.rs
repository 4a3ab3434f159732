//! The workloads: what the simulated clients do, one file each, behind one trait.
//!
//! `BotSettings` is the registry. Everything a plan must know about a workload (how its load is counted, what a load
//! needs, how its clients arrive) goes through `Workload`; only the registry knows which there are.

pub(crate) mod arena;
pub(crate) mod chat;
pub(crate) mod echo;
pub(crate) mod grid;
pub(crate) mod http;
pub(crate) mod leaderboard;
pub(crate) mod protobuf;
mod request_costs;
pub(crate) mod script;

use std::ops::Deref;

use ladder::{Allowed, Conclusion, LoadUnit, Objective, Rung};
use serde::{Deserialize, Serialize};

pub use arena::{ArenaBots, Pairing};
pub use chat::{ChatBots, ChatDialect, FaultKind, FaultSpec, LINE_BYTES_MIN};
pub use echo::EchoBots;
pub use grid::{GridBots, GridKeys, GridModel, GridOp};
pub use http::{HttpBots, HttpCheck, HttpModel, HttpRequest, HttpVersion, Variable, VariableLaw, Visit};
pub use leaderboard::{LeaderboardBots, LeaderboardProtocol, SigningKey};
pub use protobuf::{GRPC_CODES, ProtobufBots, ProtobufOver, WebSocketFrames};
pub use script::settings::is_script_file;
pub use script::{SESSION, ScriptBots, ScriptLoad};

use crate::layers::bots::BotsKind;
use crate::plan::{Arrivals, Axis, Cell, Ramp};
use crate::worker_plan::DRAIN_NS;

/// A server about which nothing else is known must reply, and correctly.
pub const NO_ERRORS: &[&str] = &["errors == 0"];

/// What a plan must know of a workload.
pub trait Workload {
    /// What a load counts.
    fn load_unit(&self) -> LoadUnit;

    /// What arrives in the ramp, one and several: `game`, `games`.
    fn unit_names(&self) -> (&'static str, &'static str);

    /// The possible ways in which messages are planned, the default first, and why there are no others.
    fn arrivals(&self) -> (&'static [Arrivals], &'static str);

    /// How the units arrive unless the user says otherwise.
    fn default_ramp(&self) -> Ramp;

    /// The loads that are held unless the user says otherwise, ascending.
    fn default_loads(&self) -> &'static [f64];

    /// What its server is judged by unless the user says otherwise.
    fn default_objectives(&self) -> &'static [&'static str] {
        NO_ERRORS
    }

    /// What the server must not do whatever objectives the user names, unless the user allows it. With the objective
    /// that checks it; `None` if the clients count it as wrong answers.
    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[]
    }

    /// How loads are written.
    fn loads(&self) -> LoadKind {
        LoadKind::Whole
    }

    /// Units that are dealt out to the workers: the load itself, but connections where the load is a rate.
    fn units(&self, load: f64) -> u64 {
        // A float converts to an integer by saturating; NaN becomes 0.
        load.round() as u64
    }

    /// The longest reply that it can use, bytes; a longer one ends its connection. Protocols with a smaller limit keep
    /// that.
    fn reply_bytes_max(&self) -> usize {
        REPLY_BYTES
    }

    /// Clients and connections of a load.
    fn demand(&self, load: f64) -> Demand {
        let units = self.units(load);
        Demand { bots: units, connections: units, connections_max: units, opens_per_s: 0.0 }
    }

    /// Requests per second over all workers, where the load is a rate; else 0.
    fn rate_per_s(&self, _load: f64) -> f64 {
        0.0
    }

    /// After the hold, data in flight is waited for this long at most, ns.
    fn drain_ns(&self, _patience_ns: u64, _objectives: &[Objective]) -> u64 {
        DRAIN_NS
    }

    /// Operations that objectives may name: the response times of each are kept apart.
    fn operations(&self) -> &[String] {
        &[]
    }

    /// Distributions of the bots' own that objectives may name; they have no unit.
    fn recorded(&self) -> &[String] {
        &[]
    }

    /// Messages per second that the plan means to offer, where the plan alone fixes them.
    fn intended_per_s(&self, _load: f64) -> Option<f64> {
        None
    }

    /// What is broadcast, where each message owes a delivery to every member.
    fn broadcast(&self, _load: f64) -> Option<Broadcast> {
        None
    }

    /// True when a hold may be counted in games.
    fn has_games(&self) -> bool {
        false
    }

    /// True when its servers always have ticks.
    fn has_ticks(&self) -> bool {
        false
    }

    /// True when its servers tell clients apart by their order of arrival alone: what lets them arrive keeps it.
    fn pairs_by_arrival(&self) -> bool {
        false
    }

    /// True when some clients tell the server's ticks.
    fn asks_for_snapshots(&self) -> bool {
        false
    }

    /// True when the clients check afterwards what the server made of their requests.
    fn audits(&self) -> bool {
        false
    }

    /// True when the clients report which of their messages were in flight when the server was told to shut down.
    fn sees_shutdown(&self) -> bool {
        false
    }

    /// True when a part of a load can go on while the rest of it ends.
    fn can_lower_load(&self) -> bool {
        false
    }

    /// What a run's rungs show besides the three answers that every run has, the plainest first: a pure function of the
    /// published figures. A conclusion appears only where its evidence is there, and names it.
    fn conclusions(&self, _rungs: &[Rung]) -> Vec<Conclusion> {
        Vec::new()
    }

    /// Why a figure of broadcasts (`deliveries.…`) is never measured here; `None` when it is.
    fn lacks_delivery_figure(&self, _figure: &str) -> Option<&'static str> {
        Some("these bots send no broadcasts")
    }
}

/// The longest reply of a workload that asks for nothing longer: what belongs to the protocol itself (members and
/// partitions of a large cluster, for example) is shorter.
pub const REPLY_BYTES: usize = 1 << 20;

/// How loads are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// whole numbers of units
    Whole,
    /// requests per second
    Rate,
    /// counts and ranges of counts
    Counts,
}

/// What a load asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// simulated clients
    pub bots: u64,
    /// connections that stand during the hold
    pub connections: u64,
    /// connections that may be open at once
    pub connections_max: u64,
    /// connections opened per second during the hold
    pub opens_per_s: f64,
}

/// Broadcasts of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Broadcast {
    /// clients that send
    pub senders: u64,
    /// mean time between two messages of one of them, ns
    pub gap_mean_ns: f64,
}

/// The settings of one workload.
pub trait WorkloadSettings: Workload + Sized {
    /// Those of a plan; `None` when it is one of another workload.
    fn of(bots: &BotSettings) -> Option<&Self>;

    /// The same, to be changed.
    fn of_mut(bots: &mut BotSettings) -> Option<&mut Self>;
}

macro_rules! registry {
    ($($(#[$meaning:meta])* $bots:ident($settings:ty): $kind:expr,)*) => {
        /// The simulated clients.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum BotSettings {
            $($(#[$meaning])* $bots($settings),)*
        }

        /// Their kinds. The first that speaks over a scheme loads a server of it when no bots are named.
        pub(crate) const KINDS: &[BotsKind] = &[$($kind),*];

        /// Their names.
        pub(crate) const NAMES: &[&str] = &[$($kind.name),*];

        impl BotSettings {
            /// `arena`
            pub fn name(&self) -> &'static str {
                match self {
                    $(BotSettings::$bots(_) => $kind.name,)*
                }
            }
        }

        impl Deref for BotSettings {
            type Target = dyn Workload;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(BotSettings::$bots(settings) => settings,)*
                }
            }
        }

        $(
            impl WorkloadSettings for $settings {
                fn of(bots: &BotSettings) -> Option<&Self> {
                    if let BotSettings::$bots(settings) = bots { Some(settings) } else { None }
                }

                fn of_mut(bots: &mut BotSettings) -> Option<&mut Self> {
                    if let BotSettings::$bots(settings) = bots { Some(settings) } else { None }
                }
            }

            impl From<$settings> for BotSettings {
                fn from(settings: $settings) -> BotSettings {
                    BotSettings::$bots(settings)
                }
            }
        )*
    };
}

registry! {
    /// pairs of players of the arena
    Arena(ArenaBots): arena::settings::KIND,
    /// people in a room where each line goes to all others
    Chat(ChatBots): chat::settings::KIND,
    /// requests over HTTP
    Http(HttpBots): http::settings::KIND,
    /// messages of any protobuf schema, over gRPC or WebSocket
    Protobuf(ProtobufBots): protobuf::settings::KIND,
    /// updates and reads of a leaderboard, over HTTP, WebSocket or gRPC, audited afterwards
    Leaderboard(LeaderboardBots): leaderboard::settings::KIND,
    /// operations on the keys of a data grid or cache, so many in flight or by a rate
    Grid(GridBots): grid::settings::KIND,
    /// bots that a script plays
    Script(ScriptBots): script::settings::KIND,
    /// clients of an echo server; what calibration uses. The target's scheme says over what: WebSocket or TCP lines
    Echo(EchoBots): echo::settings::KIND,
}

impl BotSettings {
    /// Their requests and connections, where they are planned like those over HTTP.
    pub fn http_mut(&mut self) -> Option<&mut HttpBots> {
        match self {
            BotSettings::Http(http) => Some(http),
            BotSettings::Leaderboard(leaderboard) => Some(&mut leaderboard.http),
            BotSettings::Protobuf(protobuf) => Some(&mut protobuf.http),
            _ => None,
        }
    }

    /// The same clients in a cell.
    pub fn in_cell(&self, cell: &Cell) -> BotSettings {
        let mut bots = self.clone();
        if let (Some(bulk), Some(leaderboard)) =
            (cell.value_of(Axis::Bulk), LeaderboardBots::of_mut(&mut bots))
        {
            leaderboard.bulk = bulk;
        }
        if let Some(http) = bots.http_mut() {
            let Visit { requests, reconnect_after } = &mut http.visit;
            *requests = cell.value_of(Axis::RequestsPerBot).or(*requests);
            *reconnect_after = cell.value_of(Axis::ReconnectAfter).or(*reconnect_after);
        }
        bots
    }
}
