//! How long a second takes to commit: it must be far less than the second itself.

use std::sync::mpsc;
use std::time::Instant;

use measure::{Entry, Interval, Measure, Phase, ProcessMetric};

use crate::given;

/// A second as an arena rung fills it: five distributions of 60,000 values each, flows, samples.
fn full_second(index: u32, random: &mut fastrand::Rng) -> Vec<Entry> {
    let Entry::Interval(mut interval) = given::second(index, 60_000) else { unreachable!() };
    for measure in
        [Measure::Response, Measure::Service, Measure::ReceiveLag, Measure::TickInterval, Measure::TickAge]
    {
        record_spread(&mut interval, measure, random);
    }
    let samples = (0..8).map(|_| given::sample(u64::from(index), ProcessMetric::CpuTime, random.f64()));
    std::iter::once(Entry::Interval(interval)).chain(samples).collect()
}

fn record_spread(interval: &mut Interval, measure: Measure, random: &mut fastrand::Rng) {
    // From 20 µs to 50 ms, evenly in the logarithm: wider than a healthy server's.
    (0..60_000).for_each(|_| interval.record(measure, Phase::Hold, 20_000 << (random.u64(..1_132) / 100)));
    (0..2_000).for_each(|_| interval.record(measure, Phase::Hold, random.u64(20_000..50_000_000)));
}

#[test]
fn a_second_with_five_distributions_commits_in_a_small_part_of_a_second() {
    let given = given::store();
    let (told, committed) = mpsc::channel();
    let writer = given.store.begin_run(&given::run_head(None), Some(told)).unwrap();
    writer.begin_trial(&given::trial_head(0, 1_000.0), 1).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut took_us: Vec<u128> = (0..60)
        .map(|index| {
            let batch = full_second(index, &mut random);
            let begin = Instant::now();
            writer.append(batch).unwrap();
            committed.recv().unwrap();
            begin.elapsed().as_micros()
        })
        .collect();
    writer.end_trial(2).unwrap();
    took_us.sort_unstable();
    let begin = Instant::now();
    given.store.trial(writer.id(), 0, 0).unwrap();
    let read_ms = begin.elapsed().as_millis();
    writer.end_run(given::finished()).unwrap();
    let bytes = std::fs::metadata(&given.path).unwrap().len() / 60;
    println!(
        "commit of one second: median {} µs, worst {} µs; {bytes} bytes each; 60 s read and summed in {read_ms} ms",
        took_us[30], took_us[59]
    );
    assert!(took_us[30] < 200_000, "median {} µs", took_us[30]);
}
