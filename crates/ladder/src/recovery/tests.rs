use measure::{
    Entry, Event, Interval, MachineMetric, MetricNames, Phase, ProcessMetric, Reading, Sample, TrialHead,
};

use super::*;

/// `.` met, `x` not met, `d` not met and disturbed, `?` cannot be told.
fn seconds(course: &str) -> Vec<Second> {
    let second = |sign| match sign {
        '.' => Second::Met,
        'x' => Second::NotMet,
        'd' => Second::Disturbed,
        _ => Second::Untold,
    };
    course.chars().map(second).collect()
}

fn found(course: &str) -> Found {
    recovery(&seconds(course), Ended::AsPlanned)
}

#[test]
fn the_recovery_time_is_the_number_of_seconds_before_five_that_are_met() {
    assert_eq!(found("....."), Found::Recovered(0));
    assert_eq!(found("xxxxxxx....."), Found::Recovered(7));
    assert_eq!(found("xxxxxxxxxx"), Found::NotRecovered(10));
}

#[test]
fn a_server_that_relapses_has_not_recovered_before() {
    assert_eq!(found("...xx....x....."), Found::Recovered(10));
    assert_eq!(found("....x....x"), Found::NotRecovered(10));
    assert_eq!(found("xxxxxx...."), Found::NotRecovered(6), "four at the end are too few");
    assert!(!is_over(&seconds("xx....")) && is_over(&seconds("xx.....")));
}

#[test]
fn disturbed_seconds_leave_it_unknown_only_where_they_change_it() {
    let Found::Unknown(why) = found("xxdd.....") else { panic!("two or four seconds") };
    assert!(why.starts_with("2 to 4 s: in or right before 2 of 9 s"), "{why}");
    assert!(matches!(found("dddddddddd"), Found::Unknown(_)), "as far as is known it recovered at once");
    assert_eq!(found("dd.x....."), Found::Recovered(4));
    assert_eq!(found("xxdd.x"), Found::NotRecovered(6));
}

#[test]
fn what_piled_up_while_something_else_took_the_cpu_is_not_the_overloads() {
    let Found::Unknown(why) = found("xxxx....ddxxx.....") else { panic!("four or thirteen seconds") };
    assert!(why.starts_with("4 to 13 s: in or right before 5 of 18 s"), "{why}");
    assert_eq!(found("xxxx....xxxxx....."), Found::Recovered(13), "nothing else was there");
}

#[test]
fn a_server_that_exits_or_a_run_that_is_cut_short_shows_no_recovery() {
    assert_eq!(recovery(&seconds("xx"), Ended::ByExit), Found::Exited);
    assert_eq!(recovery(&seconds("xxxxxx"), Ended::Early), Found::Unknown("only 6 s were seen".to_owned()));
    assert!(matches!(found("??????"), Found::Unknown(why) if why.starts_with("no objective")));
}

/// What one second of a planted server looks like.
#[derive(Clone, Copy)]
struct Planted {
    answered: u64,
    response_ns: u64,
    /// planned after the overload, and open when the second ends
    open: u64,
    steal_share: f64,
    /// how long its threads waited for a core was measured: hardly at all
    knows_threads: bool,
}

const FAST: Planted =
    Planted { answered: 100, response_ns: 5_000_000, open: 1, steal_share: 0.0, knows_threads: true };
const SLOW: Planted = Planted { response_ns: 300_000_000, ..FAST };
const SILENT: Planted = Planted { answered: 0, open: 100, ..FAST };

/// The overload ends here, s.
const FROM_S: u64 = 10;

/// A trial with these seconds after its hold, during all of which late answers to the overload still arrive.
fn planted(course: &[Planted]) -> (Trial, AfterHold) {
    let names = MetricNames::new(&["get"], &[], &[], &[]);
    let head = TrialHead { load: 150.0, metric_names: names.clone(), ..TrialHead::default() };
    let to_s = FROM_S + course.len() as u64;
    let mark = |second: u64, kind: &str, text: &str| Event {
        at_ns: second * 1_000_000_000,
        kind: kind.to_owned(),
        text: text.to_owned(),
    };
    let marks = [
        mark(2, kind::HOLD, ""),
        mark(FROM_S, kind::DRAIN, "8s"),
        mark(FROM_S, kind::RECOVERY, "80"),
        mark(to_s, kind::RECOVERY_ENDS, ""),
        mark(to_s, kind::END, ""),
    ];
    let mut entries: Vec<Entry> = marks.into_iter().map(Entry::Event).collect();
    for (number, planted) in course.iter().enumerate() {
        let index = FROM_S as u32 + number as u32;
        let mut interval = Interval::new(&names);
        (interval.index, interval.workers) = (index, 1);
        let open_before = number.checked_sub(1).map_or(0, |before| course[before].open);
        *interval.flow_mut(0, Phase::Drain) = Flow {
            offered: planted.answered + planted.open - open_before.min(planted.answered + planted.open),
            sent: planted.answered + planted.open - open_before.min(planted.answered + planted.open),
            answered: planted.answered,
            open_before: open_before.min(planted.answered + planted.open),
            open_after: planted.open,
            ..Flow::default()
        };
        *interval.flow_mut(0, Phase::Hold) = Flow { answered: 50, open_before: 50, ..Flow::default() };
        for _ in 0..planted.answered {
            interval.record(Measure::Response, Phase::Drain, planted.response_ns);
        }
        (0..50).for_each(|_| interval.record(Measure::Response, Phase::Hold, 9_000_000_000));
        entries.push(Entry::Interval(Box::new(interval)));
        let of_process = [ProcessMetric::WaitingShareMax, ProcessMetric::CpuShareMax];
        let threads = of_process.into_iter().flat_map(|what| [Reading::Worker(what), Reading::Subject(what)]);
        let no_wait = threads.filter(|_| planted.knows_threads).map(|what| (what, 0.01));
        let steal = (Reading::Machine(MachineMetric::StealShare), planted.steal_share);
        let at_ns = (u64::from(index) + 1) * 1_000_000_000;
        let sample = |(what, value)| Entry::Sample(Sample { at_ns, what, value });
        entries.extend(no_wait.chain([steal]).map(sample));
    }
    let trial = Trial::from_entries(head.clone(), &entries, 0);
    let mut after = AfterHold::of(&head, &trial.events).expect("its load went down");
    entries.iter().for_each(|entry| after.take(entry));
    (trial, after)
}

/// Outcome and recovery time of a planted course.
fn figures(course: &[Planted]) -> (String, Option<u64>, Value) {
    let (trial, after) = planted(course);
    let objectives: Vec<Objective> =
        ["response.p99 < 50ms", "errors == 0"].iter().map(|text| text.parse().unwrap()).collect();
    let figures = figures_of(&trial, &after, &objectives).expect("a recovery was looked for");
    (figures["outcome"].as_str().unwrap().to_owned(), figures["recovery_s"].as_u64(), figures)
}

#[test]
fn stored_seconds_are_judged_by_what_was_planned_after_the_overload() {
    let recovered = |after| ("recovered".to_owned(), Some(after));
    let (outcome, after, all) = figures(&[FAST; 8]);
    assert_eq!((outcome, after), recovered(0), "{all}");
    assert_eq!(all["seconds"].as_array().map(Vec::len), Some(5), "what comes later is not looked at");
    assert_eq!(all["load"], 80.0);
    let slow_for_three: Vec<Planted> = [vec![SILENT; 1], vec![SLOW; 2], vec![FAST; 6]].concat();
    let (outcome, after, all) = figures(&slow_for_three);
    assert_eq!((outcome, after), recovered(3), "{all}");
    let (outcome, _, all) = figures(&[SLOW; 9]);
    assert_eq!((outcome.as_str(), &all["not_within_s"]), ("not recovered", &json!(9)));
    assert_eq!(in_words(&all, 150.0).as_deref(), Some("not within 9 s after 150"));
}

#[test]
fn what_is_open_counts_once_it_waited_longer_than_the_bound() {
    // 100 per second and 50 ms: no more than five can be open.
    let with_open = |open| Planted { open, ..FAST };
    assert_eq!(figures(&[with_open(5); 8]).0, "recovered");
    assert_eq!(figures(&[with_open(0), with_open(30), SILENT, SILENT, SILENT, SILENT]).0, "not recovered");
}

#[test]
fn a_machine_that_was_busy_leaves_it_unknown() {
    let stolen = Planted { steal_share: 0.5, knows_threads: false, ..SLOW };
    let course: Vec<Planted> = [vec![stolen; 3], vec![FAST; 6]].concat();
    let (outcome, after, all) = figures(&course);
    assert_eq!((outcome.as_str(), after), ("unknown", None), "{all}");
    assert!(
        in_words(&all, 150.0)
            .unwrap()
            .starts_with("unknown after 150 (0 to 3 s: in or right before 3 of 8 s"),
        "{all}"
    );
    let met: Vec<Planted> = vec![Planted { steal_share: 0.5, ..FAST }; 6];
    assert_eq!(figures(&met).1, Some(0), "met despite it");
}

#[test]
fn what_a_busy_machine_does_not_explain_is_the_servers() {
    // Three hundredths of a second stolen make no request late by a quarter of a second, and no second silent.
    let stolen = |planted| Planted { steal_share: 0.03, ..planted };
    let course: Vec<Planted> = [vec![stolen(SILENT)], vec![stolen(SLOW); 2], vec![FAST; 6]].concat();
    let (outcome, after, all) = figures(&course);
    assert_eq!((outcome.as_str(), after), ("recovered", Some(3)), "{all}");
}
