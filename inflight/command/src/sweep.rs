//! What a sweep varies, and the defaults if the user gives no numbers. `inflight_analysis` draws the conclusions.

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Axis {
    Total,
    InFlight,
    Value,
}

/// Numbers in flight where the user names none.
pub const IN_FLIGHT: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
/// Lengths where the user names none, bytes.
pub const VALUES: [u64; 8] = [16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144];
/// Totals where the user names none: parts of `--total`.
pub const TOTAL_PARTS: [u64; 6] = [32, 16, 8, 4, 2, 1];
/// A user's own list needs as many.
pub const VALUES_MIN: usize = inflight_analysis::SIZES_MIN;
/// Values of a run of a sweep are no more than this together, where that leaves `TOTAL_MIN` operations: a run of long values
/// would otherwise take a thousand times as long as one of short ones.
pub const RUN_BYTES_MAX: u64 = 1 << 30;
pub const TOTAL_MIN: u64 = 2000;
