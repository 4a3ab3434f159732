//! A ranking together with the names of its members: what implementations with their own map put under one lock.

use std::sync::Arc;

use super::super::ranking::Ranking;
use super::super::types::{Deleted, Mode, Options, Outcome, Page, Record, Refused, Row, Standing};
use super::super::zones::{Place, Sets};
use super::super::{MAX_MEMBERS, Score, Snapshot};

/// What a map keeps of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    id: u32,
    place: Place,
}

/// Members in order, by number, with their names for listings.
pub(super) struct Named<F: Sets> {
    ranking: Ranking<F>,
    names: Vec<Arc<str>>,
    free: Vec<u32>,
}

impl<F: Sets> Named<F> {
    pub(super) fn new(options: Options) -> Self {
        Self { ranking: Ranking::new(options), names: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> u64 {
        self.ranking.len()
    }

    /// How many members may still come.
    pub(super) fn room(&self) -> u64 {
        MAX_MEMBERS - self.len()
    }

    fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    fn new_id(&mut self, name: &Arc<str>) -> u32 {
        if let Some(free) = self.free.pop() {
            self.names[free as usize] = name.clone();
            return free;
        }
        self.names.push(name.clone());
        self.names.len() as u32 - 1
    }

    pub(super) fn add(
        &mut self,
        name: &Arc<str>,
        mode: Mode,
        score: &Score,
    ) -> Result<(Entry, Outcome), Refused> {
        if self.room() == 0 {
            return Err(Refused::Full);
        }
        let id = self.new_id(name);
        let (place, outcome) = self.ranking.add(id, mode, score);
        Ok((Entry { id, place }, outcome))
    }

    #[inline]
    pub(super) fn change(&mut self, entry: &mut Entry, mode: Mode, score: &Score) -> Outcome {
        let (place, outcome) = self.ranking.change(entry.id, entry.place, mode, score);
        entry.place = place;
        outcome
    }

    pub(super) fn remove(&mut self, entry: Entry) -> Deleted {
        self.free.push(entry.id);
        self.ranking.remove(entry.id, entry.place)
    }

    pub(super) fn standing(&self, entry: &Entry) -> Standing {
        self.ranking.standing(entry.id, entry.place)
    }

    pub(super) fn row(&self, entry: &Entry, member: &str) -> Row {
        self.ranking.row(entry.id, entry.place, member)
    }

    pub(super) fn range(&self, first: u64, limit: usize) -> Page {
        self.ranking.range(first, limit, |id| self.name(id))
    }

    pub(super) fn range_back(&self, first: u64, limit: usize) -> Page {
        self.ranking.range_back(first, limit, |id| self.name(id))
    }

    pub(super) fn around(&self, entry: &Entry, each_side: usize) -> Page {
        self.ranking.around(entry.id, entry.place, each_side, |id| self.name(id))
    }

    pub(super) fn set_metadata(&mut self, entry: &Entry, metadata: Option<&str>) -> u64 {
        self.ranking.set_metadata(entry.id, metadata)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.ranking.snapshot(|id| self.name(id))
    }

    /// Puts a record in order; `old` is the member's entry, if it is there already.
    pub(super) fn put(&mut self, name: &Arc<str>, old: Option<Entry>, record: &Record) -> Entry {
        let id = old.map_or_else(|| self.new_id(name), |old| old.id);
        let place = self.ranking.put(id, old.map(|old| old.place), record);
        Entry { id, place }
    }

    /// Raises the count of changes to that of a restored snapshot.
    pub(super) fn raise_sequence(&mut self, sequence: u64) {
        self.ranking.rules.sequence = self.ranking.rules.sequence.max(sequence);
    }

    /// Leaves an empty order, whose count of changes goes on, and returns the full one.
    pub(super) fn take(&mut self) -> Self {
        let (names, free) = (std::mem::take(&mut self.names), std::mem::take(&mut self.free));
        Self { ranking: self.ranking.take(), names, free }
    }
}
