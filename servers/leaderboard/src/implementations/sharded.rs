//! Members spread over maps with a lock each, and one lock around the rank tree.
//!
//! Finding a member needs its shard's lock only. Ranks are exact and of one moment, so every move in the order must
//! still take one lock. Locks are always taken in the same order: shards by number, then the order.
//! Invariant: a thread that moves a member holds its shard's lock exclusively from before the order's lock until the
//! entry is written.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::super::types::{check_bulk, check_member, check_metadata};
use super::super::zones::Trees;
use super::super::{
    BulkRefused, Deleted, Leaderboard, LockWaits, Mode, Options, Outcome, Page, Refused, Row, Score,
    Snapshot, Standing, Update,
};
use super::named::{Entry, Named};
use super::waits::Waits;

/// Many more than threads, so that two threads seldom want the same one.
const SHARDS: usize = 64;

type Shard = HashMap<Arc<str>, Entry>;

pub(super) struct Sharded {
    shards: [RwLock<Shard>; SHARDS],
    hasher: std::hash::RandomState,
    order: RwLock<Named<Trees>>,
    waits: Waits,
}

/// Locks of several shards, by number.
type Held<'a> = [Option<RwLockWriteGuard<'a, Shard>>; SHARDS];
type HeldToRead<'a> = [Option<RwLockReadGuard<'a, Shard>>; SHARDS];

impl Sharded {
    pub(super) fn new(options: Options) -> Self {
        Self {
            shards: std::array::from_fn(|_| RwLock::new(Shard::new())),
            hasher: std::hash::RandomState::new(),
            order: RwLock::new(Named::new(options)),
            waits: Waits::default(),
        }
    }

    fn number(&self, member: &str) -> usize {
        self.hasher.hash_one(member) as usize % SHARDS
    }

    fn shard(&self, member: &str) -> RwLockReadGuard<'_, Shard> {
        self.waits.read_lock(&self.shards[self.number(member)])
    }

    fn shard_mut(&self, member: &str) -> RwLockWriteGuard<'_, Shard> {
        self.waits.write_lock(&self.shards[self.number(member)])
    }

    /// Which shards hold some members.
    fn numbers<'m>(&self, members: impl Iterator<Item = &'m str>) -> [bool; SHARDS] {
        let mut wanted = [false; SHARDS];
        members.for_each(|member| wanted[self.number(member)] = true);
        wanted
    }

    /// The locks of the wanted shards, taken in order.
    fn hold(&self, wanted: [bool; SHARDS]) -> Held<'_> {
        std::array::from_fn(|number| wanted[number].then(|| self.waits.write_lock(&self.shards[number])))
    }

    fn hold_to_read(&self, wanted: [bool; SHARDS]) -> HeldToRead<'_> {
        std::array::from_fn(|number| wanted[number].then(|| self.waits.read_lock(&self.shards[number])))
    }
}

fn update_held(
    shard: &mut Shard,
    order: &mut Named<Trees>,
    member: &str,
    mode: Mode,
    score: &Score,
) -> Result<Outcome, Refused> {
    if let Some(entry) = shard.get_mut(member) {
        return Ok(order.change(entry, mode, score));
    }
    let name: Arc<str> = member.into();
    let (entry, outcome) = order.add(&name, mode, score)?;
    shard.insert(name, entry);
    Ok(outcome)
}

fn held<'a>(shards: &'a mut Held<'_>, number: usize) -> &'a mut Shard {
    shards[number].as_mut().expect("the shards of all members concerned are held")
}

impl Leaderboard for Sharded {
    fn update(&self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        check_member(member)?;
        let mut shard = self.shard_mut(member);
        let mut order = self.waits.write_lock(&self.order);
        update_held(&mut shard, &mut order, member, mode, score)
    }

    fn update_bulk(&self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        let mut shards = self.hold(self.numbers(updates.iter().map(|update| update.member)));
        let mut order = self.waits.write_lock(&self.order);
        check_bulk(updates, order.room())?;
        let apply = |(item, update): (usize, &Update<'_>)| {
            let shard = held(&mut shards, self.number(update.member));
            update_held(shard, &mut order, update.member, update.mode, &update.score)
                .map_err(|cause| BulkRefused { item, cause })
        };
        updates.iter().enumerate().map(apply).collect()
    }

    fn get(&self, member: &str) -> Option<Standing> {
        let shard = self.shard(member);
        let entry = shard.get(member)?;
        Some(self.waits.read_lock(&self.order).standing(entry))
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        let shards = self.hold_to_read(self.numbers(members.iter().copied()));
        let order = self.waits.read_lock(&self.order);
        let get = |member: &&str| {
            let shard = shards[self.number(member)].as_ref()?;
            Some(order.standing(shard.get(*member)?))
        };
        members.iter().map(get).collect()
    }

    fn row(&self, member: &str) -> Option<Row> {
        let shard = self.shard(member);
        let entry = shard.get(member)?;
        Some(self.waits.read_lock(&self.order).row(entry, member))
    }

    fn delete(&self, member: &str) -> Option<Deleted> {
        let mut shard = self.shard_mut(member);
        let entry = *shard.get(member)?;
        let deleted = self.waits.write_lock(&self.order).remove(entry);
        shard.remove(member);
        Some(deleted)
    }

    fn count(&self) -> u64 {
        self.waits.read_lock(&self.order).len()
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        self.waits.read_lock(&self.order).range(first, limit)
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        self.waits.read_lock(&self.order).range_back(first, limit)
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        let shard = self.shard(member);
        let entry = shard.get(member)?;
        Some(self.waits.read_lock(&self.order).around(entry, each_side))
    }

    fn set_metadata(&self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
        check_metadata(metadata)?;
        let shard = self.shard(member);
        let Some(entry) = shard.get(member) else { return Ok(None) };
        Ok(Some(self.waits.write_lock(&self.order).set_metadata(entry, metadata)))
    }

    fn snapshot(&self) -> Snapshot {
        self.waits.read_lock(&self.order).snapshot()
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        let mut shards = self.hold([true; SHARDS]);
        let mut order = self.waits.write_lock(&self.order);
        snapshot.check(order.room())?;
        for record in &snapshot.records {
            let shard = held(&mut shards, self.number(&record.member));
            let name: Arc<str> = record.member.clone().into();
            let old = shard.get(&name).copied();
            let entry = order.put(&name, old, record);
            shard.insert(name, entry);
        }
        order.raise_sequence(snapshot.sequence);
        Ok(())
    }

    fn reset(&self) -> Snapshot {
        let season = {
            let mut shards = self.hold([true; SHARDS]);
            let entries: Vec<Shard> =
                shards.iter_mut().flatten().map(|shard| std::mem::take(&mut **shard)).collect();
            // The old entries are freed after the locks, with `season`.
            (self.waits.write_lock(&self.order).take(), entries)
        };
        season.0.snapshot()
    }

    fn lock_waits(&self) -> LockWaits {
        self.waits.read()
    }
}
