//! Which partition a key belongs to.
//!
//! Murmur3 (x86, 32 bits) over the serialised key without its first eight bytes, then its magnitude modulo the number of
//! partitions. Every client and member must agree on each bit, or requests go to the wrong member.
//! Source: Open Binary Client Protocol 2.x, section 2.1.2.3; A. Appleby, MurmurHash3. The document prints the seed as
//! 0x0100193; the members' seed, and so ours, is 0x01000193.

/// The members' seed.
const SEED: u32 = 0x0100_0193;
const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// Murmur3 of `bytes`, as a member reckons it.
pub fn murmur3(bytes: &[u8]) -> i32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let mut hash = SEED;
    for word in words {
        hash ^= mixed(u32::from_le_bytes(*word));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash ^= mixed(u32::from_le_bytes(last));
    }
    hash ^= bytes.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^= hash >> 16;
    hash as i32
}

fn mixed(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

/// The partition, in `0..partition_count`, of a key with this hash. 0 when there are no partitions.
pub fn partition_of(hash: i32, partition_count: u32) -> u32 {
    // The one hash without a positive counterpart belongs to partition 0 (`HashUtil.hashToIndex` of the member).
    if hash == i32::MIN || partition_count == 0 { 0 } else { hash.unsigned_abs() % partition_count }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the Java member 5.5.0 (`HashUtil`); the Node.js client 5.6.0 gives the same.
    #[test]
    fn hashes_and_partitions_are_those_of_the_members() {
        let check = |bytes: &[u8], expected| assert_eq!(murmur3(bytes), expected, "{bytes:?}");
        check(b"", -1585187909);
        check(&[0], -1393189244);
        check(b"abc", -2068121803);
        check(b"abcd", -973615161);
        check(&(1..=17).collect::<Vec<u8>>(), -1081169317);
        check(&[0xff; 7], 1829077564);
        assert_eq!(partition_of(i32::MIN, 271), 0);
        assert_eq!(partition_of(-272, 271), 1);
        assert_eq!(partition_of(5, 0), 0);
    }
}
