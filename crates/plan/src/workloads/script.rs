//! Bots that a script plays: the program that a server's own clients are.

pub(crate) mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use ladder::{Allowed, LoadUnit};
use script::{Bundle, Rows};
use serde::{Deserialize, Serialize};

use super::Workload;
use crate::plan::{Arrivals, Ramp};

/// A longer message ends its connection.
const REPLY_BYTES_MAX: usize = 4 << 20;
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
    /// what stands in the files of `bot.row`; read when a trial starts, and never stored
    #[serde(skip)]
    pub row_values: BTreeMap<String, Arc<Rows>>,
    /// it tells the server's ticks
    pub has_ticks: bool,
}

impl Workload for ScriptBots {
    fn load_unit(&self) -> LoadUnit {
        LoadUnit::Clients
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        ("bot", "bots")
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        (&[Arrivals::Even], "a script says itself when it sends")
    }

    fn default_ramp(&self) -> Ramp {
        Ramp::Every(RAMP_NS)
    }

    // A first climb of a server that is not known yet ends within minutes.
    fn default_loads(&self) -> &'static [f64] {
        &[10.0, 50.0, 100.0]
    }

    // A snapshot of a whole world.
    fn reply_bytes_max(&self) -> usize {
        REPLY_BYTES_MAX
    }

    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[(Allowed::Duplicates, Some("unexpected == 0"))]
    }

    fn operations(&self) -> &[String] {
        &self.bundle.names.operations
    }

    fn has_ticks(&self) -> bool {
        self.has_ticks
    }

    fn asks_for_snapshots(&self) -> bool {
        self.has_ticks
    }
}
