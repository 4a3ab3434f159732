use measure::{Measure, ProcessMetric, Reading, TickSecond};

use super::*;
use crate::answers::{Asked, answers};
use crate::contract::RunFacts;
use crate::judge::Criteria;
use crate::testing::TrialBuilder;

const HOUR_S: u32 = 3_600;

/// Uniform in [-1, 1], the same for the same number.
fn noise(of: u64) -> f64 {
    let mut bits = of.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
}

/// A hold of `hold_s` seconds without histograms: in each of them 100 messages are sent and `closed` connections end.
fn plain(hold_s: u32, closed: u64) -> TrialBuilder {
    TrialBuilder { hold_s, questions_per_s: 0, ..TrialBuilder::asking(100.0) }.edit(move |_, interval| {
        interval.flow_mut(0, measure::Phase::Hold).sent = 100;
        interval.connections.closed = closed;
    })
}

/// A process's readings over an hour, by the second.
fn reads(metric: ProcessMetric, value: impl Fn(f64) -> f64 + 'static) -> TrialBuilder {
    plain(HOUR_S, 5).sampled(move |at| vec![(Reading::Subject(metric), value(f64::from(at)))])
}

fn trend(trial: &TrialBuilder, name: &str) -> Trend {
    figures(&trial.build()).unwrap().of[name]
}

#[test]
fn memory_leaks_only_where_it_grows_for_certain_and_to_the_end() {
    type Memory = fn(f64) -> f64;
    let rows: [(&str, Memory, Option<f64>); 13] = [
        ("4.1 MB/h", |s| 50e6 + 4.1e6 * s / 3600.0, Some(4.1e6)),
        ("4.1 MB/h under noise of 1 MB", |s| 50e6 + 4.1e6 * s / 3600.0 + 1e6 * noise(s as u64), Some(4.1e6)),
        (
            "4.1 MB/h, and a spike now and then",
            |s| 50e6 + 4.1e6 * s / 3600.0 + if noise(s as u64 / 100) > 0.8 { 80e6 } else { 0.0 },
            Some(4.1e6),
        ),
        (
            "4.1 MB/h after a warm-up of 5 min",
            |s| 50e6 + 4.1e6 * s / 3600.0 - if s < 300.0 { 30e6 * (1.0 - s / 300.0) } else { 0.0 },
            Some(4.1e6),
        ),
        ("flat to the byte", |_| 50e6, None),
        ("flat with noise", |s| 50e6 + 3e6 * noise(s as u64), None),
        ("less than 1 % in the hour", |s| 50e6 + 0.3e6 * s / 3600.0, None),
        ("shrinks", |s| 50e6 - 4.1e6 * s / 3600.0, None),
        ("a collector's sawtooth of 97 s", |s| 40e6 + 20e6 * (s / 97.0).fract(), None),
        ("a sawtooth of 20 min", |s| 40e6 + 20e6 * (s / 1200.0).fract(), None),
        ("a warm-up that levels off", |s| 50e6 - 20e6 * (-s / 700.0).exp(), None),
        (
            "a cache that is full after half an hour",
            |s| 40e6 + 20e6 * (s / 1800.0).min(1.0) + 8e6 * noise(s as u64 / 60),
            None,
        ),
        ("a step", |s| if s < 2000.0 { 40e6 } else { 60e6 }, None),
    ];
    for (name, memory, per_hour) in rows {
        let found = trend(&reads(ProcessMetric::Rss, memory), "subject.rss_bytes");
        assert_eq!(found.grows, per_hour.is_some(), "{name}: {found:?}");
        if let Some(per_hour) = per_hour {
            assert!(
                (found.per_hour_min..=found.per_hour_max).contains(&(per_hour))
                    || (found.per_hour / per_hour - 1.0).abs() < 0.001,
                "{name}: {found:?}"
            );
            assert!((found.per_hour / per_hour - 1.0).abs() < 0.1, "{name}: {found:?}");
        }
    }
}

#[test]
fn a_leak_is_per_connection_or_per_message_only_where_there_are_any_and_each_costs_a_byte() {
    let leaking = |closed: u64, per_hour: f64| {
        let memory = move |at: u32| 50e6 + per_hour * f64::from(at) / 3600.0;
        let rss = move |at| vec![(Reading::Subject(ProcessMetric::Rss), memory(at))];
        trend(&plain(HOUR_S, closed).sampled(rss), "subject.rss_bytes")
    };
    let near = |each: Option<f64>, bytes: f64| each.is_some_and(|each| (each / bytes - 1.0).abs() < 0.01);
    // 18,000 connections end in the hour, and 360,000 messages are sent.
    let few = leaking(5, 210.0 * 18_000.0);
    assert!(near(few.per_closed, 210.0) && near(few.per_sent, 10.5), "{few:?}");
    let none = leaking(0, 3_600_000.0);
    assert!(none.per_closed.is_none() && near(none.per_sent, 10.0), "{none:?}");
    // Most messages cannot have leaked anything.
    let rare = leaking(1, 300_000.0 * 3.0);
    assert!(near(rare.per_closed, 250.0) && near(rare.per_sent, 2.5), "{rare:?}");
    let tiny = leaking(1, 0.7e6 / 2.1);
    assert!(!tiny.grows && tiny.per_sent.is_none(), "{tiny:?}");
    // 50 MB at the start, 3.78 MB more at the end.
    assert!((few.doubles_after_h.unwrap() - 53.78 / 3.78).abs() < 0.05, "{few:?}");
}

#[test]
fn descriptors_that_stay_open_are_told_and_those_that_come_and_go_are_not() {
    let leak = trend(&reads(ProcessMetric::Fds, |s| (100.0 + s / 4.0).floor()), "subject.fds");
    assert!(leak.grows && (leak.per_hour - 900.0).abs() < 2.0, "{leak:?}");
    assert!((leak.per_closed.unwrap() - 0.05).abs() < 0.001, "{leak:?}");
    let stays: [fn(f64) -> f64; 2] = [
        |s| (100.0 + 9.0 * noise(s as u64)).round(),
        // Two more, once.
        |s| if s < 1_000.0 { 100.0 } else { 102.0 },
    ];
    for count in stays {
        let found = trend(&reads(ProcessMetric::Fds, count), "subject.fds");
        assert!(!found.grows, "{found:?}");
    }
}

/// Responses of ten minutes, 1,000 in each second: the hundredth part of them takes `slow_ns`, the others 20 µs.
fn responses(slow_ns: impl Fn(u32) -> u64 + 'static) -> TrialBuilder {
    plain(600, 0).edit(move |at, interval| {
        let response = interval.distribution_mut(Measure::Response, true);
        response.record_many(20_000, 985);
        response.record_many(slow_ns(at), 15);
    })
}

#[test]
fn latency_that_creeps_is_told_of_the_percentile_that_creeps() {
    let creeps = responses(|at| 1_000_000 + 2_000 * u64::from(at));
    let (p50, p99) = (trend(&creeps, "response.p50"), trend(&creeps, "response.p99"));
    assert!(!p50.grows && p99.grows, "{p50:?} {p99:?}");
    // 2 µs a second are 7.2 ms an hour.
    assert!((p99.per_hour / 7.2e6 - 1.0).abs() < 0.1, "{p99:?}");
    assert!(p99.per_sent.is_none(), "{p99:?}");
    let scatters = responses(|at| (1_000_000.0 + 300_000.0 * noise(u64::from(at))) as u64);
    assert!(!trend(&scatters, "response.p99").grows);
}

#[test]
fn ticks_that_begin_later_and_later_are_told() {
    let trial = plain(600, 0).build();
    let head = trial.head.clone();
    let ticks = |at: u32| {
        let from_ns = u64::from(crate::testing::HOLD_FROM_S + at) * 1_000_000_000;
        let mut lateness = Distribution::new();
        lateness.record_many(50_000 + 200 * u64::from(at), 1_200);
        let interval = lateness.clone();
        measure::Entry::Ticks(Box::new(TickSecond {
            source: "log".to_owned(),
            from_ns,
            to_ns: from_ns + 1_000_000_000,
            counts: measure::TickCounts { due: 1_200, on_time: 1_200, ..Default::default() },
            interval,
            busy: None,
            lateness: Some(lateness),
            isr_numerator_ns: None,
            counters: Vec::new(),
        }))
    };
    let entries: Vec<measure::Entry> =
        plain(600, 0).entries().into_iter().chain((0..600).map(ticks)).collect();
    let found = figures(&Trial::from_entries(head, &entries, 0)).unwrap().of["ticks.lateness.p99"];
    assert!(found.grows && (found.per_hour / 720_000.0 - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn what_a_connection_leaks_is_told_to_the_byte_however_unevenly_they_end() {
    // From 0 to 10 a second, for half a minute each.
    let closed = |second: u32| (5.0 + 5.0 * noise(u64::from(second / 30))) as u64;
    let trial = TrialBuilder { hold_s: 300, questions_per_s: 0, ..TrialBuilder::asking(100.0) }
        .edit(move |second, interval| interval.connections.closed = closed(second));
    let leaked = move |second: u32| 50e6 + 10_016.0 * (0..=second).map(closed).sum::<u64>() as f64;
    let rss = move |second| vec![(Reading::Subject(ProcessMetric::Rss), leaked(second))];
    let found = trend(&trial.sampled(rss), "subject.rss_bytes");
    assert!(found.grows && (found.per_closed.unwrap() - 10_016.0).abs() < 1.0, "{found:?}");
    let ended: u64 = (30..300).map(closed).sum();
    let over_time = found.per_hour * 270.0 / 3_600.0 / ended as f64;
    assert!((over_time / 10_016.0 - 1.0).abs() > 0.02, "the slope over time does not tell it: {over_time}");
    assert_eq!(found.per_sent, None, "nothing was sent");
}

#[test]
fn a_hold_below_five_minutes_tells_no_slope() {
    assert!(figures(&plain(299, 0).build()).is_none());
    // What was cut off as warm-up was held too.
    let cut = |cut_s| {
        let trial = plain(310, 0);
        let (entries, head) = (trial.entries(), trial.build().head);
        figures(&Trial::from_entries(head, &entries, cut_s)).map(|found| found.stretches)
    };
    assert_eq!((cut(20), cut(150)), (Some(26), Some(14)));
    let five = figures(&plain(300, 0).build()).unwrap();
    assert_eq!((five.stretch_s, five.stretches), (10, 27));
    assert!((five.sent_per_hour - 360_000.0).abs() < 1.0, "{five:?}");
}

#[test]
fn the_interval_holds_the_slope_that_was_planted_and_noise_alone_is_seldom_told() {
    // How much each value resembles the one before it; how often the interval must hold the slope, and noise may be told.
    for (resembles, held_least, told_most) in [(0.0f64, 0.94, 0.03), (0.3, 0.9, 0.05), (0.6, 0.87, 0.06)] {
        let series = 2_000u64;
        let (mut held, mut told) = (0, 0);
        for number in 0..series {
            let line = |slope: f64| {
                let mut own = 0.0;
                let value = |at: u64| {
                    let fresh: f64 = (0..6).map(|part| noise(number * 1_000 + at * 6 + part)).sum();
                    own = resembles * own + (1.0 - resembles * resembles).sqrt() * fresh;
                    (at as f64, 1_000.0 + slope * at as f64 + own)
                };
                // The first values are not as correlated as the rest.
                Fit::of(&(0..40).map(value).skip(18).collect::<Vec<_>>()).unwrap()
            };
            let fit = line(3.0);
            held += u64::from((fit.slope - 3.0).abs() <= fit.reach);
            told += u64::from(line(0.0).is_growth(0.0, 0.0));
        }
        let (held, told) = (held as f64 / series as f64, told as f64 / series as f64);
        assert!(held >= held_least && told <= told_most, "{resembles}: held {held}, told {told}");
    }
}

#[test]
fn the_words_say_how_much_until_when_and_of_what() {
    let words = |trial: TrialBuilder| {
        let (trial, judgement) = trial.judged(&Criteria { objectives: Vec::new(), ..Criteria::default() });
        let rung = crate::answers::rung(&trial, &judgement);
        let climb = answers(&RunFacts::default(), None, vec![rung], Asked::default());
        climb.conclusions.into_iter().find(|one| one.id == "trends").map(|one| one.text)
    };
    let leaks = words(reads(ProcessMetric::Rss, |s| 50e6 + 3.78e6 * s / 3600.0));
    assert_eq!(
        leaks.unwrap(),
        "Over 1 h at 100 clients the server's memory grew by 3.78 MB/h (3.78 MB/h to 3.78 MB/h) to 53.8 MB, which doubles it \
         in 14.2 h: about 210 B per connection that ended, or about 10 B per message, as both went on evenly. No certain \
         growth: descriptors 100 (0/h to 0/h)."
    );
    let flat = words(plain(HOUR_S, 0));
    assert_eq!(
        flat.unwrap(),
        "Over 1 h at 100 clients nothing of the server grew: memory 50 MB (0 B/h to 0 B/h), descriptors 100 (0/h to 0/h)."
    );
    let descriptors = words(reads(ProcessMetric::Fds, |s| 100.0 + s / 4.0)).unwrap();
    assert!(descriptors.contains("descriptors grew by 900/h"), "{descriptors}");
    assert!(
        descriptors.contains("about one per 20 connections that ended, or about one per 400 messages"),
        "{descriptors}"
    );
    assert_eq!(words(plain(60, 0)), None);
}
