//! What this program can do here: its own latency and ceiling over each protocol, how precisely its sends leave, and
//! the link to a target.
//!
//! Runs the same trials as before a climb, against the same null servers, in memory. Together they take about ten
//! seconds. A server that cannot be started is also a finding.

use std::net::SocketAddr;

use console::layout::grouped;
use ladder::wording::show_ns;
use measure::{Distribution, Entry, Measure, Purpose, Trial, TrialHead};
use plan::{Flags, HoldLength, Scheme};
use serde_json::{Value, json};
use watch::{LinkKind, NetworkLink};

use super::finding::{Finding, Grade};
use crate::calibration;
use crate::judging::{CEILING_CLIENTS, LATENCY_CLIENTS};
use crate::preflight::Machine;
use crate::subject::RunningSubject;
use crate::trial::{self, Generator as _, StopReason, ThreadOptions, TrialEnv, TrialSpec, TrialStatus};

/// Enough for a p99 at the pace of the calibration. A hold begins on a whole second, which costs each trial one more.
const LATENCY_HOLD_NS: u64 = 900_000_000;
/// A rate without percentiles needs less.
const CEILING_HOLD_NS: u64 = 300_000_000;
/// Requests per second, and for how long, ns.
type Pace = (f64, u64);
/// Paces at which the sends are looked at. The one in the middle is also that of HTTP's own latency: 10,000 carry a p99.
const SLOW: Pace = (1_000.0, 500_000_000);
const USUAL: Pace = (10_000.0, 1_050_000_000);
const FAST: Pace = (50_000.0, 300_000_000);
/// A tenth of the usual objective of 50 ms: from there on a rung's latencies say more about us.
const OWN_LATENCY_P99_NS_MOST: u64 = 5_000_000;
/// A twentieth of it.
const SEND_LAG_P99_NS_MOST: u64 = 2_500_000;

/// Own latency and ceiling of each protocol, and the pacing. `begins` is called with what is measured next.
pub(super) fn weigh(mut begins: impl FnMut(&str)) -> Vec<Finding> {
    let machine = match Machine::prepare() {
        Ok(machine) => machine,
        Err(error) => return vec![not_weighed("own", &error)],
    };
    let mut findings = Vec::new();
    for (name, shown, scheme) in
        [("websocket", "WebSocket", Scheme::Ws), ("lines", "lines over TCP", Scheme::Tcp)]
    {
        begins(shown);
        let found = with_null(scheme, |server| protocol(&machine, server, name, scheme, None));
        findings.push(found.map_or_else(|error| not_weighed(name, &error), |(finding, _)| finding));
    }
    begins("HTTP");
    let http = with_null(Scheme::Http, |server| {
        let (finding, usual) = protocol(&machine, server, "http", Scheme::Http, Some(USUAL))?;
        let slow = weigh_once(&machine, server, Scheme::Http, false, Some(SLOW))?;
        let fast = weigh_once(&machine, server, Scheme::Http, false, Some(FAST))?;
        Ok([finding, pacing(&[(SLOW, slow), (USUAL, usual), (FAST, fast)])])
    });
    match http {
        Ok(found) => findings.extend(found),
        Err(error) => findings.push(not_weighed("http", &error)),
    }
    findings
}

/// Something against a null server that ends with it.
fn with_null<T>(
    scheme: Scheme,
    weigh: impl FnOnce(&mut RunningSubject) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut server = RunningSubject::start_null(scheme)?;
    let weighed = weigh(&mut server);
    server.stop();
    weighed
}

/// The link to a server.
pub(super) fn link(to: SocketAddr) -> Finding {
    let link = match NetworkLink::to(to) {
        Ok(link) => link,
        Err(error) => {
            let text = format!("there is no way to {to} ({error})");
            return Finding::new("link", Grade::Poor, text, json!({ "target": to.to_string() }))
                .with_remedy("check the address, and the network of this machine");
        }
    };
    let text = format!("{to} is reached by {link}");
    let figures = json!({
        "target": to.to_string(), "interface": link.interface, "kind": link.kind.name(),
        "bits_per_s": link.bits_per_s,
    });
    let grade = if link.kind == LinkKind::Unknown { Grade::Note } else { Grade::Good };
    Finding::new("link", grade, text, figures).poor_if(
        link.kind == LinkKind::Wireless,
        "radio changes its speed and its latency by itself; take a cable, or measure on the server's own machine",
    )
}

fn not_weighed(name: &'static str, error: &anyhow::Error) -> Finding {
    Finding::new(name, Grade::Note, format!("could not be weighed: {error:#}"), json!({}))
}

/// Own latency and ceiling over one protocol, and the trial of the former.
fn protocol(
    machine: &Machine,
    server: &mut RunningSubject,
    name: &'static str,
    scheme: Scheme,
    pace: Option<Pace>,
) -> anyhow::Result<(Finding, Trial)> {
    let pace = weigh_once(machine, server, scheme, false, pace)?;
    let ceiling = weigh_once(machine, server, scheme, true, None)?;
    let own = pace.distribution(Measure::Response);
    let seconds = ceiling.hold.as_ref().map_or(0.0, measure::Hold::seconds);
    let ceiling_per_s = if seconds > 0.0 { ceiling.flow().answered as f64 / seconds } else { 0.0 };
    let what = if scheme == Scheme::Http { "requests" } else { "messages" };
    let text = format!(
        "own latency {}, own ceiling {} {what}/s there and back",
        percentiles(own),
        grouped(ceiling_per_s as u64)
    );
    let figures = json!({
        "own_latency_ns": figures(own), "send_lag_ns": figures(pace.distribution(Measure::SendLag)),
        "ceiling_per_s": ceiling_per_s.round(),
    });
    let p99 = own.summary().and_then(|summary| summary.p99);
    let finding = Finding::new(name, Grade::Good, text, figures).poor_if(
        p99.is_some_and(|ns| ns > OWN_LATENCY_P99_NS_MOST),
        "a tenth of an objective of 50 ms is our own: such rungs are GENERATOR_LIMITED; stop what else runs here",
    );
    Ok((finding, pace))
}

/// How long after their plan requests leave.
fn pacing(trials: &[(Pace, Trial)]) -> Finding {
    let lags: Vec<(f64, &Distribution)> = trials
        .iter()
        .map(|((rate_per_s, _), trial)| (*rate_per_s, trial.distribution(Measure::SendLag)))
        .collect();
    let shown: Vec<String> = lags
        .iter()
        .map(|(rate_per_s, lag)| format!("{} at {}/s", percentiles(lag), grouped(*rate_per_s as u64)))
        .collect();
    let text = format!("sends leave late by {}", shown.join("; "));
    let by_rate: Value = lags
        .iter()
        .map(|(rate_per_s, lag)| json!({ "rate_per_s": rate_per_s, "send_lag_ns": figures(lag) }))
        .collect();
    let mut p99s = lags.iter().filter_map(|(_, lag)| lag.summary()?.p99);
    let is_late = p99s.any(|p99_ns| p99_ns > SEND_LAG_P99_NS_MOST);
    Finding::new("pacing", Grade::Good, text, json!({ "paces": by_rate })).poor_if(
        is_late,
        "a twentieth of an objective of 50 ms is our own lateness: such rungs are GENERATOR_LIMITED; stop what else runs \
         here, or let workers spin (--spin 20us) on cores of their own",
    )
}

/// One trial against a null server; with a rate and a time, that of HTTP clients in an open model.
fn weigh_once(
    machine: &Machine,
    server: &mut RunningSubject,
    scheme: Scheme,
    is_closed: bool,
    pace: Option<Pace>,
) -> anyhow::Result<Trial> {
    let clients = if is_closed { CEILING_CLIENTS } else { LATENCY_CLIENTS };
    let flags = Flags::climb(server.target.to_string());
    let plan = calibration::plan_of(&plan::resolve(&flags, None, 1)?, scheme, is_closed, clients as u64);
    let usual_ns = if is_closed { CEILING_HOLD_NS } else { LATENCY_HOLD_NS };
    let (load, hold_ns) = pace.unwrap_or_else(|| (calibration::load(&plan.bots, clients), usual_ns));
    let target = server.target.clone();
    let order = TrialSpec {
        head: TrialHead {
            seq: 0,
            purpose: Purpose::CalibrationLatency,
            load,
            load_unit: plan.ladder.load_unit,
            bots: clients as u64,
            connections: clients as u64,
            tick_period_ns: 0,
            cell: Default::default(),
            metric_names: bots::catalog::metric_names(&plan.bots, target.scheme)?,
        },
        load,
        workers: machine.split(&plan, load, (&target, server.address))?,
        target: &target,
        null: Some(scheme),
        is_here: true,
        hold: HoldLength::Time(hold_ns),
        settle_ns: plan.ladder.settle_ns,
        plan,
        threads: ThreadOptions { cores: machine.cores.clone(), ..ThreadOptions::default() },
        terms: None,
        stop: None,
        recovery: None,
    };
    let mut alone = Alone { server, entries: Vec::new() };
    trial::run(&order, trial::ThisProcess.prepare(&order)?, &mut alone)?;
    Ok(Trial::from_entries(order.head, &alone.entries, 0))
}

/// A trial that is not stored: its entries stay here.
struct Alone<'a> {
    server: &'a RunningSubject,
    entries: Vec<Entry>,
}

impl TrialEnv for Alone<'_> {
    fn begin(&mut self, _: engine::MonotonicClock, _: u64, _: Vec<u32>) -> anyhow::Result<()> {
        Ok(())
    }

    fn entries(&mut self) -> Vec<Entry> {
        Vec::new()
    }

    fn ends(&mut self) -> Option<StopReason> {
        self.server.has_ended().then_some(StopReason::SubjectExited)
    }

    fn keep(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.entries.push(entry);
        Ok(())
    }

    fn show(&mut self, _: &TrialStatus<'_>) {}

    fn end(&mut self) {}
}

/// `p50 0.11 ms, p99 0.6 ms`, as far as there are samples enough.
fn percentiles(distribution: &Distribution) -> String {
    let Some(summary) = distribution.summary() else { return "unknown (nothing was sent)".to_owned() };
    let stated =
        [("p50", summary.p50), ("p90", summary.p90.filter(|_| summary.p99.is_none())), ("p99", summary.p99)];
    let stated: Vec<String> = stated
        .into_iter()
        .filter_map(|(name, ns)| ns.map(|ns| format!("{name} {}", show_ns(ns as f64))))
        .collect();
    if stated.is_empty() { "an unknown time (too few samples)".to_owned() } else { stated.join(", ") }
}

fn figures(distribution: &Distribution) -> Value {
    serde_json::to_value(distribution.summary()).unwrap_or(Value::Null)
}
