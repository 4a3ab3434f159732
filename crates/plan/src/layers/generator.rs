//! How this process generates the load.

use crate::layers::reader::Reader;
use crate::plan::Generator;
use crate::settings::{Kind, Setting, Shape};
use crate::units;

const HOW: Setting = Setting::of("How", &[]);

settings! { pub(super) SETTINGS;
    GENERATOR = HOW.key("generator", Shape::Keys("GeneratorKeys", "How the load is made."), "{ workers: 2 }")
        .about("How the load is made.");
    WORKERS = HOW.key("generator.workers", Shape::Whole("uint32"), "2")
        .about("Worker threads; one per core otherwise, more when descriptors ask for it.")
        .flag("--workers", "N").help("Worker threads").default("one per core, more when descriptors ask for it");
    REALTIME = HOW.key("generator.realtime", Shape::Switch, "true").about("Real-time priority for the workers.")
        .switch(Kind::Switch, "--realtime").help("Real-time priority for the workers");
    SPIN = HOW.key("generator.spin", Shape::Text, "20us")
        .about("Busy wait before a planned instant, at most 50us; only on cores of their own.")
        .flag("--spin", "TIME")
        .help("Busy wait before a planned instant, at most 50us; only where the workers have cores of their own");
    OPEN_ATTEMPTS = HOW.key("generator.open_attempts", Shape::Whole("uint32"), "10")
        .about("Attempts to open one connection before its bot gives up.")
        .flag("--open-attempts", "N").help("Attempts in a row to open one connection before its bot gives up")
        .default("10");
    CALIBRATE = HOW.key("generator.calibrate", Shape::Switch, "false")
        .about("false: the generator is not measured against a server that does nothing before the climb.")
        .switch(Kind::SwitchOff, "--no-calibration")
        .help("Begin with the first load at once; the generator's own latency and its ceiling stay unknown");
}

/// Longest busy wait: beyond it a worker would only burn its core.
const SPIN_NS_MAX: u64 = 50_000;

pub(super) fn read(reader: &mut Reader) -> Generator {
    let workers = reader.value(&WORKERS, |text| units::whole_within(text, 1, 1024));
    let spin_ns = reader.value(&SPIN, |text| units::duration_ns_within(text, 0, SPIN_NS_MAX));
    let attempts = reader.value_or_default(&OPEN_ATTEMPTS, |text| units::whole_within(text, 1, 1000));
    Generator {
        workers: workers.map(|count| count as usize),
        realtime: reader.value(&REALTIME, units::boolean).unwrap_or(false),
        spin_ns: spin_ns.unwrap_or(0),
        // At most 1000 by the line above.
        open_attempts: attempts as u32,
        calibrate: reader.value(&CALIBRATE, units::boolean).unwrap_or(true),
    }
}
