//! The verdict of one trial: a pure function of what was stored about it, and of the terms it was run under.
//!
//! Rules are asked in order and the first that speaks decides, because each takes the ground from those behind it:
//! books that do not add up prove nothing, a dead server has failed whoever looked on, and latencies of a generator
//! that was late say more about this machine than about the server.
//! The order: INVALID (our books, interrupted), FAIL(server exited), missing connections, INVALID (no hold, books of
//! deliveries), GENERATOR_LIMITED, INCONCLUSIVE (disturbed, inconsistent), FAIL (objectives, missing games, wrong
//! answers, missing connections of a server that refused requests, backlog, drifting), INCONCLUSIVE (aliased, too few
//! samples), PASS.
//! Invariant: the same trial and terms give the same judgement, live and replayed.
//! Not here: the thresholds and their reasons, which stand with the rules.

mod deliveries;
mod requests;
mod rules;

use std::fmt;

use measure::{Summary, Trial};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::aliasing::{Aliasing, aliasing};
use crate::objective::{Objective, Outcome};
use crate::steady::{self, Finding, Floors, Steadiness};

/// What a rung, or a whole run, is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// every objective held
    Pass,
    /// the server did not hold this load
    Fail,
    /// this machine could not make or hear the load well enough to judge the server
    GeneratorLimited,
    /// it could not be told
    Inconclusive,
    /// the trial proves nothing
    Invalid,
}

impl Verdict {
    /// As in JSON and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::GeneratorLimited => "GENERATOR_LIMITED",
            Verdict::Inconclusive => "INCONCLUSIVE",
            Verdict::Invalid => "INVALID",
        }
    }

    /// True when it says something about the server.
    pub fn counts(self) -> bool {
        matches!(self, Verdict::Pass | Verdict::Fail)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a trial is judged by, besides its own numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// what the rung must meet; without any, nothing can be told
    pub objectives: Vec<Objective>,
    /// the generator as it was weighed before the climb
    pub calibration: Option<Calibration>,
    /// what the plan means to offer in the hold, where the plan alone fixes it (not in a closed loop, nor when a
    /// server's answer starts the next game)
    pub intended: Option<Intended>,
    /// an answer after this is late, ns
    pub patience_ns: u64,
    /// the way to the server, where it is known
    pub link: Option<Link>,
}

/// How many messages the plan means to offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intended {
    /// a mean rate over all bots; arrivals are random, so three standard deviations are forgiven
    PerSecond(f64),
    /// exactly so many in the hold
    Messages(u64),
}

/// The generator against a server that does nothing. Units: ns, messages per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// what was spoken: `http`, `websocket`, `lines`
    #[serde(default)]
    pub protocol: Option<String>,
    /// response of the null server at an easy rate: our share of every latency
    pub own_latency: Option<Summary>,
    /// send lag at that rate
    pub send_lag: Option<Summary>,
    /// most messages per second that this machine makes and hears
    pub ceiling_per_s: Option<f64>,
}

/// The way to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// `lo`, `eth0`
    pub name: String,
    /// radio links spoil runs
    pub is_wireless: bool,
    /// its speed in one direction, where it is told
    pub bytes_per_s: Option<f64>,
}

/// What was decided about one trial, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// the verdict
    pub verdict: Verdict,
    /// one sentence that names figure, value and remedy; `None` when it passed
    pub reason: Option<String>,
    /// short name of what gave first: `ticks.late_share`, `drifting`, `server exited` …; `None` when it passed
    pub signal: Option<String>,
    /// how the hold went; `None` when it was too short to tell
    pub steady: Option<Steadiness>,
    /// share of the hold's seconds in which something else took the machine; `None` where that is not readable
    pub disturbed_share: Option<f64>,
    /// how the arrivals lay in the server's ticks; `None` where nobody counted
    #[serde(default)]
    pub aliasing: Option<Aliasing>,
    /// the figures behind it, by name
    pub evidence: Map<String, Value>,
}

/// A rule that spoke.
struct Ruling {
    verdict: Verdict,
    signal: String,
    reason: String,
}

impl Ruling {
    fn new(verdict: Verdict, signal: &str, reason: String) -> Self {
        Ruling { verdict, signal: signal.to_owned(), reason }
    }
}

/// What several rules look at.
struct Case<'a> {
    trial: &'a Trial,
    terms: &'a Terms,
    outcomes: Vec<(&'a Objective, Outcome)>,
    finding: Option<Finding>,
    disturbed_share: Option<f64>,
    aliasing: Option<Aliasing>,
}

impl Case<'_> {
    /// True when latencies were read at a few places of the tick only.
    fn is_locked(&self) -> bool {
        self.aliasing.is_some_and(|found| found.is_locked())
    }
}

/// Judges one trial.
pub fn judge(trial: &Trial, terms: &Terms) -> Judgement {
    let case = Case {
        trial,
        terms,
        outcomes: terms.objectives.iter().map(|objective| (objective, objective.evaluate(trial))).collect(),
        finding: steady::steadiness(trial, &floors(trial, terms)),
        disturbed_share: rules::disturbed_share(trial),
        aliasing: aliasing(trial),
    };
    let in_order: [fn(&Case<'_>) -> Option<Ruling>; 19] = [
        rules::books,
        rules::interrupted,
        rules::exited,
        requests::connections,
        rules::never_held,
        deliveries::unowed,
        deliveries::residual,
        rules::limited,
        rules::disturbed,
        rules::inconsistent,
        rules::objectives,
        rules::games_missing,
        rules::wrong_answers,
        rules::connections,
        deliveries::strangers,
        deliveries::backlog,
        rules::drifting,
        requests::aliased,
        rules::too_little,
    ];
    let ruling = in_order.into_iter().find_map(|rule| rule(&case));
    Judgement {
        verdict: ruling.as_ref().map_or(Verdict::Pass, |ruling| ruling.verdict),
        signal: ruling.as_ref().map(|ruling| ruling.signal.clone()),
        reason: ruling.map(|ruling| ruling.reason),
        steady: case.finding.as_ref().map(|finding| finding.steadiness),
        disturbed_share: case.disturbed_share,
        aliasing: case.aliasing,
        evidence: evidence(&case),
    }
}

/// A tenth of the tightest latency bound is a change worth failing for. Where only ticks are judged, replies come in
/// waves (games that began together end together) that say nothing about drift; requests have no such excuse.
fn floors(trial: &Trial, terms: &Terms) -> Floors {
    let floors = if requests::asks(trial) { requests::floors(trial, terms) } else { Floors::default() };
    match tightest(terms) {
        Some((_, bound_ns)) => Floors { response_ns: Some(0.1 * bound_ns), ..floors },
        None if trial.head.tick_period_ns > 0 && !requests::asks(trial) => {
            Floors { response_ns: None, ..floors }
        }
        None => floors,
    }
}

/// The latency objective with the smallest bound.
fn tightest(terms: &Terms) -> Option<(&Objective, f64)> {
    terms
        .objectives
        .iter()
        .filter_map(|objective| objective.latency_bound_ns().map(|bound_ns| (objective, bound_ns)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn evidence(case: &Case<'_>) -> Map<String, Value> {
    let mut evidence = Map::new();
    let outcomes: Vec<Value> = case
        .outcomes
        .iter()
        .map(|(objective, outcome)| {
            let (met, value, note) = match outcome {
                Outcome::Met { value } => (Some(true), finite(*value), None),
                Outcome::NotMet { value, shown } => (Some(false), finite(*value), Some(shown)),
                Outcome::CannotTell { why } => (None, Value::Null, Some(why)),
            };
            json!({ "objective": objective.to_string(), "met": met, "value": value, "note": note })
        })
        .collect();
    evidence.insert("objectives".to_owned(), outcomes.into());
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            evidence.insert(name.to_owned(), finite(value));
        }
    };
    let limit = rules::lag_limit(case);
    put("send_lag_p99_ns", rules::send_lag_ns(case.trial, 0.99));
    put("send_lag_limit_ns", Some(limit.limit_ns));
    put("own_latency_p99_ns", rules::own_latency_ns(case.terms));
    put(
        "own_latency_limit_ns",
        tightest(case.terms).map(|(_, bound_ns)| rules::OWN_LATENCY_SHARE * bound_ns),
    );
    put("busy_share_max", case.trial.busy_share_max);
    put("intended", rules::intended(case));
    put("disturbed_share", case.disturbed_share);
    if let Some(change) = case.finding.as_ref().and_then(|finding| finding.change.as_ref()) {
        let (of, after_s) = (change.of.name(), change.after_s);
        let change = json!({ "of": of, "after_s": after_s, "before": change.before, "after": change.after });
        evidence.insert("change".to_owned(), change);
    }
    if let Some(found) = &case.aliasing {
        let (count, resultant) = (found.count, found.resultant);
        let phases =
            json!({ "count": count, "harmonic": found.harmonic, "resultant": resultant, "p": found.p });
        evidence.insert("arrival_phases".to_owned(), phases);
    }
    evidence
}

/// JSON has no infinity; what never came has no number.
fn finite(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

#[cfg(test)]
mod tests;
