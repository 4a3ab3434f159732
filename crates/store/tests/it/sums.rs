//! A stored trial, read in pieces, equals the sum of all its entries at once, whatever it holds and however it ended.

use std::sync::Arc;

use measure::trial::kind;
use measure::{
    Distribution, Entry, Event, Flow, Interval, MachineMetric, Measure, MetricNames, Phase, ProcessMetric,
    Reading, Role, Sample, TickCounts, TickSecond, Trial, TrialHead,
};

use crate::given;

const SECOND_NS: u64 = 1_000_000_000;
const HOLD_FROM_S: u32 = 4;
const DRAIN_FROM_S: u32 = 24;
const SECONDS: u32 = 27;

/// What a rung is about; each fills other tables.
#[derive(Clone, Copy, Debug, PartialEq)]
enum About {
    /// shots that owe nothing, a server that tells its ticks twice a second
    Arena,
    /// lines to everybody, books at the end
    Chat,
    /// requests, their errors, a server that draws frames
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ended {
    InOrder,
    Interrupted,
    BeforeItsHold,
}

fn names() -> Arc<MetricNames> {
    MetricNames::new(
        &["shot", "get", "put"],
        &["reset", "rejected (429, 503)"],
        &["games_played", measure::names::OPEN_TIME],
        &["refused", "timed out"],
    )
    .with_op_roles(&[("shot", Role::Shot)])
    .with_counter_roles(&[("games_played", Role::GamesPlayed), (measure::names::OPEN_TIME, Role::OpenTime)])
}

fn spread(random: &mut fastrand::Rng, middle_ns: u64) -> Distribution {
    let mut values = Distribution::new();
    (0..40).for_each(|_| values.record_many(middle_ns + (random.u64(..middle_ns) << random.u32(..6)), 50));
    values
}

fn interval(about: About, index: u32, random: &mut fastrand::Rng) -> Interval {
    let mut interval = Interval::new(&names());
    (interval.index, interval.workers) = (index, 2);
    let in_hold = (HOLD_FROM_S..DRAIN_FROM_S + 1).contains(&index);
    let phase = if in_hold { Phase::Hold } else { Phase::Ramp };
    let (op, sent, left) = (about as usize, random.u64(1_000..2_000), random.u64(..50));
    let mut flow = Flow { offered: sent + 3, not_sent: 3, sent, ..Flow::default() };
    match about {
        About::Arena => flow.told = sent,
        About::Chat => (flow.told, flow.open_after) = (sent - left, left),
        About::Http => {
            (flow.open_before, flow.open_after, flow.failed, flow.lost) = (random.u64(..40), left, 2, 1);
            flow.answered = flow.open_before + sent - left - 3;
            flow.late = left / 2;
        }
    }
    *interval.flow_mut(op, phase) = flow;
    *interval.flow_mut(0, Phase::Drain) = Flow { offered: 5, sent: 5, told: 5, ..Flow::default() };
    interval.errors = vec![u64::from(index.is_multiple_of(3)), random.u64(..3)];
    interval.counters = vec![random.u64(..9), 1_999_000 + random.u64(..2_000)];
    interval.connections.failed = vec![random.u64(..2), 0];
    interval.connections.asked = random.u64(..10);
    interval.connections.opened = if index < 3 { 700 } else { 0 };
    interval.connections.open_min = 2_000 - random.u64(..9);
    interval.connections.open_end = 2_000 - random.u64(..9);
    (interval.bytes_sent, interval.bytes_received) = (random.u64(..1 << 20), random.u64(..1 << 30));
    interval.busy_share_max = random.f64() * 1.2;
    let measures: &[(Measure, u64)] = match about {
        About::Arena => &[(Measure::SendLag, 40_000), (Measure::TickInterval, 16_000_000)],
        About::Chat => &[(Measure::SendLag, 40_000), (Measure::Delivery, 3_000_000)],
        About::Http => {
            &[(Measure::Response, 900_000), (Measure::Service, 800_000), (Measure::SendLag, 9_000)]
        }
    };
    for &(measure, middle_ns) in measures {
        *interval.distribution_mut(measure, in_hold) = spread(random, middle_ns);
    }
    if index < 3 {
        *interval.distribution_mut(Measure::Handshake, false) = spread(random, 200_000);
    }
    if about == About::Arena {
        let late = random.u64(..30);
        interval.ticks = TickCounts { due: 60, on_time: 60 - late, over: late, ..TickCounts::default() };
    }
    interval
}

fn ticks(about: About, half: u32, random: &mut fastrand::Rng) -> TickSecond {
    // Neither begins nor ends on a second of ours; with a warm-up at first.
    let from_ns = u64::from(half) * SECOND_NS / 2 + 123_456_789;
    let late = if half < 14 { 25 } else { random.u64(..3) };
    TickSecond {
        source: "log".to_owned(),
        from_ns,
        to_ns: from_ns + SECOND_NS / 2,
        counts: TickCounts { due: 30, on_time: 30 - late, over: late, ..TickCounts::default() },
        interval: spread(random, 16_000_000),
        busy: (about == About::Arena).then(|| spread(random, 4_000_000)),
        lateness: (half > 20).then(|| spread(random, 90_000)),
        // Halves add up to the same in any order.
        isr_numerator_ns: (about == About::Arena).then(|| random.u64(..1 << 20) as f64 / 2.0),
        counters: vec![("frames".to_owned(), random.u64(20..31)), ("shots".to_owned(), random.u64(..9))],
    }
}

fn rung(about: About, ended: Ended, seed: u64) -> Vec<Entry> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mark = |at_s: u32, kind: &str, text: &str| {
        let at_ns = u64::from(at_s) * SECOND_NS;
        Entry::Event(Event { at_ns, kind: kind.to_owned(), text: text.to_owned() })
    };
    let mut entries = vec![mark(3, kind::SETTLE, "all open"), mark(9, kind::ERROR, "reset: cut")];
    if ended != Ended::BeforeItsHold {
        entries.push(mark(HOLD_FROM_S, kind::HOLD, ""));
    }
    for index in 0..SECONDS {
        entries.push(Entry::Interval(Box::new(interval(about, index, &mut random))));
        if about != About::Chat {
            for half in [2 * index, 2 * index + 1] {
                let further = ticks(about, half, &mut random.clone()).compared_as("statsd=127.0.0.1:8125");
                entries.push(Entry::Ticks(Box::new(ticks(about, half, &mut random))));
                if about == About::Arena {
                    entries.push(Entry::Ticks(Box::new(further)));
                }
            }
        }
        let at_ns = u64::from(index + 1) * SECOND_NS + random.u64(..9_000_000);
        let sample = |what, value| Entry::Sample(Sample { at_ns, what, value });
        for of in [Reading::Subject, Reading::Worker] {
            entries.push(sample(of(ProcessMetric::CpuTime), f64::from(index) * 0.7 + random.f64() / 10.0));
            entries.push(sample(of(ProcessMetric::AllowedCores), 2.0));
            entries.push(sample(of(ProcessMetric::Rss), 50e6 + random.f64() * 1e6));
            entries.push(sample(of(ProcessMetric::Fds), f64::from(random.u32(..2_000))));
        }
        entries.push(sample(Reading::Machine(MachineMetric::StealShare), random.f64()));
        entries.push(sample(Reading::Machine(MachineMetric::ThrottleEvents), f64::from(index)));
    }
    if about == About::Chat {
        entries.push(Entry::Books(Box::new(given::books())));
    }
    if ended == Ended::InOrder {
        entries.extend([mark(DRAIN_FROM_S, kind::DRAIN, "20s"), mark(SECONDS, kind::END, "")]);
    }
    entries
}

fn head() -> TrialHead {
    TrialHead { metric_names: names(), ..given::trial_head(0, 500.0) }
}

/// Events are reported as they came; for two orders of entries all else is the same.
fn by_time(mut trial: Trial) -> Trial {
    trial.events.sort_by(|one, other| (one.at_ns, &one.kind).cmp(&(other.at_ns, &other.kind)));
    trial
}

fn check(about: About, ended: Ended, seed: u64) {
    let entries = rung(about, ended, seed);
    let mut shuffled = entries.clone();
    fastrand::Rng::with_seed(seed).shuffle(&mut shuffled);
    // The store need not have them in order either.
    for stored in [&entries, &shuffled] {
        let given = given::store();
        let writer = given.store.begin_run(&given::run_head(None), None).unwrap();
        writer.begin_trial(&head(), 0).unwrap();
        stored.chunks(7).for_each(|batch| writer.append(batch.to_vec()).unwrap());
        if ended == Ended::InOrder {
            writer.end_trial(1).unwrap();
        } else {
            let whole = || given.store.trial_entries(writer.id(), 0).unwrap().len() == stored.len();
            while !whole() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        for cut_s in [0, 3] {
            let read = given.store.trial(writer.id(), 0, cut_s).unwrap();
            assert_eq!(read, Trial::from_entries(head(), stored, cut_s), "{about:?} {ended:?} {cut_s}");
            let other = Trial::from_entries(head(), &shuffled, cut_s);
            assert_eq!(by_time(read), by_time(other), "{about:?} {ended:?} {cut_s} shuffled");
        }
    }
}

#[test]
fn a_trial_read_in_pieces_is_the_sum_of_all_its_entries_in_any_order() {
    for about in [About::Arena, About::Chat, About::Http] {
        for ended in [Ended::InOrder, Ended::Interrupted, Ended::BeforeItsHold] {
            check(about, ended, fastrand::u64(..));
        }
    }
}
