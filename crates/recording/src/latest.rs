//! Values of a loop that follow what the server says by itself: the tick that the client has seen last, the price of the moment.

use std::collections::{BTreeMap, BTreeSet};

use crate::actions::{Deed, Scene};
use crate::content::{Leaf, Place};

/// So many messages are looked through for where a value may come from.
const LOOKED_THROUGH: usize = 50;
/// A message may have come while the client was sending.
const SHARE_MIN: f64 = 0.9;

/// Where such a value stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Latest {
    /// the first message of that shape
    pub item: usize,
    pub place: Place,
}

/// Finds it for a value that differs from message to message: `said` are those, `leaves` the value in each.
pub(crate) fn latest(scene: &Scene, said: &[usize], leaves: &[&Leaf]) -> Option<Latest> {
    let middle = said.len() / 2;
    let before = scene.items[..said[middle]].iter().rev();
    let heard = before.filter(|item| matches!(item.deed, Deed::Heard(_))).take(LOOKED_THROUGH);
    let mut candidates: BTreeSet<(&str, &Place)> = BTreeSet::new();
    for item in heard {
        let same = item.leaves.iter().filter(|leaf| !leaf.is_kind && leaf.value == leaves[middle].value);
        candidates.extend(same.map(|leaf| (item.shape.as_str(), &leaf.place)));
    }
    let mut streams: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, item) in scene.items.iter().enumerate() {
        if candidates.iter().any(|(shape, _)| *shape == item.shape) {
            streams.entry(&item.shape).or_default().push(at);
        }
    }
    let values: BTreeSet<&str> = leaves.iter().map(|leaf| leaf.value.as_str()).collect();
    candidates.into_iter().find_map(|(shape, place)| {
        let stream = streams.get(shape)?;
        let follows = |(at, leaf): &(&usize, &&Leaf)| {
            let last = stream[..stream.partition_point(|heard| heard < *at)].last();
            last.is_some_and(|last| scene.items[*last].value(place) == Some(leaf.value.as_str()))
        };
        let count = said.iter().zip(leaves).filter(follows).count();
        // Two values may agree by chance.
        let is_so = values.len() > 2 && count as f64 >= SHARE_MIN * (said.len() - 1) as f64;
        is_so.then(|| Latest { item: stream[0], place: place.clone() })
    })
}
