//! Clients of an echo server.

pub(crate) mod settings;

use ladder::{Allowed, LoadUnit};
use serde::{Deserialize, Serialize};

use super::Workload;
use crate::plan::{Arrivals, Ramp};

/// One client after another.
const RAMP_NS: u64 = 2_000_000;

/// Clients of an echo server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EchoBots {
    /// messages per second and client; 0 means a closed loop, each answer starts the next
    pub rate_per_s: f64,
    /// size of each message
    pub payload_bytes: usize,
}

impl Workload for EchoBots {
    fn load_unit(&self) -> LoadUnit {
        LoadUnit::Clients
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        ("client", "clients")
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        if self.rate_per_s == 0.0 {
            return (&[Arrivals::Closed], "without a rate each answer starts the next message (closed)");
        }
        (
            &[Arrivals::Even, Arrivals::Poisson],
            "clients with a rate send at equal gaps (even) or at random ones (poisson)",
        )
    }

    fn default_ramp(&self) -> Ramp {
        Ramp::Every(RAMP_NS)
    }

    // A few late answers are caused by the network or a pause of the machine; one in a hundred is the server's pace.
    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[(Allowed::Late, Some("late.share <= 1%"))]
    }

    // Three loads show more than one, and a first climb ends within minutes.
    fn default_loads(&self) -> &'static [f64] {
        &[500.0, 1000.0, 2000.0]
    }

    // Without a rate each answer triggers the next message.
    fn intended_per_s(&self, load: f64) -> Option<f64> {
        (self.rate_per_s > 0.0).then_some(self.rate_per_s * load)
    }
}
