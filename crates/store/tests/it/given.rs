//! Test fixtures: a store in its own folder, headers, seconds that balance, and strategies for entries.

use std::path::PathBuf;
use std::sync::Arc;

use measure::ledger::{PairBooks, ReceiverBooks, SumOfBooks};
use measure::trial::kind;
use measure::{
    Books, Distribution, Entry, Event, Flow, Interval, LoadUnit, Measure, MetricNames, Phase, ProcessMetric,
    Purpose, Reading, Sample, TickCounts, TickSecond, TrialHead,
};
use proptest::prelude::*;
use store::{LineSource, Outcome, RunEnd, RunHead, RunWriter, Store, StoredLine};
use tempfile::TempDir;

pub struct Given {
    pub path: PathBuf,
    pub store: Store,
    /// after the store, so that it goes last
    pub _folder: TempDir,
}

pub fn store() -> Given {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stepladder.db");
    let store = Store::open_or_create(&path).unwrap();
    Given { path, store, _folder: folder }
}

pub fn run_head(name: Option<&str>) -> RunHead {
    RunHead {
        name: name.map(str::to_owned),
        subject: "arena".to_owned(),
        seed: u64::MAX,
        arrivals: "even".to_owned(),
        command: "stepladder climb arena --name \"a, b\"".to_owned(),
        stepladder: "0.1.0".to_owned(),
        started_unix_ms: 1_700_000_000_000,
        shared_cores: true,
        plan: r#"{"rungs":[500,1000]}"#.to_owned(),
        environment: r#"{"cores":2}"#.to_owned(),
        ..RunHead::default()
    }
}

pub fn line(process: u32, text: &str) -> StoredLine {
    StoredLine { process, source: LineSource::Client, text: text.to_owned() }
}

pub fn finished() -> RunEnd {
    RunEnd { outcome: Outcome::Finished, reason: None, ended_unix_ms: 1_700_000_060_000, climb: None }
}

pub fn names() -> Arc<MetricNames> {
    let names =
        MetricNames::new(&["shot", "join"], &["reset", "closed"], &["games"], &["refused", "timed out"]);
    names.with_timed_ops(1).with_values(&["damage".to_owned()])
}

pub fn trial_head(seq: u32, load: f64) -> TrialHead {
    TrialHead {
        seq,
        purpose: Purpose::Rung,
        load,
        load_unit: LoadUnit::Games,
        bots: 2_000,
        connections: 2_000,
        tick_period_ns: 16_666_667,
        cell: [("service", "a \"page\""), ("view", "foreground")]
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .into(),
        metric_names: names(),
    }
}

/// A second of `sent` shots, each with its lag, planned in the hold.
pub fn second(index: u32, sent: u64) -> Entry {
    let mut interval = Interval::new(&names());
    interval.index = index;
    interval.workers = 2;
    *interval.flow_mut(0, Phase::Hold) = Flow { offered: sent, sent, told: sent, ..Flow::default() };
    interval.distribution_mut(Measure::SendLag, true).record_many(40_000 + u64::from(index), sent);
    interval.of_op_mut(0).unwrap().record_many(30_000 + u64::from(index), sent);
    interval.value_mut(0).record_value(u64::from(index));
    interval.connections.open_min = 2_000;
    interval.connections.open_end = 2_000;
    interval.busy_share_max = 0.25;
    Entry::Interval(Box::new(interval))
}

pub fn event(at_s: u64, kind: &str) -> Entry {
    Entry::Event(Event {
        at_ns: at_s * 1_000_000_000,
        kind: kind.to_owned(),
        text: format!("{kind}, \"{at_s} s\""),
    })
}

pub fn sample(at_s: u64, name: ProcessMetric, value: f64) -> Entry {
    Entry::Sample(Sample { at_ns: at_s * 1_000_000_000, what: Reading::Subject(name), value })
}

/// An entry of every kind, so that each table gets a row.
pub fn one_of_each() -> Vec<Entry> {
    one_of_each_at(0)
}

/// The same in which the second is that one.
pub fn one_of_each_at(index: u32) -> Vec<Entry> {
    let Entry::Interval(mut interval) = second(index, 10) else { unreachable!("second() makes intervals") };
    interval.errors[0] = 1;
    interval.counters[0] = 2;
    interval.connections.failed[1] = 3;
    let mut spread = Distribution::new();
    (1..2_000u64).for_each(|at| spread.record(at * 10_000));
    let ticks = TickSecond {
        source: "log".to_owned(),
        from_ns: 0,
        to_ns: 1_000_000_000,
        counts: TickCounts { due: 60, on_time: 58, over: 1, under: 1, missed: 0 },
        interval: spread.clone(),
        busy: Some(spread),
        lateness: None,
        isr_numerator_ns: Some(0.5),
        counters: vec![("games".to_owned(), 500)],
    };
    vec![
        Entry::Interval(interval),
        Entry::Ticks(Box::new(ticks)),
        sample(1, ProcessMetric::CpuTime, 0.25),
        event(0, kind::HOLD),
        Entry::Books(Box::new(books())),
    ]
}

/// Three receivers, one of them excluded; the second one lost two lines, one of which the server knows about.
pub fn books() -> Books {
    let receiver = |receiver: u32, delivered, lost, dropped| ReceiverBooks {
        receiver,
        is_excluded: receiver == 2,
        sum: SumOfBooks {
            receivers: 1,
            owed_min: 20,
            owed_max: 20,
            delivered,
            lost,
            dropped,
            residual: lost as i64 - dropped as i64,
            ..SumOfBooks::default()
        },
        latency_mean_ns: Some(4.5e6),
        latency_max_ns: Some(9_000_000),
        told_owed: Some(20),
        told_delivered: None,
    };
    let pair = PairBooks { sender: 0, receiver: 1, owed_min: 10, owed_max: 10, delivered: 8, lost: 2 };
    let receivers = vec![receiver(0, 20, 0, 0), receiver(1, 18, 2, 1), receiver(2, 5, 15, 15)];
    Books { sent: 30, unknown_messages: 0, drops_are_told: true, ..Books::of(receivers, vec![pair]) }
}

/// Records a trial of `seconds` whole seconds of hold, ended in order.
pub fn record_trial(writer: &RunWriter, seq: u32, load: f64, seconds: u32) {
    writer.begin_trial(&trial_head(seq, load), 1_700_000_000_000).unwrap();
    writer.append(vec![event(0, kind::HOLD)]).unwrap();
    for index in 0..seconds {
        let cpu = sample(u64::from(index) + 1, ProcessMetric::CpuTime, f64::from(index) * 0.5);
        writer.append(vec![second(index, 1_000), cpu]).unwrap();
    }
    writer
        .append(vec![event(u64::from(seconds), kind::DRAIN), event(u64::from(seconds), kind::END)])
        .unwrap();
    writer.end_trial(1_700_000_000_000 + u64::from(seconds) * 1_000).unwrap();
}

const COUNT: std::ops::Range<u64> = 0..1 << 40;

fn any_flow() -> impl Strategy<Value = Flow> {
    let zeros = Just(Flow::default());
    let counts = (COUNT, COUNT, COUNT, COUNT, COUNT, COUNT, 0u64..100).prop_map(
        |(not_sent, told, answered, failed, lost, open_after, late)| {
            let left = told + answered + failed + lost + open_after;
            let open_before = left / 3;
            let sent = left - open_before;
            Flow {
                offered: sent + not_sent,
                not_sent,
                sent,
                told,
                answered,
                late: late.min(answered),
                failed,
                lost,
                open_before,
                open_after,
            }
        },
    );
    prop_oneof![zeros, counts]
}

pub fn any_distribution() -> impl Strategy<Value = Distribution> {
    proptest::collection::vec((0u64..u64::MAX, 0u32..60, 1u64..1 << 30), 0..6).prop_map(|values| {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|(ns, shift, count)| distribution.record_many(ns >> shift, count));
        distribution
    })
}

fn any_ticks() -> impl Strategy<Value = TickCounts> {
    (COUNT, COUNT, COUNT, COUNT).prop_map(|(on_time, over, under, missed)| TickCounts {
        due: on_time + over + under + missed,
        on_time,
        over,
        under,
        missed,
    })
}

fn any_interval() -> impl Strategy<Value = Interval> {
    let flows = proptest::collection::vec(any_flow(), 8);
    let tallies = proptest::collection::vec(prop_oneof![Just(0), COUNT], 5);
    let measured = proptest::collection::vec((0usize..8, any::<bool>(), any_distribution()), 0..5);
    let counts = proptest::collection::vec(COUNT, 8);
    (flows, tallies, measured, counts, any_ticks(), 0.0f64..2.0).prop_map(
        |(flows, tallies, measured, counts, ticks, busy_share_max)| {
            let mut interval = Interval::new(&names());
            flows.iter().enumerate().for_each(|(at, flow)| interval.flows[at / 4][at % 4] = *flow);
            interval.errors.copy_from_slice(&tallies[..2]);
            interval.counters.copy_from_slice(&tallies[2..3]);
            interval.connections.failed.copy_from_slice(&tallies[3..]);
            for (measure, in_hold, distribution) in measured {
                interval.distribution_mut(Measure::ALL[measure], in_hold).add(&distribution);
            }
            interval.workers = counts[0] as u32;
            interval.connections.asked = counts[1];
            interval.connections.opened = counts[2];
            interval.connections.closed = counts[3];
            interval.connections.open_min = counts[4];
            interval.connections.open_end = counts[5];
            interval.bytes_sent = counts[6];
            interval.bytes_received = i64::MAX as u64;
            interval.busy_ns = counts[7];
            interval.ticks = ticks;
            interval.busy_share_max = busy_share_max;
            interval
        },
    )
}

fn any_tick_second() -> impl Strategy<Value = TickSecond> {
    (
        "[a-zé\"]{0,8}",
        COUNT,
        COUNT,
        any_ticks(),
        any_distribution(),
        proptest::option::of(any_distribution()),
        proptest::option::of(any_distribution()),
        proptest::option::of(any::<i32>().prop_map(|thousandths| f64::from(thousandths) / 1_000.0)),
        proptest::collection::vec(("[a-z ]{1,6}", any::<u64>()), 0..4),
    )
        .prop_map(
            |(source, one_ns, other_ns, counts, interval, busy, lateness, isr_numerator_ns, counters)| {
                TickSecond {
                    source,
                    // The store refuses intervals that end before they begin.
                    from_ns: one_ns.min(other_ns),
                    to_ns: one_ns.max(other_ns),
                    counts,
                    interval,
                    busy,
                    lateness,
                    isr_numerator_ns,
                    counters,
                }
            },
        )
}

fn any_receiver() -> impl Strategy<Value = ReceiverBooks> {
    let counts = proptest::collection::vec(COUNT, 10);
    let told = proptest::option::of(COUNT);
    (any::<bool>(), counts, 0u64..2, proptest::option::of(0.0f64..1e12), told.clone(), told.clone(), told)
        .prop_map(
            |(
                is_excluded,
                counts,
                not_caught_up,
                latency_mean_ns,
                latency_max_ns,
                told_owed,
                told_delivered,
            )| {
                let [came, lost, unowed, width, early, duplicated, dropped, in_flight, late, unread] =
                    counts[..]
                else {
                    unreachable!("ten were asked for")
                };
                let owed = came + lost + unread;
                let (owed_min, owed_max) = (owed - early.min(owed), owed + width);
                let accounted = (dropped + in_flight).max(unread) as i64;
                let residual = ((lost + unread) as i64 - accounted).max(0)
                    + ((owed_max - came) as i64 - accounted).min(0);
                let sum = SumOfBooks {
                    receivers: 1,
                    owed_min,
                    owed_max,
                    delivered: came + unowed,
                    late: late.min(came + unowed),
                    lost,
                    unread,
                    duplicated,
                    reordered: early,
                    dropped,
                    in_flight,
                    residual,
                    unowed,
                    not_caught_up,
                };
                let receiver = 0;
                ReceiverBooks {
                    receiver,
                    is_excluded,
                    sum,
                    latency_mean_ns,
                    latency_max_ns,
                    told_owed,
                    told_delivered,
                }
            },
        )
}

pub fn any_books() -> impl Strategy<Value = Books> {
    let pair = (any::<u32>(), any::<u32>(), COUNT, COUNT, COUNT, COUNT).prop_map(
        |(sender, receiver, owed_min, width, delivered, lost)| PairBooks {
            sender,
            receiver,
            owed_min,
            owed_max: owed_min + width,
            delivered,
            lost,
        },
    );
    let receivers = proptest::collection::vec(any_receiver(), 0..20);
    (receivers, proptest::collection::vec(pair, 0..5), COUNT, COUNT, any::<bool>()).prop_map(
        |(mut receivers, worst, sent, unknown_messages, drops_are_told)| {
            (0..).zip(&mut receivers).for_each(|(at, receiver)| receiver.receiver = at * 3);
            Books { sent, unknown_messages, drops_are_told, ..Books::of(receivers, worst) }
        },
    )
}

/// Entries of all kinds, the books once at most; the seconds among them are numbered as they come.
pub fn any_entries() -> impl Strategy<Value = Vec<Entry>> {
    let sample = (
        COUNT,
        proptest::sample::select(&["subject", "worker", "machine", "program", "thread", "of later"]),
        prop_oneof![Just("cpu_s".to_owned()), "\\PC{0,32}"],
        any::<f64>().prop_filter("NaN is not equal to itself", |v| !v.is_nan()),
    )
        .prop_map(|(at_ns, who, name, value)| {
            Entry::Sample(Sample { at_ns, what: Reading::of_texts(who, &name), value })
        });
    let event = (COUNT, "\\PC{0,12}", "\\PC{0,40}")
        .prop_map(|(at_ns, kind, text)| Entry::Event(Event { at_ns, kind, text }));
    let entry = prop_oneof![
        2 => any_interval().prop_map(|interval| Entry::Interval(Box::new(interval))),
        2 => sample,
        1 => event,
        1 => any_tick_second().prop_map(|second| Entry::Ticks(Box::new(second))),
    ];
    let books = proptest::option::of((any_books(), any::<proptest::sample::Index>()));
    (proptest::collection::vec(entry, 0..12), books).prop_map(|(mut entries, books)| {
        if let Some((books, at)) = books {
            entries.insert(at.index(entries.len() + 1), Entry::Books(Box::new(books)));
        }
        let mut index = 0;
        for entry in &mut entries {
            if let Entry::Interval(interval) = entry {
                interval.index = index;
                index += 1;
            }
        }
        entries
    })
}
