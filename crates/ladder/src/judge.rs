//! The verdict of one trial: a pure function of its stored data and of the terms it was run under.
//!
//! A rung may pass under adverse conditions but may fail only under fair ones. So each objective is evaluated over all
//! seconds; if not met, over the undisturbed seconds alone; if those are too few, beyond what the disturbances can
//! explain, starting with the least disturbed seconds (`views`). Evidence that no disturbance explains takes
//! precedence.
//! Rules run in order and the first one that returns a verdict decides, because each invalidates the basis of the later
//! ones: accounts that do not balance prove nothing, a dead or silent server has failed, and latencies from a late
//! generator say more about this machine than about the server. The order is that of `IN_ORDER`.
//! Invariant: the same trial and terms give the same judgement, live and replayed.
//! Not here: the thresholds and their reasons, which are documented at the rules.

mod cheats;
pub(crate) mod consistency;
pub(crate) mod deliveries;
mod games;
mod generator;
mod lookups;
mod own_lag;
mod redirects;
mod reopened;
mod requests;
mod rules;
mod sessions;
mod shutdown;
mod silence;
mod ticks_due;
mod views;
mod watching;

use std::fmt;

use measure::{Summary, Trial};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ts_rs::TS;

use crate::arrival_phases::{ArrivalPhases, arrival_phases};
use crate::disturbance::{Disturbance, disturbance, least_disturbed};
use crate::objective::{Objective, Outcome};
use crate::steady::{self, Finding, Floors, Steadiness};

pub(crate) use generator::script_functions;
pub(crate) use rules::{AGENT_LOST, DISTURBED, NOBODY_IN, SERVER_EXITED, most};
pub use views::Seen;
use views::View;

/// What a rung, or a whole run, is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
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
pub struct Criteria {
    /// what the rung must meet; without any, nothing can be told
    pub objectives: Vec<Objective>,
    /// what gates ask at this load: it is measured and decides nothing about the rung
    #[serde(default)]
    pub gates: Vec<Objective>,
    /// further goals of a search: what each asks instead of `objectives`
    #[serde(default)]
    pub goals: Vec<Vec<Objective>>,
    /// the generator as it was weighed before the climb
    pub calibration: Option<Calibration>,
    /// what the plan means to offer in the hold, where the plan alone fixes it (not in a closed loop, nor when a
    /// server's answer starts the next game)
    pub intended: Option<Intended>,
    /// an answer after this is late, ns
    pub patience_ns: u64,
    /// the way to the server, where it is known
    pub link: Option<Link>,
    /// how long the hold was asked to be, ns; 0 where it was to end with a count, or is not known
    #[serde(default)]
    pub hold_ns: u64,
    /// the server surely tells its ticks, and goes on telling when there are none: it is one of ours, and so is its log
    #[serde(default)]
    pub tells_ticks: bool,
    /// no client of this run is known to have been accepted before this trial: neither by the probe before any load nor
    /// in an earlier trial
    #[serde(default)]
    pub is_first_contact: bool,
}

/// How many messages the plan means to offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intended {
    /// a mean rate over all bots; arrivals are random
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
    /// most messages per second that this machine sends and receives
    pub ceiling_per_s: Option<f64>,
    /// something else took CPU each time it was measured: it is shown and condemns no rung
    #[serde(default)]
    pub was_disturbed: bool,
}

/// The way to the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// `lo`, `eth0`
    pub name: String,
    /// radio links spoil runs
    pub is_wireless: bool,
    /// its speed in one direction, if it is reported
    pub bytes_per_s: Option<f64>,
}

/// What was decided about one trial, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// the verdict
    pub verdict: Verdict,
    /// one sentence that names figure, value and remedy; `None` when it passed
    pub reason: Option<String>,
    /// what else must be known of it: how much was disturbed and by what; also when it passed
    #[serde(default)]
    pub remark: Option<String>,
    /// short name of what gave first: `ticks.late_share`, `drifting`, `server exited` …; `None` when it passed
    pub signal: Option<String>,
    /// how the hold went; `None` when it was too short to tell
    pub steady: Option<Steadiness>,
    /// share of the hold's seconds in which something else took the machine; `None` where that is not readable
    pub disturbed_share: Option<f64>,
    /// what took it
    #[serde(default)]
    pub disturbance: Disturbance,
    /// the phases of the arrivals in the server's ticks; `None` if not counted
    #[serde(default)]
    pub arrival_phases: Option<ArrivalPhases>,
    /// the figures behind it
    pub evidence: Evidence,
}

/// The figures behind a judgement, over the hold. What was not measured is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Evidence {
    /// every objective, in the order of the plan
    pub objectives: Vec<ObjectiveResult>,
    /// what gates asked at this load
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<ObjectiveResult>>")]
    pub gates: Vec<ObjectiveResult>,
    /// what the trial is worth to each further goal of a search, in their order
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<GoalResult>>")]
    pub goals: Vec<GoalResult>,
    /// of all sends
    pub send_lag_p99_ns: Option<f64>,
    /// beyond this the generator was late
    pub send_lag_limit_ns: Option<f64>,
    /// the most that one worker was on a core in a second
    pub worker_cpu_share_max: Option<f64>,
    /// the most that one worker was kept waiting for a core in a second
    pub worker_waiting_share_max: Option<f64>,
    /// of the generator against a server that does nothing
    pub own_latency_p99_ns: Option<f64>,
    /// what may be the generator's own of the tightest latency bound
    pub own_latency_limit_ns: Option<f64>,
    /// the busiest worker's share of the hold
    pub busy_share_max: Option<f64>,
    /// messages that the plan meant to send
    pub intended: Option<f64>,
    /// share of disturbed seconds
    pub disturbed_share: Option<f64>,
    /// where the level changed: of what, after how many seconds, the levels before and after
    #[ts(type = "unknown")]
    pub change: Option<Value>,
    /// how the arrivals lay in the server's ticks
    pub arrival_phases: Option<ArrivalPhases>,
}

impl Evidence {
    /// What the figure of an objective was, named by its text.
    pub fn value_of(&self, objective: &str) -> Option<f64> {
        self.objectives.iter().find(|one| one.objective == objective)?.value
    }
}

/// What a trial is worth to a further goal of a search, which asks other objectives of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct GoalResult {
    /// by the goal's objectives and the same rules
    pub verdict: Verdict,
    /// what gave first; null where it passed
    pub signal: Option<String>,
    /// why it did not pass
    pub reason: Option<String>,
    /// every objective of the goal, in its order
    pub objectives: Vec<ObjectiveResult>,
}

/// What a rung says about one objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ObjectiveResult {
    /// as its author wrote it
    pub objective: String,
    /// null where that cannot be told
    pub met: Option<bool>,
    /// over all seconds, in the figure's inner unit; null where it was not measured or is infinite
    pub value: Option<f64>,
    /// the value for people where it was not met, what is missing, or by how many samples it is met without a value
    pub note: Option<String>,
    /// which seconds decided
    pub judged_by: String,
    /// of a percentile that too few samples state: whether the share of samples beyond the bound would meet it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_by_share: Option<bool>,
    /// where only samples are missing: so many times as many are likely to decide it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_as_many: Option<f64>,
}

impl Judgement {
    /// True when the server stopped replying within the hold.
    pub fn stopped_replying(&self) -> bool {
        self.signal.as_deref() == Some(silence::STOPPED_REPLYING)
    }
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
    /// the same trial without its disturbed seconds, where it has enough others
    fair: Option<&'a Trial>,
    terms: &'a Criteria,
    outcomes: Vec<Asked<'a>>,
    gates: Vec<Asked<'a>>,
    finding: Option<Finding>,
    disturbance: Disturbance,
    arrival_phases: Option<ArrivalPhases>,
}

/// An objective and what the trial says about it.
struct Asked<'a> {
    objective: &'a Objective,
    /// over all seconds
    whole: Outcome,
    /// after disturbances are allowed for
    seen: Seen,
}

impl Asked<'_> {
    /// `response.p99 was 61 ms in the undisturbed seconds (objective: response.p99 <= 50ms)`.
    fn missed_words(&self, shown: &str, seconds: &str) -> String {
        format!("{} was {shown}{seconds} (objective: {})", self.objective.figure().name, self.objective)
    }
}

impl Case<'_> {
    /// True when latencies were read at a few places of the tick only.
    fn is_locked(&self) -> bool {
        self.arrival_phases.is_some_and(|found| found.is_locked())
    }

    /// True when every objective held, one way or the other; all other rules then need undisturbed seconds.
    fn meets_all(&self) -> bool {
        !self.outcomes.is_empty() && self.outcomes.iter().all(|asked| asked.seen.is_met())
    }

    /// The seconds that are fair to judge by: all where nothing was disturbed; `None` where too few were not.
    fn fair_view(&self) -> Option<&Trial> {
        if self.disturbance.any() { self.fair } else { Some(self.trial) }
    }
}

type Rule = fn(&Case<'_>) -> Option<Ruling>;

/// The rules in the order in which they are asked.
const IN_ORDER: &[Rule] = &[
    // Nothing can be proved.
    rules::books,
    rules::agent_lost,
    rules::interrupted,
    // Evidence that no disturbance explains.
    rules::exited,
    shutdown::shutdown,
    rules::nobody_in,
    requests::connections,
    rules::never_held,
    deliveries::unowed,
    deliveries::residual,
    deliveries::told_otherwise,
    rules::out_of_step,
    cheats::cheats,
    rules::wrong_answers,
    rules::audit,
    deliveries::unknown_messages,
    rules::broken_connections,
    rules::not_admitted,
    sessions::failed,
    generator::left_behind,
    generator::sent_nothing,
    silence::no_ticks,
    silence::clients_hear_nothing,
    silence::no_replies,
    silence::no_deliveries,
    rules::certain_objectives,
    // The generator is checked before the server.
    sessions::bounded,
    generator::limited,
    deliveries::unread,
    consistency::inconsistent,
    rules::objectives,
    ticks_due::games_missing,
    ticks_due::too_many,
    games::unended,
    games::contradicted,
    rules::connections,
    deliveries::backlog,
    rules::drifting,
    rules::not_done,
    sessions::unended,
    requests::aliased,
    requests::nothing_asked,
    games::none_ended,
    rules::unread,
    rules::too_little,
];

/// Judges one trial, also by each further goal.
///
/// `calmer` is the same trial without the seconds that `least_disturbed` leaves out; `None` where there are none.
pub fn judge(trial: &Trial, calmer: Option<&Trial>, terms: &Criteria) -> Judgement {
    let mut judgement = judge_by(trial, calmer, terms);
    judgement.evidence.goals = of_goals(terms)
        .map(|terms| judge_by(trial, calmer, &terms))
        .map(|of_goal| GoalResult {
            verdict: of_goal.verdict,
            signal: of_goal.signal,
            reason: of_goal.reason,
            objectives: of_goal.evidence.objectives,
        })
        .collect();
    judgement
}

/// The same terms with the objectives of each further goal.
fn of_goals(terms: &Criteria) -> impl Iterator<Item = Criteria> {
    let of_goal = |objectives: &Vec<Objective>| Criteria {
        objectives: objectives.clone(),
        gates: Vec::new(),
        goals: Vec::new(),
        ..terms.clone()
    };
    terms.goals.iter().map(of_goal)
}

fn judge_by<'a>(trial: &'a Trial, calmer: Option<&'a Trial>, terms: &'a Criteria) -> Judgement {
    let disturbance = disturbance(trial);
    let chosen = least_disturbed(trial, terms.hold_ns);
    let fair = calmer.filter(|_| chosen.are_undisturbed);
    let least = calmer.filter(|_| !chosen.are_undisturbed).map(|calmer| (calmer, &chosen));
    let view = View { trial, fair, least, disturbance: &disturbance };
    let ask = |objectives: &'a [Objective]| -> Vec<Asked<'a>> {
        let asked =
            |objective| Asked { objective, whole: objective.evaluate(trial), seen: view.look(objective) };
        objectives.iter().map(asked).collect()
    };
    let steady_in = if disturbance.any() { fair } else { Some(trial) };
    let case = Case {
        trial,
        fair,
        terms,
        outcomes: ask(&terms.objectives),
        gates: ask(&terms.gates),
        finding: steady_in.and_then(|seen| steady::steadiness(seen, &floors(seen, terms))),
        disturbance,
        arrival_phases: arrival_phases(trial),
    };
    let ruling = IN_ORDER.iter().find_map(|rule| rule(&case));
    Judgement {
        verdict: ruling.as_ref().map_or(Verdict::Pass, |ruling| ruling.verdict),
        remark: remark(&case),
        signal: ruling.as_ref().map(|ruling| ruling.signal.clone()),
        reason: ruling.map(|ruling| ruling.reason),
        steady: case.finding.as_ref().map(|finding| finding.steadiness),
        disturbed_share: case.disturbance.share(),
        arrival_phases: case.arrival_phases,
        evidence: evidence(&case),
        disturbance: case.disturbance,
    }
}

/// Whether a hold that is under way has what it takes to be judged when it ends now: every objective is met so far and
/// the clients' view does not contradict the server's; or one is missed by more than disturbances explain; or enough
/// undisturbed seconds were seen. Of several goals: by each.
pub fn has_seen_enough(trial: &Trial, terms: &Criteria) -> bool {
    let disturbance = disturbance(trial);
    if !disturbance.any() || least_disturbed(trial, terms.hold_ns).are_undisturbed {
        return true;
    }
    let view = View { trial, fair: None, least: None, disturbance: &disturbance };
    let is_told = |objectives: &Vec<Objective>| {
        let seen: Vec<Seen> = objectives.iter().map(|objective| view.look(objective)).collect();
        seen.iter().any(|seen| matches!(seen, Seen::NotMet { .. }))
            || !(seen.iter().any(|seen| matches!(seen, Seen::Disturbed { .. }))
                || consistency::is_contradicted(trial))
    };
    std::iter::once(&terms.objectives).chain(&terms.goals).all(is_told)
}

/// What a trial says about an objective once what disturbances explain is allowed for, without leaving seconds out.
pub(crate) fn look(objective: &Objective, trial: &Trial, disturbance: &Disturbance) -> Seen {
    View { trial, fair: None, least: None, disturbance }.look(objective)
}

/// How the server ended, where it was told to; what it refused; what reads found; how many answers were redirects; which
/// connections it closed; what its sources of ticks could not tell; that it was not watched to the end; whether an
/// emulated network was slower than asked for; how much of the hold was disturbed, by what, and which objectives were judged without it.
fn remark(case: &Case<'_>) -> Option<String> {
    let parts: Vec<String> = [
        shutdown::remark,
        cheats::remark,
        lookups::remark,
        redirects::remark,
        games::remark,
        reopened::remark,
        ticks_due::remark,
        watching::remark,
        consistency::remark,
        crate::network::remark,
    ]
    .iter()
    .map(|remark| remark(case.trial))
    .chain([disturbance_remark(case)])
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn disturbance_remark(case: &Case<'_>) -> Option<String> {
    let mut text = case.disturbance.in_words()?;
    let by_fair: Vec<&str> = case
        .outcomes
        .iter()
        .filter(|asked| matches!(asked.seen, Seen::MetInFairSeconds))
        .map(|asked| asked.objective.figure().name)
        .collect();
    if !by_fair.is_empty() {
        let seconds = case.fair.map_or(0, |fair| fair.hold_seconds().count());
        text += &format!("; {} judged by the {seconds} undisturbed seconds", by_fair.join(", "));
    }
    Some(text)
}

/// A tenth of the tightest latency bound is a change worth failing for. Where only ticks are judged, replies come in
/// waves (games that began together end together) that say nothing about drift; requests have no such excuse.
fn floors(trial: &Trial, terms: &Criteria) -> Floors {
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
fn tightest(terms: &Criteria) -> Option<(&Objective, f64)> {
    terms
        .objectives
        .iter()
        .filter_map(|objective| objective.latency_bound_ns().map(|bound_ns| (objective, bound_ns)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
}

fn evidence(case: &Case<'_>) -> Evidence {
    let result = |asked: &Asked<'_>| {
        let (value, note, more) = match &asked.whole {
            Outcome::Met { value, shown } => (value.and_then(finite), shown.clone(), None),
            Outcome::NotMet { value, shown } => (finite(*value), Some(shown.clone()), None),
            Outcome::CannotTell { why, more } => (None, Some(why.clone()), *more),
        };
        let (met, judged_by) = (asked.seen.met(), asked.seen.name().to_owned());
        let met_by_share = if met.is_none() {
            asked.objective.is_met_by_share(case.fair_view().unwrap_or(case.trial))
        } else {
            None
        };
        let objective = asked.objective.to_string();
        ObjectiveResult { objective, met, value, note, judged_by, met_by_share, times_as_many: more }
    };
    let own_limit = tightest(case.terms).map(|(_, bound_ns)| generator::OWN_LATENCY_SHARE * bound_ns);
    let change = case.finding.as_ref().and_then(|finding| finding.change.as_ref());
    Evidence {
        objectives: case.outcomes.iter().map(result).collect(),
        gates: case.gates.iter().map(result).collect(),
        goals: Vec::new(),
        send_lag_p99_ns: generator::send_lag_ns(case.trial, 0.99),
        send_lag_limit_ns: finite(generator::lag_limit(case).limit_ns),
        worker_cpu_share_max: rules::most(case.trial, |host| host.worker_cpu_share),
        worker_waiting_share_max: rules::most(case.trial, |host| host.worker_waiting_share),
        own_latency_p99_ns: generator::own_latency_ns(case.terms),
        own_latency_limit_ns: own_limit,
        busy_share_max: case.trial.busy_share_max,
        intended: generator::intended(case),
        disturbed_share: case.disturbance.share(),
        change: change.map(|change| {
            let (of, after_s) = (change.of.name(), change.after_s);
            json!({ "of": of, "after_s": after_s, "before": change.before, "after": change.after })
        }),
        arrival_phases: case.arrival_phases,
    }
}

/// JSON has no infinity; what never came has no number.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests;
