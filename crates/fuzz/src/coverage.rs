//! A target under libFuzzer, which `bench/fuzz/run` builds with coverage and starts: `STEPLADDER_FUZZ_TARGET` names it.

#![no_main]

use std::sync::LazyLock;

use fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("STEPLADDER_FUZZ_TARGET").unwrap_or_default();
    Target::named(&name).unwrap_or_else(|| {
        eprintln!("STEPLADDER_FUZZ_TARGET: {name:?} is no target; `cargo run -p fuzz -- list` names them");
        std::process::exit(2);
    })
});

fuzz_target!(|input: &[u8]| TARGET.execute(input));
