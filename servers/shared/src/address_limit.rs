//! Limits new connections per second from one address.
//!
//! A token bucket per address with one second's worth of burst. Bounded: beyond `ADDRESSES_MAX` addresses, those whose
//! bucket is full again are evicted, which changes no decision about them.

use std::collections::HashMap;
use std::net::IpAddr;

const ADDRESSES_MAX: usize = 16_384;

/// How many connections a second one address may open.
pub struct AddressLimit {
    /// None: no limit at all.
    per_s: Option<u32>,
    /// Whether loopback addresses are limited like any other.
    loopback_too: bool,
    buckets: HashMap<IpAddr, Bucket>,
}

struct Bucket {
    /// When the bucket would be full again, in monotonic ns: the one figure that tells its level.
    full_at_ns: u64,
}

impl AddressLimit {
    /// A limit of `per_s` (`None`: no limit); addresses of this machine are spared unless `loopback_too`.
    pub fn new(per_s: Option<u32>, loopback_too: bool) -> AddressLimit {
        AddressLimit { per_s, loopback_too, buckets: HashMap::new() }
    }

    /// True when one more connection from this address is within its rate; it is counted then.
    pub fn admits(&mut self, address: IpAddr, now_ns: u64) -> bool {
        let Some(per_s) = self.per_s else { return true };
        if !self.loopback_too && address.to_canonical().is_loopback() {
            return true;
        }
        let cost_ns = 1_000_000_000 / u64::from(per_s.max(1));
        if self.buckets.len() >= ADDRESSES_MAX && !self.buckets.contains_key(&address) {
            self.buckets.retain(|_, bucket| bucket.full_at_ns > now_ns);
            if self.buckets.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        let bucket = self.buckets.entry(address).or_insert(Bucket { full_at_ns: now_ns });
        let full_at_ns = bucket.full_at_ns.max(now_ns) + cost_ns;
        if full_at_ns > now_ns + 1_000_000_000 {
            return false;
        }
        bucket.full_at_ns = full_at_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn an_address_gets_its_rate_and_its_burst_and_no_more() {
        let mut limit = AddressLimit::new(Some(10), true);
        let address = IpAddr::from([10, 0, 0, 1]);
        let admitted = (0..100).filter(|_| limit.admits(address, SECOND)).count();
        assert_eq!(admitted, 10);
        let later = (0..100).filter(|_| limit.admits(address, SECOND + SECOND / 2)).count();
        assert_eq!(later, 5);
        assert!(limit.admits(IpAddr::from([10, 0, 0, 2]), SECOND), "others are not affected");
    }

    #[test]
    fn loopback_is_free_unless_asked_for() {
        let mut limit = AddressLimit::new(Some(1), false);
        assert!((0..50).all(|_| limit.admits(IpAddr::from([127, 0, 0, 9]), SECOND)));
        assert!((0..50).all(|_| limit.admits("::ffff:127.0.0.1".parse().unwrap(), SECOND)));
    }

    #[test]
    fn the_table_stays_bounded_and_recovers() {
        let mut limit = AddressLimit::new(Some(1), true);
        for i in 0..2 * ADDRESSES_MAX as u32 {
            limit.admits(IpAddr::from((0x0a00_0000 + i).to_be_bytes()), SECOND);
        }
        assert!(limit.buckets.len() <= ADDRESSES_MAX);
        assert!(limit.admits(IpAddr::from([11, 0, 0, 1]), 10 * SECOND));
    }
}
