//! How late the pacer alone is: `pacer RATE SECONDS [spin_us] [--realtime] [--tokio]`, one line of JSON.
//!
//! `--tokio` runs the same schedule on tokio's own timers instead, for comparison in the same run.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use bots::NullBot;
use engine::collector::FromWorker;
use engine::thread::{Setup, spawn};
use engine::{Collector, MonotonicClock, Shared, Timeline};
use measure::{Distribution, Measure};
use plan::{EchoBots, Scheme, WorkerPlan};

const CLIENTS: u64 = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, otherwise: f64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (rate_per_s, seconds, spin_us) = (number(0, 10_000.0), number(1, 5.0), number(2, 0.0));
    let realtime = arguments.iter().any(|text| text == "--realtime");
    let lag = if arguments.iter().any(|text| text == "--tokio") {
        tokio_lag(rate_per_s, seconds)
    } else {
        pacer_lag(rate_per_s, seconds, (spin_us * 1e3) as u64, realtime)
    };
    let us = |q: f64| match lag.quantile(q, 0) {
        measure::Quantile::Ns(ns) => format!("{:.1}", ns as f64 / 1e3),
        _ => "null".to_owned(),
    };
    println!(
        r#"{{"rate_per_s":{rate_per_s},"seconds":{seconds},"spin_us":{spin_us},"realtime":{realtime},"count":{},"p50_us":{},"p90_us":{},"p99_us":{},"p999_us":{},"max_us":{:.1}}}"#,
        lag.count(),
        us(0.5),
        us(0.9),
        us(0.99),
        us(0.999),
        lag.max_ns().unwrap_or(0) as f64 / 1e3
    );
}

fn pacer_lag(rate_per_s: f64, seconds: f64, spin_ns: u64, realtime: bool) -> Distribution {
    let plan = WorkerPlan::alone(
        EchoBots { rate_per_s: rate_per_s / CLIENTS as f64, payload_bytes: 0 }.into(),
        CLIENTS,
        Scheme::Ws,
        SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
    );
    let clock = MonotonicClock::starting_now();
    let timeline = Arc::new(Timeline::default());
    timeline.hold_at(1_000_000_000);
    timeline.drain_at(1_000_000_000 + (seconds * 1e9) as u64);
    let shared = Shared { timeline, ..Shared::default() };
    let (says, received) = channel();
    let (mut collector, mut ends) = Collector::new(1, &says);
    let address = drivers::Address { host: "nowhere".to_owned(), ..drivers::Address::plain(plan.address) };
    let setup = Setup {
        plan,
        addresses: vec![address],
        shared,
        clock,
        to_collector: ends.remove(0),
        says,
        core: Some(0),
        realtime,
        spin_ns,
    };
    let thread = spawn::<NullBot>(setup).expect("a thread can be started");
    let mut lag = Distribution::new();
    while let Ok(message) = received.recv() {
        match message {
            FromWorker::Second { worker, interval } => {
                if let Some(merged) = collector.add(worker, interval).expect("the books balance") {
                    lag.add(merged.distribution(Measure::SendLag, true));
                }
            }
            FromWorker::Ledger { .. } => {}
            FromWorker::Done { .. } => break,
            FromWorker::Broke { why, .. }
            | FromWorker::Panicked { why, .. }
            | FromWorker::Lost { why, .. } => {
                panic!("{why}")
            }
        }
    }
    thread.join().expect("the worker ended well");
    lag
}

fn tokio_lag(rate_per_s: f64, seconds: f64) -> Distribution {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let mut lag = Distribution::new();
        let start = tokio::time::Instant::now();
        for n in 0..(rate_per_s * seconds) as u64 {
            let planned = start + Duration::from_nanos((n as f64 * 1e9 / rate_per_s) as u64);
            tokio::time::sleep_until(planned).await;
            lag.record(planned.elapsed().as_nanos() as u64);
        }
        lag
    })
}
