//! A whole board for one thread at a time: the flat member table and the rank tree.
//!
//! The fast path is an update of a known member whose old and new score fit `i64`: two cache misses in the table, then
//! the old and the new leaf of the tree at once. A bulk does each of these steps for up to `BATCH` items before the next
//! step, so that the misses of all items overlap. Results are those of one item after the other.

use super::exclusive::Exclusive;
use super::members::Members;
use super::order::Prepared;
use super::ranking::Ranking;
use super::types::{
    BulkRefused, Deleted, MAX_MEMBERS, Mode, Options, Outcome, Page, Record, Refused, Row, Standing, Update,
    check_bulk, check_member, check_metadata,
};
use super::zones::{Key, Place, Trees};
use super::{Score, Snapshot};

/// Items of a bulk whose memory accesses overlap. More than the processor's outstanding misses would gain nothing.
const BATCH: usize = 16;

/// A board that is used by one thread at a time.
pub(super) struct FlatBoard {
    members: Members,
    ranking: Ranking<Trees>,
}

/// An update whose memory was prefetched.
#[derive(Clone, Copy)]
struct Ready {
    id: u32,
    old: Place,
    new: i64,
    tie: u64,
    moves: Prepared,
}

impl FlatBoard {
    #[inline]
    fn update_hashed(
        &mut self,
        hash: u32,
        member: &str,
        mode: Mode,
        score: &Score,
    ) -> Result<Outcome, Refused> {
        if let Some(id) = self.members.find(hash, member) {
            let old = self.members.place(id);
            let (place, outcome) = self.ranking.change(id, old, mode, score);
            self.members.set_place(id, place);
            return Ok(outcome);
        }
        if self.count() >= MAX_MEMBERS {
            return Err(Refused::Full);
        }
        let id = self.members.add(hash, member);
        let (place, outcome) = self.ranking.add(id, mode, score);
        self.members.set_place(id, place);
        Ok(outcome)
    }

    fn update_batch(&mut self, batch: &[Update<'_>], outcomes: &mut Vec<Outcome>) {
        let hashes = self.hash_all(batch.iter().map(|update| update.member));
        let mut ready: [Option<Ready>; BATCH] = [None; BATCH];
        for (number, (update, ready)) in batch.iter().zip(&mut ready).enumerate() {
            // Each item counts as one change, so its number is known before its turn.
            let sequence = self.ranking.rules.sequence + 1 + number as u64;
            *ready = self.prepare(hashes[number], update, sequence);
        }
        for (number, (update, ready)) in batch.iter().zip(&ready).enumerate() {
            let outcome = match ready.as_ref().and_then(|ready| self.finish(ready)) {
                Some(outcome) => outcome,
                // New members, wide scores, unchanged scores, and members that an earlier item of this batch moved.
                None => self
                    .update_hashed(hashes[number], update.member, update.mode, &update.score)
                    .expect("checked: the name is valid and there is room"),
            };
            outcomes.push(outcome);
        }
    }

    /// Hashes up to `BATCH` names and asks for their slots, then for their records.
    #[inline(always)]
    fn hash_all<'a>(&self, names: impl Iterator<Item = &'a str>) -> [u32; BATCH] {
        let mut hashes = [0; BATCH];
        let mut count = 0;
        for (hash, name) in hashes.iter_mut().zip(names) {
            *hash = self.members.hash(name);
            self.members.prefetch_slot(*hash);
            count += 1;
        }
        for hash in &hashes[..count] {
            self.members.prefetch_record(*hash);
        }
        hashes
    }

    #[inline(always)]
    fn prepare(&mut self, hash: u32, update: &Update<'_>, sequence: u64) -> Option<Ready> {
        let id = self.members.find(hash, update.member)?;
        let old = self.members.place(id);
        let had = old.narrow()?;
        let new = self.ranking.rules.narrow_update(had, update.mode, &update.score)?;
        if new == had {
            return None;
        }
        let tie = self.ranking.rules.tie(update.mode, None, sequence);
        let moves = self.ranking.zones.middle.prepare((&had, old.tie), (&new, tie));
        Some(Ready { id, old, new, tie, moves })
    }

    /// Makes a prepared update, unless the member has moved since or its new key is taken.
    #[inline(always)]
    fn finish(&mut self, ready: &Ready) -> Option<Outcome> {
        let rank = self.relocate(ready)? + self.ranking.zones.before_middle() + 1;
        let score = self.ranking.rules.score(Key::Narrow(ready.new));
        Some(Outcome { score, rank, tie: ready.tie, sequence: self.ranking.rules.next_sequence() })
    }

    /// Makes a prepared move, under the same conditions. Returns its rank within the middle zone.
    #[inline(always)]
    fn relocate(&mut self, ready: &Ready) -> Option<u64> {
        let &Ready { id, old, new, tie, moves } = ready;
        if self.members.place(id) != old {
            return None;
        }
        let had = old.narrow()?;
        let rank = self.ranking.zones.middle.relocate_prepared(moves, (&had, old.tie), (new, tie), id)?;
        self.members.set_place(id, Place::of(new, tie));
        Some(rank)
    }

    /// Puts records as `restore` does, with the misses of all of them overlapping.
    fn restore_batch(&mut self, batch: &[Record]) {
        let hashes = self.hash_all(batch.iter().map(|record| &*record.member));
        let mut ready: [Option<Ready>; BATCH] = [None; BATCH];
        if !self.ranking.has_metadata() {
            for ((record, hash), ready) in batch.iter().zip(hashes).zip(&mut ready) {
                *ready = self.prepare_record(hash, record);
            }
        }
        for ((record, hash), ready) in batch.iter().zip(hashes).zip(&ready) {
            if ready.as_ref().and_then(|ready| self.relocate(ready)).is_some() {
                continue;
            }
            let (id, old) = match self.members.find(hash, &record.member) {
                Some(id) => (id, Some(self.members.place(id))),
                None => (self.members.add(hash, &record.member), None),
            };
            let place = self.ranking.put(id, old, record);
            self.members.set_place(id, place);
        }
    }

    #[inline(always)]
    fn prepare_record(&self, hash: u32, record: &Record) -> Option<Ready> {
        if record.metadata.is_some() {
            return None;
        }
        let id = self.members.find(hash, &record.member)?;
        let old = self.members.place(id);
        let (had, Key::Narrow(new)) = (old.narrow()?, self.ranking.rules.key(&record.score)) else {
            return None;
        };
        let moves = self.ranking.zones.middle.prepare((&had, old.tie), (&new, record.tie));
        Some(Ready { id, old, new, tie: record.tie, moves })
    }

    #[inline]
    fn find(&self, member: &str) -> Option<(u32, Place)> {
        let id = self.members.find(self.members.hash(member), member)?;
        Some((id, self.members.place(id)))
    }
}

impl Exclusive for FlatBoard {
    fn new(options: Options) -> Self {
        let mut random = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Self { members: Members::new(random.u64(..)), ranking: Ranking::new(options) }
    }

    fn count(&self) -> u64 {
        self.ranking.len()
    }

    #[inline]
    fn update(&mut self, member: &str, mode: Mode, score: &Score) -> Result<Outcome, Refused> {
        check_member(member)?;
        let hash = self.members.hash(member);
        self.update_hashed(hash, member, mode, score)
    }

    fn update_bulk(&mut self, updates: &[Update<'_>]) -> Result<Vec<Outcome>, BulkRefused> {
        check_bulk(updates, MAX_MEMBERS - self.count())?;
        let mut outcomes = Vec::with_capacity(updates.len());
        for batch in updates.chunks(BATCH) {
            self.update_batch(batch, &mut outcomes);
        }
        Ok(outcomes)
    }

    #[inline]
    fn get(&self, member: &str) -> Option<Standing> {
        let (id, place) = self.find(member)?;
        Some(self.ranking.standing(id, place))
    }

    fn get_many(&self, members: &[&str]) -> Vec<Option<Standing>> {
        let middle = &self.ranking.zones.middle;
        let mut standings = Vec::with_capacity(members.len());
        for batch in members.chunks(BATCH) {
            let hashes = self.hash_all(batch.iter().copied());
            let mut found = [None; BATCH];
            for ((found, member), hash) in found.iter_mut().zip(batch).zip(hashes) {
                *found = self.members.find(hash, member).map(|id| {
                    let place = self.members.place(id);
                    (id, place, place.narrow().map(|key| (key, middle.locate(&key, place.tie))))
                });
            }
            standings.extend(found[..batch.len()].iter().map(|found| {
                let (id, place, narrow) = found.as_ref()?;
                let Some((key, located)) = narrow else {
                    return Some(self.ranking.standing(*id, *place));
                };
                let rank = middle.rank_located(located, key, place.tie);
                let rank = rank + self.ranking.zones.before_middle() + 1;
                Some(Standing { score: self.ranking.rules.score(Key::Narrow(*key)), rank })
            }));
        }
        standings
    }

    fn row(&self, member: &str) -> Option<Row> {
        let (id, place) = self.find(member)?;
        Some(self.ranking.row(id, place, member))
    }

    fn delete(&mut self, member: &str) -> Option<Deleted> {
        let (id, place) = self.members.remove(self.members.hash(member), member)?;
        Some(self.ranking.remove(id, place))
    }

    fn range(&self, first: u64, limit: usize) -> Page {
        self.ranking.range(first, limit, |id| self.members.name(id))
    }

    fn range_back(&self, first: u64, limit: usize) -> Page {
        self.ranking.range_back(first, limit, |id| self.members.name(id))
    }

    fn around(&self, member: &str, each_side: usize) -> Option<Page> {
        let (id, place) = self.find(member)?;
        Some(self.ranking.around(id, place, each_side, |id| self.members.name(id)))
    }

    fn set_metadata(&mut self, member: &str, metadata: Option<&str>) -> Result<Option<u64>, Refused> {
        check_metadata(metadata)?;
        Ok(self.find(member).map(|(id, _)| self.ranking.set_metadata(id, metadata)))
    }

    fn snapshot(&self) -> Snapshot {
        self.ranking.snapshot(|id| self.members.name(id))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), BulkRefused> {
        snapshot.check(MAX_MEMBERS - self.count())?;
        for batch in snapshot.records.chunks(BATCH) {
            self.restore_batch(batch);
        }
        self.ranking.rules.sequence = self.ranking.rules.sequence.max(snapshot.sequence);
        Ok(())
    }

    fn take(&mut self) -> Self {
        let members = std::mem::replace(&mut self.members, Members::new(fastrand::u64(..)));
        Self { members, ranking: self.ranking.take() }
    }
}
