//! What repeats: messages and requests that the client sends at a steady distance, and the ticks of the server.
//!
//! Messages of one shape whose distances are alike are a stream. Streams of the same period that follow each other in every
//! period are one loop: list, then item; an event, then its bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::actions::{Deed, Scene};

/// Fewer may be chance.
const REPEATS_MIN: usize = 4;
const TICKS_MIN: usize = 20;
const TICK_NS_MAX: u64 = 1_000_000_000;
/// Shares of the median within which a distance is like the others.
const ALIKE: std::ops::RangeInclusive<f64> = 0.6..=1.4;
/// So many of the distances have to be: of few messages most, of many half. At random times 28 % are.
const ALIKE_SHARES: [(usize, f64); 3] = [(20, 0.5), (10, 0.6), (0, 0.75)];
const PERIOD_NS_MIN: u64 = 1_000_000;
/// A timer of the recorded client that was late by so little meant the round number.
const ROUND_SHARE: f64 = 0.025;

/// What the client repeats.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// items of the scene: of each period one of each stream
    pub cycles: Vec<Vec<usize>>,
    pub period_ns: u64,
}

/// What the server repeats by itself.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    pub shape: String,
    pub connection: usize,
    /// its first message
    pub item: usize,
    pub period_ns: u64,
}

/// A period where distances are alike. `times`: ascending.
pub(crate) fn steady(times: &[u64], count_min: usize) -> Option<u64> {
    if times.len() < count_min.max(2) {
        return None;
    }
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let mut sorted = gaps.clone();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2];
    if median < PERIOD_NS_MIN {
        return None;
    }
    let alike: Vec<u64> =
        gaps.iter().copied().filter(|gap| ALIKE.contains(&(*gap as f64 / median as f64))).collect();
    let share = ALIKE_SHARES.iter().find(|(count, _)| gaps.len() >= *count).map_or(1.0, |(_, share)| *share);
    if (alike.len() as f64) < share * gaps.len() as f64 {
        return None;
    }
    // The client's timer may have been late again and again, but half of the time it was nearly right.
    if let Some(round) = round_number(median as f64) {
        return Some(round);
    }
    // A late message comes too late and the next one after less: over all of them that evens out.
    let mean = alike.iter().sum::<u64>() as f64 / alike.len() as f64;
    let tenths = ((mean / 1e5).round() * 1e5).max(PERIOD_NS_MIN as f64) as u64;
    Some(round_number(mean).unwrap_or(tenths))
}

fn round_number(ns: f64) -> Option<u64> {
    let steps: &[f64] = match ns {
        _ if ns >= 1e9 => &[500e6, 100e6],
        _ if ns >= 200e6 => &[50e6, 10e6],
        _ => &[5e6],
    };
    let nearest = steps.iter().map(|step| (ns / step).round() * step);
    nearest
        .into_iter()
        .find(|round| *round > 0.0 && (ns - round).abs() <= ROUND_SHARE * ns)
        .map(|round| round as u64)
}

/// All loops, in the order in which they begin; `but`: items that are said for another reason.
pub(crate) fn loops(scene: &Scene, but: &BTreeSet<usize>) -> Vec<Loop> {
    let mut streams: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, item) in scene.items.iter().enumerate() {
        if matches!(item.deed, Deed::Sent(_) | Deed::Ask(_)) && !but.contains(&at) {
            streams.entry(&item.shape).or_default().push(at);
        }
    }
    let time = |at: &usize| scene.items[*at].at_ns;
    let mut found: Vec<Loop> = Vec::new();
    let mut all: Vec<(Vec<usize>, u64)> = streams
        .into_values()
        .filter_map(|items| {
            let times: Vec<u64> = items.iter().map(time).collect();
            steady(&times, REPEATS_MIN).map(|period| (items, period))
        })
        .collect();
    all.sort_by_key(|(items, _)| items[0]);
    for (items, period_ns) in all {
        let joined = found.iter_mut().find(|one| follows(scene, one, &items, period_ns));
        match joined {
            Some(one) => {
                one.cycles.truncate(items.len());
                for (cycle, item) in one.cycles.iter_mut().zip(items) {
                    cycle.push(item);
                }
            }
            None => {
                found.push(Loop { cycles: items.into_iter().map(|item| vec![item]).collect(), period_ns })
            }
        }
    }
    found
}

/// Whether a stream comes in every period of a loop, soon after it.
fn follows(scene: &Scene, one: &Loop, items: &[usize], period_ns: u64) -> bool {
    let alike = (one.period_ns as f64 / period_ns as f64 - 1.0).abs() < 0.1;
    if !alike || one.cycles.len().abs_diff(items.len()) > 1 {
        return false;
    }
    let count = one.cycles.len().min(items.len());
    (0..count).all(|at| {
        let last = one.cycles[at].last().copied().unwrap_or(0);
        let next = one.cycles.get(at + 1).map_or(usize::MAX, |cycle| cycle[0]);
        let gap = scene.items[items[at]].at_ns.saturating_sub(scene.items[last].at_ns);
        last < items[at] && items[at] < next && gap < period_ns / 2
    })
}

/// Messages that the server sends at a steady distance; `replies`: shapes that answer something.
pub(crate) fn ticks(scene: &Scene, replies: &[&str]) -> Vec<Tick> {
    let mut streams: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, item) in scene.items.iter().enumerate() {
        if matches!(item.deed, Deed::Heard(_)) && !replies.contains(&item.shape.as_str()) {
            streams.entry(&item.shape).or_default().push(at);
        }
    }
    let mut out: Vec<Tick> = streams
        .into_iter()
        .filter_map(|(shape, items)| {
            let times: Vec<u64> = items.iter().map(|at| scene.items[*at].at_ns).collect();
            let period_ns = steady(&times, TICKS_MIN).filter(|period| *period <= TICK_NS_MAX)?;
            let connection = scene.items[items[0]].connection;
            Some(Tick { shape: shape.to_owned(), connection, item: items[0], period_ns })
        })
        .collect();
    out.sort_by_key(|tick| (tick.period_ns, tick.item));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_distance_is_found_through_lateness_and_chance_has_none() {
        let check = |times_ms: &[u64], expected: Option<u64>| {
            let times: Vec<u64> = times_ms.iter().map(|ms| ms * 1_000_000).collect();
            assert_eq!(steady(&times, 4).map(|ns| ns / 100_000), expected, "{times_ms:?}");
        };
        check(&[0, 51, 101, 152, 202], Some(500));
        check(&[0, 33, 67, 100, 133, 167, 200], Some(333));
        check(&[0, 502, 1_004, 1_506], Some(5_000));
        // One that was late.
        check(&[0, 50, 100, 180, 200, 250, 300, 350, 400, 450, 500], Some(500));
        check(&[0, 10, 500, 520, 3_000], None);
        check(&[0, 50, 100], None);
        check(&[7, 7, 7, 7, 7], None);
    }
}
