//! The cost of recording a delivery, without a socket: blocks of lines, as a busy chat sends them, into a ledger.
//!
//! `cargo run --release -p stepladder-bots --example booking -- [clients] [lines per block]`
//! One worker of two, so it holds half of the receivers. Prints ns of CPU per delivery, the best and median of nine
//! rounds.

use std::time::Instant;

use bots::chat::dialect::Dialect;
use bots::chat::{Lines, payload};
use measure::ledger::SharedLedger;
use measure::{Distribution, LedgerPart, LedgerShape};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u32>().expect("a number"));
    let clients = numbers.next().unwrap_or(1024);
    let lines_per_block = numbers.next().unwrap_or(16);
    let shape = LedgerShape {
        senders: clients,
        locals: clients / 2,
        first: 0,
        step: 2,
        patience_ns: 1_000_000_000,
        margin_ns: 1_000_000_000,
        echoes: true,
        clock_bound_ns: 0,
    };
    let mut part = LedgerPart::new(shape, SharedLedger::default());
    let (mut in_hold, mut otherwise) = (Distribution::new(), Distribution::new());
    let mut random = fastrand::Rng::with_seed(1);
    let mut next = vec![0u32; clients as usize];
    let mut rounds = Vec::new();
    let mut now_ns = 0;
    for _ in 0..9 {
        let (mut spent_ns, mut count) = (0, 0u64);
        while count < 4_000_000 {
            let mut block = Vec::new();
            for _ in 0..lines_per_block {
                let sender = random.u32(0..clients);
                let stamp = payload::Stamp { sender, seq: next[sender as usize], planned_ns: now_ns };
                payload::write(&mut block, stamp, random.usize(15..=58) - 1);
                block.push(b'\n');
                next[sender as usize] += 1;
            }
            now_ns += 10_000_000;
            let begin = Instant::now();
            for receiver in 0..shape.locals {
                let at_ns = now_ns + u64::from(receiver) * 6_000;
                let latency = (&mut in_hold, &mut otherwise);
                let mut book = part.deliveries(receiver, at_ns, (0, u64::MAX), latency);
                let rest = Lines::book(&block, "lobby", &mut book, &mut ());
                assert!(rest.is_empty(), "all of them are deliveries");
                count += book.new_count();
            }
            spent_ns += begin.elapsed().as_nanos() as u64;
        }
        rounds.push(spent_ns as f64 / count as f64);
    }
    rounds.sort_by(f64::total_cmp);
    println!(
        "{clients} clients, {lines_per_block} lines a block: {:.1} ns per delivery (best {:.1})",
        rounds[4], rounds[0]
    );
}
