//! What the client only says because the server asked: an answer to each heartbeat, to each question.
//!
//! Messages of one shape that each follow a message of the server of one shape at once, and whose values are always the same
//! or stood in that message. The bot says them in its handler, whenever it is asked.

use std::collections::BTreeMap;

use crate::actions::{Deed, Item, Scene};
use crate::content::{Place, normal};

/// A person, or a timer, takes longer.
const AT_ONCE_NS: u64 = 100_000_000;
/// Fewer may be chance, unless the server calls it so.
const ANSWERS_MIN: usize = 3;
const HEARTBEATS: [&str; 5] = ["ping", "heartbeat", "keepalive", "hb", "2"];

/// A question of the server, and its answer.
#[derive(Clone, Debug)]
pub(crate) struct Pong {
    /// the first question
    pub heard: usize,
    /// all answers
    pub said: Vec<usize>,
    /// where values of the answer stand in the question
    pub copied: BTreeMap<Place, Place>,
}

/// All of a session.
pub(crate) fn pongs(scene: &Scene) -> Vec<Pong> {
    let mut streams: BTreeMap<&str, Vec<(usize, Option<usize>)>> = BTreeMap::new();
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, item) in scene.items.iter().enumerate() {
        match item.deed {
            Deed::Heard(_) => {
                last.insert(item.connection, at);
                *counts.entry(&item.shape).or_default() += 1;
            }
            Deed::Sent(_) => {
                // One question has one answer.
                streams.entry(&item.shape).or_default().push((at, last.remove(&item.connection)));
            }
            _ => {}
        }
    }
    streams.into_values().filter_map(|stream| pong(scene, &stream, &counts)).collect()
}

fn pong(scene: &Scene, stream: &[(usize, Option<usize>)], counts: &BTreeMap<&str, usize>) -> Option<Pong> {
    let pairs: Vec<(&Item, &Item)> = stream
        .iter()
        .map(|(said, heard)| Some((&scene.items[*said], &scene.items[(*heard)?])))
        .collect::<Option<_>>()?;
    let (first_said, first_heard) = *pairs.first()?;
    let is_alike = |(said, heard): &(&Item, &Item)| {
        heard.shape == first_heard.shape && said.at_ns.saturating_sub(heard.at_ns) <= AT_ONCE_NS
    };
    let questions = counts.get(first_heard.shape.as_str()).copied().unwrap_or(0);
    if !pairs.iter().all(is_alike) || questions > pairs.len() + 1 {
        return None;
    }
    let is_called = first_heard.leaves.iter().any(|leaf| {
        (leaf.is_kind || first_heard.leaves.len() == 1) && HEARTBEATS.contains(&normal(&leaf.value).as_str())
    });
    if pairs.len() < if is_called { 1 } else { ANSWERS_MIN } {
        return None;
    }
    let mut copied = BTreeMap::new();
    for leaf in &first_said.leaves {
        let values = || pairs.iter().map(|(said, heard)| (said.value(&leaf.place), heard));
        if values().all(|(value, _)| value == Some(leaf.value.as_str())) && (pairs.len() > 1 || leaf.is_kind)
        {
            continue;
        }
        let found = first_heard.leaves.iter().map(|other| &other.place);
        let from = found
            .into_iter()
            .find(|place| values().all(|(value, heard)| value.is_some() && value == heard.value(place)));
        match from {
            Some(place) => {
                copied.insert(leaf.place.clone(), place.clone());
            }
            None if pairs.len() == 1 => {}
            None => return None,
        }
    }
    // Bytes that differ cannot be told from the question.
    let bytes = |item: &Item| match &item.deed {
        Deed::Sent(content) => content.bytes.clone(),
        _ => Vec::new(),
    };
    let is_told =
        !first_said.leaves.is_empty() || pairs.iter().all(|(said, _)| bytes(said) == bytes(first_said));
    is_told.then(|| Pong {
        heard: stream[0].1.unwrap_or(0),
        said: stream.iter().map(|(said, _)| *said).collect(),
        copied,
    })
}
