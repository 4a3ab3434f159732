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
    // The last reference is now the key's own.
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
