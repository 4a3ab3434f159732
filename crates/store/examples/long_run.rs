//! Makes a long run of a short one: the hold of its first trial, repeated. For what a hold of hours costs to keep and to
//! read (`bench/soak`).
//!
//! `cargo run --release -p stepladder-store --example long_run STORE RUN OTHER_STORE HOURS`

use std::path::Path;

use measure::Entry;
use measure::trial::kind;
use store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, run, to, hours] = arguments.as_slice() else {
        return Err("usage: long_run STORE RUN OTHER_STORE HOURS".into());
    };
    let hours: f64 = hours.parse()?;
    let from = Store::open_to_read(Path::new(from))?;
    let run = from.find_run(run)?;
    let record = from.run(&run)?;
    let head = from.trial_marks(&run)?.remove(0).head;
    let entries = from.trial_entries(&run, head.seq)?;
    let mark = |kind: &str| {
        let is_it = |entry: &Entry| matches!(entry, Entry::Event(event) if event.kind == kind);
        entries.iter().position(is_it).ok_or_else(|| format!("the trial has no mark {kind}"))
    };
    let hold = mark(kind::HOLD)? + 1..mark(kind::DRAIN)?;
    let indices = entries[hold.clone()].iter().filter_map(|entry| match entry {
        Entry::Interval(interval) => Some(interval.index),
        _ => None,
    });
    let (first, last) = (indices.clone().min().unwrap_or(0), indices.max().unwrap_or(0));
    let seconds = last - first + 1;
    let times = ((hours * 3_600.0 / f64::from(seconds)).round() as u32).max(1);

    let to = Store::open_or_create(Path::new(to))?;
    let writer = to.begin_run(&record.head, None)?;
    writer.begin_trial(&head, record.head.started_unix_ms)?;
    let write = |entries: &[Entry], by_s: u32| {
        entries.chunks(100).try_for_each(|batch| {
            writer.append(batch.iter().map(|entry| moved(entry.clone(), by_s)).collect())
        })
    };
    write(&entries[..hold.start], 0)?;
    (0..times).try_for_each(|time| write(&entries[hold.clone()], time * seconds))?;
    write(&entries[hold.end..], (times - 1) * seconds)?;
    writer.end_trial(record.head.started_unix_ms)?;
    for verdict in from.verdicts(&run, head.seq)? {
        writer.verdict(0, verdict)?;
    }
    println!("{}: {} s", writer.id(), times * seconds);
    if let store::RunState::Ended(end) = record.state {
        writer.end_run(end)?;
    }
    Ok(())
}

fn moved(mut entry: Entry, by_s: u32) -> Entry {
    let by_ns = u64::from(by_s) * 1_000_000_000;
    match &mut entry {
        Entry::Interval(interval) => interval.index += by_s,
        Entry::Ticks(ticks) => (ticks.from_ns, ticks.to_ns) = (ticks.from_ns + by_ns, ticks.to_ns + by_ns),
        Entry::Sample(sample) => sample.at_ns += by_ns,
        Entry::Event(event) => event.at_ns += by_ns,
        Entry::Books(_) => {}
    }
    entry
}
