//! What becomes of each thing that the client said: a step of its own, a part of a loop, or left out; and of each value in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::actions::{Deed, Item, Scene};
use crate::answers::{Replies, replies};
use crate::content::{Leaf, Place, Step};
use crate::latest::{Latest, latest};
use crate::pongs::{Pong, pongs};
use crate::rhythm::{Loop, Tick, loops, ticks};
use crate::secrets::{Secrets, secret_in};
use crate::session::Opening;
use crate::trace::{Found, Source, Tracer};

/// A client that listens for so long at the end has come to listen.
const LISTENS_NS: u64 = 2_000_000_000;
/// What a client says later than this after a message was not caused by it.
const WAITED_NS_MAX: u64 = 5_000_000_000;
/// Of values that differ from message to message so many are kept.
const ROWS_MAX: usize = 50;

/// A client's own count begins below.
const OWN_COUNT_MAX: i64 = 1_000;

/// What a value of a loop's message is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// from the server, or partly so
    Traced(Vec<Source>),
    /// counts up with the period
    Count { base: i64, step: i64 },
    /// one of a list that the answer in the same period has: the answer's item, the list, and the way in its element
    Pick { item: usize, list: Place, rest: Place, is_text: bool },
    /// what the server said last
    Latest(Latest, Leaf),
    /// as recorded, one after the other
    Rows(Vec<Leaf>),
}

/// One message or request of a loop.
#[derive(Clone, Debug)]
pub(crate) struct LoopStep {
    /// the first of its kind
    pub item: usize,
    /// what of it differs or is traced
    pub fields: BTreeMap<Place, Field>,
    /// whole messages where their values have no common places
    pub rows: Vec<usize>,
    /// since the step before it, or since its answer
    pub after_ns: u64,
}

/// How the bot goes on once its loops run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// in loops, or listening, until the climb ends
    Stays,
    /// the whole session again
    Repeats,
}

/// Everything that the writer needs.
pub(crate) struct Outline<'a> {
    pub scene: &'a Scene,
    pub secrets: Secrets,
    pub loops: Vec<(Loop, Vec<LoopStep>)>,
    pub replies: Vec<Vec<Replies>>,
    pub ticks: Vec<Tick>,
    pub pongs: Vec<Pong>,
    /// items of what is said once, with what is traced in them
    pub traced: BTreeMap<usize, BTreeMap<Place, Vec<Source>>>,
    /// messages that the client waited for
    pub awaited: BTreeSet<usize>,
    /// which loop begins with that item
    pub begins: BTreeMap<usize, usize>,
    /// items that are no steps of their own
    pub not_steps: BTreeSet<usize>,
    /// the first item that is left out because the climb ends before it
    pub end: usize,
    pub ending: Ending,
    pub answers: HashMap<usize, usize>,
}

impl Scene {
    pub fn outline(&self) -> Outline<'_> {
        let tracer = Tracer::of(self);
        let mut pongs = pongs(self);
        let answers_only: BTreeSet<usize> = pongs.iter().flat_map(|pong| &pong.said).copied().collect();
        let found = loops(self, &answers_only);
        let replies: Vec<Vec<Replies>> = found.iter().map(|one| replies(self, one)).collect();
        let reply_shapes: Vec<&str> = replies.iter().flatten().map(|one| one.shape.as_str()).collect();
        let questions = pongs.iter().map(|pong| self.items[pong.heard].shape.as_str());
        let ticks = ticks(self, &reply_shapes.iter().copied().chain(questions).collect::<Vec<_>>());
        let answers = self.answers();
        let stays = !found.is_empty() || !pongs.is_empty() || self.listens(&ticks);
        if !stays {
            pongs.clear();
        }
        let mut outline = Outline {
            scene: self,
            secrets: Secrets::default(),
            loops: Vec::new(),
            traced: BTreeMap::new(),
            awaited: BTreeSet::new(),
            begins: BTreeMap::new(),
            not_steps: BTreeSet::new(),
            end: self.items.len(),
            ending: if stays { Ending::Stays } else { Ending::Repeats },
            answers,
            ticks,
            pongs,
            replies,
        };
        for (at, one) in found.iter().enumerate() {
            outline.begins.insert(one.cycles[0][0], at);
            outline.not_steps.extend(one.cycles.iter().flatten());
            // A stream that was one longer than the loop it joined.
            let shapes: BTreeSet<&str> =
                one.cycles[0].iter().map(|item| self.items[*item].shape.as_str()).collect();
            let of_shape =
                |(_, item): &(usize, &Item)| item.is_said() && shapes.contains(item.shape.as_str());
            outline.not_steps.extend(self.items.iter().enumerate().filter(of_shape).map(|(at, _)| at));
        }
        if outline.ending == Ending::Stays {
            outline.leave_out_the_end();
            outline.leave_out_heartbeats();
            outline.not_steps.extend(answers_only);
        }
        outline.trace(&tracer);
        outline.loops = found.into_iter().map(|one| outline.steps(one, &tracer)).collect();
        outline.wait();
        outline
    }

    /// Of each exchange its answer.
    fn answers(&self) -> HashMap<usize, usize> {
        let is_answer = |item: &Item| matches!(item.deed, Deed::Answer(_));
        let all = self.items.iter().enumerate().filter(|(_, item)| is_answer(item));
        all.map(|(at, item)| (item.connection, at)).collect()
    }

    fn listens(&self, ticks: &[Tick]) -> bool {
        let last_said = self.items.iter().rposition(Item::is_said);
        let Some(last_said) = last_said else { return false };
        let rest = &self.items[last_said..];
        let heard = rest.iter().filter(|item| matches!(item.deed, Deed::Heard(_)));
        let lasts_ns = rest.last().map_or(0, |last| last.at_ns - rest[0].at_ns);
        !ticks.is_empty() || lasts_ns >= LISTENS_NS && heard.count() > 2
    }
}

impl Outline<'_> {
    /// What was said after the last loop is the client's goodbye; a bot stays.
    fn leave_out_the_end(&mut self) {
        let last = self.not_steps.iter().next_back().copied();
        let is_close = |item: &Item| matches!(item.deed, Deed::Close);
        self.end = match last {
            Some(last) => last + 1,
            None => self
                .scene
                .items
                .iter()
                .rposition(|item| !is_close(item) && !matches!(item.deed, Deed::Ended))
                .map_or(0, |at| at + 1),
        };
    }

    /// Answers to the heartbeats of Engine.IO: the bot gives them in its handler.
    fn leave_out_heartbeats(&mut self) {
        for (at, item) in self.scene.items.iter().enumerate() {
            let is_pong =
                matches!(&item.deed, Deed::Sent(content) if content.is_text && content.bytes == b"3");
            if is_pong && self.is_engine_io(item.connection) {
                self.not_steps.insert(at);
            }
        }
    }

    /// Socket.IO's transport, whose server hangs up on clients that do not answer its heartbeats.
    pub fn is_engine_io(&self, connection: usize) -> bool {
        self.scene.items.iter().any(|item| {
            let opens =
                matches!(&item.deed, Deed::Open(Opening::WebSocket { path, .. }) if path.contains("EIO="));
            opens && item.connection == connection
        })
    }

    pub fn is_step(&self, at: usize) -> bool {
        at < self.end && !self.not_steps.contains(&at)
    }

    fn trace(&mut self, tracer: &Tracer<'_>) {
        for (at, item) in self.scene.items.iter().enumerate().filter(|(_, item)| item.is_said()) {
            let mut found = BTreeMap::new();
            for leaf in &item.leaves {
                match tracer.find(leaf, &(0..at), false) {
                    Some(sources) => {
                        found.insert(leaf.place.clone(), sources);
                    }
                    None => {
                        if let Some(secret) = secret_in(leaf) {
                            self.secrets.add(&leaf.name, secret);
                        }
                    }
                }
            }
            if self.is_step(at) && !found.is_empty() {
                self.traced.insert(at, found);
            }
        }
    }

    fn steps(&self, one: Loop, tracer: &Tracer<'_>) -> (Loop, Vec<LoopStep>) {
        let count = one.cycles[0].len();
        let steps = (0..count).map(|step| self.step(&one, step, tracer)).collect();
        (one, steps)
    }

    fn step(&self, one: &Loop, step: usize, tracer: &Tracer<'_>) -> LoopStep {
        let items = &self.scene.items;
        let said: Vec<usize> = one.cycles.iter().filter_map(|cycle| cycle.get(step).copied()).collect();
        let first = said[0];
        let mut out = LoopStep { item: first, fields: BTreeMap::new(), rows: Vec::new(), after_ns: 0 };
        if step > 0 {
            let mut gaps: Vec<u64> = one
                .cycles
                .iter()
                .filter_map(|cycle| {
                    let (before, this) = (*cycle.get(step - 1)?, *cycle.get(step)?);
                    let answer = self
                        .answers
                        .get(&items[before].connection)
                        .filter(|_| matches!(items[before].deed, Deed::Ask(_)));
                    Some(items[this].at_ns.saturating_sub(items[*answer.unwrap_or(&before)].at_ns))
                })
                .collect();
            gaps.sort_unstable();
            out.after_ns = gaps[gaps.len() / 2];
        }
        let places = |at: usize| items[at].leaves.iter().map(|leaf| &leaf.place).collect::<Vec<_>>();
        let is_same_build = said.iter().all(|at| places(*at) == places(first));
        let has_leaves = !items[first].leaves.is_empty();
        if !is_same_build || !has_leaves {
            let differs = said.iter().any(|at| content(&items[*at]) != content(&items[first]));
            if differs {
                out.rows = said.iter().take(ROWS_MAX).copied().collect();
            }
            return out;
        }
        for (index, leaf) in items[first].leaves.iter().enumerate() {
            let all: Vec<&Leaf> = said.iter().map(|at| &items[*at].leaves[index]).collect();
            let field = if all.iter().all(|one| one.value == leaf.value) {
                // What the client had before the loop began, and so has in each period.
                tracer.find(leaf, &(0..one.cycles[0][0]), false).map(Field::Traced)
            } else {
                // A client's own count is repeated by the replies, one behind; the server's own begins anywhere.
                let follows =
                    || latest(self.scene, &said, &all).map(|found| Field::Latest(found, leaf.clone()));
                let own = counted(&all);
                let begins_anywhere =
                    matches!(own, Some(Field::Count { base, .. }) if base.abs() >= OWN_COUNT_MAX);
                own.filter(|_| !begins_anywhere || follows().is_none())
                    .or_else(follows)
                    .or_else(|| self.local(one, step, index, tracer))
                    .or_else(|| {
                        Some(Field::Rows(all.iter().take(ROWS_MAX).map(|one| (*one).clone()).collect()))
                    })
            };
            if let Some(field) = field {
                out.fields.insert(leaf.place.clone(), field);
            }
        }
        out
    }

    /// From an answer in the same period.
    fn local(&self, one: &Loop, step: usize, index: usize, tracer: &Tracer<'_>) -> Option<Field> {
        let mut found: Vec<(usize, Place, bool)> = Vec::new();
        for cycle in one.cycles.iter().filter(|cycle| cycle.len() > step) {
            let leaf = &self.scene.items[cycle[step]].leaves[index];
            let sources = tracer.find(leaf, &(cycle[0]..cycle[step]), true)?;
            let [Source::Heard(item, Found::At(place, is_text))] = sources.as_slice() else { return None };
            let connection = self.scene.items[*item].connection;
            let from =
                cycle[..step].iter().position(|one| self.scene.items[*one].connection == connection)?;
            found.push((from, place.clone(), *is_text));
        }
        let (from, place, is_text) = found.first()?.clone();
        let item = *self.answers.get(&self.scene.items[one.cycles[0][from]].connection)?;
        if found.iter().all(|other| other.0 == from && other.1 == place) {
            return Some(Field::Traced(vec![Source::Heard(item, Found::At(place, is_text))]));
        }
        // The same way but for which element of a list.
        let at = place.iter().position(|step| matches!(step, Step::At(_)))?;
        let is_alike = |other: &(usize, Place, bool)| {
            let (place, other) = (&place, &other.1);
            other.len() == place.len()
                && matches!(other[at], Step::At(_))
                && other[..at] == place[..at]
                && other[at + 1..] == place[at + 1..]
        };
        found.iter().all(|other| other.0 == from && is_alike(other)).then(|| Field::Pick {
            item,
            list: place[..at].to_vec(),
            rest: place[at + 1..].to_vec(),
            is_text,
        })
    }

    /// Marks what the client waited for: messages whose values it used, and the first reply to what it said before it went on.
    fn wait(&mut self) {
        let mut used: BTreeSet<usize> = BTreeSet::new();
        let mut note = |sources: &[Source]| {
            used.extend(sources.iter().filter_map(|source| match source {
                Source::Heard(item, _) => Some(*item),
                Source::Text(_) => None,
            }));
        };
        self.traced.values().flat_map(BTreeMap::values).for_each(|sources| note(sources));
        let steps = self.loops.iter().flat_map(|(_, steps)| steps);
        for field in steps.flat_map(|step| step.fields.values()) {
            if let Field::Traced(sources) = field {
                note(sources);
            }
        }
        let items = &self.scene.items;
        used.retain(|at| matches!(items[*at].deed, Deed::Heard(_)));
        let is_tick = |item: &Item| self.ticks.iter().any(|tick| tick.shape == item.shape);
        let is_reply = |item: &Item| self.replies.iter().flatten().any(|one| one.shape == item.shape);
        let mut first: Option<usize> = None;
        for (at, item) in items.iter().enumerate().take(self.end) {
            match item.deed {
                Deed::Heard(_)
                    if first.is_none() && !is_tick(item) && !is_reply(item) && !self.is_heartbeat(item) =>
                {
                    first = Some(at)
                }
                Deed::Sent(_) | Deed::Ask(_) | Deed::Open(_)
                    if self.is_step(at) || self.begins.contains_key(&at) =>
                {
                    if let Some(first) =
                        first.take().filter(|first| item.at_ns - items[*first].at_ns < WAITED_NS_MAX)
                    {
                        used.insert(first);
                    }
                }
                _ => {}
            }
        }
        self.awaited = used;
    }

    fn is_heartbeat(&self, item: &Item) -> bool {
        if self.pongs.iter().any(|pong| self.scene.items[pong.heard].shape == item.shape) {
            return true;
        }
        matches!(&item.deed, Deed::Heard(content) if content.bytes == b"2")
            && self.is_engine_io(item.connection)
    }
}

fn content(item: &Item) -> Option<&[u8]> {
    match &item.deed {
        Deed::Sent(content) => Some(&content.bytes),
        Deed::Ask(request) => Some(&request.body),
        _ => None,
    }
}

/// Whole numbers of which each is the one before and a step.
fn counted(all: &[&Leaf]) -> Option<Field> {
    let numbers: Vec<i64> = all.iter().map(|leaf| plain_number(&leaf.value)).collect::<Option<_>>()?;
    let step = numbers[1].checked_sub(numbers[0])?;
    let is_so = numbers.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(step));
    let is_small = step.unsigned_abs() <= 1_000_000 && numbers[0].unsigned_abs() < 1 << 53;
    (is_so && is_small && step != 0).then(|| Field::Count { base: numbers[0], step })
}

/// As JavaScript would write it.
fn plain_number(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}
