//! Fuzz targets: what reads bytes that others wrote, each as one function over any bytes.
//!
//! A target panics when a property does not hold: the same events however the input is split, what was encoded is decoded
//! as it was, sums that balance. Beside that `execute` bounds the memory that one input may take, and `check` its time.
//! Two modes share the targets: `cargo test -p stepladder-fuzz` runs the corpus and mutations of it, the same ones each time, with
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
#[derive(Clone, Copy)]
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

    /// Of this name, for a program that holds this one target and whatever it reaches, and nothing else.
    ///
    /// Panics, at compile time, where there is none.
    pub const fn of(name: &str) -> Target {
        let mut index = 0;
        while index < TARGETS.len() {
            if is_same(TARGETS[index].name.as_bytes(), name.as_bytes()) {
                return TARGETS[index];
            }
            index += 1;
        }
        panic!("no target has this name; `cargo run -p stepladder-fuzz -- list` names them");
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

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_by_its_whole_name() {
        for target in TARGETS {
            assert_eq!(Target::of(target.name).name, target.name);
            assert_eq!(Target::named(target.name).map(|found| found.name), Some(target.name));
        }
        for name in ["", "histogra", "histograms"] {
            assert!(Target::named(name).is_none() && std::panic::catch_unwind(|| Target::of(name)).is_err());
        }
    }
}
