//! Fuzz targets: what reads bytes that others wrote, each as one function over any bytes.
//!
//! A target panics when a property does not hold: the same events however the input is split, what was encoded is decoded
//! as it was, sums that balance. Beside that `execute` bounds the memory that one input may take, and `check` its time.
//! Two modes share the targets: `cargo test -p fuzz` runs the corpus and mutations of it, the same ones each time, with
//! stable Rust alone; `bench/fuzz/run` lets libFuzzer search by coverage for as long as one likes (decision 029).

mod check;
pub mod corpus;
mod heap;
mod mutator;
#[cfg(test)]
mod rfc6455;
mod split;
mod targets;

pub use check::{check, search};
pub use targets::TARGETS;

/// One function over any bytes.
pub struct Target {
    /// the name of its corpus, too
    pub name: &'static str,
    /// panics when a property does not hold
    pub run: fn(&[u8]),
    /// valid inputs, made by our own encoders where there are any; what was found since is in the corpus
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// words of the format, for mutations
    pub words: &'static [&'static str],
    /// longest input
    pub bytes_max: usize,
    /// most memory that one input may take, beyond what was held before it
    pub heap_bytes_max: usize,
}

impl Target {
    /// Of this name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Runs it over `input`, cut off at the longest. Panics when a property does not hold or when it takes too much memory.
    pub fn execute(&self, input: &[u8]) {
        let input = &input[..input.len().min(self.bytes_max)];
        let heap_bytes = heap::highest(|| (self.run)(input));
        assert!(
            heap_bytes <= self.heap_bytes_max,
            "{}: {} bytes of input took {heap_bytes} bytes of memory, with a limit of {}",
            self.name,
            input.len(),
            self.heap_bytes_max
        );
    }
}
