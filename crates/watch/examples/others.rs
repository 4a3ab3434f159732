//! How far two measures of other programs' CPU use are apart, and what the finer one costs.
//!
//! `cargo run --release -p stepladder-watch --example others -- SECONDS PID…`: the named processes, their children and this one
//! are not others. Prints once per second what the others used by the sum over all processes and by the difference of
//! /proc/stat, in cores.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use watch::{Machine, OtherPrograms, ProcessTree};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u32>().ok());
    let seconds = numbers.next().unwrap_or(10);
    let pids: Vec<u32> = numbers.collect();
    let mut trees: Vec<ProcessTree> = pids.iter().filter_map(|&pid| ProcessTree::of(pid).ok()).collect();
    trees.extend(ProcessTree::own());
    let subject: BTreeSet<i32> = pids.iter().map(|&pid| pid as i32).collect();
    let (mut machine, mut others) = (Machine::new(), OtherPrograms::new());
    let begin = Instant::now();
    let mut before: Option<(f64, f64, f64)> = None;
    for second in 0..=seconds {
        let due = Duration::from_secs(u64::from(second));
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        let ours_s: f64 = trees.iter_mut().filter_map(ProcessTree::read).map(|reading| reading.cpu_s).sum();
        let at_s = begin.elapsed().as_secs_f64();
        let programs_s = machine.read().programs_cpu_s.unwrap_or(0.0);
        let begin_s = thread_cpu_s();
        let reading = others.read(&subject, None, (at_s * 1e9) as u64);
        let cost_ms = (thread_cpu_s() - begin_s) * 1e3;
        if let (Some((then_s, ours_then_s, programs_then_s)), Some(reading)) = (before, reading) {
            let elapsed_s = at_s - then_s;
            let ours = (ours_s - ours_then_s) / elapsed_s;
            let difference = (programs_s - programs_then_s) / elapsed_s - ours;
            println!(
                "{second:>3}  ours {ours:.2}  others {:.3}  by /proc/stat {difference:.3}  cost {cost_ms:.2} ms  {:?}",
                reading.cores, reading.programs
            );
        }
        before = Some((at_s, ours_s, programs_s));
    }
}

fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
