//! Where a value that the client said had come from.
//!
//! A value is traced when the server said it before the client ever did, and when it is no coincidence: it is long, or it is
//! called alike on both sides (`room` in a welcome, `roomId` in a request). What tells the kind of a message is never traced.

use std::collections::HashMap;
use std::ops::Range;

use crate::actions::{Deed, Item, Scene, are_alike};
use crate::content::{Form, Leaf, Place, Step};

/// Values from here on are no coincidence, unless they are numbers or plain words.
const TELLING_BYTES: usize = 8;
/// A plain word has to be longer.
const TELLING_WORD_BYTES: usize = 14;
const TELLING_DIGITS: usize = 6;
/// So much of the text around a value finds it again.
const AROUND_BYTES: usize = 40;
/// In more texts nothing is looked for: it would take long.
const TEXTS_MAX: usize = 200;
const TRIVIAL: [&str; 12] =
    ["", "ok", "true", "false", "null", "none", "yes", "no", "undefined", "get", "post", "error"];

/// A part of a value that the client said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// its own
    Text(String),
    /// from that item of the scene
    Heard(usize, Found),
}

/// Where in what the server said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// at a place, as text or not
    At(Place, bool),
    /// between two texts
    Between(String, String),
}

struct Origin {
    item: usize,
    leaf: usize,
}

/// All that both sides said, by value.
pub(crate) struct Tracer<'a> {
    scene: &'a Scene,
    heard: HashMap<&'a str, Vec<Origin>>,
    said: HashMap<&'a str, usize>,
    texts: Vec<(usize, &'a str)>,
}

impl<'a> Tracer<'a> {
    pub fn of(scene: &'a Scene) -> Tracer<'a> {
        let mut tracer = Tracer { scene, heard: HashMap::new(), said: HashMap::new(), texts: Vec::new() };
        for (at, item) in scene.items.iter().enumerate() {
            let is_said = item.is_said();
            // In a page a word is found by what stands around it, and not by its number.
            let is_page = matches!(item.deed, Deed::Answer(_));
            for (index, leaf) in item.leaves.iter().enumerate() {
                if is_said {
                    tracer.said.entry(&leaf.value).or_insert(at);
                    // Inside `Bearer …` or `room:…` too.
                    for (_, token) in tokens(&leaf.value).filter(|(_, token)| token.len() >= TELLING_BYTES) {
                        tracer.said.entry(token).or_insert(at);
                    }
                } else if !(leaf.is_kind || is_page && matches!(leaf.place[0], Step::Word(_))) {
                    tracer.heard.entry(&leaf.value).or_default().push(Origin { item: at, leaf: index });
                }
            }
            let bytes = match &item.deed {
                Deed::Answer(answer) if !matches!(item.form, Form::Json { .. }) => &answer.body,
                Deed::Heard(content) if matches!(item.form, Form::Words(..)) => &content.bytes,
                _ => continue,
            };
            if let Ok(text) = std::str::from_utf8(bytes) {
                tracer.texts.push((at, text));
            }
        }
        tracer
    }

    /// Where a value had come from, among these items; `None`: it is the client's own. `again`: the client may have said it before.
    pub fn find(&self, leaf: &Leaf, among: &Range<usize>, again: bool) -> Option<Vec<Source>> {
        if leaf.is_kind {
            return None;
        }
        if let Some(found) = self.whole(leaf, &leaf.value, among, true, again) {
            return Some(vec![found]);
        }
        if !leaf.is_text {
            return None;
        }
        let mut out: Vec<Source> = Vec::new();
        let mut from = 0;
        for (at, token) in tokens(&leaf.value) {
            if token.len() < TELLING_BYTES || at < from {
                continue;
            }
            let found = self.whole(leaf, token, among, false, again);
            if let Some(found) = found.or_else(|| self.between(token, among)) {
                if at > from {
                    out.push(Source::Text(leaf.value[from..at].to_owned()));
                }
                from = at + token.len();
                out.push(found);
            }
        }
        if out.is_empty() {
            return None;
        }
        if from < leaf.value.len() {
            out.push(Source::Text(leaf.value[from..].to_owned()));
        }
        Some(out)
    }

    fn whole(
        &self,
        said: &Leaf,
        value: &str,
        among: &Range<usize>,
        by_name: bool,
        again: bool,
    ) -> Option<Source> {
        let origins = self.heard.get(value)?;
        let first_said = self.said.get(value).copied().unwrap_or(usize::MAX);
        let may_be = |origin: &&Origin| among.contains(&origin.item) && (again || first_said > origin.item);
        let leaf_of = |origin: &Origin| &self.scene.items[origin.item].leaves[origin.leaf];
        let is_alike = |origin: &&Origin| by_name && are_alike(said, leaf_of(origin));
        let known = origins.iter().filter(may_be).find(is_alike);
        let known =
            known.filter(|_| !TRIVIAL.contains(&value.to_ascii_lowercase().as_str()) && !is_truth(said));
        let origin = known.or_else(|| origins.iter().find(may_be).filter(|_| is_telling(value)))?;
        let leaf = leaf_of(origin);
        Some(Source::Heard(origin.item, Found::At(leaf.place.clone(), leaf.is_text)))
    }

    /// In a text that is no JSON, between what stands before and behind.
    fn between(&self, value: &str, among: &Range<usize>) -> Option<Source> {
        if !is_telling(value) || self.texts.len() > TEXTS_MAX {
            return None;
        }
        let first_said = self.said.get(value).copied().unwrap_or(usize::MAX);
        let texts = self.texts.iter().filter(|(item, _)| among.contains(item) && *item < first_said);
        for (item, text) in texts {
            let Some(at) = text.find(value) else { continue };
            let mut start = at.saturating_sub(AROUND_BYTES);
            while !text.is_char_boundary(start) {
                start += 1;
            }
            let before = &text[start..at];
            let after: String = text[at + value.len()..].chars().take(1).collect();
            // What stands around it must lead to it, and not to an earlier value.
            let found = text.split_once(before).map(|(_, rest)| rest);
            let found = found.map(|rest| {
                if after.is_empty() { rest } else { rest.split(&after).next().unwrap_or_default() }
            });
            if !before.is_empty() && found == Some(value) {
                return Some(Source::Heard(*item, Found::Between(before.to_owned(), after)));
            }
        }
        None
    }
}

fn is_truth(leaf: &Leaf) -> bool {
    !leaf.is_text && leaf.value.parse::<f64>().is_err()
}

fn is_telling(value: &str) -> bool {
    if value.parse::<f64>().is_ok() {
        return value.bytes().filter(u8::is_ascii_digit).count() >= TELLING_DIGITS && !value.ends_with("000");
    }
    let is_plain = value.bytes().all(|byte| byte.is_ascii_lowercase() || b" -_.".contains(&byte));
    value.len() >= if is_plain { TELLING_WORD_BYTES } else { TELLING_BYTES }
}

/// The parts of a value that may be one of their own, the longer before the shorter: between blanks, then between signs.
fn tokens(value: &str) -> impl Iterator<Item = (usize, &str)> {
    let split = |is_end: fn(char) -> bool| {
        value.split(is_end).map(|part| (part.as_ptr() as usize - value.as_ptr() as usize, part))
    };
    let mut all: Vec<(usize, &str)> = Vec::new();
    for (at, part) in split(|letter| letter.is_whitespace() || letter == ',' || letter == ';') {
        let part_is_whole = part.len() == value.len();
        if !part_is_whole {
            all.push((at, part));
        }
        let inner = part.split(|letter: char| !(letter.is_ascii_alphanumeric() || "-_.~".contains(letter)));
        for one in inner.filter(|one| one.len() < part.len()) {
            all.push((one.as_ptr() as usize - value.as_ptr() as usize, one));
        }
        if part_is_whole && !part.is_empty() {
            all.push((at, part));
        }
    }
    all.into_iter()
}

impl Item {
    /// The value at a place, of JSON or words.
    pub fn value(&self, place: &[Step]) -> Option<&str> {
        self.leaf(place).map(|leaf| leaf.value.as_str())
    }
}
