//! Running a target without coverage: its regressions, its corpus, and mutations of both.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::mutator::Mutator;
use crate::{Target, corpus};

/// So long one input may take, on the slowest machine under load. What hangs takes for ever.
const INPUT_MAX: Duration = Duration::from_secs(20);
/// Mutations that are made at least, however slow the machine is.
const MUTATIONS_MIN: u64 = 200;
const SEED: u64 = 0x5eed;

/// The test of a target: all that is kept, and mutations for a second (`STEPLADDER_FUZZ_MS`, milliseconds).
pub fn check(name: &str) {
    let target = Target::named(name).unwrap_or_else(|| panic!("{name} is no target"));
    let ms = std::env::var("STEPLADDER_FUZZ_MS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    search(target, SEED, Duration::from_millis(ms), u64::MAX);
}

/// Runs all that is kept of a target, and then mutations from `seed` on for `time`, at most `executions_max`; returns how many
/// inputs ran. Panics at the first that breaks it, with the input and how to run it again.
pub fn search(target: &Target, seed: u64, time: Duration, executions_max: u64) -> u64 {
    let watched = Watched::default();
    std::thread::scope(|scope| {
        scope.spawn(|| watched.watch(target));
        let _ends = EndsAtDrop(&watched);
        for (name, input) in corpus::regressions(target.name) {
            watched.run(target, &input, &format!("regression {name}"));
        }
        let mut inputs = (target.seeds)();
        inputs.extend(corpus::read(target.name));
        for input in &inputs {
            watched.run(target, input, "the corpus");
        }
        let mut executions = inputs.len() as u64;
        let mut mutator = Mutator::new(seed, &inputs, target.words, target.bytes_max);
        let end = Instant::now() + time;
        let mut input = Vec::new();
        let mut mutations = 0;
        while mutations < MUTATIONS_MIN || Instant::now() < end && executions < executions_max {
            mutator.next(&mut input);
            watched.run(target, &input, "a mutation");
            mutations += 1;
            executions += 1;
        }
        executions
    })
}

/// The input that runs now, for a thread that looks whether it ever ends.
#[derive(Default)]
struct Watched {
    running: Mutex<Option<(Instant, Vec<u8>)>>,
    is_over: AtomicBool,
}

struct EndsAtDrop<'a>(&'a Watched);

impl Drop for EndsAtDrop<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Watched {
    fn set(&self, running: Option<(Instant, Vec<u8>)>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    fn run(&self, target: &Target, input: &[u8], origin: &str) {
        self.set(Some((Instant::now(), input.to_vec())));
        let outcome = catch_unwind(AssertUnwindSafe(|| target.execute(input)));
        self.set(None);
        if outcome.is_err() {
            panic!("{}", said(target, input, origin, "broke it"));
        }
    }

    fn watch(&self, target: &Target) {
        while !self.is_over.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((begin, input)) = running.as_ref().filter(|(begin, _)| begin.elapsed() > INPUT_MAX) {
                let what = format!("has been running for {} s", begin.elapsed().as_secs());
                eprintln!("{}", said(target, input, "an input", &what));
                std::process::abort();
            }
        }
    }
}

fn said(target: &Target, input: &[u8], origin: &str, what: &str) -> String {
    let path: PathBuf = std::env::temp_dir().join(format!("fuzz-{}-{}", target.name, std::process::id()));
    let kept = match std::fs::write(&path, input) {
        Ok(()) => {
            format!("run it again: cargo run -p stepladder-fuzz -- one {} {}", target.name, path.display())
        }
        Err(error) => format!("it could not be kept in {}: {error}", path.display()),
    };
    format!(
        "fuzz target {}: {origin} of {} bytes {what}\n  b\"{}\"\n  {kept}\n  once mended, keep it as a line of proof/fuzz/regressions",
        target.name,
        input.len(),
        corpus::escape(input)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn target(run: fn(&[u8])) -> Target {
        Target {
            name: "none",
            run,
            seeds: || vec![b"seed".to_vec()],
            words: &[],
            bytes_max: 64,
            heap_bytes_max: 100_000,
        }
    }

    fn fault(run: fn(&[u8])) -> String {
        let outcome = catch_unwind(|| search(&target(run), 1, Duration::ZERO, u64::MAX));
        *outcome.expect_err("it breaks").downcast::<String>().expect("words")
    }

    #[test]
    fn a_target_that_panics_at_a_mutation_is_told_with_its_input() {
        let told = fault(|input| assert!(input.first() != Some(&b't'), "a planted fault"));
        assert!(told.contains("none: a mutation of") && told.contains("b\"t"), "{told}");
    }

    #[test]
    fn a_target_that_takes_too_much_memory_breaks() {
        let told = fault(|_| drop(std::hint::black_box(vec![1_u8; 200_000])));
        assert!(told.contains("none: the corpus of 4 bytes"), "{told}");
    }

    #[test]
    fn the_inputs_of_a_seed_are_bounded_by_their_number() {
        let hour = Duration::from_secs(3600);
        assert_eq!(search(&target(|_| {}), 1, hour, 5000), 5000);
    }
}
