//! Derives a run's answers from its trials and judgements: one function for the live run, the replay, JSON and report.
//!
//! Nothing is measured or judged here; figures are copied and worded. Whatever shows an answer shows the text of a
//! `Conclusion`, so there is only one wording.

mod activity;
mod causes;
mod conclusions;
mod deliveries;
mod from_above;
mod goals;
mod marks;
mod overload;
mod shots;
mod tick_sources;

use std::collections::BTreeMap;

use measure::trial::kind;
use measure::{Distribution, Measure, Quantile, Role, Summary, TickClasses, Trial, ValueSummary};
use serde_json::{Map, Value, json};

use crate::agents;
use crate::allowed::Allowed;
use crate::capacity::{Capacity, capacity, is_majority};
use crate::contract::{
    CheatFigures, ClientTickFigures, Climb, ConnectionFigures, ErrorSample, GeneratorFigures, HoldSpan, Mark,
    RunFacts, Rung, SCHEMA, SessionFigures, ShutdownFigures, SubjectFigures, ThreadFigures, TickFigures,
    WorkerFigures,
};
use crate::figures;
use crate::gate::Gate;
use crate::judge::{Calibration, Judgement, Verdict, most, script_functions};
use crate::network;
use crate::schedule::{Judged, SearchSchedule};
use crate::trend;

pub(crate) use conclusions::{hint_at_confidence, in_brief};
pub use tick_sources::TickSourceFigures;

/// The contract requires a hold longer than zero. A trial whose hold never began is reported with this one.
const NO_HOLD_S: f64 = 1e-9;
/// So many first errors of each cause are published; the store has all that were kept.
const ERROR_SAMPLES: usize = 3;

/// What a run was asked besides what its rungs were judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// the search for the capacity; `None`: rungs were given
    pub search: Option<&'a SearchSchedule>,
    /// loads beyond the capacity were held to see what the server still gives there
    pub has_overload: bool,
    /// loads were held upwards and then downwards
    pub from_above: bool,
    /// what the whole run must meet
    pub gates: &'a [Gate],
    /// what the server was allowed although it fails a rung otherwise
    pub allowed: &'a [Allowed],
    /// why the run is not whole; such a run never passes, because loads that were asked for may be missing
    pub ended_early: Option<&'a str>,
}

/// The answers that every run has. What its workload concludes besides (`plan::Workload::conclusions`) the caller adds.
///
/// `rungs` in the order they were held. A run without any is `INVALID`, and its JSON lacks the one rung that the schema asks for.
pub fn answers(run: &RunFacts, generator: Option<&Calibration>, rungs: Vec<Rung>, asked: Asked<'_>) -> Climb {
    let search = asked.search;
    let held: Vec<Judged> = rungs.iter().map(Judged::from).collect();
    let capacity = capacity(run.capacity_unit, &held, search);
    let verdict = if search.is_some() {
        search_verdict(&capacity)
    } else {
        run_verdict(loads(&rungs).map(load_verdict))
    };
    let mut climb = Climb {
        schema: SCHEMA,
        run: run.clone(),
        generator: generator.map_or_else(GeneratorFigures::default, |weighed| GeneratorFigures {
            protocol: weighed.protocol.clone(),
            own_latency_ns: weighed.own_latency.clone(),
            send_lag_ns: weighed.send_lag.clone(),
            ceiling_per_s: weighed.ceiling_per_s,
        }),
        capacity,
        rungs,
        conclusions: Vec::new(),
        gates: Vec::new(),
        verdict: match (verdict, asked.ended_early) {
            (Verdict::Pass, Some(_)) => Verdict::Invalid,
            (verdict, _) => verdict,
        },
        ended_early: asked.ended_early.map(str::to_owned),
    };
    climb.gates = asked.gates.iter().map(|gate| gate.result(&climb.capacity, &climb.rungs)).collect();
    climb.conclusions = conclusions::conclusions(&climb, asked.allowed);
    climb.conclusions.extend(goals::conclusion(&climb));
    climb.conclusions.extend(network::conclusion(&climb));
    climb.conclusions.extend(agents::conclusion(&climb));
    climb.conclusions.extend(trend::conclusion(&climb));
    if asked.has_overload {
        climb.conclusions.extend(overload::conclusion(&climb));
    }
    if asked.from_above {
        climb.conclusions.extend(from_above::conclusion(&climb));
    }
    climb
}

/// The holds of each load and cell.
fn loads(rungs: &[Rung]) -> impl Iterator<Item = Vec<Verdict>> {
    let mut loads: Vec<(&Rung, Vec<Verdict>)> = Vec::new();
    for rung in rungs {
        let is_same = |first: &Rung| first.load == rung.load && first.cell == rung.cell;
        match loads.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, verdicts)) => verdicts.push(rung.verdict),
            None => loads.push((rung, vec![rung.verdict])),
        }
    }
    loads.into_iter().map(|(_, verdicts)| verdicts)
}

/// The verdict of a load: of those that say something about the server the majority; without any the gravest.
fn load_verdict(verdicts: Vec<Verdict>) -> Verdict {
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    match (count(Verdict::Pass), count(Verdict::Fail)) {
        (0, 0) => run_verdict(verdicts),
        (passed, failed) if is_majority(passed, failed) => Verdict::Pass,
        _ => Verdict::Fail,
    }
}

/// A search is there to find a load that fails: it passed when it found what was requested, both bounds near enough or
/// a server that holds all loads. A server that holds no load has failed. With several goals the gravest counts.
fn search_verdict(capacity: &Capacity) -> Verdict {
    let is_narrow = capacity.search.is_some_and(|search| search.is_reached(capacity));
    let own = match (capacity.lower_bound, capacity.upper_bound) {
        (None, Some(_)) => Verdict::Fail,
        _ if is_narrow => Verdict::Pass,
        _ => Verdict::Inconclusive,
    };
    run_verdict(std::iter::once(own).chain(capacity.goals.iter().map(|goal| search_verdict(&goal.capacity))))
}

/// The verdict of a run: FAIL when some rung failed, PASS when every requested load was judged and held; else the
/// gravest of the others.
pub fn run_verdict(rungs: impl IntoIterator<Item = Verdict>) -> Verdict {
    let weight = |verdict: &Verdict| match verdict {
        Verdict::Fail => 4,
        Verdict::Invalid => 3,
        Verdict::GeneratorLimited => 2,
        Verdict::Inconclusive => 1,
        Verdict::Pass => 0,
    };
    rungs.into_iter().max_by_key(weight).unwrap_or(Verdict::Invalid)
}

/// What a trial of the subject says, once judged. All that is kept of it.
pub fn rung(trial: &Trial, judgement: &Judgement) -> Rung {
    let flow = trial.flow();
    let summary = |measure| trial.distribution(measure).summary();
    let mut reopened = trial.counts(Role::Reopened);
    let hold_s = trial.hold.as_ref().map_or(0.0, |hold| hold.seconds());
    let ended_by = trial.hold.as_ref().map_or("the hold never began", |hold| hold.ended_by.as_str());
    let intended = judgement.evidence.intended.filter(|intended| *intended > 0.0);
    let rung = Rung {
        seq: trial.head.seq,
        load: trial.head.load,
        load_unit: trial.head.load_unit,
        cell: (!trial.head.cell.is_empty()).then(|| trial.head.cell.clone()),
        bots: trial.head.bots,
        verdict: judgement.verdict,
        reason: judgement.reason.clone(),
        signal: judgement.signal.clone(),
        hold: HoldSpan::of(trial),
        hold_s: hold_s.max(NO_HOLD_S),
        ended_by: ended_by.to_owned(),
        steady: judgement.steady,
        disturbed_share: judgement.disturbed_share,
        disturbance: judgement.disturbance.any().then(|| judgement.disturbance.clone()),
        remark: judgement.remark.clone(),
        offered: flow.offered,
        sent: flow.sent,
        not_sent: flow.not_sent,
        answered: flow.answered,
        late: flow.late,
        failed: flow.failed,
        lost: flow.lost,
        unanswered_at_stop: flow.open_after,
        flows: trial.ops.clone(),
        errors: trial.errors.clone(),
        error_samples: error_samples(trial),
        rate_per_s: figures::rate_per_s(trial).unwrap_or(0.0),
        pace_share: intended.map(|intended| figures::paced(trial).sent as f64 / intended),
        bytes_per_s: trial.bytes_per_s,
        sessions: SessionFigures::of(trial),
        connections: ConnectionFigures {
            counts: trial.connections.clone(),
            reopened: reopened.next().filter(|count| *count > 0),
            retried: reopened.next().filter(|count| *count > 0),
            handshake_ns: summary(Measure::Handshake),
        },
        response_ns: with_never(trial.distribution(Measure::Response), figures::never_answered(trial)),
        operations_ns: operations(trial),
        recorded: recorded(trial),
        service_ns: summary(Measure::Service),
        send_lag_ns: summary(Measure::SendLag),
        receive_lag_ns: summary(Measure::ReceiveLag),
        stall_ns: summary(Measure::Stall),
        first_byte_ns: summary(Measure::FirstByte),
        tls_ns: summary(Measure::Tls),
        unanswered_ns: summary(Measure::Unanswered),
        aliased: judgement.arrival_phases.map(|found| found.is_locked()),
        ticks: ticks(trial),
        tick_sources: tick_sources::figures(trial),
        client_ticks: (trial.client_ticks.due > 0).then(|| ClientTickFigures {
            counts: trial.client_ticks,
            late_share: trial.client_ticks.late_share(),
            interval_ns: summary(Measure::TickInterval),
            age_ns: summary(Measure::TickAge),
        }),
        services: services(trial),
        network: network::figures(trial),
        agents: trial.agents(),
        frames: figures::frames(trial),
        deliveries: deliveries::deliveries(trial),
        audit: trial.audit.map(Into::into),
        shutdown: ShutdownFigures::of(trial),
        cheats: CheatFigures::of(trial),
        subject: trial.subject.as_ref().map(|process| SubjectFigures {
            process: process.clone(),
            busiest_thread: trial
                .busiest_thread()
                .map(|(name, cpu_cores)| ThreadFigures { name: name.to_owned(), cpu_cores }),
            threads: activity::threads(trial),
        }),
        activity: activity::activity(trial),
        trends: trend::figures(trial),
        worker: WorkerFigures {
            process: trial.worker.clone(),
            busy_share_max: trial.busy_share_max.map(|share| share.clamp(0.0, 1.0)),
            cpu_share_max: most(trial, |host| host.worker_cpu_share),
            waiting_share_max: most(trial, |host| host.worker_waiting_share),
            script_functions: script_functions(trial),
        },
        marks: Mark::among(&trial.events),
        evidence: judgement.evidence.clone(),
        extra: Map::new(),
    };
    Rung { extra: extra(trial, &rung), ..rung }
}

/// The response times of each operation that is kept apart.
fn operations(trial: &Trial) -> BTreeMap<String, Summary> {
    let of = |(name, values): (&String, &Distribution)| {
        Some((name.clone(), with_never(values, figures::never_answered_of(trial, name))?))
    };
    trial.of_ops.iter().filter_map(of).collect()
}

/// In the order in which they were found.
fn services(trial: &Trial) -> Vec<String> {
    let told = trial.events.iter().filter(|event| event.kind == kind::SERVICE);
    told.map(|event| event.text.clone()).collect()
}

/// What the bots recorded, by name.
fn recorded(trial: &Trial) -> BTreeMap<String, ValueSummary> {
    let own = trial.values.iter().filter(|(name, _)| !name.starts_with(measure::network::PREFIX));
    own.filter_map(|(name, values)| Some((name.clone(), values.value_summary()?))).collect()
}

/// The first few of each cause: a flood of one must not hide another.
fn error_samples(trial: &Trial) -> Vec<ErrorSample> {
    let mut samples: Vec<ErrorSample> = Vec::new();
    for (cause, text) in trial.error_samples() {
        if samples.iter().filter(|known| known.cause == cause).count() < ERROR_SAMPLES {
            samples.push(ErrorSample { cause: cause.to_owned(), text: text.to_owned() });
        }
    }
    samples
}

/// A summary whose percentiles count messages that never had an answer, so that losses cannot make a server look fast.
fn with_never(values: &Distribution, never: u64) -> Option<Summary> {
    let mut summary = values.summary()?;
    let stated = |q| match values.quantile(q, never) {
        Quantile::Ns(ns) => Some(ns),
        Quantile::TooFew | Quantile::Infinite => None,
    };
    (summary.p50, summary.p90) = (stated(0.5), stated(0.9));
    (summary.p99, summary.p999) = (stated(0.99), stated(0.999));
    Some(summary)
}

fn ticks(trial: &Trial) -> Option<TickFigures> {
    let counts = figures::ticks(trial)?;
    let told = trial.ticks.as_ref();
    let interval = told.map_or_else(|| trial.distribution(Measure::TickInterval), |ticks| &ticks.interval);
    let period_ns = trial.head.tick_period_ns;
    Some(TickFigures {
        source: told.map_or("client", |ticks| ticks.source.as_str()).to_owned(),
        period_ns,
        counts,
        late_share: counts.late_share().filter(|_| figures::unclear(trial) == 0),
        over_budget_share: figures::over_budget_share(trial),
        isr: told.and_then(|ticks| ticks.isr),
        interval_ns: interval.summary(),
        late_intervals: TickClasses::for_rate(1e9 / period_ns as f64).late_intervals(interval),
        busy_ns: told.and_then(|ticks| ticks.busy.as_ref()).and_then(Distribution::summary),
    })
}

/// Additional data for other programs beside the figures of a rung.
fn extra(trial: &Trial, rung: &Rung) -> Map<String, Value> {
    let mut extra = Map::new();
    let mut put = |name: &str, value: Value| extra.insert(name.to_owned(), value);
    put("seq", json!(rung.seq));
    put("signal", json!(rung.signal));
    put("warm_up_cut_s", json!(trial.cut_s));
    put("open_least", json!(trial.connections.open_least));
    put("flows", json!(rung.flows));
    put("counters", json!(trial.counters));
    put("subject_counters", json!(trial.subject_counters));
    if let Some(intended) = rung.evidence.intended {
        put("intended", json!(intended));
        put("pace_share", json!(rung.pace_share));
    }
    if let Some(shots) = shots::shots(trial) {
        put("shots", shots);
    }
    if let Some(goodput) = overload::goodput(trial, &rung.evidence) {
        put("goodput", goodput);
    }
    let never = figures::never_answered(trial);
    if never > 0 {
        put("never_answered", json!(never));
    }
    if let Some(ticks) = &rung.client_ticks {
        put("client_ticks", json!(ticks));
    }
    put("events", json!(trial.events));
    put("evidence", json!(rung.evidence));
    extra
}

#[cfg(test)]
mod tests;
