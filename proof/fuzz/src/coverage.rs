//! A target under libFuzzer, which `bench/fuzz/run` builds with coverage and starts: `STEPLADDER_FUZZ_TARGET` names it when it
//! is compiled.
//!
//! A program of one target, and not one of all: libFuzzer looks at each counter of a program after each execution, and those of
//! all targets took 9 µs.

#![no_main]

use fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: Target = Target::of(env!("STEPLADDER_FUZZ_TARGET"));

fuzz_target!(|input: &[u8]| TARGET.execute(input));
