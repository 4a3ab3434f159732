//! The peer: a std `HashMap` and an `indexset::BTreeSet`, as one would write it with existing crates.
//!
//! It has what makes such a board fast: keys of 24 bytes without allocations, and an unseeded hash that is faster than
//! the default one. So the comparison is one of data structures.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::exclusive::Exclusive;
use super::super::types::{check_bulk, check_member, check_metadata};
use super::super::zones::IndexSets;
use super::super::{
    BulkRefused, Deleted, Mode, Options, Outcome, Page, Refused, Row, Score, Snapshot, Standing, Update,
};
use super::named::{Entry, Named};

pub(super) struct MapBoard {
    entries: HashMap<Arc<str>, Entry, rustc_hash::FxBuildHasher>,
    order: Named<IndexSets>,
}

impl Exclusive for MapBoard {
    fn new(options: Options) -> Self {
        Self { entries: HashMap::default(), order: Named::new(options) }
    }

    fn count(&self) -> u64 {
        self.order.len()
    }

    fn update(&mut self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        check_member(member)?;
        if let Some(entry) = self.entries.get_mut(member) {
            return Ok(self.order.change(entry, mode, score));
        }
        let name: Arc<str> = member.into();
        let (entry, outcome) = self.order.add(&name, mode, score)?;
        self.entries.insert(name, entry);
        Ok(outcome)
    }

    fn update_bulk(&mut self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        check_bulk(updates, self.order.room())?;
        let apply = |(item, update): (usize, &Update<'_>)| {
            let outcome = self.update(update.member, update.mode, &update.score);
            outcome.map_err(|cause| BulkRefused { item, cause })
        };
        updates.iter().enumerate().map(apply).collect()
    }

    fn get(&self, member: &str) -> Option<Standing> {
        Some(self.order.standing(self.entries.get(member)?))
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        members.iter().map(|member| self.get(member)).collect()
    }

    fn row(&self, member: &str) -> Option<Row> {
        Some(self.order.row(self.entries.get(member)?, member))
    }

    fn delete(&mut self, member: &str) -> Option<Deleted> {
        let entry = self.entries.remove(member)?;
        Some(self.order.remove(entry))
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        self.order.range(first, limit)
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        self.order.range_back(first, limit)
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        Some(self.order.around(self.entries.get(member)?, each_side))
    }

    fn set_metadata(&mut self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
        check_metadata(metadata)?;
        Ok(self.entries.get(member).map(|entry| self.order.set_metadata(entry, metadata)))
    }

    fn snapshot(&self) -> Snapshot {
        self.order.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        snapshot.check(self.order.room())?;
        for record in &snapshot.records {
            let name: Arc<str> = record.member.clone().into();
            let old = self.entries.get(&name).copied();
            let entry = self.order.put(&name, old, record);
            self.entries.insert(name, entry);
        }
        self.order.raise_sequence(snapshot.sequence);
        Ok(())
    }

    fn take(&mut self) -> Self {
        Self { entries: std::mem::take(&mut self.entries), order: self.order.take() }
    }
}
