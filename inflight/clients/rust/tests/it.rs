//! The harness with fully known operations.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use inflight::{
    Client, Counts, End, Fake, Operations, Options, Outcome, Overhead, Plan, Token, Workload, benchmark,
};
use proptest::prelude::*;
use serde_json::Value;

#[path = "../examples/mine.rs"]
mod mine;

#[test]
fn the_example_in_the_documentation_runs() {
    mine::main();
}

fn options(total: u64, warmup: u64, in_flight: usize) -> Options {
    Options {
        total,
        warmup: Some(warmup),
        in_flight: Some(in_flight),
        ..Options::new(Client::new("planted", "1"))
    }
}

fn run(operations: &mut impl Operations, options: &Options) -> (End, Vec<Value>) {
    let mut lines = Vec::new();
    let mut on_line = |line: &str| lines.push(serde_json::from_str(line).unwrap());
    // The harness's own cost does not matter here.
    let mut no_overhead = |_: &Options| Overhead { wall_ns: 0, cpu_ns: 0 };
    let end = benchmark(operations, options, Some(&mut no_overhead), &mut on_line).unwrap();
    (end, lines)
}

fn buckets(line: &Value) -> Vec<(u64, u64)> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(line["latency"].as_str().unwrap()).unwrap();
    let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    read.iter_recorded()
        .map(|each| (read.lowest_equivalent(each.value_iterated_to()), each.count_at_value()))
        .collect()
}

#[test]
fn the_fake_gives_the_histogram_of_every_language() {
    let expected: Value = serde_json::from_str(include_str!("../../fake-histogram.json")).unwrap();
    let mut fake = Fake::new();
    let options = Options { clock: Some(fake.clock()), ..options(200_000, 20_000, 100) };
    let (_, lines) = run(&mut fake, &options);
    let end = lines.last().unwrap();
    for (name, count) in expected["counts"].as_object().unwrap() {
        assert_eq!(end[name], *count, "{name}");
    }
    let planted: Vec<(u64, u64)> = serde_json::from_value(expected["buckets"].clone()).unwrap();
    assert_eq!(buckets(end), planted);
}

#[test]
fn the_first_200_operations_are_told_one_by_one_and_each_start_follows_an_end() {
    let mut fake = Fake::new();
    let options = Options { clock: Some(fake.clock()), ..options(20_000, 2000, 10) };
    let (_, lines) = run(&mut fake, &options);
    let timeline = lines.iter().find(|line| line["type"] == "timeline").unwrap();
    let operations: Vec<(u64, u64)> = serde_json::from_value(timeline["operations"].clone()).unwrap();
    assert_eq!(operations.len(), 200);
    // The planted latencies, in the order of the operations.
    for (at, (start_ns, end_ns)) in operations.iter().enumerate() {
        let i = 2000 + at as u64;
        assert_eq!(end_ns - start_ns, 1000 + i * 7919 % 100_003 * 37, "operation {i}");
    }
    let follows = |start_ns: u64| operations.iter().any(|(_, end_ns)| *end_ns == start_ns);
    assert!(operations[..10].iter().all(|(start_ns, _)| *start_ns == 0));
    assert!(operations[10..].iter().all(|(start_ns, _)| follows(*start_ns)));
}

/// Operations that end in the order and in the way that a script says.
struct Planted {
    in_flight: VecDeque<(Token, u64)>,
    most: usize,
    started: u64,
    /// how many end in a poll, over and over
    batches: Vec<usize>,
    turn: usize,
    /// ends each operation so often
    times: usize,
}

impl Planted {
    fn new(batches: Vec<usize>, times: usize) -> Planted {
        Planted { in_flight: VecDeque::new(), most: 0, started: 0, batches, turn: 0, times }
    }
}

impl Operations for Planted {
    fn start(&mut self, token: Token, i: u64) {
        assert_eq!(i, self.started, "operations are started in their order, each once");
        self.started += 1;
        self.in_flight.push_back((token, i));
        self.most = self.most.max(self.in_flight.len());
    }

    fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        self.turn += 1;
        let count = self.batches[self.turn % self.batches.len()].min(self.in_flight.len());
        for (token, i) in self.in_flight.drain(..count) {
            let outcome = match i % 4 {
                0 => Outcome::Hit,
                1 => Outcome::Miss,
                2 => Outcome::Wrong("other".to_owned()),
                _ => Outcome::Unknown { cause: "planted", text: String::new() },
            };
            (0..self.times).for_each(|_| ended(token, outcome.clone()));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn each_operation_is_counted_once_and_never_more_are_in_flight(
        total in 1u64..2000,
        warm in 0.0f64..1.0,
        in_flight in 1usize..200,
        batches in prop::collection::vec(0usize..50, 1..6),
        times in 1usize..4,
    ) {
        prop_assume!(batches.iter().any(|count| *count > 0));
        let warmup = (total as f64 * warm) as u64;
        let mut planted = Planted::new(batches, times);
        let (end, lines) = run(&mut planted, &options(total, warmup, in_flight));
        prop_assert!(planted.most <= in_flight);
        prop_assert_eq!(planted.started, total);
        let of = |kind: u64| (warmup..total).filter(|i| i % 4 == kind).count() as u64;
        let expected = Counts {
            ops: total - warmup,
            ok: of(0) + of(1),
            failed: of(2),
            unknown: of(3),
            hits: of(0),
            misses: of(1),
            wrong: of(2),
        };
        prop_assert_eq!(end.counts, expected);
        let seconds: u64 = lines
            .iter()
            .filter(|line| line["type"] == "second" && line["phase"] == "measure")
            .map(|line| line["ops"].as_u64().unwrap())
            .sum();
        prop_assert_eq!(seconds, total - warmup);
        let recorded: u64 = buckets(lines.last().unwrap()).iter().map(|(_, count)| count).sum();
        prop_assert_eq!(recorded, total - warmup);
    }
}

/// Answers every operation but each tenth, which never ends.
struct Hanging(Vec<(Token, u64)>);

impl Operations for Hanging {
    fn start(&mut self, token: Token, i: u64) {
        self.0.push((token, i));
    }

    fn poll(&mut self, wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        let mut count = 0;
        for (token, i) in self.0.drain(..) {
            if i % 10 != 0 {
                ended(token, Outcome::Ok);
                count += 1;
            }
        }
        if count == 0 {
            std::thread::sleep(wait);
        }
        Ok(())
    }
}

#[test]
fn an_operation_that_never_ends_is_unknown_and_the_run_ends() {
    let options = Options { timeout: Duration::from_millis(30), ..options(100, 0, 5) };
    let (end, lines) = run(&mut Hanging(Vec::new()), &options);
    assert_eq!((end.counts.ok, end.counts.unknown, end.counts.ops), (90, 10, 100));
    assert_eq!(lines.last().unwrap()["errors"][0]["cause"], "timeout");
}

#[test]
fn a_run_that_is_stopped_reports_what_it_has() {
    let options = options(1_000_000_000, 0, 3);
    let stop = options.stop.clone();
    struct Endless(Hanging, inflight::Stop, u64);
    impl Operations for Endless {
        fn start(&mut self, token: Token, i: u64) {
            self.2 += 1;
            if self.2 == 200_000 {
                self.1.ask();
            }
            // An odd one ends.
            self.0.start(token, i | 1);
        }
        fn poll(&mut self, wait: Duration, ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
            self.0.poll(wait, ended)
        }
    }
    let (end, lines) = run(&mut Endless(Hanging(Vec::new()), stop, 0), &options);
    assert_eq!(end.stopped, Some("signal"));
    assert!(end.counts.ops >= 200_000);
    assert_eq!(lines.last().unwrap()["stopped"], "signal");
}

/// Nothing ever ends, and each operation holds memory.
struct Hoarding(Vec<Vec<u8>>);

impl Operations for Hoarding {
    fn start(&mut self, _token: Token, _i: u64) {
        self.0.push(vec![1; 20_000]);
    }

    fn poll(&mut self, _wait: Duration, _ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn without_a_limit_in_flight_the_run_stops_at_its_memory_cap() {
    let options = Options { in_flight: None, memory_cap_bytes: 120 << 20, ..options(1_000_000, 0, 1) };
    let (end, lines) = run(&mut Hoarding(Vec::new()), &options);
    assert_eq!(end.stopped, Some("memory"));
    assert_eq!(end.counts.ok, 0);
    assert!(end.counts.unknown > 1000, "{:?}", end.counts);
    assert!(lines.last().unwrap()["rss_peak_bytes"].as_u64().unwrap() < 400 << 20);
}

#[test]
fn a_broken_client_ends_the_run_with_its_words() {
    struct Broken;
    impl Operations for Broken {
        fn start(&mut self, _token: Token, _i: u64) {}
        fn poll(&mut self, _wait: Duration, _ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
            Err("gone".to_owned())
        }
    }
    let ended = benchmark(&mut Broken, &options(10, 0, 1), None, &mut |_| {});
    assert_eq!(ended.unwrap_err(), "gone");
}

#[test]
fn what_a_get_found_is_compared_byte_by_byte() {
    let plan = r#"{"target":"null:","value_bytes":70,"keys":{"pattern":"uniform","count":9}}"#;
    let workload = Workload::new(&Plan::read(plan).unwrap());
    let right = workload.value(3).to_vec();
    assert_eq!(workload.check(3, Some(&right)), Outcome::Hit);
    assert_eq!(workload.check(3, None), Outcome::Miss);
    let is_wrong = |value: &[u8]| matches!(workload.check(3, Some(value)), Outcome::Wrong(_));
    assert!(is_wrong(&right[..69]));
    assert!(is_wrong(&[&right[..], b"x"].concat()));
    let mut other = right;
    other[69] ^= 1;
    assert!(is_wrong(&other));
}
