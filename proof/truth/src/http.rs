//! Requests against servers of which everything is known, in virtual time.

use bots::http::Requests;
use engine::simulation::{Exchanges, Times, Wire};
use measure::trial::kind;
use measure::{Entry, Event, Interval, LoadUnit, Measure, Phase, Purpose, Quantile, Trial, TrialHead};
use plan::{Arrivals, BotSettings, HttpBots, HttpModel, HttpRequest, Ramp, Scheme, WorkerPlan};

/// One second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The clients of `climb http://…` without a socket.
pub type Simulated = Requests<Wire<Exchanges>>;

fn worker_plan(model: HttpModel, arrivals: Arrivals, units: u64) -> WorkerPlan {
    let bots = BotSettings::Http(HttpBots::plain(model, vec![HttpRequest::get("/")], 60 * SECOND_NS));
    let address = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 1));
    WorkerPlan {
        arrivals,
        ramp: Ramp::AtOnce,
        open_attempts: 5,
        ..WorkerPlan::alone(bots, units, Scheme::Ws, address)
    }
}

/// Requests at a fixed rate over a fixed set of connections.
pub fn open(rate_per_s: f64, connections: u64, arrivals: Arrivals, seed: u64) -> WorkerPlan {
    let model = HttpModel::Open { connections, connections_max: connections };
    WorkerPlan {
        rate_per_s,
        seed,
        stream_phase: 0.3,
        tick_period_ns: 33_333_333,
        ..worker_plan(model, arrivals, connections)
    }
}

/// Requesters that send the next request when the last one was answered.
pub fn closed(requesters: u64) -> WorkerPlan {
    let plan = worker_plan(HttpModel::Closed { think_ns: 0 }, Arrivals::Closed, requesters);
    WorkerPlan { seed: 7, tick_period_ns: 16_666_667, ..plan }
}

/// A hold of so many seconds after one second.
pub fn times(hold_s: u64) -> Times {
    Times { hold_ns: SECOND_NS, drain_ns: (1 + hold_s) * SECOND_NS, generator_stall: None }
}

/// p of the responses in ms, those that failed counted as infinite; NaN where there are too few for it.
pub fn response_ms(sum: &Interval, q: f64) -> f64 {
    let flow = sum.flows[0][Phase::Hold as usize];
    let never = flow.failed + flow.lost + flow.not_sent + flow.open_after;
    match sum.distribution(Measure::Response, true).quantile(q, never) {
        Quantile::Ns(ns) => ns as f64 / 1e6,
        Quantile::Infinite => f64::INFINITY,
        Quantile::TooFew => f64::NAN,
    }
}

/// Their mean, ms.
pub fn mean_ms(sum: &Interval) -> f64 {
    sum.distribution(Measure::Response, true).summary().and_then(|summary| summary.mean).unwrap_or(f64::NAN)
        / 1e6
}

/// The seconds of a simulation as a stored trial is read.
pub fn trial(plan: &WorkerPlan, load: f64, seconds: Vec<Interval>, times: Times) -> Trial {
    let head = TrialHead {
        seq: 0,
        purpose: Purpose::Rung,
        load,
        load_unit: LoadUnit::Requests,
        bots: plan.units,
        connections: plan.units,
        tick_period_ns: 0,
        cell: Default::default(),
        metric_names: seconds[0].metric_names.clone(),
    };
    let mut entries: Vec<Entry> =
        seconds.into_iter().map(|second| Entry::Interval(Box::new(second))).collect();
    for (at_ns, kind) in
        [(times.hold_ns, kind::HOLD), (times.drain_ns, kind::DRAIN), (times.drain_ns + SECOND_NS, kind::END)]
    {
        entries.push(Entry::Event(Event { at_ns, kind: kind.to_owned(), text: String::new() }));
    }
    Trial::from_entries(head, &entries, 0)
}
