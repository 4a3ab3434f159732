//! Calibration: runs the engine against a protocol's null server, so that our own share of every figure is known.
//!
//! Two trials: one at an easy pace, where all latency is ours and the system's, and one closed loop, where the rate is
//! our own ceiling (or the null server's, which is faster than any server that does real work).
//! A climb stores them; `doctor` only shows them.

use plan::{
    Arrivals, BotSettings, EchoBots, Handshake, HttpBots, HttpModel, HttpRequest, Networks, Plan, Ramp,
    RampRule, Scheme, Transport,
};

use crate::judging::LATENCY_RATE_PER_S;

/// Bytes of an echo client's message.
const ECHO_BYTES: usize = 32;
/// Until the rate has climbed to its height, and the first connections are warm.
const SETTLE_NS: u64 = 100_000_000;
/// The null server answers at once or not at all.
const TIMEOUT_NS: u64 = 5_000_000_000;
const BODY_BYTES_MAX: u64 = 64 * 1024;

/// The clients that weigh us over a scheme's protocol: at an easy pace, or in a closed loop.
pub fn bots(scheme: Scheme, is_closed: bool, clients: u64) -> (BotSettings, Arrivals) {
    match (scheme.transport(), is_closed) {
        (Transport::Http, true) => (requests(HttpModel::Closed { think_ns: 0 }).into(), Arrivals::Closed),
        (Transport::Http, false) => {
            let model = HttpModel::Open { connections: clients, connections_max: clients };
            (requests(model).into(), Arrivals::Poisson)
        }
        (_, true) => (EchoBots { rate_per_s: 0.0, payload_bytes: ECHO_BYTES }.into(), Arrivals::Closed),
        (_, false) => {
            let rate_per_s = LATENCY_RATE_PER_S / clients.max(1) as f64;
            (EchoBots { rate_per_s, payload_bytes: ECHO_BYTES }.into(), Arrivals::Even)
        }
    }
}

/// What these clients call their load: a rate where requests are planned by a clock, else clients.
pub fn load(bots: &BotSettings, clients: f64) -> f64 {
    if bots.rate_per_s(clients) > 0.0 { LATENCY_RATE_PER_S } else { clients }
}

/// The plan under which these clients are split over the workers.
pub fn plan_of(plan: &Plan, scheme: Scheme, is_closed: bool, clients: u64) -> Plan {
    let (bots, arrivals) = bots(scheme, is_closed, clients);
    let mut plan = Plan { bots, arrivals, handshake: Handshake::default(), ..plan.clone() };
    plan.ladder.ramp = RampRule::Pace(Ramp::AtOnce);
    plan.ladder.settle_ns = SETTLE_NS;
    plan.ladder.cells = Vec::new();
    plan.ladder.stop = None;
    plan.generator.workers = None;
    // What the generator itself adds is measured without what it emulates.
    plan.networks = Networks::default();
    // The null server has no ticks, and arrivals are not sorted by the phase of another server's ticks.
    plan.subject.tick_rate_hz = 0.0;
    plan
}

fn requests(model: HttpModel) -> HttpBots {
    HttpBots {
        body_bytes_max: BODY_BYTES_MAX,
        ..HttpBots::plain(model, vec![HttpRequest::get("/")], TIMEOUT_NS)
    }
}
