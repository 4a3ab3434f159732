//! Which messages of the server reply to what a loop sends.
//!
//! Known by a value that both have (a sequence number), or, where there is none, by their order. A message that names whom it
//! came from may go to others too, with 100 clients in a room from 100 of them: it is no reply to count.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::actions::{Deed, Scene};
use crate::content::{Place, Step};
use crate::rhythm::Loop;

const SHARE_MIN: f64 = 0.9;
const REPLY_NS_MAX: u64 = 10_000_000_000;

/// The replies to one message of a loop.
#[derive(Clone, Debug)]
pub(crate) struct Replies {
    /// which message of a period
    pub step: usize,
    pub connection: usize,
    pub shape: String,
    /// the first of them
    pub item: usize,
    pub key: Key,
}

/// How a reply is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Key {
    /// this value sent is that value heard
    Same {
        /// in the message
        sent: Place,
        /// in the reply
        heard: Place,
    },
    /// the first reply is that to the first message
    Order,
}

/// Finds them for a loop; at most one kind of reply for each of its messages.
pub(crate) fn replies(scene: &Scene, of: &Loop) -> Vec<Replies> {
    let sent = |step: usize| -> Vec<usize> {
        of.cycles.iter().filter_map(|cycle| cycle.get(step).copied()).collect()
    };
    let is_message = |step: &usize| matches!(scene.items[of.cycles[0][*step]].deed, Deed::Sent(_));
    let steps: Vec<usize> = (0..of.cycles[0].len()).filter(is_message).collect();
    let mut out: Vec<Replies> = Vec::new();
    for step in &steps {
        let sent = sent(*step);
        let mut heard = heard_after(scene, of, &sent);
        heard.retain(|shape, _| out.iter().all(|one| one.shape != *shape));
        let keyed = heard.iter().find_map(|(shape, items)| Some((shape, items, same(scene, &sent, items)?)));
        out.extend(keyed.map(|(shape, items, key)| found(scene, *step, shape, items, key)));
    }
    // Of several messages in a period it is not known which one a reply without a key is for.
    if let ([step], true) = (steps.as_slice(), out.is_empty()) {
        let sent = sent(*step);
        let heard = heard_after(scene, of, &sent);
        let in_turn = heard.iter().find(|(_, items)| are_in_turn(scene, &sent, items));
        out.extend(in_turn.map(|(shape, items)| found(scene, *step, shape, items, Key::Order)));
    }
    out
}

fn found(scene: &Scene, step: usize, shape: &str, items: &[usize], key: Key) -> Replies {
    Replies {
        step,
        connection: scene.items[items[0]].connection,
        shape: shape.to_owned(),
        item: items[0],
        key,
    }
}

/// By shape, what came about as often as the client sent, and does not name its sender.
fn heard_after<'a>(scene: &'a Scene, of: &Loop, sent: &[usize]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut heard: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let (begin, end) = (sent[0], sent[sent.len() - 1]);
    let last_ns = scene.items[end].at_ns + of.period_ns + REPLY_NS_MAX;
    let identities = identities(scene, begin);
    for (at, item) in scene.items.iter().enumerate().skip(begin) {
        let is_there = item.connection == scene.items[begin].connection && item.at_ns <= last_ns;
        if is_there && matches!(item.deed, Deed::Heard(_)) {
            heard.entry(&item.shape).or_default().push(at);
        }
    }
    heard.retain(|_, items| {
        let count = items.len() as f64;
        let is_as_many =
            count >= SHARE_MIN * (sent.len() - 1) as f64 && count <= 1.1 * sent.len() as f64 + 1.0;
        is_as_many && !names_its_sender(scene, items, &identities)
    });
    heard
}

/// What the client calls itself: texts that it said before, in messages that it does not repeat.
fn identities(scene: &Scene, before: usize) -> BTreeSet<&str> {
    let said = scene.items[..before].iter().filter(|item| item.is_said());
    let leaves = said
        .flat_map(|item| &item.leaves)
        .filter(|leaf| leaf.is_text && !leaf.is_kind && leaf.value.len() > 1);
    let is_name = |step: Option<&Step>| {
        matches!(step, Some(Step::Key(_) | Step::Query(_) | Step::Field(_) | Step::Word(_)))
    };
    leaves.filter(|leaf| is_name(leaf.place.last())).map(|leaf| leaf.value.as_str()).collect()
}

fn names_its_sender(scene: &Scene, items: &[usize], identities: &BTreeSet<&str>) -> bool {
    items.iter().all(|at| {
        let leaves = &scene.items[*at].leaves;
        leaves.iter().any(|leaf| leaf.is_text && !leaf.is_kind && identities.contains(leaf.value.as_str()))
    })
}

fn same(scene: &Scene, sent: &[usize], heard: &[usize]) -> Option<Key> {
    let places =
        |at: usize| scene.items[at].leaves.iter().filter(|leaf| !leaf.is_kind).map(|leaf| &leaf.place);
    let mut candidates: Vec<(&Place, &Place)> = Vec::new();
    for one in places(sent[0]) {
        let values: BTreeSet<_> = sent.iter().filter_map(|at| scene.items[*at].value(one)).collect();
        if values.len() == sent.len() {
            candidates.extend(places(heard[0]).map(|other| (one, other)));
        }
    }
    // Of the same name first.
    candidates.sort_by_key(|(one, other)| one.last() != other.last());
    candidates.into_iter().find_map(|(one, other)| {
        let mut first: HashMap<&str, usize> = HashMap::new();
        for at in heard {
            if let Some(value) = scene.items[*at].value(other) {
                first.entry(value).or_insert(*at);
            }
        }
        let is_answered = |at: &&usize| {
            let reply = scene.items[**at].value(one).and_then(|value| first.get(value));
            reply.is_some_and(|reply| {
                reply > *at && scene.items[*reply].at_ns - scene.items[**at].at_ns < REPLY_NS_MAX
            })
        };
        let answered = sent.iter().filter(is_answered).count();
        let is_most = answered as f64 >= SHARE_MIN * (sent.len() - 1) as f64;
        is_most.then(|| Key::Same { sent: one.clone(), heard: other.clone() })
    })
}

/// Exactly one after each message, before the next.
fn are_in_turn(scene: &Scene, sent: &[usize], heard: &[usize]) -> bool {
    let is_before = heard.first().is_some_and(|first| *first < sent[0]);
    let between =
        sent.windows(2).map(|pair| heard.iter().filter(|at| (pair[0]..pair[1]).contains(*at)).count());
    // A reply comes at once. What comes by itself, as often as the client sends, comes at any moment.
    let is_soon = sent.windows(2).all(|pair| {
        let reply = heard.iter().find(|at| (pair[0]..pair[1]).contains(*at));
        let whole = scene.items[pair[1]].at_ns - scene.items[pair[0]].at_ns;
        reply.is_some_and(|at| scene.items[*at].at_ns - scene.items[pair[0]].at_ns <= whole / 2)
    });
    sent.len() > 1 && !is_before && between.into_iter().all(|count| count == 1) && is_soon
}
