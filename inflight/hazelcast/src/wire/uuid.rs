//! The ids of members and clients.

use std::fmt;

/// An id of a member, a cluster or a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(u128);

impl Uuid {
    /// From its more and less significant halves.
    pub fn from_halves(most: u64, least: u64) -> Self {
        Uuid(u128::from(most) << 64 | u128::from(least))
    }

    /// More and less significant halves.
    pub fn halves(self) -> (u64, u64) {
        ((self.0 >> 64) as u64, self.0 as u64)
    }

    /// A random one (version 4) made of `bits`.
    pub fn from_random(bits: u128) -> Self {
        Uuid(bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let (a, b, c, d, e) = (&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
