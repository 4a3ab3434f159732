//! Operations on the keys of a data grid or cache: a fixed number in flight, each completion starting the next, or at a
//! rate.

pub(crate) mod settings;

use ladder::LoadUnit;
use serde::{Deserialize, Serialize};

use super::{Demand, LoadKind, REPLY_BYTES, Workload};
use crate::plan::{Arrivals, Ramp};

/// Operations on the keys of a data grid or cache, over all connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridBots {
    /// what operations do
    pub op: GridOp,
    /// length of each value
    pub value_bytes: usize,
    /// which keys they use
    pub keys: GridKeys,
    /// connections that share the operations, over all workers
    pub connections: u64,
    /// when an operation is planned, and what a load counts
    #[serde(default)]
    pub model: GridModel,
    /// a value expires so long after it was set, ms, at least 1; `None`: it stays
    #[serde(default)]
    pub ttl_ms: Option<u64>,
}

/// When an operation is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridModel {
    /// each one that ends starts the next: a load is operations in flight
    #[default]
    Closed,
    /// by a clock: a load is operations per second
    Open,
}

/// What operations do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridOp {
    /// all read
    Get,
    /// all write
    Set,
    /// 40 % read, 40 % write, 20 % delete
    Mix,
    /// so many reads to so many writes; both at least 1
    Shares {
        /// reads
        gets: u32,
        /// writes
        sets: u32,
    },
}

impl GridOp {
    /// Whether any of them reads, so that values must be there first.
    pub fn reads(self) -> bool {
        self != GridOp::Set
    }

    /// Whether any of them deletes, so that a key may rightly be missing.
    pub fn deletes(self) -> bool {
        self == GridOp::Mix
    }
}

/// Which keys operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridKeys {
    /// always the same
    One,
    /// any of so many, each as often
    Uniform(u64),
    /// any of so many, the j-th in proportion to j^-0.99
    Zipf(u64),
}

impl GridBots {
    /// Whether a key may rightly be missing although its value was put.
    pub fn may_miss(&self) -> bool {
        self.op.deletes() || self.ttl_ms.is_some()
    }
}

impl Workload for GridBots {
    fn load_unit(&self) -> LoadUnit {
        match self.model {
            GridModel::Closed => LoadUnit::InFlight,
            GridModel::Open => LoadUnit::Requests,
        }
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        match self.model {
            GridModel::Closed => ("operation in flight", "operations in flight"),
            GridModel::Open => ("connection", "connections"),
        }
    }

    fn reply_bytes_max(&self) -> usize {
        REPLY_BYTES + self.value_bytes
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        match self.model {
            GridModel::Closed => {
                (&[Arrivals::Closed], "without a rate each operation that ends starts the next (closed)")
            }
            GridModel::Open => (
                &[Arrivals::Poisson, Arrivals::Even, Arrivals::Burst],
                "operations with a rate are planned by a clock (poisson, even, burst)",
            ),
        }
    }

    fn default_ramp(&self) -> Ramp {
        Ramp::AtOnce
    }

    fn default_loads(&self) -> &'static [f64] {
        &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
    }

    fn default_objectives(&self) -> &'static [&'static str] {
        &["errors == 0", "response.p99 < 50ms"]
    }

    fn loads(&self) -> LoadKind {
        match self.model {
            GridModel::Closed => LoadKind::Whole,
            GridModel::Open => LoadKind::Rate,
        }
    }

    fn units(&self, load: f64) -> u64 {
        match self.model {
            // A float converts to an integer by saturating.
            GridModel::Closed => load.round() as u64,
            GridModel::Open => self.connections,
        }
    }

    // A client is a connection: an operation in flight needs no extra one.
    fn demand(&self, load: f64) -> Demand {
        let connections = self.connections.min(self.units(load)).max(1);
        Demand { bots: connections, connections, connections_max: connections, opens_per_s: 0.0 }
    }

    fn rate_per_s(&self, load: f64) -> f64 {
        match self.model {
            GridModel::Closed => 0.0,
            GridModel::Open => load,
        }
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        (self.model == GridModel::Open).then_some(load)
    }
}
