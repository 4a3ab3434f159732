//! Scripted bots: the script is the program that a server's own clients would be.

pub(crate) mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use ladder::{Allowed, LoadUnit, Objective};
use script::{Bundle, Rows};
use serde::{Deserialize, Serialize};

use super::{Demand, HttpVersion, LoadKind, NO_ERRORS, Workload};
use crate::plan::{Arrivals, Ramp};
use crate::worker_plan::DRAIN_NS;

/// A longer message ends its connection.
const REPLY_BYTES_MAX: usize = 4 << 20;
/// What a life of a bot is measured as, where bots have several.
pub const SESSION: &str = "session";
/// Sessions in progress when the hold ends may take this long to end, whatever the plan's patience, ns.
const SESSIONS_END_NS: u64 = 30_000_000_000;
/// One bot after another.
const RAMP_NS: u64 = 2_000_000;

/// Bots that a script plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptBots {
    /// as its user named it
    pub file: String,
    /// its text, so that the same bot can be played again
    pub bundle: Arc<Bundle>,
    /// names of the environment variables that it may read
    pub env: Vec<String>,
    /// what they hold; filled in when a trial starts, and never stored
    #[serde(skip)]
    pub env_values: BTreeMap<String, String>,
    /// the contents of the files of `bot.row`; read when a trial starts, and never stored
    #[serde(skip)]
    pub row_values: BTreeMap<String, Arc<Rows>>,
    /// for its requests; `None`: what the server chooses over TLS, else 1.1
    #[serde(default)]
    pub http: Option<HttpVersion>,
    /// it tells the server's ticks
    pub has_ticks: bool,
    /// what a load counts
    #[serde(default)]
    pub load: ScriptLoad,
}

/// What a load of scripts counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptLoad {
    /// bots, from the ramp to the end of the hold
    Bots {
        /// one whose function ends begins again; otherwise it is done
        repeat: bool,
    },
    /// sessions per second: at each planned instant a new bot begins, which ends with its function
    Sessions {
        /// so many at once at most; what is planned beyond them is not begun
        most: u64,
    },
}

impl Default for ScriptLoad {
    fn default() -> Self {
        ScriptLoad::Bots { repeat: false }
    }
}

impl ScriptLoad {
    /// Whether the life of a bot is measured, as the operation `SESSION`.
    pub fn has_sessions(self) -> bool {
        self != ScriptLoad::default()
    }
}

impl ScriptBots {
    /// Whether a load is a rate at which bots begin.
    fn is_open(&self) -> bool {
        matches!(self.load, ScriptLoad::Sessions { .. })
    }
}

impl Workload for ScriptBots {
    fn load_unit(&self) -> LoadUnit {
        if self.is_open() { LoadUnit::Sessions } else { LoadUnit::Clients }
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        ("bot", "bots")
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        match self.load {
            ScriptLoad::Bots { .. } => (&[Arrivals::Even], "a script says itself when it sends"),
            ScriptLoad::Sessions { .. } => {
                (&[Arrivals::Poisson, Arrivals::Even], "sessions are planned by a clock (poisson, even)")
            }
        }
    }

    fn default_ramp(&self) -> Ramp {
        if self.is_open() { Ramp::AtOnce } else { Ramp::Every(RAMP_NS) }
    }

    // A first climb of an unknown server ends within minutes.
    fn default_loads(&self) -> &'static [f64] {
        if self.is_open() { &[1.0, 5.0, 10.0] } else { &[10.0, 50.0, 100.0] }
    }

    fn loads(&self) -> LoadKind {
        if self.is_open() { LoadKind::Rate } else { LoadKind::Whole }
    }

    // The number at once is not known in advance; there is room for the maximum.
    fn units(&self, load: f64) -> u64 {
        match self.load {
            ScriptLoad::Bots { .. } => load.round() as u64,
            ScriptLoad::Sessions { most } => most,
        }
    }

    fn rate_per_s(&self, load: f64) -> f64 {
        if self.is_open() { load } else { 0.0 }
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        self.is_open().then_some(load)
    }

    // A snapshot of a whole world.
    fn reply_bytes_max(&self) -> usize {
        REPLY_BYTES_MAX
    }

    fn default_objectives(&self) -> &'static [&'static str] {
        if self.bundle.names.calls_room { &["errors == 0", "deliveries.lost == 0"] } else { NO_ERRORS }
    }

    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[
            (Allowed::Duplicates, Some("unexpected == 0")),
            (Allowed::Duplicates, Some("deliveries.duplicated == 0")),
        ]
    }

    fn lacks_delivery_figure(&self, figure: &str) -> Option<&'static str> {
        match figure {
            _ if !self.bundle.names.calls_room => Some("the script keeps no books of deliveries (bot.room)"),
            "deliveries.dropped" | "deliveries.in_flight" | "deliveries.residual" => {
                Some("a script does not hear what its server dropped; deliveries.lost holds it")
            }
            _ => None,
        }
    }

    fn demand(&self, load: f64) -> Demand {
        let bots = self.units(load);
        // Between two sessions a bot has no connection.
        let connections = if self.load.has_sessions() { 0 } else { bots };
        Demand { bots, connections, connections_max: bots, opens_per_s: self.rate_per_s(load) }
    }

    // A session that has not ended by then is known to exceed any bound on its time.
    fn drain_ns(&self, patience_ns: u64, objectives: &[Objective]) -> u64 {
        if !self.load.has_sessions() {
            return DRAIN_NS;
        }
        let bound_ns = objectives.iter().filter_map(|one| one.bound_of_operation_ns(SESSION));
        let bound_ns = bound_ns.fold(0.0, f64::max) as u64;
        SESSIONS_END_NS.max(patience_ns).max(bound_ns)
    }

    fn operations(&self) -> &[String] {
        &self.bundle.names.operations
    }

    fn recorded(&self) -> &[String] {
        &self.bundle.names.recorded
    }

    fn has_ticks(&self) -> bool {
        self.has_ticks
    }

    fn asks_for_snapshots(&self) -> bool {
        self.has_ticks
    }
}
