//! What the load generator could not do: connections it had no room for, messages it did not offer, sends that were
//! late.

use measure::trial::kind;
use measure::{AgentFacts, ErrorKind, LoadUnit, Measure, Quantile, Role, ScriptFunction, Trial};

use super::own_lag::{self, AllTheSame};
use super::rules::{OFFERED_SHARE_LEAST, most, open_throughout};
use super::{Case, Criteria, DISTURBED, Intended, Ruling, Verdict, reopened, tightest};
use crate::contract::ScriptFunctionFigures;
use crate::figures;
use crate::wording::{show_bytes, show_ns, show_number, show_share};

/// Send lag may take this share of the tightest latency bound.
pub const SEND_LAG_SHARE: f64 = 0.05;
/// Our own latency against the null server may take this share of the tightest latency bound.
pub const OWN_LATENCY_SHARE: f64 = 0.10;
/// A worker that is busier than this while it lags lags because of it: not asleep, where nothing tells its time on a core.
pub const BUSY_SHARE_MOST: f64 = 0.8;
/// A worker that is busier than this has no time left, and is late to hear what comes.
const BURIED_SHARE: f64 = 0.95;
/// A worker that waits for a core for more than this share of a second while it lags lags because of it.
pub const WAITS_SHARE_MOST: f64 = 0.1;
/// A link may be filled to this share.
pub const LINK_SHARE_MOST: f64 = 0.8;
/// Less than this share of the bots' CPU explains nothing.
const SCRIPT_SHARE_TOLD: f64 = 0.1;
/// Functions of a script that the JSON shows.
const SCRIPT_FUNCTIONS_SHOWN: usize = 3;

/// How late sends may be at the 99th percentile, and why.
pub(super) struct LagLimit {
    pub limit_ns: f64,
    why: String,
}

/// With a latency objective, a share of its bound. Without one, on a server with ticks, one whole tick: a shot that
/// leaves a tick later than planned falls into another tick, and until then the server cannot tell the difference.
/// Otherwise a share of the time after which an answer is late, the only bound there is. Where every objective is met the
/// whole bound: what is timed from its planned instant and in time is in time, however late it left.
pub(super) fn lag_limit(case: &Case<'_>) -> LagLimit {
    let period_ns = case.trial.head.tick_period_ns;
    let (share, percent) = if case.meets_all() {
        (1.0, String::new())
    } else {
        (SEND_LAG_SHARE, format!("{} of ", show_share(SEND_LAG_SHARE)))
    };
    match tightest(case.terms) {
        Some((objective, bound_ns)) => {
            LagLimit { limit_ns: share * bound_ns, why: format!("{percent}the bound of {objective}") }
        }
        None if period_ns > 0 => LagLimit { limit_ns: period_ns as f64, why: "one tick".to_owned() },
        None => LagLimit {
            limit_ns: share * case.terms.patience_ns as f64,
            why: format!("{percent}the time after which an answer is late"),
        },
    }
}

pub(super) fn send_lag_ns(trial: &Trial, q: f64) -> Option<f64> {
    match trial.distribution(Measure::SendLag).quantile(q, 0) {
        Quantile::Ns(ns) => Some(ns as f64),
        Quantile::TooFew | Quantile::Infinite => None,
    }
}

/// A quantile of the send lag if it is above the limit, whatever the reason.
pub(super) fn late_ns(case: &Case<'_>, q: f64) -> Option<f64> {
    send_lag_ns(case.trial, q).filter(|lag_ns| *lag_ns > lag_limit(case).limit_ns)
}

/// As it was weighed in an undisturbed calibration: what a verdict may rest on.
pub(super) fn undisturbed_own_latency_ns(terms: &Criteria) -> Option<f64> {
    let was_disturbed = terms.calibration.as_ref().is_some_and(|calibration| calibration.was_disturbed);
    own_latency_ns(terms).filter(|_| !was_disturbed)
}

pub(super) fn own_latency_ns(terms: &Criteria) -> Option<f64> {
    terms.calibration.as_ref()?.own_latency.as_ref()?.p99.map(|ns| ns as f64)
}

/// Connections that are missing because of this machine.
pub(super) fn no_room(case: &Case<'_>) -> Option<Ruling> {
    let (connections, names) = (&case.trial.connections, &case.trial.head.metric_names);
    let asked = connections.asked;
    let open = open_throughout(case.trial);
    if open >= asked {
        return None;
    }
    let ours = connections
        .failed
        .iter()
        .find(|(cause, count)| **count > 0 && names.kind_of(cause) == Some(ErrorKind::Generator));
    let (cause, count) = ours?;
    Some(no_room_for(cause, *count, &format!("only {open} of {asked} connections open")))
}

/// `what` is missing, because this machine had none left of something.
pub(super) fn no_room_for(cause: &str, count: u64, what: &str) -> Ruling {
    let remedy = match cause {
        "no ports" => "use more source addresses",
        _ => "raise the limit of open files or use more workers",
    };
    let reason = format!("{what}, because this machine had {cause} left ({count} times); {remedy}");
    Ruling::new(Verdict::GeneratorLimited, cause, reason)
}

/// Messages that the plan meant to offer over the connections that stood: those of a bot that the server rejected
/// are missing because of the server.
pub(super) fn intended(case: &Case<'_>) -> Option<f64> {
    let connections = &case.trial.connections;
    let open_share = match figures::open_share(case.trial) {
        // A request opens its connection on demand.
        Some(_) if reopened::is_allowed(case.trial) => {
            connections.opened_in_ramp as f64 / connections.asked as f64
        }
        share => share.unwrap_or(1.0),
    };
    let open_share = open_share.min(1.0);
    let seconds = figures::counted_seconds(case.trial)?;
    Some(match case.terms.intended? {
        Intended::PerSecond(rate) => open_share * rate * seconds,
        Intended::Messages(count) => open_share * count as f64,
    })
}

/// Fewer late sends than this may be one hiccup …
const LATE_SENDS_LEAST: u64 = 10;
/// … and so may a smaller share of them.
const LATE_SENDS_SHARE: f64 = 0.05;

const MACHINE_NOT_SERVER: &str = "its latencies say more about this machine than about the server";

/// What was measured with a generator at its limit says nothing against the server, but for what its own delays cannot
/// explain (`own_lag`). What was met all the same is met: responses count from the planned instant, so a late generator makes
/// them longer and never shorter.
///
/// Where only disturbed seconds show a late generator it was disturbed too, and `objectives` says so.
pub(super) fn limited(case: &Case<'_>) -> Option<Ruling> {
    if let Some(ruling) = offered(case) {
        return Some(ruling);
    }
    let late = lagging(case).or_else(|| late_agent(case)).or_else(|| own_latency(case));
    let link = link(case);
    let Some(late) = late else { return link };
    // A worker with no idle time, or a full link, delays more than can be measured.
    let is_full = link.is_some() || [CPU, BUSY].contains(&late.signal.as_str());
    match if is_full { AllTheSame::Unknown } else { own_lag::all_the_same(case) } {
        AllTheSame::Met => None,
        AllTheSame::Missed(ruling) => Some(ruling),
        AllTheSame::Unknown => Some(late),
    }
}

/// The signals of a worker that has no time left.
const CPU: &str = "worker.cpu";
const BUSY: &str = "worker.busy_share";

fn is_limited(signal: &str, reason: String) -> Option<Ruling> {
    Some(Ruling::new(Verdict::GeneratorLimited, signal, reason))
}

/// Random arrivals may be fewer than intended by this many standard deviations; chance alone exceeds it in one of 10 million rungs.
const OFFERED_DEVIATIONS: f64 = 5.0;

/// A load other than the requested one was offered, and no disturbance is to blame.
fn offered(case: &Case<'_>) -> Option<Ruling> {
    let intended = intended(case)?;
    let offered = figures::paced(case.trial).offered as f64;
    let forgiven = match case.terms.intended {
        Some(Intended::PerSecond(_)) => OFFERED_DEVIATIONS * intended.sqrt(),
        _ => 0.0,
    };
    if offered >= OFFERED_SHARE_LEAST * intended - forgiven {
        return None;
    }
    let share = show_share(offered / intended);
    let of = show_number(intended.round());
    let limit = show_share(OFFERED_SHARE_LEAST);
    let what = if case.trial.head.load_unit == LoadUnit::Sessions { "sessions" } else { "messages" };
    if case.disturbance.any() {
        let reason = format!(
            "disturbed: only {share} of the {of} intended {what} were offered (limit {limit}), while {}; run it again on a \
             quiet machine",
            case.disturbance.culprit()
        );
        return Some(Ruling::new(Verdict::Inconclusive, DISTURBED, reason));
    }
    let reason = format!(
        "{share} of the {of} intended {what} were offered (limit {limit}); this is another load than the one asked for; \
         use more workers or a lower rate",
    );
    is_limited("offered", reason)
}

/// Sends left too late, in seconds that nothing disturbed.
fn lagging(case: &Case<'_>) -> Option<Ruling> {
    let view = case.fair_view()?;
    let limit = lag_limit(case);
    let busy_share = view.busy_share_max.unwrap_or(0.0);
    let cpu_share = most(view, |host| host.worker_cpu_share);
    let waiting_share = most(view, |host| host.worker_waiting_share);
    // If the smallest percentile that may be stated exceeds the limit, p99 does too.
    let lagging = [(0.99, "p99"), (0.9, "p90"), (0.5, "p50")]
        .into_iter()
        .find_map(|(q, name)| send_lag_ns(view, q).map(|lag_ns| (name, lag_ns)))
        .filter(|(_, lag_ns)| *lag_ns > limit.limit_ns);
    // With too few sends for p99 the largest lag alone proves little, except for a worker with no idle time.
    let max_ns = view.distribution(Measure::SendLag).max_ns().map(|ns| ns as f64);
    let has_no_time = cpu_share.unwrap_or(busy_share) > BUSY_SHARE_MOST;
    let overworked = (has_no_time && send_lag_ns(view, 0.99).is_none())
        .then(|| max_ns.filter(|max_ns| *max_ns > limit.limit_ns).map(|max_ns| ("max", max_ns)))
        .flatten();
    // Even with too few sends for any percentile it is visible when a good part of them was late.
    let lags = view.distribution(Measure::SendLag);
    let late = lags.count_above(limit.limit_ns);
    let is_often_late = late >= LATE_SENDS_LEAST && late as f64 >= LATE_SENDS_SHARE * lags.count() as f64;
    let shown = match lagging.or(overworked) {
        Some((name, lag_ns)) => {
            let (lag, limit_ns) = (show_ns(lag_ns), show_ns(limit.limit_ns));
            format!("send lag {name} was {lag} (limit {limit_ns}: {})", limit.why)
        }
        None if is_often_late => {
            let (share, limit_ns) = (show_share(late as f64 / lags.count() as f64), show_ns(limit.limit_ns));
            format!("{share} of the sends were later than {limit_ns} (the limit: {})", limit.why)
        }
        None => return None,
    };
    let (signal, remedy) = match (cpu_share, waiting_share) {
        (Some(share), _) if share > BUSY_SHARE_MOST => {
            let share = show_share(share);
            let of_script = of_script(view);
            (CPU, format!("the busiest worker used {share} of a core{of_script}: {MORE_WORKERS}"))
        }
        (_, Some(share)) if share > WAITS_SHARE_MOST => {
            let share = show_share(share);
            (
                "worker.waiting",
                format!(
                    "a worker waited for a core {share} of a second: give the generator cores of its own"
                ),
            )
        }
        (None, _) if busy_share > BUSY_SHARE_MOST => {
            (BUSY, format!("{}: {MORE_WORKERS}", busiest(view, busy_share)))
        }
        _ => ("send_lag.p99", "give the generator cores of its own or --realtime".to_owned()),
    };
    is_limited(signal, format!("{shown}; {MACHINE_NOT_SERVER}; {remedy}"))
}

/// The sends of one agent were late where those of all together were not: of many agents one is lost in their sum. Its seconds
/// are not told apart, so only in a hold that nothing disturbed.
fn late_agent(case: &Case<'_>) -> Option<Ruling> {
    let limit = lag_limit(case);
    let agents = case.trial.agents();
    let lag_ns = |agent: &AgentFacts| agent.send_lag_p99_ns.map_or(0.0, |lag_ns| lag_ns as f64);
    let late = agents.iter().max_by(|a, b| lag_ns(a).total_cmp(&lag_ns(b)))?;
    if case.disturbance.any() || lag_ns(late) <= limit.limit_ns {
        return None;
    }
    let (name, lag, limit_ns) = (&late.name, show_ns(lag_ns(late)), show_ns(limit.limit_ns));
    is_limited(
        "send_lag.p99",
        format!(
            "send lag p99 of agent {name} was {lag} (limit {limit_ns}: {}); {MACHINE_NOT_SERVER}; give it fewer bots or cores of \
             its own",
            limit.why
        ),
    )
}

/// Bots that waited for `what` without success while a worker had no time left, perhaps too late to read answers that
/// came: it cannot be decided whose fault that was.
pub(super) fn buried(case: &Case<'_>, what: &str) -> Option<Ruling> {
    let trial = case.trial;
    let hold_ends_ns = trial.hold.as_ref().map_or(u64::MAX, |hold| hold.to_ns);
    let until_then =
        trial.seconds.iter().filter(|second| u64::from(second.index) * 1_000_000_000 < hold_ends_ns);
    let busy_share = until_then.map(|second| second.busy_share_max).max_by(f64::total_cmp)?;
    let least = if lagging(case).is_some() { BUSY_SHARE_MOST } else { BURIED_SHARE };
    if busy_share <= least {
        return None;
    }
    let reason = format!(
        "{what}, which says more about this machine than about the server: {}; {MORE_WORKERS}, or a slower --ramp",
        busiest(trial, busy_share.min(1.0)),
    );
    is_limited(BUSY, reason)
}

/// More messages never left, or had replies that were not read by the stop, than the server made fail, over connections that
/// all stood, while a worker had no time left: they say nothing about the server. Nor does what never left where a disturbance made
/// the worker late.
pub(super) fn undone(case: &Case<'_>) -> Option<Ruling> {
    let (trial, flow) = (case.trial, figures::spoken(case.trial));
    let unanswered = figures::questions(trial).open_after;
    let outstanding = flow.not_sent + unanswered;
    let all_stood = open_throughout(trial) >= trial.connections.asked;
    if outstanding == 0 || !all_stood || figures::caused_errors(trial) >= outstanding {
        return None;
    }
    let (count, what) = if flow.not_sent > 0 {
        (flow.not_sent, "never left")
    } else {
        (unanswered, "had no reply that was read in time")
    };
    let of = format!("{} of {} messages {what}", show_number(count as f64), show_number(flow.offered as f64));
    buried(case, &of).or_else(|| if flow.not_sent > 0 { late_beside_others(case, &of) } else { None })
}

/// `what` happened on a disturbed machine whose workers were late: a worker that was kept off its core sends late, and what it
/// could not send by the end is not the server's fault.
pub(super) fn late_beside_others(case: &Case<'_>, what: &str) -> Option<Ruling> {
    if !case.disturbance.any() || late_ns(case, 0.9).is_none() {
        return None;
    }
    let reason = format!("{what}, and that may not be the server: {}", case.disturbance.culprit());
    Some(Ruling::new(Verdict::Inconclusive, DISTURBED, reason))
}

/// A worker did not get to everything that was planned, however long after the hold: the server did not get all its
/// requests.
pub(super) fn left_behind(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let behind = trial.events.iter().filter(|event| event.kind == kind::GENERATOR_BEHIND);
    let left: u64 = behind.filter_map(|event| event.text.parse::<u64>().ok()).sum();
    if left == 0 {
        return None;
    }
    let reason = format!(
        "this machine had no time for {} timers of the bots that were due before the hold ended: {}; {MORE_WORKERS}",
        show_number(left as f64),
        busiest(trial, trial.busy_share_max.unwrap_or(1.0)),
    );
    is_limited(BUSY, reason)
}

/// Nothing of what was planned in the hold left in it, over connections that stood, from a worker without time: the server was
/// asked nothing.
pub(super) fn sent_nothing(case: &Case<'_>) -> Option<Ruling> {
    let (trial, flow) = (case.trial, case.trial.flow());
    // Not asleep: running, or waiting for a core.
    let cpu_share = most(trial, |host| host.worker_cpu_share).unwrap_or(0.0);
    let busy_share = trial.busy_share_max.unwrap_or(0.0).max(cpu_share);
    let was_asked = flow.sent > 0 || flow.not_sent == 0;
    if was_asked || busy_share <= BUSY_SHARE_MOST || open_throughout(trial) < trial.connections.asked {
        return None;
    }
    let reason = format!(
        "none of the {} messages that were planned in the hold left in it: {}; {MORE_WORKERS}",
        show_number(flow.not_sent as f64),
        busiest(trial, busy_share),
    );
    is_limited(CPU, reason)
}

const MORE_WORKERS: &str = "use more workers, cores or machines";

/// `the busiest worker was 98 % busy`, and what scripts had of that.
fn busiest(view: &Trial, share: f64) -> String {
    format!("the busiest worker was {} busy{}", show_share(share), of_script(view))
}

/// `, and scripts took 71 % of the bots' CPU, most of it in decode (codec.ts:41)`, where they are scripts.
fn of_script(view: &Trial) -> String {
    let (Some(script_ms), held_s) = (view.counts(Role::ScriptTime).next(), view.held_s()) else {
        return String::new();
    };
    let bots_s = view.worker.cpu_cores * held_s;
    if bots_s <= 0.0 {
        return String::new();
    }
    let share = (script_ms as f64 / 1e3 / bots_s).min(1.0);
    if share < SCRIPT_SHARE_TOLD {
        return String::new();
    }
    let share = show_share(share);
    let functions = script_functions(view);
    let largest = functions.first().map_or(String::new(), |ScriptFunctionFigures { name, place, share }| {
        let name = if name.is_empty() { "a function without a name" } else { name };
        let much = if *share > 0.5 { "most".to_owned() } else { show_share(*share) };
        format!(", {much} of it in {name} ({place})")
    });
    format!(", and scripts took {share} of the bots' CPU{largest}")
}

/// The functions of a script that took most, with their shares of the scripts' time in the hold.
pub(crate) fn script_functions(view: &Trial) -> Vec<ScriptFunctionFigures> {
    let Some(script_ms @ 1..) = view.counts(Role::ScriptTime).next() else { return Vec::new() };
    let figures = |function: ScriptFunction| {
        let share = (function.ms as f64 / script_ms as f64).min(1.0);
        ScriptFunctionFigures { name: function.name, place: function.place, share }
    };
    view.script_functions().into_iter().take(SCRIPT_FUNCTIONS_SHOWN).map(figures).collect()
}

/// Our share of the latency against a server that does nothing is too large, and the rung's own readings do not show
/// otherwise: a calibration never condemns a rung whose sends and receipts were in time.
fn own_latency(case: &Case<'_>) -> Option<Ruling> {
    if case.meets_all() {
        return None;
    }
    let (objective, bound_ns) = tightest(case.terms)?;
    let own_ns = undisturbed_own_latency_ns(case.terms)?;
    let limit_ns = OWN_LATENCY_SHARE * bound_ns;
    let in_time = |measure| match case.fair_view()?.distribution(measure).quantile(0.99, 0) {
        Quantile::Ns(ns) => Some(ns as f64 <= limit_ns / 2.0),
        Quantile::TooFew | Quantile::Infinite => None,
    };
    let is_fine = in_time(Measure::SendLag) == Some(true) && in_time(Measure::ReceiveLag) == Some(true);
    if own_ns <= limit_ns || is_fine {
        return None;
    }
    let reason = format!(
        "against a server that does nothing p99 was {} already (limit {}: {} of the bound of {objective}); \
         {MACHINE_NOT_SERVER}; ask for less or use a faster machine",
        show_ns(own_ns),
        show_ns(limit_ns),
        show_share(OWN_LATENCY_SHARE),
    );
    is_limited("own_latency.p99", reason)
}

fn link(case: &Case<'_>) -> Option<Ruling> {
    if case.meets_all() {
        return None;
    }
    let link = case.terms.link.as_ref()?;
    let (speed, used) = (link.bytes_per_s?, case.trial.bytes_per_s?);
    if used <= LINK_SHARE_MOST * speed {
        return None;
    }
    let kind = if link.is_wireless { "wireless " } else { "" };
    let reason = format!(
        "link: {}/s went over the {kind}link {} of {}/s (limit {}); use a faster one",
        show_bytes(used),
        link.name,
        show_bytes(speed),
        show_share(LINK_SHARE_MOST),
    );
    is_limited("link", reason)
}

#[cfg(test)]
mod tests;
