//! Reads figures from a trial: the counts, shares and distributions behind the table.
//!
//! Invariant: what was not measured is absent, with the reason, and never zero.

use std::borrow::Cow;
use std::collections::BTreeMap;

use measure::ledger::SumOfBooks;
use measure::ticklog::{NODE_DUE, NODE_LATE};
use measure::{Distribution, ErrorKind, Flow, LoadUnit, Measure, Role, ServerCounter, TickCounts, Trial};

use super::*;
use crate::contract::FrameFigures;

/// Fewer ticks of a node than this say nothing of it.
const NODE_TICKS_LEAST: u64 = 100;

/// The values of a distribution and how many messages took infinitely long.
pub(crate) fn sample(trial: &Trial, of: Of) -> Result<(Cow<'_, Distribution>, u64), FigureValue> {
    if trial.hold.is_none() && of != Of::Handshake {
        return Err(NO_HOLD);
    }
    let of_measure = |measure| Cow::Borrowed(trial.distribution(measure));
    Ok(match of {
        Of::Response => (of_measure(Measure::Response), never_answered(trial)),
        Of::Service => {
            let flow = questions(trial);
            (of_measure(Measure::Service), flow.failed + flow.lost + flow.open_after)
        }
        Of::SendLag => (of_measure(Measure::SendLag), 0),
        Of::Handshake => (of_measure(Measure::Handshake), trial.connections.failed.values().sum()),
        Of::Delivery => (of_measure(Measure::Delivery), judged(trial)?.missing()),
        Of::TickInterval => match &trial.ticks {
            Some(ticks) => (Cow::Borrowed(&ticks.interval), 0),
            None if trial.client_ticks.due > 0 => (of_measure(Measure::TickInterval), 0),
            None => return Err(NO_TICKS),
        },
        Of::TickBusy => match trial.ticks.as_ref().map(|ticks| ticks.busy.as_ref()) {
            Some(Some(busy)) => (Cow::Borrowed(busy), 0),
            Some(None) => return Err(FigureValue::Absent("the server does not tell its work per tick")),
            None => return Err(NO_TICKS),
        },
        Of::ClientInterval if trial.client_ticks.due == 0 => return Err(NO_CLIENT_TICKS),
        Of::ClientInterval => (of_measure(Measure::TickInterval), 0),
        Of::FirstByte => (of_measure(Measure::FirstByte), never_began(trial)),
        Of::Tls => (of_measure(Measure::Tls), 0),
        Of::Operation(name)
            if trial.ops.get(name).is_some_and(|flow| flow.offered + flow.open_before == 0) =>
        {
            return Err(NOT_IN_THE_HOLD);
        }
        Of::Operation(name) => {
            let values =
                trial.of_ops.get(name).map_or_else(|| Cow::Owned(Distribution::new()), Cow::Borrowed);
            (values, never_answered_of(trial, name))
        }
        Of::Value(name) => {
            (trial.values.get(name).map_or_else(|| Cow::Owned(Distribution::new()), Cow::Borrowed), 0)
        }
    })
}

/// Messages that owe a reply. An operation with any told message owes none: its unsent ones miss no answer.
pub(crate) fn questions(trial: &Trial) -> Flow {
    trial.messages().filter(|(_, flow)| flow.told == 0).fold(Flow::default(), |mut sum, (_, flow)| {
        sum.add(flow);
        sum
    })
}

/// What a plan's rate refers to: sessions, or messages.
pub(crate) fn paced(trial: &Trial) -> Flow {
    match trial.head.load_unit {
        LoadUnit::Sessions => trial.op(Role::Session).copied().unwrap_or_default(),
        _ => spoken(trial),
    }
}

/// Messages, except those that only keep a conversation going, which must not hide that lines are missing.
pub(crate) fn spoken(trial: &Trial) -> Flow {
    let names = &trial.head.metric_names;
    let is_paced = |(op, _): &(&str, &Flow)| names.role_of_op(op) != Some(Role::Keep);
    trial.messages().filter(is_paced).fold(Flow::default(), |mut sum, (_, flow)| {
        sum.add(flow);
        sum
    })
}

/// Questions that were planned and never rightly answered: they enter every percentile of the response as infinite.
pub(crate) fn never_answered(trial: &Trial) -> u64 {
    never(&questions(trial))
}

/// The same of one operation.
pub(crate) fn never_answered_of(trial: &Trial, operation: &str) -> u64 {
    trial.ops.get(operation).map_or(0, never)
}

fn never(flow: &Flow) -> u64 {
    flow.failed + flow.lost + flow.not_sent + flow.open_after
}

/// Answers per second; what owes no answer counts when sent. `None` without a hold.
pub(crate) fn rate_per_s(trial: &Trial) -> Option<f64> {
    let done: u64 =
        trial.messages().map(|(_, flow)| if flow.told > 0 { flow.sent } else { flow.answered }).sum();
    counted_seconds(trial).map(|seconds| done as f64 / seconds)
}

/// CPU time of the server for each message that was done, ns.
pub(super) fn cpu_per_message_ns(trial: &Trial) -> FigureValue {
    let Some(subject) = &trial.subject else { return NO_SUBJECT };
    match rate_per_s(trial) {
        Some(rate) if rate > 0.0 => FigureValue::Value(subject.cpu_cores * 1e9 / rate),
        Some(_) => NOTHING_ANSWERED,
        None => NO_HOLD,
    }
}

/// Seconds of the hold whose messages are in the sums. A message belongs to the whole second it happened in, so a hold
/// that began within a second is counted from the next one. `None` when that leaves nothing.
pub(crate) fn counted_seconds(trial: &Trial) -> Option<f64> {
    let hold = trial.hold.as_ref()?;
    let from_ns = hold.from_ns.div_ceil(1_000_000_000) * 1_000_000_000;
    let cut_off_s = from_ns.saturating_sub(hold.from_ns) as f64 / 1e9;
    let seconds = trial.held_s() - cut_off_s;
    (hold.to_ns > from_ns && seconds > 0.0).then_some(seconds)
}

/// Requests without a first byte to time: those that were lost or left open may have had one, which is not known here.
pub(super) fn never_began(trial: &Trial) -> u64 {
    let flow = questions(trial);
    flow.lost + flow.open_after
}

/// Everything that went wrong. A message that failed, was lost, never left or was never answered may stand among the errors
/// by its cause too, so the larger of the two counts.
pub(crate) fn errors(trial: &Trial) -> u64 {
    let flow = trial.flow();
    let bad = flow.failed + flow.lost + flow.not_sent + flow.open_after;
    trial.errors.values().sum::<u64>().max(bad) + failed_connects(trial)
}

/// The part of them that is not explained by something taking longer than the bots wait. Lost messages count by the cause
/// that ended their connection: with a request that is given up, others on the same connection are lost.
pub(super) fn certain_errors(trial: &Trial) -> u64 {
    let flow = trial.flow();
    errors_beside(trial, flow.failed + flow.not_sent + flow.open_after)
}

/// The part of them that the server itself caused, however late the generator was: without messages that never left and
/// replies that are outstanding.
pub(crate) fn caused_errors(trial: &Trial) -> u64 {
    errors_beside(trial, trial.flow().failed)
}

/// Errors by their causes but for what only took too long, at least the `bad` messages.
fn errors_beside(trial: &Trial, bad: u64) -> u64 {
    let is_certain = |cause: &str| trial.head.metric_names.kind_of(cause) != Some(ErrorKind::Timeout);
    let count = |causes: &BTreeMap<String, u64>| -> u64 {
        causes.iter().filter(|(cause, _)| is_certain(cause)).map(|(_, count)| count).sum()
    };
    count(&trial.errors).max(bad) + count(&trial.connections.failed)
}

pub(super) fn failed_connects(trial: &Trial) -> u64 {
    trial.connections.failed.values().sum()
}

/// Everything that went wrong, of what was offered. `None` where nothing was.
pub(super) fn errors_share(trial: &Trial) -> Option<f64> {
    share_of_offered(trial, errors(trial))
}

/// A message may have several errors by cause, and its share is 1 all the same.
pub(super) fn share_of_offered(trial: &Trial, count: u64) -> Option<f64> {
    let offered = trial.flow().offered + failed_connects(trial);
    share_of(count, offered)
}

/// At most 1; `None` of nothing.
pub(super) fn share_of(count: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| (count as f64 / all as f64).min(1.0))
}

/// A figure of the lives of bots.
pub(super) fn of_sessions(trial: &Trial, figure: fn(&Trial, &Flow) -> f64) -> FigureValue {
    if trial.hold.is_none() {
        return NO_HOLD;
    }
    trial.op(Role::Session).map_or(NO_SESSIONS, |flow| FigureValue::Value(figure(trial, flow)))
}

/// Whether a request was refused, cut off, answered wrongly or never.
pub(crate) fn any_failed(trial: &Trial) -> bool {
    errors(trial) > 0 || never_answered(trial) > 0
}

/// The frames of the hold, as the server counts them.
pub(crate) fn frames(trial: &Trial) -> Option<FrameFigures> {
    let drawn = trial.told(ServerCounter::Frames)?;
    let due = trial.told(ServerCounter::FramesDue);
    let seconds = trial.subject_told_ns as f64 / 1e9;
    (seconds > 0.0).then(|| FrameFigures { drawn, due, rate_per_s: drawn as f64 / seconds })
}

/// The server's ticks; where only clients tell them, theirs.
pub(crate) fn ticks(trial: &Trial) -> Option<measure::TickCounts> {
    match &trial.ticks {
        Some(ticks) => Some(ticks.counts),
        None => (trial.client_ticks.due > 0).then_some(trial.client_ticks),
    }
}

/// Of the server's ticks by class, where its buckets tell them apart.
pub(super) fn classes(trial: &Trial, figure: fn(TickCounts) -> FigureValue) -> FigureValue {
    match ticks(trial) {
        Some(_) if unclear(trial) > 0 => UNCLEAR,
        counts => counts.map_or(NO_TICKS, figure),
    }
}

/// The node with the largest share of late ticks, where the server tells of several.
pub(crate) fn worst_node(trial: &Trial) -> Option<(&str, f64)> {
    let counters = &trial.subject_counters;
    let nodes = counters.iter().filter_map(|(name, due)| Some((name.strip_prefix(NODE_DUE)?, *due)));
    let shares = nodes.filter(|(_, due)| *due >= NODE_TICKS_LEAST).map(|(node, due)| {
        let late = counters.get(&format!("{NODE_LATE}{node}")).copied().unwrap_or(0);
        (node, late.min(due) as f64 / due as f64)
    });
    shares.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// How many of the server's ticks count as late and may be on time.
pub(crate) fn unclear(trial: &Trial) -> u64 {
    let told = trial.told(ServerCounter::TicksUnclear).filter(|_| trial.ticks.is_some());
    told.unwrap_or(0)
}

/// The least and the most that a figure of ticks by class can be; `None` where it is one value, or another figure.
pub(crate) fn bounds(trial: &Trial, name: &str) -> Option<(f64, f64)> {
    let unclear = Some(unclear(trial)).filter(|unclear| *unclear > 0)?;
    let counts = trial.ticks.as_ref()?.counts;
    let least = |late: u64| late.saturating_sub(unclear) as f64;
    match name {
        "ticks.over" => Some((least(counts.over), counts.over as f64)),
        "ticks.under" => Some((least(counts.under), counts.under as f64)),
        "ticks.late_share" => late_bounds(&counts, unclear),
        _ => None,
    }
}

/// The least and the most that a late share can be, where so many of the late ticks may have been on time; `None` without ticks.
pub(crate) fn late_bounds(counts: &TickCounts, unclear: u64) -> Option<(f64, f64)> {
    let most = counts.late_share()?;
    Some(((most - unclear as f64 / counts.due as f64).max(0.0), most))
}

pub(crate) fn over_budget_share(trial: &Trial) -> Option<f64> {
    let busy = trial.ticks.as_ref()?.busy.as_ref().filter(|busy| !busy.is_empty())?;
    let period_ns = trial.head.tick_period_ns;
    (period_ns > 0).then(|| busy.count_above(period_ns as f64) as f64 / busy.count() as f64)
}

pub(crate) fn open_share(trial: &Trial) -> Option<f64> {
    let connections = &trial.connections;
    (connections.asked > 0).then(|| connections.open_min as f64 / connections.asked as f64)
}

/// What is judged of the books: the receivers that behave.
pub(super) fn judged(trial: &Trial) -> Result<&SumOfBooks, FigureValue> {
    trial.books.as_ref().map(|books| &books.judged).ok_or(NO_BOOKS)
}

/// A figure of the books. Where nothing was owed it was not zero: it was not measured.
pub(super) fn of_owed(trial: &Trial, figure: fn(&SumOfBooks) -> f64) -> FigureValue {
    match judged(trial) {
        Err(absent) => absent,
        Ok(books) if books.owed_max == 0 && books.delivered == 0 => NOTHING_OWED,
        Ok(books) => FigureValue::Value(figure(books)),
    }
}

/// A figure that takes the server's word.
pub(super) fn told(trial: &Trial, figure: fn(&SumOfBooks) -> f64) -> FigureValue {
    let is_told = trial.books.as_ref().is_none_or(|books| books.drops_are_told);
    if is_told { of_owed(trial, figure) } else { DROPS_UNTOLD }
}

/// Deliveries per second of the hold, to all receivers, as the bots count them. `None` without a hold.
pub(crate) fn deliveries_per_s(trial: &Trial) -> Option<f64> {
    let delivered: u64 = trial.counts(Role::Delivered).sum();
    counted_seconds(trial).map(|seconds| delivered as f64 / seconds)
}

pub(super) fn count(number: u64) -> FigureValue {
    FigureValue::Value(number as f64)
}

pub(super) fn share(share: Option<f64>) -> FigureValue {
    share.map_or(FigureValue::Absent("no tick was due"), FigureValue::Value)
}
