//! CPU time of each step of an operation with the reactor, on a real member: the sum must be the whole.
//!
//! `cargo run --release -p stepladder-hazelcast --example reactor_steps -- ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT`
//! Like `steps`, which has a `Session` and a blocking socket instead: the difference is the cost of readiness, timers,
//! routing and gathering. The thread's CPU clock is read after each step of a turn (`Reactor::watch_steps`), not of an
//! operation. The first tenth is a warm-up. Exit code 1 when the steps do not add up to the process's own CPU time
//! within 10 %.

mod closed_loop;
mod meter;

use std::cell::Cell;
use std::process::ExitCode;

use hazelcast::Config;
use hazelcast::reactor::{Outcome, Reactor, Step};
use hazelcast::wire::request::TTL_OF_THE_MAP;
use hazelcast::wire::{Answer, Data, Key, MapName, Request, data};

use closed_loop::Arguments;
use meter::{Meter, process_cpu_ns};

const USAGE: &str = "usage: reactor_steps ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT";

const SERIALISE: usize = 0;
const START: usize = 1;
const DESERIALISE: usize = 7;
const STEPS: [(&str, &str); 8] = [
    ("serialise", "key and value to bytes"),
    ("start", "owner, frames, correlation"),
    ("tend", "deadlines, heartbeats, connecting"),
    ("write", "to the kernel"),
    ("wait", "for readiness, or for answers to gather"),
    ("read", "from the kernel"),
    ("resolve", "frames to the operation that waits for them"),
    ("deserialise", "bytes to the value, which is compared"),
];

thread_local! {
    static METER: Cell<Meter<{ STEPS.len() }>> = Cell::new(Meter::new());
}

fn did(step: usize) {
    METER.with(|cell| {
        let mut meter = cell.get();
        meter.step(step);
        cell.set(meter);
    });
}

fn of_poll(step: Step) {
    did(match step {
        Step::Tend => 2,
        Step::Write => 3,
        Step::Wait => 4,
        Step::Read => 5,
        Step::Resolve => 6,
    });
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("reactor_steps: {message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let arguments = Arguments::read(USAGE)?;
    let text = arguments.value();
    let Arguments { address, op, value_bytes, total, in_flight } = arguments;
    let map: MapName = "steps".into();
    let set = || Request::Set {
        map: map.clone(),
        key: Key::of("k0"),
        value: Data::of(&text),
        ttl_ms: TTL_OF_THE_MAP,
    };
    let request = || if op == "get" { Request::Get { map: map.clone(), key: Key::of("k0") } } else { set() };

    let mut reactor: Reactor<()> =
        Reactor::connect(Config::at(address)).map_err(|error| error.to_string())?;
    // The value that gets find.
    reactor.submit(set(), ());
    while reactor.in_flight() > 0 {
        reactor.poll(None, |(), _| {}).map_err(|error| error.to_string())?;
    }
    reactor.watch_steps(of_poll);
    let (mut submitted, mut ended, mut wrong) = (0, 0, 0u64);
    let (mut turns, mut whole_from_ns) = (0u64, 0);
    let warmup = total / 10;
    let mut pending = Vec::new();
    let mut values: Vec<Vec<u8>> = Vec::new();
    let mut due = in_flight.min(total);
    while ended < total {
        pending.extend((0..due).map(|_| request()));
        did(SERIALISE);
        for request in pending.drain(..) {
            reactor.submit(request, ());
        }
        submitted += due;
        did(START);
        let (mut count, mut found) = (0, 0);
        let polled = reactor.poll(None, |(), outcome| {
            count += 1;
            match outcome {
                Outcome::Ok(Answer::Value(Some(bytes))) => {
                    // Kept for the next step, in reused buffers.
                    if values.len() == found {
                        values.push(Vec::new());
                    }
                    values[found].clear();
                    values[found].extend_from_slice(bytes);
                    found += 1;
                }
                Outcome::Ok(Answer::Done) => {}
                _ => wrong += 1,
            }
        });
        polled.map_err(|error| error.to_string())?;
        for value in &values[..found] {
            wrong += u64::from(data::text(value) != Some(text.as_bytes()));
        }
        did(DESERIALISE);
        if ended < warmup && ended + count >= warmup {
            METER.set(Meter::new());
            (turns, whole_from_ns) = (0, process_cpu_ns());
        }
        ended += count;
        turns += 1;
        due = count.min(total - submitted);
    }
    let whole_ns = process_cpu_ns() - whole_from_ns;
    let done = format!("{op} {value_bytes} B, {in_flight} in flight");
    METER.get().report(&done, &STEPS, (total - warmup, turns), whole_ns, wrong)
}
