//! The built-in servers: what a plan must know about each, in one table.

use std::ops::RangeInclusive;

/// A server that `climb NAME` starts by itself.
#[derive(Debug)]
pub struct BuiltIn {
    /// `arena`
    pub name: &'static str,
    /// `stepladder serve …` starts it
    pub served_as: &'static str,
    /// the bots that speak to it
    pub bots: &'static str,
    /// ticks per second; 0: it has none
    pub tick_rate_hz: f64,
    /// how long a rung settles and is held unless the user says otherwise, ns
    pub settle_and_hold_ns: (u64, u64),
    /// the loads that are held unless the user says otherwise; `None`: those of its bots
    pub loads: Option<RangeInclusive<u32>>,
    /// its services and the classes of its process can be swept
    pub has_axes: bool,
}

const SETTLE_NS: u64 = 2_000_000_000;
/// About three games of the arena after each other.
const HOLD_NS: u64 = 30_000_000_000;
/// Of a server that is not built in.
pub const SETTLE_AND_HOLD_NS: (u64, u64) = (SETTLE_NS, HOLD_NS);

/// All of them.
pub const BUILT_IN: [BuiltIn; 6] = [
    BuiltIn { tick_rate_hz: 60.0, ..BuiltIn::of("arena") },
    BuiltIn::of("chat"),
    BuiltIn {
        bots: "http",
        tick_rate_hz: 30.0,
        // Its queue is full or not after a few ticks, and a sweep holds more than a hundred loads: 60 ticks each.
        settle_and_hold_ns: (500_000_000, 2_000_000_000),
        // Beyond its queue, so that the first failures are seen.
        loads: Some(1..=20),
        has_axes: true,
        ..BuiltIn::of("poll-loop")
    },
    BuiltIn::of("leaderboard"),
    BuiltIn { served_as: "redis", ..BuiltIn::of("grid") },
    BuiltIn { bots: "http", ..BuiltIn::of("limited") },
];

/// Names of all.
pub const NAMES: [&str; BUILT_IN.len()] = {
    let mut names = [""; BUILT_IN.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = BUILT_IN[at].name;
        at += 1;
    }
    names
};

impl BuiltIn {
    const fn of(name: &'static str) -> BuiltIn {
        let settle_and_hold_ns = SETTLE_AND_HOLD_NS;
        BuiltIn {
            name,
            served_as: name,
            bots: name,
            tick_rate_hz: 0.0,
            settle_and_hold_ns,
            loads: None,
            has_axes: false,
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|one| one.name == name)
    }
}
