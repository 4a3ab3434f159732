//! Seconds of a trial.

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The second that contains a moment. Anything beyond 136 years is in the last one: foreign stores and tick logs may
/// contain any value.
pub(crate) fn second_at(ns: u64) -> u32 {
    u32::try_from(ns / SECOND_NS).unwrap_or(u32::MAX)
}
