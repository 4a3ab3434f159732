//! Keys, values and times to live, in memory.
//!
//! A key and a value below `LARGE_FROM_BYTES` share one allocation, which a new value of the same length reuses. A
//! larger value can be referenced while it is sent, so that sending copies nothing and a client that does not read pins
//! no copy of its own. The table is divided, so that growing and shrinking move one part at a time and no request waits
//! for all of it. Each key with a time to live is listed once, however often that is renewed.
//! `used_bytes` counts entries, values (including those being sent), tables and lists with their free slots, and what
//! connections hold beyond a little: the cap of `--memory` refuses whatever would exceed it.
//! Times are ms of the monotonic clock.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::BuildHasher;
use std::rc::Rc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::IntoIter;

/// From this size on a value has its own allocation.
pub(super) const LARGE_FROM_BYTES: usize = 16 * 1024;
/// Parts of the table; a power of two.
const PARTS: usize = 256;
/// What an entry takes besides its bytes and its place in the table: the allocator's share.
const ENTRY_BYTES: usize = 16;
/// What a large value takes besides its bytes.
const LARGE_BYTES: usize = size_of::<Large>() + 32;
/// What a listed time takes.
const TIME_BYTES: usize = size_of::<Reverse<(u64, u64)>>();
/// Entries that are freed at once after all keys were removed; the others wait for their turn.
pub(super) const FREED_AT_ONCE: usize = 1_000;
/// Listed times beyond those of the keys that are there, before the list is cleaned.
const STALE_TIMES_MAX: usize = 1024;
/// A table or list is shrunk when less than one place in so many is taken; then about half are. Before it is resized again
/// it has gained or lost half of its entries, so that moving them costs little for each.
const SPARSE: usize = 4;

/// Memory in use and what may be used.
#[derive(Clone, Debug)]
pub(super) struct Memory(Rc<Bytes>);

#[derive(Debug)]
struct Bytes {
    used: Cell<usize>,
    max: usize,
}

impl Memory {
    pub(super) fn new(max: usize) -> Memory {
        Memory(Rc::new(Bytes { used: Cell::new(0), max }))
    }

    pub(super) fn used_bytes(&self) -> usize {
        self.0.used.get()
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.0.max
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.used_bytes().saturating_add(bytes) <= self.0.max
    }

    /// Counts so many bytes instead of so many before.
    pub(super) fn change(&self, before: usize, after: usize) {
        self.0.used.set(self.used_bytes() - before + after);
    }

    /// The same, unless it is more than there is room for.
    pub(super) fn try_change(&self, before: usize, after: usize) -> Result<(), Full> {
        if after > before && !self.has_room_for(after - before) {
            return Err(Full);
        }
        self.change(before, after);
        Ok(())
    }
}

/// The cap of memory does not allow it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// A large value, which may outlive its key while it is sent.
#[derive(Debug)]
pub(super) struct Large {
    bytes: Box<[u8]>,
    memory: Memory,
}

impl Large {
    fn new(bytes: &[u8], memory: &Memory) -> Rc<Large> {
        memory.change(0, bytes.len() + LARGE_BYTES);
        Rc::new(Large { bytes: bytes.into(), memory: memory.clone() })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        self.memory.change(self.bytes.len() + LARGE_BYTES, 0);
    }
}

/// How long a key lives that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    Never,
    /// As long as it did.
    Kept,
    AtMs(u64),
}

#[derive(Debug)]
pub(super) struct Entry {
    hash: u64,
    /// None: it stays.
    expires_ms: Option<u64>,
    /// The time at which it is listed among the expiring.
    listed_ms: Option<u64>,
    key_bytes: u32,
    /// The key, followed by the value unless that is large.
    bytes: Vec<u8>,
    large: Option<Rc<Large>>,
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes as usize]
    }

    pub(super) fn value(&self) -> &[u8] {
        match &self.large {
            Some(large) => large.bytes(),
            None => &self.bytes[self.key_bytes as usize..],
        }
    }

    /// Bytes that are freed, or used again, when another value takes the place of this one: none of a large value that is
    /// being sent.
    fn replaceable_bytes(&self) -> usize {
        match &self.large {
            Some(large) if Rc::strong_count(large) > 1 => 0,
            Some(large) => stored_bytes(large.bytes()),
            None => self.bytes.capacity() - self.key_bytes as usize,
        }
    }

    pub(super) fn large(&self) -> Option<&Rc<Large>> {
        self.large.as_ref()
    }

    pub(super) fn expires_ms(&self) -> Option<u64> {
        self.expires_ms
    }

    fn is_over(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// Without a large value, which is counted by itself.
    fn cost_bytes(&self) -> usize {
        ENTRY_BYTES + self.bytes.capacity()
    }

    fn put(&mut self, value: &[u8], memory: &Memory) {
        let key_bytes = self.key_bytes as usize;
        self.bytes.truncate(key_bytes);
        self.large = None;
        if value.len() < LARGE_FROM_BYTES {
            self.bytes.reserve_exact(value.len());
            self.bytes.extend_from_slice(value);
        } else {
            self.large = Some(Large::new(value, memory));
        }
        if self.bytes.capacity() > 2 * self.bytes.len() + 64 {
            self.bytes.shrink_to_fit();
        }
    }
}

/// What a value takes, apart from its key.
fn stored_bytes(value: &[u8]) -> usize {
    if value.len() < LARGE_FROM_BYTES { value.len() } else { value.len() + LARGE_BYTES }
}

/// A part of the table that was cleared, with the entries that are still to be freed.
struct Cleared {
    entries: IntoIter<Entry>,
    table_bytes: usize,
}

pub(super) struct Keyspace {
    parts: Box<[HashTable<Entry>]>,
    /// The oldest first.
    cleared: VecDeque<Cleared>,
    /// Parts that were ever cleared, and that were freed since.
    cleared_total: u64,
    freed_total: u64,
    /// Seeded anew in each process, so that no client can choose keys that collide.
    hasher: RandomState,
    /// When to look at which entry, by its hash.
    expiring: BinaryHeap<Reverse<(u64, u64)>>,
    /// What `expiring` is counted as.
    times_bytes: usize,
    count: usize,
    /// Entries that have a time to live, or had one and are still listed.
    listed: usize,
    memory: Memory,
    expired_total: u64,
}

impl Keyspace {
    pub(super) fn new(memory: Memory) -> Keyspace {
        Keyspace {
            parts: (0..PARTS).map(|_| HashTable::new()).collect(),
            cleared: VecDeque::new(),
            cleared_total: 0,
            freed_total: 0,
            hasher: RandomState::default(),
            expiring: BinaryHeap::new(),
            times_bytes: 0,
            count: 0,
            listed: 0,
            memory,
            expired_total: 0,
        }
    }

    /// Keys that were set and not removed; what has just expired may be among them.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn expired_total(&self) -> u64 {
        self.expired_total
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn get(&mut self, key: &[u8], now_ms: u64) -> Option<&Entry> {
        let hash = self.hasher.hash_one(key);
        let at = part(&mut self.parts, hash).find_bucket_index(hash, |entry| entry.key() == key)?;
        if part(&mut self.parts, hash).get_bucket(at)?.is_over(now_ms) {
            self.remove_hashed(hash, |entry| entry.key() == key);
            self.expired_total += 1;
            return None;
        }
        part(&mut self.parts, hash).get_bucket(at)
    }

    /// Errors: no memory is left for it; then nothing has changed.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<(), Full> {
        let hash = self.hasher.hash_one(key);
        let memory = &self.memory;
        let part = part(&mut self.parts, hash);
        let entry = match part.find_mut(hash, |entry| entry.key() == key) {
            Some(entry) => {
                let more = stored_bytes(value).saturating_sub(entry.replaceable_bytes());
                // A change that takes no more than it frees is never refused.
                if more > 0 && !memory.has_room_for(more) {
                    return Err(Full);
                }
                let before = entry.cost_bytes();
                entry.put(value, memory);
                memory.change(before, entry.cost_bytes());
                entry
            }
            None => {
                let is_listed = matches!(expiry, Expiry::AtMs(_));
                let growth =
                    growth_bytes(part) + if is_listed { list_growth_bytes(&self.expiring) } else { 0 };
                if !memory.has_room_for(ENTRY_BYTES + key.len() + stored_bytes(value) + growth) {
                    return Err(Full);
                }
                let small_bytes = if value.len() < LARGE_FROM_BYTES { value.len() } else { 0 };
                let mut bytes = Vec::with_capacity(key.len() + small_bytes);
                bytes.extend_from_slice(key);
                let key_bytes = key.len() as u32;
                let mut entry =
                    Entry { hash, expires_ms: None, listed_ms: None, key_bytes, bytes, large: None };
                entry.put(value, memory);
                let table_bytes = part.allocation_size();
                part.reserve(1, |entry| entry.hash);
                memory.change(table_bytes, part.allocation_size() + entry.cost_bytes());
                self.count += 1;
                part.insert_unique(hash, entry, |entry| entry.hash).into_mut()
            }
        };
        match expiry {
            Expiry::Kept => {}
            Expiry::Never => entry.expires_ms = None,
            Expiry::AtMs(at_ms) => {
                entry.expires_ms = Some(at_ms);
                list(entry, at_ms, &mut self.expiring, &mut self.listed);
            }
        }
        self.settle_times();
        Ok(())
    }

    /// A key that is there gets this time to live; false when it is not there.
    pub(super) fn expire(&mut self, key: &[u8], at_ms: u64, now_ms: u64) -> bool {
        if self.get(key, now_ms).is_none() {
            return false;
        }
        let hash = self.hasher.hash_one(key);
        if let Some(entry) = part(&mut self.parts, hash).find_mut(hash, |entry| entry.key() == key) {
            entry.expires_ms = Some(at_ms);
            list(entry, at_ms, &mut self.expiring, &mut self.listed);
        }
        self.settle_times();
        true
    }

    /// A key that is there stays.
    pub(super) fn persist(&mut self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        if let Some(entry) = part(&mut self.parts, hash).find_mut(hash, |entry| entry.key() == key) {
            entry.expires_ms = None;
        }
    }

    /// True when it was there.
    pub(super) fn remove(&mut self, key: &[u8], now_ms: u64) -> bool {
        let hash = self.hasher.hash_one(key);
        let Some((entry, _)) = self.remove_hashed(hash, |entry| entry.key() == key) else { return false };
        let was_over = entry.is_over(now_ms);
        self.expired_total += u64::from(was_over);
        !was_over
    }

    /// Returns as well how many entries were moved because the table shrank.
    fn remove_hashed(&mut self, hash: u64, is_it: impl Fn(&Entry) -> bool) -> Option<(Entry, usize)> {
        let part = part(&mut self.parts, hash);
        let (entry, _) = part.find_entry(hash, is_it).ok()?.remove();
        let (mut freed, mut moved) = (entry.cost_bytes(), 0);
        if SPARSE * part.len() < part.num_buckets() {
            let table_bytes = part.allocation_size();
            part.shrink_to(shrunk(part.len()), |entry| entry.hash);
            freed += table_bytes - part.allocation_size();
            moved = part.len();
        }
        self.memory.change(freed, 0);
        self.count -= 1;
        self.listed -= usize::from(entry.listed_ms.is_some());
        Some((entry, moved))
    }

    /// Removes all keys. What they take counts until `free_cleared` has freed it.
    pub(super) fn clear(&mut self) {
        for part in self.parts.iter_mut().map(std::mem::take).filter(|part| part.allocation_size() > 0) {
            let table_bytes = part.allocation_size();
            self.cleared.push_back(Cleared { entries: part.into_iter(), table_bytes });
            self.cleared_total += 1;
        }
        self.expiring = BinaryHeap::new();
        (self.count, self.listed) = (0, 0);
        self.settle_times();
    }

    /// Whether anything that was cleared is still to be freed.
    pub(super) fn is_freeing(&self) -> bool {
        !self.cleared.is_empty()
    }

    /// Tells all that was cleared up to now from what will be: see `has_freed`.
    pub(super) fn cleared_total(&self) -> u64 {
        self.cleared_total
    }

    /// Whether all is freed that had been cleared when `cleared_total` said this.
    pub(super) fn has_freed(&self, cleared_total: u64) -> bool {
        self.freed_total >= cleared_total
    }

    /// Frees so many of the entries that were cleared; a large value counts as several, by its length.
    pub(super) fn free_cleared(&mut self, mut count: usize) {
        while let Some(part) = self.cleared.front_mut().filter(|_| count > 0) {
            match part.entries.next() {
                Some(entry) => {
                    self.memory.change(entry.cost_bytes(), 0);
                    count = count.saturating_sub(1 + entry.value().len() / LARGE_FROM_BYTES);
                }
                None => {
                    self.memory.change(part.table_bytes, 0);
                    self.cleared.pop_front();
                    self.freed_total += 1;
                }
            }
        }
        if count == 0 {
            join_freed();
        }
    }

    /// When a key expires next.
    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.expiring.peek().map(|Reverse((at_ms, _))| *at_ms)
    }

    /// Removes keys whose time is over, and looks at no more than so many. Those that move when a table shrinks count too:
    /// keys that expire together make all tables shrink at about the same time.
    pub(super) fn remove_expired(&mut self, now_ms: u64, looks: usize) {
        let mut left = looks;
        while left > 0 {
            left -= 1;
            let Some(Reverse((at_ms, hash))) =
                self.expiring.peek().copied().filter(|next| next.0.0 <= now_ms)
            else {
                break;
            };
            self.expiring.pop();
            let is_it = |entry: &Entry| entry.hash == hash && entry.listed_ms == Some(at_ms);
            // Deleted, or listed again with an earlier time.
            let Some(entry) = part(&mut self.parts, hash).find_mut(hash, is_it) else { continue };
            match entry.expires_ms {
                Some(expires_ms) if expires_ms <= now_ms => {
                    let moved = self.remove_hashed(hash, is_it).map_or(0, |(_, moved)| moved);
                    left = left.saturating_sub(moved);
                    self.expired_total += 1;
                }
                later => {
                    entry.listed_ms = later;
                    match later {
                        Some(expires_ms) => self.expiring.push(Reverse((expires_ms, hash))),
                        None => self.listed -= 1,
                    }
                }
            }
        }
        if left == 0 {
            join_freed();
        }
        self.settle_times();
    }

    /// Cleans the list of times, shrinks it and counts what it takes, after it has changed.
    fn settle_times(&mut self) {
        // Keys that are repeatedly removed before they expire must not fill the list.
        if self.expiring.len() > 2 * self.listed + STALE_TIMES_MAX {
            let parts = &mut self.parts;
            self.expiring.retain(|Reverse((at_ms, hash))| {
                let is_it = |entry: &Entry| entry.hash == *hash && entry.listed_ms == Some(*at_ms);
                part(parts, *hash).find(*hash, is_it).is_some()
            });
        }
        if SPARSE * self.expiring.len() < self.expiring.capacity() {
            self.expiring.shrink_to(shrunk(self.expiring.len()));
        }
        let times_bytes = TIME_BYTES * self.expiring.capacity();
        if times_bytes != self.times_bytes {
            self.memory.change(self.times_bytes, times_bytes);
            self.times_bytes = times_bytes;
        }
    }
}

/// Has the allocator join what a portion of small entries has freed. glibc does so when it is asked for more than a
/// kilobyte, and then for all that was freed since: 180 ms for 900,000 entries, when the first table shrank.
fn join_freed() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(2048)));
}

/// The places that so many entries keep when their table or list is shrunk.
fn shrunk(count: usize) -> usize {
    count + count / 2
}

/// What one entry more adds to the table: nothing while a place is free, and also when clearing the traces of removed
/// entries makes one free, which the table does instead of growing while it is at most half full.
fn growth_bytes(part: &HashTable<Entry>) -> usize {
    let is_to_grow = part.len() == part.capacity() && 16 * (part.len() + 1) > 7 * part.num_buckets();
    if is_to_grow { part.allocation_size() } else { 0 }
}

/// The same for the list of times.
fn list_growth_bytes(expiring: &BinaryHeap<Reverse<(u64, u64)>>) -> usize {
    if expiring.len() == expiring.capacity() { TIME_BYTES * expiring.capacity() } else { 0 }
}

/// By bits that the table itself does not look at first.
fn part(parts: &mut [HashTable<Entry>], hash: u64) -> &mut HashTable<Entry> {
    &mut parts[(hash >> 40) as usize & (PARTS - 1)]
}

/// Sees to it that the entry is looked at by then.
fn list(entry: &mut Entry, at_ms: u64, expiring: &mut BinaryHeap<Reverse<(u64, u64)>>, listed: &mut usize) {
    if entry.listed_ms.is_some_and(|listed_ms| listed_ms <= at_ms) {
        return;
    }
    *listed += usize::from(entry.listed_ms.is_none());
    entry.listed_ms = Some(at_ms);
    expiring.push(Reverse((at_ms, entry.hash)));
}

#[cfg(test)]
mod tests;
