//! What the server counted and what the bots sent over the same time.
//!
//! A server's tick log entries are not aligned with our seconds, and the last one of a hold may be missing or long. A
//! share of two counters over different seconds can exceed one by the difference. So only entries that lie wholly in
//! the hold are used, and of the bots' seconds exactly the part that these entries span, with a second at an edge
//! counted pro rata.
//! Time between two entries belongs to the span: what the bots sent while the server stalled, it counts afterwards.
//! Only a second excluded from the view ends a span, and the next one begins after it.
//! Units: ns since the start of the trial.

use std::collections::{BTreeMap, BTreeSet};

use crate::seconds::{SECOND_NS, second_at};
use crate::ticklog::ServerCounter;

/// Counters of both sides over the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SameTime {
    /// start of the first entry in the hold
    pub from_ns: u64,
    /// end of the last one
    pub to_ns: u64,
    /// the time between, without what is left out, ns
    pub covered_ns: u64,
    /// the server's own counters
    pub counters: BTreeMap<String, u64>,
    /// messages that left, by operation, planned in any phase; not whole, because a second at an edge counts by its share
    pub sent: BTreeMap<String, f64>,
}

impl SameTime {
    /// What the server counted; `None` where it never told it.
    pub fn told(&self, counter: ServerCounter) -> Option<u64> {
        self.counters.get(counter.name()).copied()
    }
}

/// Collects entries and seconds in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Collecting {
    entries: Vec<(u64, u64)>,
    counters: BTreeMap<String, u64>,
    /// by second and operation
    sent: BTreeMap<u32, Vec<u64>>,
}

impl Collecting {
    /// Takes a server entry that is wholly in the hold.
    pub fn entry(&mut self, from_ns: u64, to_ns: u64, counters: &[(String, u64)]) {
        if to_ns <= from_ns {
            return;
        }
        self.entries.push((from_ns, to_ns));
        for (name, count) in counters {
            let sum = self.counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// Takes what the bots sent in a second, by operation.
    pub fn second(&mut self, index: u32, sent: Vec<u64>) {
        self.sent.insert(index, sent);
    }

    /// Both sides; `None` if no server entry is in the hold.
    pub fn finish(mut self, ops: &[String], left_out: &BTreeSet<u32>) -> Option<SameTime> {
        self.entries.sort_unstable();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for &(from_ns, to_ns) in &self.entries {
            match spans.last_mut() {
                Some(last) if !is_left_out(left_out, last.1, from_ns) => last.1 = last.1.max(to_ns),
                _ => spans.push((from_ns, to_ns)),
            }
        }
        let ((from_ns, _), (_, to_ns)) = (*spans.first()?, *spans.last()?);
        let mut sent: BTreeMap<String, f64> = ops.iter().map(|op| (op.clone(), 0.0)).collect();
        for (&index, counts) in &self.sent {
            let begins_ns = u64::from(index) * SECOND_NS;
            let ends_ns = begins_ns + SECOND_NS;
            let within = |&(from_ns, to_ns): &(u64, u64)| {
                to_ns.min(ends_ns).saturating_sub(from_ns.max(begins_ns)) as f64 / SECOND_NS as f64
            };
            let part: f64 = spans.iter().map(within).sum();
            for (op, &count) in ops.iter().zip(counts) {
                if let Some(sum) = sent.get_mut(op) {
                    *sum += part * count as f64;
                }
            }
        }
        let covered_ns = spans.iter().map(|(from_ns, to_ns)| to_ns - from_ns).sum();
        Some(SameTime { from_ns, to_ns, covered_ns, counters: self.counters, sent })
    }
}

/// True when an excluded second is between two entries, even in part.
fn is_left_out(left_out: &BTreeSet<u32>, from_ns: u64, to_ns: u64) -> bool {
    if from_ns >= to_ns {
        return false;
    }
    left_out.range(second_at(from_ns)..=second_at(to_ns - 1)).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS_NS: u64 = 1_000_000;

    fn of(entries: &[(u64, u64, u64)], sent_per_s: &[u64], left_out: &[u32]) -> Option<SameTime> {
        let mut collecting = Collecting::default();
        for &(from_ms, to_ms, shots) in entries {
            collecting.entry(from_ms * MS_NS, to_ms * MS_NS, &[("shots".to_owned(), shots)]);
        }
        for (index, &count) in sent_per_s.iter().enumerate() {
            collecting.second(index as u32, vec![count]);
        }
        collecting.finish(&["shot".to_owned()], &left_out.iter().copied().collect())
    }

    #[track_caller]
    fn check(both: Option<SameTime>, shots: u64, sent: f64, covered_ms: u64) {
        let both = both.unwrap();
        assert_eq!((both.counters["shots"], both.covered_ns), (shots, covered_ms * MS_NS));
        assert!((both.sent["shot"] - sent).abs() < 1e-6, "{both:?}");
    }

    #[test]
    fn a_second_at_an_edge_counts_by_the_share_that_the_entries_span() {
        check(of(&[(300, 1_300, 10), (1_300, 2_300, 10)], &[10, 10, 10, 10], &[]), 20, 20.0, 2_000);
        check(of(&[(900, 1_900, 7)], &[0, 10, 10], &[]), 7, 9.0, 1_000);
        assert_eq!(of(&[], &[10], &[]), None);
        assert_eq!(of(&[(500, 500, 3)], &[10], &[]), None);
    }

    #[test]
    fn what_was_sent_while_the_server_stood_still_is_in_the_span() {
        check(of(&[(3_500, 4_000, 15), (0, 1_000, 10)], &[10; 4], &[]), 25, 40.0, 4_000);
    }

    #[test]
    fn a_second_that_is_left_out_ends_a_span() {
        check(of(&[(0, 1_000, 10), (2_000, 3_000, 10)], &[10, 99, 10], &[1]), 20, 20.0, 2_000);
    }
}
