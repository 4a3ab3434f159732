//! The rules of a verdict, one function each, in the order in which they are asked.
//!
//! A rule says nothing (`None`) or decides. Reasons name what was measured, the limit and the remedy.

use measure::trial::kind;
use measure::{Books, Measure, Quantile, Trial};

use super::{Case, Intended, Ruling, Terms, Verdict, tightest};
use crate::figures;
use crate::objective::{Objective, Outcome};
use crate::steady::Steadiness;
use crate::wording::{show_bytes, show_ns, show_number, show_share};

/// Causes of failed connects that are this machine's and never the server's, as the drivers name them.
pub const GENERATOR_CAUSES: [&str; 2] = ["no descriptors", "no ports"];
/// Fewer than this share of the connections open in the worst second fails a rung: what a load test of another load
/// shows is not worth much, but a few of many do not make it another load.
pub const OPEN_SHARE_LEAST: f64 = 0.95;
/// Players leave between two games, and games that began together end together. So where games are played, a
/// connection is missing only when it is missing in every second of this many.
pub const COMES_BACK_WITHIN_S: usize = 10;
/// Ticks due, of those that the games asked for would owe. Fewer means that fewer games were running, which no late
/// share would show. Games begin and end and logs have seconds of their own, hence no more than four fifths.
pub const TICKS_DUE_LEAST: f64 = 0.8;
/// Less than this of the intended messages is another load than the one asked for.
pub const OFFERED_SHARE_LEAST: f64 = 0.995;
/// Send lag may take this share of the tightest latency bound.
pub const SEND_LAG_SHARE: f64 = 0.05;
/// Our own latency against the null server may take this share of the tightest latency bound.
pub const OWN_LATENCY_SHARE: f64 = 0.10;
/// A worker that is busier than this while it lags lags because of it.
pub const BUSY_SHARE_MOST: f64 = 0.8;
/// A link may be filled to this share.
pub const LINK_SHARE_MOST: f64 = 0.8;
/// A second with more steal than this is disturbed.
pub const STEAL_SHARE_MOST: f64 = 0.02;
/// A hold with more disturbed seconds than this cannot be judged.
pub const DISTURBED_SHARE_MOST: f64 = 0.05;
/// Server and clients contradict each other when their late shares lie farther apart than this. The way to the client
/// makes some ticks late for it that were on time at the server, hence as much as a quarter.
pub const LATE_SHARES_APART_MOST: f64 = 0.25;

/// Figures whose value the first error explains best.
const COUNTS_OF_ERRORS: [&str; 4] = ["errors", "failed", "lost", "unanswered"];

const INTERRUPTED: &str = "interrupted";

pub(super) fn books(case: &Case<'_>) -> Option<Ruling> {
    let invalid = |why: String| {
        let reason = format!(
            "books do not balance: {why}; this is a bug of Stepladder, and its numbers prove nothing"
        );
        Some(Ruling::new(Verdict::Invalid, "bug", reason))
    };
    if let Some(bug) = case.trial.event(kind::BUG) {
        return invalid(bug.text.clone());
    }
    for (op, flow) in &case.trial.ops {
        if let Err(imbalance) = flow.balance() {
            return invalid(format!("{op}: {imbalance}"));
        }
    }
    for second in &case.trial.seconds {
        if let Err(imbalance) = second.flow.balance() {
            return invalid(format!("second {}: {imbalance}", second.index));
        }
    }
    if let Some(Err(imbalance)) = case.trial.books.as_ref().map(Books::balance) {
        return invalid(format!("deliveries: {imbalance}"));
    }
    let server = case.trial.ticks.as_ref().map(|ticks| ("the server's", ticks.counts));
    for (whose, counts) in server.into_iter().chain([("the clients'", case.trial.client_ticks)]) {
        if !counts.balances() {
            let (due, sum) = (counts.due, counts.on_time + counts.over + counts.under + counts.missed);
            return invalid(format!("{due} of {whose} ticks were due, but {sum} are in a class"));
        }
    }
    None
}

/// A server that exits ends its trial early too, so an early end alone is no interruption when the server has gone.
pub(super) fn interrupted(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let exited_ns = trial.event(kind::SUBJECT_EXITED).map(|event| event.at_ns);
    let asked_ns = trial
        .events
        .iter()
        .filter(|event| event.kind == INTERRUPTED || (event.kind == kind::DRAIN && event.text == INTERRUPTED))
        .map(|event| event.at_ns)
        .min();
    let was_asked = asked_ns.is_some_and(|at_ns| exited_ns.is_none_or(|exited_ns| at_ns <= exited_ns));
    let was_cut = !trial.complete && exited_ns.is_none();
    if !was_asked && !was_cut {
        return None;
    }
    let held = match &trial.hold {
        Some(hold) => format!("{} into the hold", show_ns((hold.to_ns - hold.from_ns) as f64)),
        None => "before its hold began".to_owned(),
    };
    let reason =
        format!("interrupted: the trial ended {held}; what was measured until then is intact; run it again");
    Some(Ruling::new(Verdict::Invalid, INTERRUPTED, reason))
}

pub(super) fn exited(case: &Case<'_>) -> Option<Ruling> {
    let event = case.trial.event(kind::SUBJECT_EXITED)?;
    let how = if event.text.is_empty() { "no exit status is known" } else { event.text.as_str() };
    let at = show_ns(event.at_ns as f64);
    let reason =
        format!("server exited: {how}, {at} into the trial; earlier rungs stand; its last output says why");
    Some(Ruling::new(Verdict::Fail, "server exited", reason))
}

/// Connections that are missing because of this machine.
pub(super) fn no_room(case: &Case<'_>) -> Option<Ruling> {
    let connections = &case.trial.connections;
    let asked = connections.asked;
    let open = open_throughout(case.trial);
    if open >= asked {
        return None;
    }
    let ours = connections
        .failed
        .iter()
        .find(|(cause, count)| **count > 0 && GENERATOR_CAUSES.contains(&cause.as_str()));
    let (cause, count) = ours?;
    let remedy = match cause.as_str() {
        "no ports" => "use more source addresses",
        _ => "raise the limit of open files or use more workers",
    };
    let reason = format!(
        "only {open} of {asked} connections open, because this machine had {cause} left ({count} times); {remedy}"
    );
    Some(Ruling::new(Verdict::GeneratorLimited, cause, reason))
}

/// Connections that are missing, whoever is to blame.
pub(super) fn connections(case: &Case<'_>) -> Option<Ruling> {
    let ours = no_room(case);
    if ours.is_some() {
        return ours;
    }
    let connections = &case.trial.connections;
    let asked = connections.asked;
    let open = open_throughout(case.trial);
    if open as f64 >= OPEN_SHARE_LEAST * asked as f64 {
        return None;
    }
    let connect = connections.failed.iter().max_by_key(|(_, count)| **count);
    let broken = case.trial.errors.iter().max_by_key(|(_, count)| **count);
    let because = match (connect, broken) {
        (Some((cause, count)), _) => format!("{count} attempts failed ({cause})"),
        (None, Some((cause, count))) => format!("{count} ended early ({cause})"),
        (None, None) => {
            "the others did not get in in time; a slower --ramp tells whether that is all".to_owned()
        }
    };
    let when = if plays_games(case.trial) { format!("{COMES_BACK_WITHIN_S} s") } else { "second".to_owned() };
    let reason = format!("only {open} of {asked} connections open in the worst {when}, because {because}");
    Some(Ruling::new(Verdict::Fail, "connections.open_min", reason))
}

fn plays_games(trial: &Trial) -> bool {
    trial.head.load_unit == "games"
}

/// Connections that stood throughout the hold, or that came up when there was none.
fn open_throughout(trial: &Trial) -> u64 {
    if trial.hold.is_none() {
        return trial.connections.opened_in_ramp;
    }
    if !plays_games(trial) {
        return trial.connections.open_min;
    }
    let open: Vec<u64> = trial.hold_seconds().map(|second| second.open_min).collect();
    let window = COMES_BACK_WITHIN_S.min(open.len()).max(1);
    open.windows(window).filter_map(|seconds| seconds.iter().max().copied()).min().unwrap_or(0)
}

pub(super) fn never_held(case: &Case<'_>) -> Option<Ruling> {
    let reason = match &case.trial.hold {
        None => "the hold never began although connections stood; run it again",
        Some(hold) if hold.seconds() <= 0.0 => "the hold lasted no time after the warm-up cut; hold longer",
        Some(_) => return None,
    };
    Some(Ruling::new(Verdict::Invalid, "no hold", reason.to_owned()))
}

/// How late sends may be at the 99th percentile, and why.
pub(super) struct LagLimit {
    pub limit_ns: f64,
    why: String,
}

/// With a latency objective, a share of its bound. Without one, on a server with ticks, one whole tick: a shot that
/// leaves a tick later than planned falls into another tick, and until then the server cannot tell the difference.
/// Otherwise a share of the patience, the only bound there is.
pub(super) fn lag_limit(case: &Case<'_>) -> LagLimit {
    let period_ns = case.trial.head.tick_period_ns;
    let percent = show_share(SEND_LAG_SHARE);
    match tightest(case.terms) {
        Some((objective, bound_ns)) => LagLimit {
            limit_ns: SEND_LAG_SHARE * bound_ns,
            why: format!("{percent} of the bound of {objective}"),
        },
        None if period_ns > 0 => LagLimit { limit_ns: period_ns as f64, why: "one tick".to_owned() },
        None => LagLimit {
            limit_ns: SEND_LAG_SHARE * case.terms.patience_ns as f64,
            why: format!("{percent} of the patience"),
        },
    }
}

pub(super) fn send_lag_ns(trial: &Trial, q: f64) -> Option<f64> {
    match trial.distribution(Measure::SendLag).quantile(q, 0) {
        Quantile::Ns(ns) => Some(ns as f64),
        Quantile::TooFew | Quantile::Infinite => None,
    }
}

pub(super) fn own_latency_ns(terms: &Terms) -> Option<f64> {
    terms.calibration.as_ref()?.own_latency.as_ref()?.p99.map(|ns| ns as f64)
}

/// Messages that the plan meant to offer over the connections that stood: those of a bot that the server turned away
/// are missing because of the server.
pub(super) fn intended(case: &Case<'_>) -> Option<f64> {
    let open_share = figures::open_share(case.trial).unwrap_or(1.0).min(1.0);
    let seconds = figures::counted_seconds(case.trial)?;
    Some(match case.terms.intended? {
        Intended::PerSecond(rate) => open_share * rate * seconds,
        Intended::Messages(count) => open_share * count as f64,
    })
}

const MACHINE_NOT_SERVER: &str = "its latencies say more about this machine than about the server";

pub(super) fn limited(case: &Case<'_>) -> Option<Ruling> {
    let limited = |signal: &str, reason: String| Some(Ruling::new(Verdict::GeneratorLimited, signal, reason));
    let offered = figures::paced(case.trial).offered as f64;
    if let Some(intended) = intended(case) {
        let forgiven = match case.terms.intended {
            Some(Intended::PerSecond(_)) => 3.0 * intended.sqrt(),
            _ => 0.0,
        };
        if offered < OFFERED_SHARE_LEAST * intended - forgiven {
            let reason = format!(
                "{} of the {} intended messages were offered (limit {}); this is another load than the one asked for; \
                 use more workers or a lower rate",
                show_share(offered / intended),
                show_number(intended.round()),
                show_share(OFFERED_SHARE_LEAST),
            );
            return limited("offered", reason);
        }
    }
    let limit = lag_limit(case);
    let busy_share = case.trial.busy_share_max.unwrap_or(0.0);
    // The smallest percentile that may be stated and is beyond the limit proves that p99 is too.
    let lagging = [(0.99, "p99"), (0.9, "p90"), (0.5, "p50")]
        .into_iter()
        .find_map(|(q, name)| send_lag_ns(case.trial, q).map(|lag_ns| (name, lag_ns)))
        .filter(|(_, lag_ns)| *lag_ns > limit.limit_ns);
    // With too few sends for p99 the largest lag alone would prove little, but not that of a worker with no time left.
    let max_ns = case.trial.distribution(Measure::SendLag).max_ns().map(|ns| ns as f64);
    let overworked = (busy_share > BUSY_SHARE_MOST && send_lag_ns(case.trial, 0.99).is_none())
        .then(|| max_ns.filter(|max_ns| *max_ns > limit.limit_ns).map(|max_ns| ("max", max_ns)))
        .flatten();
    if let Some((name, lag_ns)) = lagging.or(overworked) {
        let (signal, remedy) = if busy_share > BUSY_SHARE_MOST {
            let busy = show_share(busy_share);
            (
                "worker.busy_share",
                format!("the busiest worker was {busy} busy: use more workers, cores or machines"),
            )
        } else {
            ("send_lag.p99", "give the generator cores of its own or --realtime".to_owned())
        };
        let reason = format!(
            "send lag {name} was {} (limit {}: {}); {MACHINE_NOT_SERVER}; {remedy}",
            show_ns(lag_ns),
            show_ns(limit.limit_ns),
            limit.why,
        );
        return limited(signal, reason);
    }
    if let (Some((objective, bound_ns)), Some(own_ns)) = (tightest(case.terms), own_latency_ns(case.terms))
        && own_ns > OWN_LATENCY_SHARE * bound_ns
    {
        let reason = format!(
            "against a server that does nothing p99 was {} already (limit {}: {} of the bound of {objective}); \
             {MACHINE_NOT_SERVER}; ask for less or use a faster machine",
            show_ns(own_ns),
            show_ns(OWN_LATENCY_SHARE * bound_ns),
            show_share(OWN_LATENCY_SHARE),
        );
        return limited("own_latency.p99", reason);
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
    limited("link", reason)
}

/// Share of the hold's seconds with steal or throttling, of those that could be read.
pub(super) fn disturbed_share(trial: &Trial) -> Option<f64> {
    let (mut readable, mut disturbed) = (0u32, 0u32);
    for second in trial.hold_seconds() {
        if second.steal_share.is_none() && second.throttle_events.is_none() {
            continue;
        }
        readable += 1;
        let stolen = second.steal_share.is_some_and(|share| share > STEAL_SHARE_MOST);
        let throttled = second.throttle_events.is_some_and(|count| count > 0.0);
        disturbed += u32::from(stolen || throttled);
    }
    (readable > 0).then(|| f64::from(disturbed) / f64::from(readable))
}

pub(super) fn disturbed(case: &Case<'_>) -> Option<Ruling> {
    let share = case.disturbed_share.filter(|share| *share > DISTURBED_SHARE_MOST)?;
    let reason = format!(
        "disturbed: in {} of the hold's seconds (limit {}) somebody else had the processor or it was throttled; run it \
         again on a quiet machine",
        show_share(share),
        show_share(DISTURBED_SHARE_MOST),
    );
    Some(Ruling::new(Verdict::Inconclusive, "disturbed", reason))
}

/// Two witnesses that contradict each other leave the case open; neither is preferred.
pub(super) fn inconsistent(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let server = trial.ticks.as_ref()?;
    let says = |what: &str, server: String, clients: String| {
        let reason = format!(
            "inconsistent: {what} is {server} by the server and {clients} by its clients; look for what stands between \
             them, or for a server that does not tell the truth"
        );
        Some(Ruling::new(Verdict::Inconclusive, "inconsistent", reason))
    };
    let (ours, theirs) = (server.counts.late_share()?, trial.client_ticks.late_share()?);
    if (ours - theirs).abs() > LATE_SHARES_APART_MOST {
        return says("the late share of the ticks", show_share(ours), show_share(theirs));
    }
    let period_ns = trial.head.tick_period_ns;
    if let (Quantile::Ns(ours_ns), Quantile::Ns(theirs_ns)) =
        (server.interval.quantile(0.99, 0), trial.distribution(Measure::TickInterval).quantile(0.99, 0))
        && period_ns > 0
        && ours_ns.abs_diff(theirs_ns) > period_ns
    {
        return says("p99 of the interval between ticks", show_ns(ours_ns as f64), show_ns(theirs_ns as f64));
    }
    None
}

pub(super) fn objectives(case: &Case<'_>) -> Option<Ruling> {
    // Latencies read at a few places of the tick prove nothing, neither way.
    let is_believed = |objective: &Objective| !case.is_locked() || !objective.figure().is_phase_dependent();
    let mut broken = case.outcomes.iter().filter_map(|(objective, outcome)| match outcome {
        Outcome::NotMet { shown, .. } if is_believed(objective) => Some((*objective, shown)),
        Outcome::NotMet { .. } => None,
        Outcome::Met { .. } | Outcome::CannotTell { .. } => None,
    });
    let (first, shown) = broken.next()?;
    let mut reason = format!("{} was {shown} (objective: {first})", first.figure().name);
    for (objective, shown) in broken {
        reason.push_str(&format!("; {} was {shown} (objective: {objective})", objective.figure().name));
    }
    if COUNTS_OF_ERRORS.contains(&first.figure().name)
        && let Some((cause, words)) = case.trial.error_samples().next()
    {
        reason.push_str(&format!("; the first: {cause}"));
        if !words.is_empty() {
            reason.push_str(&format!(": {words}"));
        }
    }
    Some(Ruling::new(Verdict::Fail, first.figure().name, reason))
}

/// A server that runs fewer games than were asked for keeps its ticks easily.
pub(super) fn games_missing(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let period_ns = trial.head.tick_period_ns;
    if trial.ticks.is_none() || period_ns == 0 || !plays_games(trial) {
        return None;
    }
    // A log may begin and end within the hold's first and last second; those in between must all be there.
    let due: Vec<u64> = trial.hold_seconds().map(|second| second.ticks.due).collect();
    let from = due.iter().position(|count| *count > 0)?;
    let to = due.iter().rposition(|count| *count > 0)?;
    let counted: u64 = due[from..=to].iter().sum();
    let owed = trial.head.load * (to - from + 1) as f64 * 1e9 / period_ns as f64;
    let share = counted as f64 / owed;
    if share >= TICKS_DUE_LEAST {
        return None;
    }
    let reason = format!(
        "only {} of the ticks that {} games owe were due (limit {}): fewer games were running; the errors of the bots \
         say what kept them out",
        show_share(share),
        show_number(trial.head.load),
        show_share(TICKS_DUE_LEAST),
    );
    Some(Ruling::new(Verdict::Fail, "ticks.due", reason))
}

/// A server that answers fast but wrongly does not hold the load, whatever its user forgot to ask for. Bots name such
/// errors `wrong …`; in the arena the winner of each game is known beforehand.
pub(super) fn wrong_answers(case: &Case<'_>) -> Option<Ruling> {
    let (name, count) =
        case.trial.errors.iter().find(|(name, count)| name.starts_with("wrong ") && **count > 0)?;
    let reason = format!("the server's answers are not right: {name}, {count} times in the hold");
    Some(Ruling::new(Verdict::Fail, name, reason))
}

pub(super) fn drifting(case: &Case<'_>) -> Option<Ruling> {
    let finding = case.finding.as_ref().filter(|finding| finding.steadiness == Steadiness::Drifting)?;
    let change = finding.change.as_ref()?;
    let reason = format!(
        "drifting: {} rose from {} to {} after {} s of the hold and did not come back; the server has not shown that it \
         holds this load for longer",
        change.of.name(),
        change.of.show(change.before),
        change.of.show(change.after),
        change.after_s,
    );
    Some(Ruling::new(Verdict::Fail, "drifting", reason))
}

pub(super) fn too_little(case: &Case<'_>) -> Option<Ruling> {
    if case.outcomes.is_empty() {
        let reason = "no objective was given, so nothing could be met; write one with --objective".to_owned();
        return Some(Ruling::new(Verdict::Inconclusive, "no objective", reason));
    }
    let (objective, why) = case.outcomes.iter().find_map(|(objective, outcome)| match outcome {
        Outcome::CannotTell { why } => Some((objective, why)),
        _ => None,
    })?;
    let reason = format!("cannot tell whether {objective} held: {why}");
    Some(Ruling::new(Verdict::Inconclusive, objective.figure().name, reason))
}
