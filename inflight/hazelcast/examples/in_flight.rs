//! The closed loop with a fixed number of operations in flight, over the reactor: how fast, and at what cost.
//!
//! `cargo run --release -p stepladder-hazelcast --example in_flight -- ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT`
//! Each completion starts the next, until the total is reached; the first tenth is a warm-up and not counted. Every get
//! checks the value's length and content. CPU is this process's, user and system, of the counted part.

mod closed_loop;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hazelcast::reactor::{Config, Outcome, Reactor};
use hazelcast::wire::request::TTL_OF_THE_MAP;
use hazelcast::wire::{Answer, Data, Key, MapName, Request};
use hdrhistogram::Histogram;

use closed_loop::Arguments;

const USAGE: &str = "usage: in_flight ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("in_flight: {message}");
            ExitCode::from(2)
        }
    }
}

/// User and system time of this process so far.
fn cpu() -> (Duration, Duration) {
    // SAFETY: all-zero is a valid rusage, and getrusage only writes into the one it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    (duration(usage.ru_utime), duration(usage.ru_stime))
}

/// A line of /proc/self/status, in kB.
fn status_kb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or_default()
}

fn run() -> Result<(), String> {
    let arguments = Arguments::read(USAGE)?;
    let text = arguments.value();
    let Arguments { address, op, value_bytes, total, in_flight } = arguments;
    let is_get = op == "get";
    let (map, key, value): (MapName, Key, Data) = ("map".into(), Key::of("k0"), Data::of(&text));
    let set =
        Request::Set { map: map.clone(), key: key.clone(), value: value.clone(), ttl_ms: TTL_OF_THE_MAP };
    let next = if is_get { Request::Get { map, key } } else { set.clone() };

    // For comparison: the share of an operation's time for which answers accumulate.
    let gather_share = std::env::var("GATHER_SHARE").ok().and_then(|text| text.parse().ok());
    let config = Config::at(address);
    let config = Config { gather_share: gather_share.unwrap_or(config.gather_share), ..config };
    let mut reactor: Reactor<u64> = Reactor::connect(config).map_err(|error| error.to_string())?;
    // The value that gets find.
    reactor.submit(set, 0);
    while reactor.in_flight() > 0 {
        reactor.poll(None, |_, _| {}).map_err(|error| error.to_string())?;
    }

    let mut latency =
        Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).map_err(|error| error.to_string())?;
    let started = Instant::now();
    let now_ns = || started.elapsed().as_nanos() as u64;
    let warmup = total / 10;
    let (mut submitted, mut ended, mut ok, mut failed, mut unknown, mut wrong) =
        (0, 0, 0u64, 0u64, 0u64, 0u64);
    let (mut counted_from, mut cpu_from) = (Duration::ZERO, cpu());
    let mut first_failure = None;
    let mut turns = 0u64;
    while submitted < in_flight.min(total) {
        reactor.submit(next.clone(), now_ns());
        submitted += 1;
    }
    while ended < total {
        let mut end_ns = 0;
        let count = reactor
            .poll(None, |begin_ns, outcome| {
                if end_ns == 0 {
                    end_ns = now_ns();
                }
                match outcome {
                    Outcome::Ok(Answer::Value(Some(bytes))) if bytes == &value.bytes()[..] => ok += 1,
                    Outcome::Ok(Answer::Done) => ok += 1,
                    Outcome::Ok(_) => wrong += 1,
                    Outcome::Failed(failure) => {
                        failed += 1;
                        first_failure.get_or_insert(failure);
                    }
                    Outcome::Unknown(failure) => {
                        unknown += 1;
                        first_failure.get_or_insert(failure);
                    }
                }
                latency.saturating_record(end_ns - begin_ns);
            })
            .map_err(|error| error.to_string())? as u64;
        if ended < warmup && ended + count >= warmup {
            latency.reset();
            (counted_from, cpu_from) = (started.elapsed(), cpu());
            turns = 0;
        }
        ended += count;
        turns += 1;
        let until = (submitted + count).min(total);
        if submitted < until {
            let begin_ns = now_ns();
            for _ in submitted..until {
                reactor.submit(next.clone(), begin_ns);
            }
            submitted = until;
        }
    }
    let elapsed = started.elapsed() - counted_from;
    let ((user, system), (user_from, system_from)) = (cpu(), cpu_from);
    let counted = (total - warmup) as f64;
    let per_op = |time: Duration| time.as_nanos() as f64 / counted;
    println!(
        "{op} {value_bytes} B, {in_flight} in flight: {:.0} ops/s, CPU {:.0} ns/op (user {:.0}, system {:.0}), \
         {:.2} CPUs, {:.1} ops per turn, p50 {:.0} us, p99 {:.0} us, max {:.0} us, RSS {} kB (peak {} kB)",
        counted / elapsed.as_secs_f64(),
        per_op(user - user_from) + per_op(system - system_from),
        per_op(user - user_from),
        per_op(system - system_from),
        (user + system - user_from - system_from).as_secs_f64() / elapsed.as_secs_f64(),
        counted / turns as f64,
        latency.value_at_quantile(0.5) as f64 / 1e3,
        latency.value_at_quantile(0.99) as f64 / 1e3,
        latency.max() as f64 / 1e3,
        status_kb("VmRSS:"),
        status_kb("VmHWM:"),
    );
    if ok < total {
        return Err(format!(
            "of {total} operations {ok} were ok, {failed} failed, {unknown} unknown, {wrong} had another value{}",
            first_failure.map(|failure| format!("; first: {failure}")).unwrap_or_default()
        ));
    }
    Ok(())
}
