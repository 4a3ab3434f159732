//! The order of a board with its rules and metadata: everything but the lookup of a member by name.
//!
//! Members are numbers here, and each has a `Place`, which the owner of the names stores and passes back. All
//! implementations share this; they differ in how they find a member and in what they lock meanwhile.

use std::collections::HashMap;

use super::rules::{Rules, next_free_tie};
use super::types::{Deleted, Mode, Options, Outcome, Page, Record, Row, Standing};
use super::zones::{Key, Place, Sets, Zones};
use super::{Score, Snapshot};

pub(super) struct Ranking<F: Sets> {
    pub(super) rules: Rules,
    pub(super) zones: Zones<F>,
    metadata: HashMap<u32, Box<str>>,
}

impl<F: Sets> Ranking<F> {
    pub(super) fn new(options: Options) -> Self {
        Self { rules: Rules::new(options), zones: Zones::new(), metadata: HashMap::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.zones.len()
    }

    pub(super) fn has_metadata(&self) -> bool {
        !self.metadata.is_empty()
    }

    /// The first update of member `id`.
    pub(super) fn add(&mut self, id: u32, mode: Mode, score: &Score) -> (Place, Outcome) {
        let sequence = self.rules.next_sequence();
        let key = self.rules.update(None, mode, score);
        let tie = self.rules.tie(mode, None, sequence);
        let score = self.rules.score(key.clone());
        let (rank, place) = self.zones.insert(id, key, tie, &mut next_free_tie);
        (place, Outcome { score, rank: rank + 1, tie: place.tie, sequence })
    }

    /// An update of member `id`, which is at `old`.
    #[inline]
    pub(super) fn change(&mut self, id: u32, old: Place, mode: Mode, score: &Score) -> (Place, Outcome) {
        let sequence = self.rules.next_sequence();
        let narrow = old.narrow().and_then(|had| self.rules.narrow_update(had, mode, score));
        let (key, unchanged) = match narrow {
            Some(now) => (Key::Narrow(now), old.narrow() == Some(now)),
            None => self.wide_update(id, old, mode, score),
        };
        let tie = self.rules.tie(mode, unchanged.then_some(old.tie), sequence);
        let score = self.rules.score(key.clone());
        let (rank, place) = if unchanged && tie == old.tie {
            (self.zones.rank(id, old), old)
        } else {
            self.zones.relocate(id, old, key, tie, &mut next_free_tie)
        };
        (place, Outcome { score, rank: rank + 1, tie: place.tie, sequence })
    }

    #[cold]
    fn wide_update(&self, id: u32, old: Place, mode: Mode, score: &Score) -> (Key, bool) {
        let had = self.zones.key(id, old);
        let now = self.rules.update(Some(had.clone()), mode, score);
        let unchanged = now == had;
        (now, unchanged)
    }

    pub(super) fn remove(&mut self, id: u32, place: Place) -> Deleted {
        let key = self.zones.remove(id, place);
        self.metadata.remove(&id);
        Deleted { score: self.rules.score(key), sequence: self.rules.next_sequence() }
    }

    #[inline]
    pub(super) fn standing(&self, id: u32, place: Place) -> Standing {
        let rank = self.zones.rank(id, place) + 1;
        Standing { score: self.rules.score(self.zones.key(id, place)), rank }
    }

    pub(super) fn row(&self, id: u32, place: Place, member: &str) -> Row {
        let Standing { score, rank } = self.standing(id, place);
        Row { rank, member: member.into(), score, metadata: self.metadata.get(&id).cloned() }
    }

    /// `first` is a 1-based rank; 0 counts as 1.
    pub(super) fn range<'a>(&self, first: u64, limit: usize, name: impl Fn(u32) -> &'a str) -> Page {
        let first = first.max(1);
        let total = self.len();
        let left = usize::try_from((total + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let mut rows = Vec::with_capacity(limit.min(left));
        self.zones.visit(first - 1, limit, |key, _, id| {
            let rank = first + rows.len() as u64;
            let metadata = self.metadata.get(&id).cloned();
            rows.push(Row { rank, member: name(id).into(), score: self.rules.score(key), metadata });
        });
        Page { total, rows }
    }

    /// As `range`, from the last rank towards the first; `first` counts from the end, from 1.
    pub(super) fn range_back<'a>(&self, first: u64, limit: usize, name: impl Fn(u32) -> &'a str) -> Page {
        let last = (self.len() + 1).saturating_sub(first.max(1));
        let limit = limit.min(usize::try_from(last).unwrap_or(usize::MAX));
        let mut page = self.range(last + 1 - limit as u64, limit, name);
        page.rows.reverse();
        page
    }

    /// The member at `place` with up to `each_side` neighbours before and after it.
    pub(super) fn around<'a>(
        &self,
        id: u32,
        place: Place,
        each_side: usize,
        name: impl Fn(u32) -> &'a str,
    ) -> Page {
        let rank = self.zones.rank(id, place) + 1;
        let first = rank.saturating_sub(each_side as u64).max(1);
        let limit = ((rank - first) as usize).saturating_add(each_side).saturating_add(1);
        self.range(first, limit, name)
    }

    /// Returns the number of this change.
    pub(super) fn set_metadata(&mut self, id: u32, metadata: Option<&str>) -> u64 {
        match metadata {
            Some(text) => self.metadata.insert(id, text.into()),
            None => self.metadata.remove(&id),
        };
        self.rules.next_sequence()
    }

    /// All members in the order of their ranks.
    pub(super) fn snapshot<'a>(&self, name: impl Fn(u32) -> &'a str) -> Snapshot {
        let mut records = Vec::with_capacity(self.len() as usize);
        self.zones.visit(0, usize::MAX, |key, tie, id| {
            let (member, metadata) = (name(id).into(), self.metadata.get(&id).cloned());
            records.push(Record { member, score: self.rules.score(key), tie, metadata });
        });
        Snapshot { sequence: self.rules.sequence, records }
    }

    /// Puts member `id` where a record says. `old` is its present place, if it exists already.
    pub(super) fn put(&mut self, id: u32, old: Option<Place>, record: &Record) -> Place {
        if let Some(old) = old {
            self.zones.remove(id, old);
        }
        match &record.metadata {
            Some(text) => self.metadata.insert(id, text.clone()),
            None => self.metadata.remove(&id),
        };
        let key = self.rules.key(&record.score);
        self.zones.insert(id, key, record.tie, &mut next_free_tie).1
    }

    /// Leaves an empty order and returns the full one. Rules and the count of changes go on; this is one change.
    pub(super) fn take(&mut self) -> Self {
        let mut rules = Rules::new(self.rules.options());
        rules.sequence = self.rules.next_sequence();
        let zones = std::mem::replace(&mut self.zones, Zones::new());
        Self { rules, zones, metadata: std::mem::take(&mut self.metadata) }
    }
}
