//! The arena: pairs of players who shoot at each other.

pub(crate) mod settings;

use ladder::LoadUnit;
use serde::{Deserialize, Serialize};

use super::{Demand, Workload};
use crate::plan::{Arrivals, Ramp};

/// The shortest that a game usually lasts. Shorter games open more connections, so this errs on the side of need.
const GAME_S: f64 = 10.0;
/// One game after another.
const RAMP_NS: u64 = 2_000_000;

/// Pairs of players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArenaBots {
    /// player 1 fires every so many ns (110 ms)
    pub fast_ns: u64,
    /// player 2 (200 ms)
    pub slow_ns: u64,
    /// how pairs are kept together on their way in
    pub pairing: Pairing,
    /// share of the games that ask for a snapshot at every tick, in [0, 1]
    pub snapshots: f64,
    /// a game that has not ended after this is counted as a missing stop, ns
    pub longest_game_ns: u64,
}

/// How the two bots of a pair reach the server next to each other; the protocol knows no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Pairing {
    /// both connect back to back, the next pair right after: for servers that accept in order
    Pipelined,
    /// the second connects when the first is in, the next pair when both have started: for any server
    Strict,
}

impl Workload for ArenaBots {
    fn load_unit(&self) -> LoadUnit {
        LoadUnit::Games
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        ("game", "games")
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        (
            &[Arrivals::Even],
            "players fire by a clock of their own, each with a phase of its own (even); --ramp says how they come",
        )
    }

    fn default_ramp(&self) -> Ramp {
        Ramp::Every(RAMP_NS)
    }

    fn default_objectives(&self) -> &'static [&'static str] {
        &["ticks.late_share < 25%"]
    }

    // Three loads show more than one, and a first climb ends within minutes.
    fn default_loads(&self) -> &'static [f64] {
        &[500.0, 1000.0, 2000.0]
    }

    fn demand(&self, load: f64) -> Demand {
        let games = self.units(load);
        let players = 2 * games;
        let opens_per_s = 2.0 * games as f64 / GAME_S;
        Demand { bots: players, connections: players, connections_max: players, opens_per_s }
    }

    fn has_games(&self) -> bool {
        true
    }

    fn has_ticks(&self) -> bool {
        true
    }

    fn pairs_by_arrival(&self) -> bool {
        true
    }

    fn asks_for_snapshots(&self) -> bool {
        self.snapshots > 0.0
    }
}
