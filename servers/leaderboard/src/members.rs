//! The members of a board by name: one flat hash table over records of 32 bytes.
//!
//! A look-up costs two cache misses: the slot, which holds 32 bits of the hash and the record's number, and the record,
//! which holds the place in the order and, up to 14 bytes, the name itself. Slots are ordered by the hash's upper bits,
//! so that doubling the table scans old and new memory forwards and reads no names.
//! The hash is seeded per board: names come from clients, who must not be able to choose colliding ones.
//! Invariant: a slot is empty (0) or holds a live record; records of deleted members wait in `free`.

use super::memory::{Chunked, Words, prefetch};
use super::name::Name;
use super::zones::Place;

#[repr(C, align(32))]
struct Record {
    place: Place,
    name: Name,
}

/// Names to places in the order.
pub(super) struct Members {
    /// Upper half: hash. Lower half: number of the record + 1.
    slots: Words,
    /// log₂ of the number of slots.
    bits: u32,
    records: Chunked<Record>,
    free: Vec<u32>,
    len: usize,
    seed: u64,
}

const FIRST_BITS: u32 = 3;

/// Multiplies to 128 bits and folds them: every bit of the input reaches every bit of the result.
#[inline(always)]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product as u64) ^ (product >> 64) as u64
}

/// A seeded hash of a name; short names take two multiplications.
#[inline(always)]
fn hash(name: &[u8], seed: u64) -> u32 {
    // Odd constants with about as many ones as zeros; their values do not matter otherwise.
    const ONE: u64 = 0x9e6c_63d0_876a_68e5;
    const TWO: u64 = 0xd1b5_4a32_d192_ed03;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| name[at + byte]));
    let half = |at: usize| u64::from(u32::from_le_bytes(std::array::from_fn(|byte| name[at + byte])));
    let mut state = seed ^ (name.len() as u64).wrapping_mul(TWO);
    let mut at = 0;
    while name.len() - at > 16 {
        state = fold(word(at) ^ ONE ^ state, word(at + 8) ^ TWO);
        at += 16;
    }
    // The last 1 to 16 bytes, as two words that may overlap.
    let (low, high) = match name.len() {
        0 => (0, 0),
        len @ 8.. => (word(at.min(len - 8)), word(len - 8)),
        len @ 4.. => (half(0), half(len - 4)),
        len => (u64::from(name[0]) | u64::from(name[len / 2]) << 8, u64::from(name[len - 1])),
    };
    let mixed = fold(low ^ ONE ^ state, high ^ TWO ^ seed.rotate_left(32));
    (fold(mixed, ONE) >> 32) as u32
}

impl Members {
    pub(super) fn new(seed: u64) -> Self {
        let slots = Words::zeroed(1 << FIRST_BITS);
        Self { slots, bits: FIRST_BITS, records: Chunked::new(), free: Vec::new(), len: 0, seed }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn hash(&self, name: &str) -> u32 {
        hash(name.as_bytes(), self.seed)
    }

    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        (hash >> (32 - self.bits)) as usize
    }

    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Asks for the slot of a hash.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, hash: u32) {
        prefetch(&raw const self.slots[self.home(hash)]);
    }

    /// Asks for the record that a hash probably leads to; its slot should be in the cache.
    #[inline(always)]
    pub(super) fn prefetch_record(&self, hash: u32) {
        let mut slot = self.home(hash);
        while self.slots[slot] != 0 {
            if (self.slots[slot] >> 32) as u32 == hash {
                prefetch(self.records.place(self.slots[slot] as u32 - 1));
                return;
            }
            slot = self.after(slot);
        }
    }

    /// The number of the member's record.
    #[inline(always)]
    pub(super) fn find(&self, hash: u32, name: &str) -> Option<u32> {
        let slot = self.find_slot(hash, name)?;
        Some(self.slots[slot] as u32 - 1)
    }

    #[inline(always)]
    fn find_slot(&self, hash: u32, name: &str) -> Option<usize> {
        let mut slot = self.home(hash);
        loop {
            let word = self.slots[slot];
            if word == 0 {
                return None;
            }
            if (word >> 32) as u32 == hash && self.records[word as u32 - 1].name.is(name) {
                return Some(slot);
            }
            slot = self.after(slot);
        }
    }

    #[inline(always)]
    pub(super) fn place(&self, id: u32) -> Place {
        self.records[id].place
    }

    #[inline(always)]
    pub(super) fn set_place(&mut self, id: u32, place: Place) {
        self.records[id].place = place;
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.records[id].name.as_str()
    }

    /// Adds a member that is not there. Returns the number of its record; its place is to be set.
    pub(super) fn add(&mut self, hash: u32, name: &str) -> u32 {
        if (self.len + 1) * 4 > self.slots.len() * 3 && self.bits < 32 {
            self.double();
        }
        let record = Record { place: Place::default(), name: Name::new(name) };
        let id = match self.free.pop() {
            Some(free) => {
                self.records[free] = record;
                free
            }
            None => self.records.push(record),
        };
        let mut slot = self.home(hash);
        while self.slots[slot] != 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = u64::from(hash) << 32 | u64::from(id + 1);
        self.len += 1;
        id
    }

    #[cold]
    fn double(&mut self) {
        let old = std::mem::replace(&mut self.slots, Words::zeroed(1 << (self.bits + 1)));
        self.bits += 1;
        for &word in old.iter().filter(|&&word| word != 0) {
            let mut slot = self.home((word >> 32) as u32);
            while self.slots[slot] != 0 {
                slot = self.after(slot);
            }
            self.slots[slot] = word;
        }
    }

    /// Removes a member. Returns the number of its record, which may be used again, and its place.
    pub(super) fn remove(&mut self, hash: u32, name: &str) -> Option<(u32, Place)> {
        let mut hole = self.find_slot(hash, name)?;
        let id = self.slots[hole] as u32 - 1;
        // Later slots of the same run move up into the hole, unless that puts them before their home.
        let mask = self.slots.len() - 1;
        let mut slot = hole;
        loop {
            slot = self.after(slot);
            let word = self.slots[slot];
            if word == 0 {
                break;
            }
            let home = self.home((word >> 32) as u32);
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(hole) & mask {
                self.slots[hole] = word;
                hole = slot;
            }
        }
        self.slots[hole] = 0;
        self.len -= 1;
        let place = self.records[id].place;
        self.records[id] = Record { place: Place::default(), name: Name::default() };
        self.free.push(id);
        Some((id, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn any_history_agrees_with_a_hash_map(steps in prop::collection::vec((any::<bool>(), 0..60_u16), 0..400)) {
            let mut members = Members::new(5);
            let mut model: HashMap<String, u32> = HashMap::new();
            for (add, number) in steps {
                let name = "n".repeat(usize::from(number % 7) * 4) + &number.to_string();
                let hash = members.hash(&name);
                prop_assert_eq!(members.find(hash, &name), model.get(&name).copied());
                if !add {
                    prop_assert_eq!(members.remove(hash, &name).map(|removed| removed.0), model.remove(&name));
                } else if !model.contains_key(&name) {
                    let id = members.add(hash, &name);
                    model.insert(name.clone(), id);
                }
                prop_assert_eq!(members.len(), model.len());
                for (name, &id) in &model {
                    prop_assert_eq!(members.find(members.hash(name), name), Some(id));
                    prop_assert_eq!(members.name(id), name.as_str());
                }
            }
        }
    }

    #[test]
    fn a_record_takes_half_a_cache_line() {
        assert_eq!(size_of::<Record>(), 32);
    }

    #[test]
    fn names_of_every_length_hash_apart_and_seeds_change_the_hash() {
        let names: Vec<String> =
            (0..20_000).map(|number| format!("{number:0width$}", width = number % 40)).collect();
        let hashes = |seed: u64| names.iter().map(|name| hash(name.as_bytes(), seed)).collect::<Vec<_>>();
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        let mut sorted = hashes(1);
        sorted.sort_unstable();
        sorted.dedup();
        // By chance 0.05 of 20,000 values of 32 bits collide.
        assert!(sorted.len() + 3 >= distinct.len(), "{} of {}", sorted.len(), distinct.len());
        let same = hashes(1).iter().zip(hashes(2)).filter(|(one, other)| *one == other).count();
        assert!(same < 5, "{same}");
    }
}
