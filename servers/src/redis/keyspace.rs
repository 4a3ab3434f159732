//! Keys, values and times to live, in memory.
//!
//! A key and a value below `LARGE_FROM_BYTES` lie in one allocation, which a new value of the same length uses again. A
//! larger value can be referred to while it is sent, so that sending copies nothing and a client that does not read pins
//! no copy of its own. The table is divided, so that growing and shrinking move one part at a time and no request waits for
//! all of it. Each key with a time to live is listed once, however often that is renewed.
//! `used_bytes` counts entries, values (sent ones included), tables and lists with their free places, and what connections
//! hold beyond a little: the cap of `--memory` refuses whatever would exceed it.
//! Times are ms of the monotonic clock.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::rc::Rc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::IntoIter;

/// From here on a value has an allocation of its own.
pub(super) const LARGE_FROM_BYTES: usize = 16 * 1024;
/// Parts of the table; a power of two.
const PARTS: usize = 256;
/// What an entry takes besides its bytes and its place in the table: the allocator's share.
const ENTRY_BYTES: usize = 16;
/// What a large value takes besides its bytes.
const LARGE_BYTES: usize = size_of::<Large>() + 32;
/// What a listed time takes.
const TIME_BYTES: usize = size_of::<Reverse<(u64, u64)>>();
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
    /// The key, and behind it the value unless that is large.
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
    cleared: Vec<Cleared>,
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
            cleared: Vec::new(),
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
                // What takes no more than is freed is never refused.
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
            self.cleared.push(Cleared { entries: part.into_iter(), table_bytes });
        }
        self.expiring = BinaryHeap::new();
        (self.count, self.listed) = (0, 0);
        self.settle_times();
    }

    /// Whether anything that was cleared is still to be freed.
    pub(super) fn is_freeing(&self) -> bool {
        !self.cleared.is_empty()
    }

    /// Frees so many of the entries that were cleared; a large value counts as several, by its length.
    pub(super) fn free_cleared(&mut self, mut count: usize) {
        while let Some(part) = self.cleared.last_mut().filter(|_| count > 0) {
            match part.entries.next() {
                Some(entry) => {
                    self.memory.change(entry.cost_bytes(), 0);
                    count = count.saturating_sub(1 + entry.value().len() / LARGE_FROM_BYTES);
                }
                None => {
                    self.memory.change(part.table_bytes, 0);
                    self.cleared.pop();
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
            // Gone, or listed at an earlier time since.
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
        // Keys that were removed before their time, again and again, must not fill the list.
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
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    fn keyspace(max: usize) -> Keyspace {
        Keyspace::new(Memory::new(max))
    }

    impl Keyspace {
        /// What must be counted, added up anew.
        fn taken_bytes(&self) -> usize {
            let large_bytes = |entry: &Entry| entry.large().map_or(0, |large| stored_bytes(large.bytes()));
            let entries = self.parts.iter().flat_map(|part| part.iter());
            let tables: usize = self.parts.iter().map(HashTable::allocation_size).sum();
            tables
                + entries.map(|entry| entry.cost_bytes() + large_bytes(entry)).sum::<usize>()
                + TIME_BYTES * self.expiring.capacity()
        }
    }

    fn value(keyspace: &mut Keyspace, key: &str, now_ms: u64) -> Option<Vec<u8>> {
        keyspace.get(key.as_bytes(), now_ms).map(|entry| entry.value().to_vec())
    }

    #[test]
    fn keys_expire_whether_they_are_looked_at_or_not_and_leave_no_memory() {
        let mut keys = keyspace(1 << 20);
        for (key, at_ms) in [("a", 10), ("b", 20), ("c", 30)] {
            keys.set(key.as_bytes(), b"v", Expiry::AtMs(at_ms)).unwrap();
        }
        assert_eq!(value(&mut keys, "a", 9), Some(b"v".to_vec()));
        assert_eq!((value(&mut keys, "a", 10), keys.count()), (None, 2));
        assert_eq!(keys.next_expiry_ms(), Some(10));
        keys.remove_expired(20, 100);
        assert_eq!((keys.count(), keys.next_expiry_ms()), (1, Some(30)));
        keys.remove_expired(30, 100);
        assert_eq!((keys.count(), keys.memory().used_bytes(), keys.expired_total()), (0, 0, 3));
    }

    #[test]
    fn a_time_to_live_is_renewed_kept_or_taken_away() {
        let mut keys = keyspace(1 << 20);
        let set = |keys: &mut Keyspace, expiry| keys.set(b"k", b"v", expiry).unwrap();
        set(&mut keys, Expiry::AtMs(10));
        set(&mut keys, Expiry::AtMs(50));
        keys.remove_expired(49, 100);
        set(&mut keys, Expiry::Kept);
        assert_eq!(keys.get(b"k", 49).unwrap().expires_ms(), Some(50));
        set(&mut keys, Expiry::AtMs(20));
        assert!(value(&mut keys, "k", 20).is_none());
        set(&mut keys, Expiry::AtMs(30));
        set(&mut keys, Expiry::Never);
        keys.remove_expired(1_000, 100);
        assert_eq!(value(&mut keys, "k", 1_000), Some(b"v".to_vec()));
        assert!(keys.expire(b"k", 2_000, 1_000) && !keys.expire(b"other", 2_000, 1_000));
        keys.remove_expired(2_000, 100);
        assert_eq!((keys.count(), keys.expiring.len(), keys.listed), (0, 0, 0));
    }

    #[test]
    fn keys_that_are_removed_before_their_time_do_not_fill_the_list() {
        let mut keys = keyspace(1 << 20);
        for n in 0..100_000u64 {
            keys.set(b"k", b"v", Expiry::AtMs(1_000_000 + n)).unwrap();
            keys.remove(b"k", 0);
        }
        assert!(keys.expiring.len() <= STALE_TIMES_MAX + 2, "{}", keys.expiring.len());
    }

    #[test]
    fn what_would_exceed_the_memory_is_refused_and_changes_nothing() {
        let mut keys = keyspace(100_000);
        let large = vec![b'x'; 60_000];
        keys.set(b"k", &large, Expiry::Never).unwrap();
        assert_eq!(keys.set(b"other", &large, Expiry::Never), Err(Full));
        assert_eq!(keys.set(b"k", &vec![b'y'; 120_000], Expiry::Never), Err(Full));
        assert_eq!((value(&mut keys, "k", 0), keys.count()), (Some(large.clone()), 1));
        let sent = keys.get(b"k", 0).unwrap().large().unwrap().clone();
        keys.remove(b"k", 0);
        assert!(keys.memory().used_bytes() > 60_000, "it is still being sent");
        assert_eq!(keys.set(b"other", &large, Expiry::Never), Err(Full));
        drop(sent);
        assert_eq!(keys.memory().used_bytes(), 0);
        keys.set(b"other", &large, Expiry::Never).unwrap();
    }

    #[test]
    fn a_value_may_become_large_and_small_again_and_clearing_frees_all() {
        let mut keys = keyspace(10 << 20);
        for bytes in [3, LARGE_FROM_BYTES, 0, 100_000, LARGE_FROM_BYTES - 1] {
            let written = vec![b'z'; bytes];
            keys.set(b"k", &written, Expiry::Never).unwrap();
            assert_eq!(value(&mut keys, "k", 0), Some(written));
        }
        keys.clear();
        keys.free_cleared(usize::MAX);
        assert_eq!((keys.count(), keys.memory().used_bytes()), (0, 0));
    }

    #[test]
    fn a_value_that_is_still_being_sent_is_not_free_for_the_one_that_replaces_it() {
        let mut keys = keyspace(200_000);
        let [old, new] = [b'x', b'y'].map(|byte| vec![byte; 60_000]);
        let mut sent = Vec::new();
        for _ in 0..3 {
            keys.set(b"k", &old, Expiry::Never).unwrap();
            sent.push(keys.get(b"k", 0).unwrap().large().unwrap().clone());
        }
        assert_eq!(keys.set(b"k", &new, Expiry::Never), Err(Full));
        assert_eq!(value(&mut keys, "k", 0), Some(old));
        // The last one is nowhere but at its key any more.
        sent.pop();
        keys.set(b"k", &new, Expiry::Never).unwrap();
        assert_eq!(value(&mut keys, "k", 0), Some(new));
        assert!((180_000..=200_000).contains(&keys.memory().used_bytes()), "{}", keys.memory().used_bytes());
    }

    #[test]
    fn tables_and_lists_shrink_when_most_of_their_keys_are_gone() {
        for expire in [false, true] {
            let mut keys = keyspace(1 << 30);
            for n in 0..100_000u64 {
                let expiry = if expire { Expiry::AtMs(if n < 1_000 { 2 } else { 1 }) } else { Expiry::Never };
                keys.set(n.to_string().as_bytes(), b"v", expiry).unwrap();
            }
            let full_bytes = keys.taken_bytes();
            assert_eq!(keys.memory().used_bytes(), full_bytes);
            if expire {
                keys.remove_expired(1, usize::MAX);
            } else {
                (1_000..100_000).for_each(|n| assert!(keys.remove(n.to_string().as_bytes(), 0)));
            }
            assert!((0..1_000).all(|n| value(&mut keys, &n.to_string(), 1).is_some()));
            assert_eq!((keys.count(), keys.memory().used_bytes()), (1_000, keys.taken_bytes()));
            assert!(keys.taken_bytes() < full_bytes / 20, "{} of {full_bytes}", keys.taken_bytes());
            (0..1_000).for_each(|n| assert!(keys.remove(n.to_string().as_bytes(), 0)));
            keys.remove_expired(2, usize::MAX);
            assert_eq!(keys.memory().used_bytes(), 0);
        }
    }

    #[test]
    fn tables_and_lists_do_not_grow_beyond_the_memory() {
        for expiry in [Expiry::Never, Expiry::AtMs(1)] {
            let mut keys = keyspace(2_000_000);
            let stored = (0..).take_while(|n: &u64| keys.set(&n.to_le_bytes(), b"v", expiry).is_ok()).count();
            assert!(stored > 5_000, "{stored}");
            assert_eq!(keys.memory().used_bytes(), keys.taken_bytes());
            assert!((1_900_000..=2_000_000).contains(&keys.taken_bytes()), "{}", keys.taken_bytes());
            for n in 0..stored as u64 {
                keys.set(&n.to_le_bytes(), b"w", expiry).expect("it takes no more than before");
            }
        }
    }

    #[test]
    fn what_was_cleared_counts_until_it_is_freed_portion_by_portion() {
        let mut keys = keyspace(1 << 20);
        (0..1_000u64).for_each(|n| keys.set(&n.to_le_bytes(), b"v", Expiry::Never).unwrap());
        let full_bytes = keys.memory().used_bytes();
        keys.clear();
        assert_eq!((keys.count(), keys.memory().used_bytes()), (0, full_bytes));
        keys.set(&0u64.to_le_bytes(), b"new", Expiry::Never).unwrap();
        let portions = std::iter::from_fn(|| {
            keys.free_cleared(300);
            Some(keys.memory().used_bytes()).filter(|_| keys.is_freeing())
        });
        let left: Vec<usize> = portions.collect();
        assert!(left.len() == 3 && left.is_sorted_by(|more, less| more > less), "{left:?}");
        assert_eq!(keys.memory().used_bytes(), keys.taken_bytes());
        assert_eq!(keys.get(&0u64.to_le_bytes(), 0).unwrap().value(), b"new");
    }

    proptest! {
        #[test]
        fn it_holds_what_a_plain_map_with_times_holds(
            steps in prop::collection::vec((0u8..7, 0u8..5, 0u64..40, any::<u8>()), 1..200),
        ) {
            let mut keys = keyspace(1 << 30);
            let mut model: HashMap<u8, (u8, Option<u64>)> = HashMap::new();
            let mut now_ms = 0;
            for (act, key, by_ms, content) in steps {
                model.retain(|_, (_, at_ms)| at_ms.is_none_or(|at_ms| at_ms > now_ms));
                match act {
                    0 => {
                        keys.get(&[key], now_ms);
                        keys.set(&[key], &[content], Expiry::Never).unwrap();
                        model.insert(key, (content, None));
                    }
                    1 => {
                        keys.set(&[key], &[content], Expiry::AtMs(now_ms + 1 + by_ms)).unwrap();
                        model.insert(key, (content, Some(now_ms + 1 + by_ms)));
                    }
                    2 => prop_assert_eq!(keys.remove(&[key], now_ms), model.remove(&key).is_some()),
                    3 => {
                        let was_there = keys.expire(&[key], now_ms + 1 + by_ms, now_ms);
                        let entry = model.get_mut(&key);
                        prop_assert_eq!(was_there, entry.is_some());
                        if let Some(entry) = entry {
                            entry.1 = Some(now_ms + 1 + by_ms);
                        }
                    }
                    4 => keys.remove_expired(now_ms, 3),
                    5 => {
                        keys.clear();
                        keys.free_cleared(usize::MAX);
                        model.clear();
                    }
                    _ => now_ms += by_ms,
                }
                for key in 0..5 {
                    let expected = model.get(&key).filter(|(_, at_ms)| at_ms.is_none_or(|at_ms| at_ms > now_ms));
                    let found = keys.get(&[key], now_ms).map(|entry| (entry.value()[0], entry.expires_ms()));
                    prop_assert_eq!(found, expected.copied());
                }
                prop_assert_eq!(keys.memory().used_bytes(), keys.taken_bytes());
            }
        }
    }
}
