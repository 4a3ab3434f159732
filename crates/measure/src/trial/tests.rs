use std::sync::Arc;

use super::*;
use crate::entry::{Entry, TickSecond};
use crate::interval::Interval;
use crate::load_unit::LoadUnit;
use crate::names::MetricNames;
use crate::purpose::Purpose;
use crate::sample::{MachineMetric, ProcessMetric, Reading, Sample};
use crate::trial::sum::Sum;

const MS_NS: u64 = 1_000_000;

fn event(at_ms: u64, kind: &str, text: &str) -> Entry {
    Entry::Event(Event { at_ns: at_ms * MS_NS, kind: kind.to_owned(), text: text.to_owned() })
}

fn told(from_ms: u64, to_ms: u64, frames: u64) -> Entry {
    Entry::Ticks(Box::new(TickSecond {
        source: "log".to_owned(),
        from_ns: from_ms * MS_NS,
        to_ns: to_ms * MS_NS,
        counts: TickCounts { due: frames, on_time: frames, ..TickCounts::default() },
        interval: Distribution::new(),
        busy: None,
        lateness: None,
        isr_numerator_ns: None,
        counters: vec![("frames".to_owned(), frames)],
    }))
}

fn trial(entries: &[Entry]) -> Trial {
    trial_with(&MetricNames::new(&[], &[], &[], &[]), entries, 0)
}

fn trial_with(names: &Arc<MetricNames>, entries: &[Entry], cut_s: u32) -> Trial {
    let head = TrialHead {
        seq: 0,
        purpose: Purpose::Rung,
        load: 1.0,
        load_unit: LoadUnit::Requesters,
        bots: 1,
        connections: 1,
        tick_period_ns: 33_333_333,
        cell: BTreeMap::new(),
        metric_names: Arc::clone(names),
    };
    Trial::from_entries(head, entries, cut_s)
}

#[test]
fn entries_shorter_than_a_second_count_for_the_time_that_they_cover() {
    // A hold from 2 s to 4 s; entries of about 250 ms that began before it and end after it.
    let mut entries = vec![event(2_000, kind::HOLD, ""), event(4_000, kind::DRAIN, "2s")];
    let ends: Vec<u64> = (0..12).map(|n| 1_610 + n * 250).collect();
    entries.extend(ends.windows(2).map(|pair| told(pair[0], pair[1], 7)));
    let trial = trial(&entries);
    let inside = ends[1..].iter().filter(|to| (2_001..=4_000).contains(*to)).count() as u64;
    assert_eq!(inside, 8);
    assert_eq!(trial.subject_told_ns, inside * 250 * MS_NS);
    assert_eq!(trial.subject_counters["frames"], inside * 7);
    assert_eq!(trial.ticks.map(|ticks| ticks.counts.due), Some(inside * 7));
}

#[test]
fn a_stall_of_the_server_is_covered_by_the_entry_that_ends_it() {
    let entries = [
        event(2_000, kind::HOLD, ""),
        event(5_000, kind::DRAIN, "3s"),
        told(1_900, 2_150, 7),
        told(2_150, 4_800, 1),
    ];
    assert_eq!(trial(&entries).subject_told_ns, 2_900 * MS_NS);
}

/// What whole entries cover of a hold from 2 s to 8 s, in ms, and the ticks due in them; and whether any entry covers
/// the hold.
fn logged(entries: &[Entry]) -> (Option<(u64, u64, u64)>, bool) {
    let marks = [event(2_000, kind::HOLD, ""), event(8_000, kind::DRAIN, "6s")];
    let trial = trial(&[&marks, entries].concat());
    let part = trial.logged.map(|part| (part.from_ns / MS_NS, part.to_ns / MS_NS, part.due));
    (part, trial.is_in_log)
}

#[test]
fn whole_entries_of_a_log_cover_a_hold_but_for_its_edges() {
    let seconds = |from_ms: u64, to_ms: u64| -> Vec<Entry> {
        (from_ms..to_ms).step_by(1_000).map(|ms| told(ms, ms + 1_000, 60)).collect()
    };
    assert_eq!(
        logged(&seconds(500, 9_500)),
        (Some((2_500, 7_500, 300)), true),
        "entries lie across both edges"
    );
    assert_eq!(logged(&seconds(2_000, 8_000)), (Some((2_000, 8_000, 360)), true));
    assert_eq!(logged(&seconds(5_000, 8_000)), (Some((2_000, 8_000, 180)), true), "a log that begins late");
    let gap = [seconds(1_500, 3_500), seconds(6_500, 7_500)].concat();
    assert_eq!(logged(&gap), (Some((2_500, 7_500, 120)), true), "a gap is not left out");
    let two = [seconds(1_500, 8_500), seconds(1_200, 8_200)].concat();
    assert_eq!(logged(&two), (Some((2_200, 7_500, 600)), true), "two loops that write one log");
}

#[test]
fn a_hold_within_one_entry_has_no_whole_one_and_is_in_the_log_all_the_same() {
    assert_eq!(logged(&[told(1_000, 8_100, 60)]), (None, true));
    assert_eq!(logged(&[told(0, 2_000, 60), told(8_000, 9_000, 60)]), (None, false));
    assert_eq!(logged(&[told(3_000, 3_000, 60), told(4_000, 3_000, 60)]), (None, true));
    assert_eq!(logged(&[]), (None, false));
}

#[test]
fn first_errors_come_back_as_cause_and_words() {
    let entries = [
        event(2_000, kind::HOLD, ""),
        event(2_500, kind::ERROR, "rejected (429, 503): status 503: \"busy\""),
        event(2_600, kind::ERROR, "odd"),
    ];
    let trial = trial(&entries);
    let samples: Vec<(&str, &str)> = trial.error_samples().collect();
    assert_eq!(samples, [("rejected (429, 503)", "status 503: \"busy\""), ("odd", "")]);
}

#[test]
fn errors_are_those_of_the_hold_and_those_before_it() {
    let names = MetricNames::new(&[], &["lost"], &[], &[]);
    let second = |(index, errors): (u32, u64)| {
        let mut interval = Interval::new(&names);
        (interval.index, interval.errors[0]) = (index, errors);
        Entry::Interval(Box::new(interval))
    };
    let seconds = [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16)].map(second);
    let marks = [event(2_000, kind::HOLD, ""), event(4_000, kind::DRAIN, "2s")];
    let (mut before, mut within) = (Vec::new(), Vec::new());
    for cut_s in [0, 1] {
        let trial = trial_with(&names, &[&marks[..], &seconds].concat(), cut_s);
        before.push(trial.errors_before_hold["lost"]);
        within.push(trial.errors["lost"]);
    }
    assert_eq!((before, within), (vec![3, 7], vec![12, 8]));
}

#[test]
fn a_hold_that_nothing_ended_reaches_to_the_last_moment_that_anything_speaks_of() {
    let until_ns = |entries: &[Entry]| trial(entries).hold.map(|hold| (hold.to_ns, hold.ended_by));
    let interrupted = |ms: u64| Some((ms * MS_NS, "interrupted".to_owned()));
    let hold = event(2_000, kind::HOLD, "");
    assert_eq!(until_ns(&[told(1_900, 2_150, 7), hold.clone(), told(2_150, 4_800, 7)]), interrupted(4_800));
    assert_eq!(until_ns(&[told(2_000, 2_500, 7), hold.clone(), event(3_000, "odd", "")]), interrupted(3_000));
    assert_eq!(until_ns(&[told(0, 1_000, 7), hold]), interrupted(2_000));
    assert_eq!(until_ns(&[told(0, 1_000, 7)]), None);
}

#[test]
fn what_is_told_of_a_second_before_the_bots_word_is_kept_for_it() {
    let mut interval = Interval::new(&MetricNames::new(&[], &[], &[], &[]));
    interval.index = 3;
    let interval = Entry::Interval(Box::new(interval));
    let steal = Entry::Sample(Sample {
        at_ns: 4_000 * MS_NS,
        what: Reading::Machine(MachineMetric::StealShare),
        value: 0.5,
    });
    let entries = [told(3_000, 4_000, 60), steal, told(9_000, 9_500, 60), interval];
    let seconds = trial(&entries).seconds;
    let series: Vec<_> =
        seconds.iter().map(|second| (second.index, second.ticks.due, second.host.steal_share)).collect();
    assert_eq!(series, [(3, 60, Some(0.5))], "a second that the bots never told is none");
}

/// Of a hold from 2 s to 5 s without its second 3.
fn without_second_3(entries: &[Entry]) -> Trial {
    let marks = [event(2_000, kind::HOLD, ""), event(5_000, kind::DRAIN, "3s"), event(6_000, kind::END, "")];
    let marks = marks.into_iter().filter_map(|entry| match entry {
        Entry::Event(event) => Some(event),
        _ => None,
    });
    let mut sum = Sum::new(trial(&[]).head, marks.collect(), 0).leaving_out(BTreeSet::from([3]));
    entries.iter().for_each(|entry| sum.take(entry));
    sum.finish()
}

#[test]
fn an_entry_that_ends_before_it_begins_or_lasts_for_centuries_harms_nothing() {
    let centuries_ms = i64::MAX as u64 / MS_NS;
    let told_of = |entries: &[Entry]| without_second_3(entries).ticks.map(|ticks| ticks.counts.on_time);
    // Zero length, at the begin of a second.
    assert_eq!(told_of(&[told(4_000, 4_000, 7)]), Some(7));
    assert_eq!(told_of(&[told(4_500, 2_500, 7)]), Some(7));
    assert_eq!(told_of(&[told(3_100, 3_900, 7), told(4_100, 4_900, 5)]), Some(5));
    // 2^32 s and a little: as a 32-bit second it would be the first.
    let wraps_ms = ((1 << 32) + 3) * 1_000;
    let entries =
        [told(wraps_ms, wraps_ms + 900, 7), told(0, centuries_ms, 9), told(centuries_ms, centuries_ms, 9)];
    without_second_3(&entries);
    let Entry::Ticks(second) = &entries[0] else { panic!("ticks") };
    assert_eq!(second.second(), u32::MAX);
}

#[test]
fn a_tick_rate_that_was_found_is_the_trials() {
    let period_ns = |told_ns, text: &str| {
        let head = TrialHead { tick_period_ns: told_ns, ..trial(&[]).head };
        Trial::from_entries(head, &[event(1_000, kind::TICK_RATE, text)], 0).head.tick_period_ns
    };
    assert_eq!(period_ns(0, "30 Hz"), 33_333_333);
    assert_eq!(period_ns(0, "28.41 Hz"), 35_198_874);
    assert_eq!(period_ns(16_666_667, "30 Hz"), 16_666_667, "what was said stays");
    for text in ["", "0 Hz", "-3 Hz", "NaN Hz", "inf Hz", "30"] {
        assert_eq!(period_ns(0, text), 0, "{text}");
    }
}

#[test]
fn the_names_whose_threads_used_most_of_the_hold_are_told_with_mean_and_largest_second() {
    let at = |second: u64, what: Reading, value: f64| {
        Entry::Sample(Sample { at_ns: second * 1_000 * MS_NS, what, value })
    };
    let named =
        |second: u64, name: &str, cores: f64| at(second, Reading::ThreadsNamed(name.to_owned()), cores);
    let said = |index: u32| {
        let mut interval = Interval::new(&MetricNames::new(&[], &[], &[], &[]));
        interval.index = index;
        Entry::Interval(Box::new(interval))
    };
    let entries = [
        event(2_000, kind::HOLD, ""),
        event(6_000, kind::DRAIN, "4s"),
        said(1),
        said(2),
        said(3),
        said(4),
        said(5),
        // Before the hold.
        named(2, "main", 9.0),
        // One of them alone is busy, then several.
        named(3, "worker-1", 0.4),
        named(3, "main", 0.3),
        named(4, "worker-*", 1.2),
        named(5, "worker-7", 0.4),
        named(5, "main", 0.1),
        // A second in which none was worth a word, and threads were read.
        at(6, Reading::Subject(ProcessMetric::ContextSwitches), 3.0),
    ];
    let told = |count: usize| {
        let of = |of: ThreadsOfName| (of.name, (of.cpu_cores * 1e6).round() / 1e6, of.cpu_cores_max);
        trial(&entries).threads_by_name(count).into_iter().map(of).collect::<Vec<_>>()
    };
    let expected = [("worker-*".to_owned(), 0.5, 1.2), ("main".to_owned(), 0.1, 0.3)];
    assert_eq!(told(5), expected);
    assert_eq!(told(1), expected[..1]);
    assert_eq!(trial(&entries[..7]).threads_by_name(5), []);
}
