//! Members in a concurrent map, and one lock around the rank tree.
//!
//! Operations on one member share a gate and hold the member's entry while the order changes. Operations on several
//! members at one moment close the gate: the map cannot lock several entries without risking deadlock.
//! Locks are always taken in the same order: gate, entry, order. Waits inside the map are not measured.
//! A reset empties the map while the gate is closed, which takes O(n).

use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry as MapEntry;
use parking_lot::RwLock;

use super::super::types::{check_bulk, check_member, check_metadata};
use super::super::zones::Trees;
use super::super::{
    BulkRefused, Deleted, Leaderboard, LockWaits, Mode, Options, Outcome, Page, Refused, Row, Score,
    Snapshot, Standing, Update,
};
use super::named::{Entry, Named};
use super::waits::Waits;

/// As many as `sharded` has; the map's own default for 2 cores is 8.
const SHARDS: usize = 64;

pub(super) struct ConcurrentMap {
    gate: RwLock<()>,
    entries: DashMap<Arc<str>, Entry>,
    order: RwLock<Named<Trees>>,
    waits: Waits,
}

impl ConcurrentMap {
    pub(super) fn new(options: Options) -> Self {
        Self {
            gate: RwLock::new(()),
            entries: DashMap::with_shard_amount(SHARDS),
            order: RwLock::new(Named::new(options)),
            waits: Waits::default(),
        }
    }

    /// Updates a member while the gate is held, shared or not.
    fn update_inside(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        if let Some(mut entry) = self.entries.get_mut(member) {
            return Ok(self.waits.write_lock(&self.order).change(&mut entry, mode, score));
        }
        // Another thread may add the member in between: `entry` checks again, and holds the slot.
        match self.entries.entry(member.into()) {
            MapEntry::Occupied(mut entry) => {
                Ok(self.waits.write_lock(&self.order).change(entry.get_mut(), mode, score))
            }
            MapEntry::Vacant(vacant) => {
                let (entry, outcome) = self.waits.write_lock(&self.order).add(vacant.key(), mode, score)?;
                vacant.insert(entry);
                Ok(outcome)
            }
        }
    }

    fn get_inside(&self, member: &str) -> Option<Standing> {
        let entry = self.entries.get(member)?;
        Some(self.waits.read_lock(&self.order).standing(&entry))
    }
}

impl Leaderboard for ConcurrentMap {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        check_member(member)?;
        let _gate = self.waits.read_lock(&self.gate);
        self.update_inside(member, mode, score)
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        let _gate = self.waits.write_lock(&self.gate);
        check_bulk(updates, self.order.read().room())?;
        let apply = |(item, update): (usize, &Update<'_>)| {
            let outcome = self.update_inside(update.member, update.mode, &update.score);
            outcome.map_err(|cause| BulkRefused { item, cause })
        };
        updates.iter().enumerate().map(apply).collect()
    }

    fn get(&self, member: &str) -> Option<Standing> {
        let _gate = self.waits.read_lock(&self.gate);
        self.get_inside(member)
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        let _gate = self.waits.write_lock(&self.gate);
        members.iter().map(|member| self.get_inside(member)).collect()
    }

    fn row(&self, member: &str) -> Option<Row> {
        let _gate = self.waits.read_lock(&self.gate);
        let entry = self.entries.get(member)?;
        Some(self.waits.read_lock(&self.order).row(&entry, member))
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        let _gate = self.waits.read_lock(&self.gate);
        let mut deleted = None;
        // The entry stays locked until it is removed from the order as well.
        self.entries.remove_if(member, |_, entry| {
            deleted = Some(self.waits.write_lock(&self.order).remove(*entry));
            true
        });
        deleted
    }

    fn count(&self) -> u64 {
        let _gate = self.waits.read_lock(&self.gate);
        self.waits.read_lock(&self.order).len()
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        // A bulk in progress holds the gate and not the order.
        let _gate = self.waits.read_lock(&self.gate);
        self.waits.read_lock(&self.order).range(first, limit)
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        // A bulk in progress holds the gate and not the order.
        let _gate = self.waits.read_lock(&self.gate);
        self.waits.read_lock(&self.order).range_back(first, limit)
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        let _gate = self.waits.read_lock(&self.gate);
        let entry = self.entries.get(member)?;
        Some(self.waits.read_lock(&self.order).around(&entry, each_side))
    }

    fn set_metadata(&self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
        check_metadata(metadata)?;
        let _gate = self.waits.read_lock(&self.gate);
        let Some(entry) = self.entries.get(member) else { return Ok(None) };
        Ok(Some(self.waits.write_lock(&self.order).set_metadata(&entry, metadata)))
    }

    fn snapshot(&self) -> Snapshot {
        let _gate = self.waits.read_lock(&self.gate);
        self.waits.read_lock(&self.order).snapshot()
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        let _gate = self.waits.write_lock(&self.gate);
        let mut order = self.waits.write_lock(&self.order);
        snapshot.check(order.room())?;
        for record in &snapshot.records {
            let name: Arc<str> = record.member.clone().into();
            let old = self.entries.get(&name).map(|entry| *entry);
            let entry = order.put(&name, old, record);
            self.entries.insert(name, entry);
        }
        order.raise_sequence(snapshot.sequence);
        Ok(())
    }

    fn reset(&self) -> Snapshot {
        let season = {
            let _gate = self.waits.write_lock(&self.gate);
            self.entries.clear();
            self.waits.write_lock(&self.order).take()
        };
        season.snapshot()
    }

    fn lock_waits(&self) -> LockWaits {
        self.waits.read()
    }
}
