//! The figures of a duel of client libraries: names, units and meanings, as used in gates and stored duels.
//!
//! They are figures of processes, so no trial has them. The crate `inflight-analysis` reads them from a process.

use measure::Trial;

use crate::figures::{FigureDoc, FigureValue, Source, UnitKind};

/// What a trial says about any of them.
pub const OF_PROCESSES: FigureValue = FigureValue::Absent("it is a figure of client libraries (bench)");

fn no_trial(_: &Trial) -> FigureValue {
    OF_PROCESSES
}

macro_rules! figure {
    ($name:literal, $unit:ident, $meaning:literal) => {
        FigureDoc { name: $name, unit: UnitKind::$unit, meaning: $meaning, source: Source::Scalar(no_trial) }
    };
}

static FIGURES: [FigureDoc; 6] = [
    figure!("ops", Rate, "operations per second"),
    figure!("latency.p50", Time, "from the start of an operation to its result, p50"),
    figure!("latency.p99", Time, "the same, p99"),
    figure!("latency.p999", Time, "the same, p999"),
    figure!("cpu_per_op", Time, "CPU of the client's process per operation"),
    figure!("rss_peak", Bytes, "the most memory that the client's process had"),
];

/// The figure of libraries of that name.
pub fn named(name: &str) -> Option<&'static FigureDoc> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// The names of all of them, for people: `ops, latency.p50, …`.
pub fn names() -> String {
    FIGURES.map(|figure| figure.name).join(", ")
}

/// What is compared unless gates ask for more.
pub fn usual_figures() -> Vec<String> {
    FIGURES.iter().map(|figure| figure.name.to_owned()).collect()
}
