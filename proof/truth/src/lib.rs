//! Known answers: what the project's own code must reproduce, one function per oracle.
//!
//! Each oracle plants something of which the answer is known by arithmetic, sends it through the code that measures real
//! servers, and returns rows: what was expected, what came out, what is allowed. `cargo test` runs the short form,
//! `bench/truth/run` the long one; they differ in counts only. Some are measured over sockets too (`sockets`).
//! Nothing else here waits or opens a socket. Each seed follows from a counter, so a row is the same on every machine.
//! Not here: the derivations (docs/method/oracles.md).

// An oracle that cannot be computed has failed, and says so by its panic.
#![allow(clippy::unwrap_used)]

use std::fmt::Display;

pub mod http;
pub mod sockets;

mod bisection;
mod chain;
mod classification;
mod decided;
mod duels;
mod frozen;
mod histograms;
mod instability;
mod late;
mod ledger;
mod poll_loop;
mod queue;
mod search;
mod usl;
mod warm_up;

/// How much of an oracle is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// a few seconds: what `cargo test` runs
    Short,
    /// the counts of docs/method/oracles.md
    Long,
}

impl Form {
    /// The count of this form.
    pub fn of<T>(self, short: T, long: T) -> T {
        match self {
            Form::Short => short,
            Form::Long => long,
        }
    }
}

/// One known answer and what came out.
#[derive(Clone, Debug)]
pub struct Row {
    /// the oracle
    pub id: &'static str,
    /// what was planted, in words
    pub what: String,
    /// the exact answer
    pub expected: String,
    /// what the project's code says
    pub got: String,
    /// how far it may be off
    pub allowed: String,
    /// whether it is within that
    pub is_ok: bool,
}

impl Row {
    fn new(
        (id, what): (&'static str, impl Display),
        expected: impl Display,
        got: impl Display,
        allowed: impl Display,
        is_ok: bool,
    ) -> Row {
        Row {
            id,
            what: what.to_string(),
            expected: expected.to_string(),
            got: got.to_string(),
            allowed: allowed.to_string(),
            is_ok,
        }
    }

    /// `got` within a share of `expected`.
    fn close(name: (&'static str, impl Display), unit: &str, expected: f64, got: f64, share: f64) -> Row {
        let error = got / expected - 1.0;
        let shown = format!("{} ({:+.2} %)", figure(got, unit), error * 100.0);
        let allowed = format!("± {} %", round(share * 100.0));
        Row::new(name, figure(expected, unit), shown, allowed, error.abs() <= share)
    }

    /// A share, at most or at least something.
    fn share(name: (&'static str, impl Display), expected: &str, got: f64, range: (f64, f64)) -> Row {
        let (low, high) = range;
        let allowed = match range {
            (low, _) if low <= 0.0 => format!("≤ {} %", round(high * 100.0)),
            (_, high) if high >= 1.0 => format!("≥ {} %", round(low * 100.0)),
            _ => format!("{}–{} %", round(low * 100.0), round(high * 100.0)),
        };
        let is_ok = low <= got && got <= high;
        Row::new(name, expected, format!("{} %", round(got * 100.0)), allowed, is_ok)
    }
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        "" => format!("{value:.6}"),
        "%" => format!("{:.2} %", value * 100.0),
        unit => format!("{value:.2} {unit}"),
    }
}

/// An oracle.
pub struct Oracle {
    /// its id, which docs/method/oracles.md explains
    pub id: &'static str,
    /// computes its rows
    pub rows: fn(Form) -> Vec<Row>,
}

/// All of them, in the order of the method.
pub const ORACLES: &[Oracle] = &[
    Oracle { id: "CO", rows: frozen::rows },
    Oracle { id: "POLL", rows: poll_loop::percentiles },
    Oracle { id: "POLL-max", rows: poll_loop::ceiling },
    Oracle { id: "POLL-14", rows: poll_loop::refusals },
    Oracle { id: "MM1", rows: queue::rows },
    Oracle { id: "HIST", rows: histograms::rows },
    Oracle { id: "CI", rows: duels::intervals },
    Oracle { id: "AA", rows: duels::equal_servers },
    Oracle { id: "SEARCH", rows: search::rows },
    Oracle { id: "RFC", rows: classification::rows },
    Oracle { id: "WARM", rows: warm_up::rows },
    Oracle { id: "USL", rows: usl::rows },
    Oracle { id: "ISR", rows: instability::rows },
    Oracle { id: "LEDGER", rows: ledger::rows },
    Oracle { id: "LATE", rows: late::rows },
    Oracle { id: "BISECT", rows: bisection::rows },
    Oracle { id: "DECIDE", rows: decided::rows },
];

/// Of `seeds`, the share for which something happens.
fn share_of(seeds: std::ops::Range<u64>, happens: impl Fn(u64) -> bool) -> f64 {
    let all = (seeds.end - seeds.start) as f64;
    seeds.filter(|seed| happens(*seed)).count() as f64 / all
}

/// Standard normal.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (u, v) = (1.0 - random.f64(), random.f64());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_out_of_range_is_not_ok() {
        assert!(Row::close(("X", "a"), "ms", 100.0, 100.9, 0.01).is_ok);
        assert!(!Row::close(("X", "a"), "ms", 100.0, 101.1, 0.01).is_ok);
        assert!(!Row::close(("X", "a"), "ms", 100.0, f64::NAN, 0.01).is_ok);
        assert!(!Row::close(("X", "a"), "ms", 100.0, f64::INFINITY, 0.01).is_ok);
        assert!(Row::share(("X", "a"), "95 %", 0.94, (0.93, 0.97)).is_ok);
        assert!(!Row::share(("X", "a"), "95 %", 0.98, (0.93, 0.97)).is_ok);
    }
}
