//! How far the clocks of two machines differ, by repeated exchange. Pure.
//!
//! A question leaves at `asked`, is answered by another clock's reading, and the answer is there at `heard`. The reading was made
//! at some moment in between, so the difference is known to half of the exchange; the quickest exchange knows it best.
//! Source: Cristian, "Probabilistic clock synchronization", 1989.

/// One exchange: readings of our clock around one of the other's, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// ours, before the question left
    pub asked_ns: u64,
    /// the other's
    pub read_ns: u64,
    /// ours, when the answer was there
    pub heard_ns: u64,
}

/// The other's clock minus ours, and how wrong that may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// ns
    pub offset_ns: i64,
    /// half of the quickest exchange, ns
    pub bound_ns: u64,
    /// the quickest exchange, ns
    pub round_trip_ns: u64,
}

impl Offset {
    /// What exchanges tell. `None` without any.
    pub fn of(exchanges: &[Exchange]) -> Option<Offset> {
        let quickest = exchanges.iter().min_by_key(|one| one.heard_ns.saturating_sub(one.asked_ns))?;
        let round_trip_ns = quickest.heard_ns.saturating_sub(quickest.asked_ns);
        let middle_ns = i128::from(quickest.asked_ns) + i128::from(round_trip_ns / 2);
        Some(Offset {
            offset_ns: (i128::from(quickest.read_ns) - middle_ns) as i64,
            bound_ns: round_trip_ns.div_ceil(2),
            round_trip_ns,
        })
    }

    /// The same instant as the other's clock reads it.
    pub fn theirs(self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.offset_ns)
    }
}

/// How far two of these machines may be apart: each from ours, and clocks drift by so much until they are compared again.
pub fn bound_between(offsets: &[Offset]) -> u64 {
    let mut bounds: Vec<u64> = offsets.iter().map(|one| one.bound_ns).collect();
    bounds.sort_unstable();
    bounds.iter().rev().take(2).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the ways took, the true difference is within the bound, three hours apart included.
        #[test]
        fn the_true_difference_is_within_the_bound(
            offset_ns in -10_800_000_000_000i64..10_800_000_000_000,
            ways in proptest::collection::vec((1u64..5_000_000, 1u64..5_000_000), 1..20),
        ) {
            let exchanges: Vec<Exchange> = ways
                .iter()
                .enumerate()
                .map(|(index, (there_ns, back_ns))| {
                    let asked_ns = 20_000_000_000_000 + index as u64 * 10_000_000;
                    let read_ns = (asked_ns + there_ns).saturating_add_signed(offset_ns);
                    Exchange { asked_ns, read_ns, heard_ns: asked_ns + there_ns + back_ns }
                })
                .collect();
            let found = Offset::of(&exchanges).unwrap();
            prop_assert!(found.offset_ns.abs_diff(offset_ns) <= found.bound_ns + 1, "{found:?} for {offset_ns}");
            let quickest = ways.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(found.round_trip_ns, quickest);
            prop_assert_eq!(found.theirs(1_000_000_000_000_000), 1_000_000_000_000_000u64.saturating_add_signed(found.offset_ns));
        }
    }

    #[test]
    fn two_agents_are_as_far_apart_as_both_bounds() {
        let of = |bound_ns| Offset { bound_ns, ..Offset::default() };
        assert_eq!(bound_between(&[of(3), of(10), of(4)]), 14);
        assert_eq!((bound_between(&[of(3)]), bound_between(&[])), (3, 0));
    }
}
