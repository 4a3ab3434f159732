//! One worker that sends requests to an HTTP server, without store and verdicts: the client-side cost of a request.
//! `cargo run --release -p stepladder-bots --example asking -- 127.0.0.1:42080 CONNECTIONS SECONDS [RATE_PER_S]`
//! Without a rate each answer triggers the next request. Prints requests, CPU-seconds per 100,000 and latencies.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;

use bots::http::Requests;
use drivers::Http1;
use engine::collector::FromWorker;
use engine::thread::{Setup, spawn};
use engine::{Collector, MonotonicClock, Shared, Timeline};
use measure::{Distribution, Measure, Phase};
use plan::{Arrivals, HttpBots, HttpModel, HttpRequest, Scheme, Target, WorkerPlan};

fn main() {
    let mut words = std::env::args().skip(1);
    let mut next = |what: &str| words.next().unwrap_or_else(|| panic!("{what} is missing"));
    let socket: SocketAddr = next("the server's address").parse().expect("an address with its port");
    let connections: u64 = next("the number of connections").parse().expect("a number of connections");
    let seconds: u64 = next("the number of seconds").parse().expect("a number of seconds");
    let rate_per_s: f64 = words.next().map_or(0.0, |text| text.parse().expect("a rate"));
    let model = if rate_per_s > 0.0 {
        HttpModel::Open { connections, connections_max: connections }
    } else {
        HttpModel::Closed { think_ns: 0 }
    };
    let http = HttpBots::plain(model, vec![HttpRequest::get("/")], 30_000_000_000);
    let target = Target::at(Scheme::Http, socket);
    let plan = WorkerPlan {
        arrivals: if rate_per_s > 0.0 { Arrivals::Poisson } else { Arrivals::Closed },
        rate_per_s,
        ..WorkerPlan::alone(http.into(), connections, Scheme::Http, socket)
    };
    let timeline = Arc::new(Timeline::default());
    timeline.hold_at(1_000_000_000);
    timeline.drain_at((1 + seconds) * 1_000_000_000);
    let shared = Shared { timeline, ..Shared::default() };
    let (says, received) = channel();
    let (mut collector, mut ends) = Collector::new(1, &says);
    let address = drivers::Address { host: target.authority(), ..drivers::Address::plain(socket) };
    let setup = Setup {
        plan,
        addresses: vec![address],
        shared,
        clock: MonotonicClock::starting_now(),
        to_collector: ends.remove(0),
        says,
        core: None,
        realtime: false,
        spin_ns: 0,
    };
    let before_s = cpu_s();
    let thread = spawn::<Requests<Http1>>(setup).expect("a thread can be started");
    let mut sums: [Distribution; 3] = Default::default();
    let (mut answered, mut answered_in_all) = (0, 0);
    while let Ok(message) = received.recv() {
        match message {
            FromWorker::Second { worker, interval } => {
                if let Some(merged) = collector.add(worker, interval).expect("the books balance") {
                    let measures = [Measure::Response, Measure::Service, Measure::SendLag];
                    sums.iter_mut()
                        .zip(measures)
                        .for_each(|(sum, of)| sum.add(merged.distribution(of, true)));
                    answered += merged.flows[0][Phase::Hold as usize].answered;
                    answered_in_all += merged.flows[0].iter().map(|flow| flow.answered).sum::<u64>();
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
    let per_100_k = (cpu_s() - before_s) / answered_in_all as f64 * 1e5;
    println!("{:.0}/s, {per_100_k:.3} CPU-s per 100,000", answered as f64 / seconds as f64);
    for (name, of) in ["response", "service", "send lag"].iter().zip(&sums) {
        let us = |q| match of.quantile(q, 0) {
            measure::Quantile::Ns(ns) => format!("{:.1}", ns as f64 / 1e3),
            _ => "—".to_owned(),
        };
        println!("{name:>9} p50 {} p99 {} p99.9 {} µs", us(0.5), us(0.99), us(0.999));
    }
}

/// CPU time of this process, s.
fn cpu_s() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is to a value of ours, which the call fills.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
