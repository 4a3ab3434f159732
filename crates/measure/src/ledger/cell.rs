//! One cell: everything known about one sender's messages at one receiver.
//!
//! Bits 0–15: which of the sixteen messages before the newest were seen (bit 0 is the one just before it).
//! Bits 16–39: the newest sequence number + 1. Bits 40–63: how many different messages were seen.
//! Messages before the first count as seen, so that the first sixteen need no special case.

use std::collections::HashMap;

/// Sequence numbers are below this.
pub const SEQ_END: u32 = (1 << 24) - 1;

const WINDOW: u32 = 16;
const NEXT_SHIFT: u32 = 16;
const SEEN_SHIFT: u32 = 40;
const MASK_24: u64 = (1 << 24) - 1;

/// Nothing seen.
pub(super) const EMPTY: u64 = 0xffff;
/// One more seen, and the newest one further.
const STEP: u64 = (1 << SEEN_SHIFT) | (1 << NEXT_SHIFT);

/// So many ranges of holes are noted in any ledger, and one for every so many cells in a large one: about as much memory
/// again as the cells take.
const HOLES_LEAST: usize = 100_000;
const CELLS_PER_HOLE: usize = 10;

/// Half-open ranges of sequence numbers that were passed unseen, by cell.
///
/// A server that drops most of what it owes would make one or more for nearly every cell (2.4 GB at 4,096 clients, as it
/// did). Those beyond the bound are not noted; a message out of such a hole, more than sixteen late, then counts as a
/// second copy, and stays lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Holes {
    ranges: HashMap<usize, Vec<(u32, u32)>>,
    /// so many more may be noted
    left: usize,
}

impl Holes {
    pub(super) fn for_cells(cells: usize) -> Holes {
        Holes { ranges: HashMap::new(), left: (cells / CELLS_PER_HOLE).max(HOLES_LEAST) }
    }

    /// Ranges that memory is taken for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.ranges.capacity()
    }

    fn add(&mut self, index: usize, from: u32, to: u32) {
        if let Some(last) = self.ranges.get_mut(&index).and_then(|ranges| ranges.last_mut())
            && last.1 == from
        {
            last.1 = to;
        } else if self.left > 0 {
            self.left -= 1;
            self.ranges.entry(index).or_default().push((from, to));
        }
    }

    /// Removes `seq` from its hole. Returns false if it is in none.
    fn fill(&mut self, index: usize, seq: u32) -> bool {
        let Some(ranges) = self.ranges.get_mut(&index) else { return false };
        let Some(at) = ranges.iter().position(|&(from, to)| (from..to).contains(&seq)) else { return false };
        let (from, to) = ranges[at];
        match (from == seq, seq + 1 == to) {
            (true, true) => {
                ranges.remove(at);
                self.left += 1;
            }
            (true, false) => ranges[at].0 = seq + 1,
            (false, true) => ranges[at].1 = seq,
            (false, false) if self.left > 0 => {
                self.left -= 1;
                ranges[at].1 = seq;
                ranges.insert(at + 1, (seq + 1, to));
            }
            // Without room for two ranges the longer one is kept.
            (false, false) if seq - from < to - seq => ranges[at].0 = seq + 1,
            (false, false) => ranges[at].1 = seq,
        }
        true
    }
}

/// What one arrival was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// the one after the newest, or one further on
    InOrder,
    /// older than the newest, and new
    Reordered,
    /// seen before
    Duplicate,
}

pub(super) fn seen(cell: u64) -> u32 {
    (cell >> SEEN_SHIFT) as u32
}

/// The newest sequence number + 1; 0 when nothing came.
pub(super) fn next(cell: u64) -> u32 {
    ((cell >> NEXT_SHIFT) & MASK_24) as u32
}

/// Enters an arrival. `seq` < `SEQ_END`.
#[inline]
pub(super) fn enter(cells: &mut [u64], index: usize, seq: u32, holes: &mut Holes) -> Arrival {
    let cell = cells[index];
    let next = next(cell);
    if seq == next && cell & 0x8000 != 0 {
        let window = (cell << 1 | 1) & 0xffff;
        cells[index] = ((cell & !0xffff) + STEP) | window;
        return Arrival::InOrder;
    }
    let (cell, arrival) = enter_unusual(cell, next, index, seq, holes);
    cells[index] = cell;
    arrival
}

#[cold]
fn enter_unusual(cell: u64, next: u32, index: usize, seq: u32, holes: &mut Holes) -> (u64, Arrival) {
    let (window, seen) = ((cell & 0xffff) as u32, cell >> SEEN_SHIFT);
    if seq >= next {
        pass(window, next, seq, index, holes);
        let distance = seq - next + 1;
        // Bit `distance - 1` becomes the message that was the newest; those in between stay unseen.
        let moved = if distance > WINDOW { 0 } else { ((window << 1 | 1) << (distance - 1)) & 0xffff };
        let cell = (seen + 1) << SEEN_SHIFT | u64::from(seq + 1) << NEXT_SHIFT | u64::from(moved);
        return (cell, Arrival::InOrder);
    }
    let Some(back) = (next - 1 - seq).checked_sub(1) else { return (cell, Arrival::Duplicate) };
    if back < WINDOW {
        let bit = 1 << back;
        if window & bit != 0 {
            return (cell, Arrival::Duplicate);
        }
        return ((cell | u64::from(bit)) + (1 << SEEN_SHIFT), Arrival::Reordered);
    }
    if holes.fill(index, seq) {
        (cell + (1 << SEEN_SHIFT), Arrival::Reordered)
    } else {
        (cell, Arrival::Duplicate)
    }
}

/// Notes as holes what leaves the window unseen when the newest becomes `seq`.
fn pass(window: u32, next: u32, seq: u32, index: usize, holes: &mut Holes) {
    // The window of the newest `seq` begins here; everything before drops out.
    let begin = seq.saturating_sub(WINDOW);
    for back in (0..WINDOW).rev() {
        // Bit `back` is the message `next - 2 - back`; those before the first message count as seen.
        let Some(at) = (next as i64 - 2 - i64::from(back)).try_into().ok() else { continue };
        if window & (1 << back) == 0 && at < begin {
            holes.add(index, at, at + 1);
        }
    }
    if next < begin {
        holes.add(index, next, begin);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What a cell says must be what a set of all sequence numbers says.
    fn check(seqs: &[u32]) -> Result<(), TestCaseError> {
        let (mut cells, mut holes) = (vec![EMPTY], Holes::for_cells(1));
        let mut all = BTreeSet::new();
        for (at, &seq) in seqs.iter().enumerate() {
            let expected = match all.last() {
                _ if all.contains(&seq) => Arrival::Duplicate,
                Some(&newest) if seq < newest => Arrival::Reordered,
                _ => Arrival::InOrder,
            };
            prop_assert_eq!(enter(&mut cells, 0, seq, &mut holes), expected, "arrival {} of {:?}", at, seqs);
            all.insert(seq);
            prop_assert_eq!(seen(cells[0]) as usize, all.len());
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_cell_knows_what_a_set_of_all_messages_knows(seqs in prop::collection::vec(0u32..120, 0..400)) {
            check(&seqs)?;
        }

        #[test]
        fn the_same_where_most_come_in_order(
            faults in prop::collection::vec((0usize..300, 0u8..4, 1u32..40), 0..40),
        ) {
            let mut seqs: Vec<u32> = (0..300).collect();
            for (at, kind, distance) in faults {
                let at = at.min(seqs.len() - 1);
                match kind {
                    0 => { seqs.remove(at); }
                    1 => seqs.insert(at, seqs[at]),
                    2 => { let to = (at + distance as usize).min(seqs.len() - 1); seqs.swap(at, to); }
                    _ => { let again = seqs[at.saturating_sub(distance as usize)]; seqs.insert(at, again); }
                }
            }
            check(&seqs)?;
        }
    }

    #[test]
    fn holes_beyond_the_bound_take_no_memory_and_what_lies_in_them_stays_lost() {
        let cells = HOLES_LEAST + 500;
        let (mut all, mut holes) = (vec![EMPTY; cells], Holes::for_cells(cells));
        for index in 0..cells {
            enter(&mut all, index, 40, &mut holes);
        }
        assert_eq!((holes.ranges.len(), holes.left), (HOLES_LEAST, 0));
        assert_eq!(enter(&mut all, cells - 1, 3, &mut holes), Arrival::Duplicate);
        // Of a hole that is parted in two the longer part stays.
        let arrivals = [3, 1, 20, 22, 10, 4, 9, 15].map(|seq| enter(&mut all, 0, seq, &mut holes));
        let expected = [true, false, true, false, true, false, false, true];
        assert_eq!(arrivals, expected.map(|new| if new { Arrival::Reordered } else { Arrival::Duplicate }));
        assert_eq!((seen(all[0]), seen(all[cells - 1]), holes.left), (5, 1, 0));
        // A hole that is filled makes room for another one; a large ledger has room for more.
        (0..24).for_each(|seq| _ = enter(&mut all, 1, seq, &mut holes));
        assert_eq!((seen(all[1]), holes.left), (25, 1));
        // The parts of a hole take the room of two, and give that back.
        assert_eq!([10, 5, 15].map(|seq| enter(&mut all, 2, seq, &mut holes)), [Arrival::Reordered; 3]);
        assert_eq!(holes.left, 0);
        (0..24).for_each(|seq| _ = enter(&mut all, 2, seq, &mut holes));
        assert_eq!((seen(all[2]), holes.left), (1 + 3 + 5 + 8, 2));
        assert_eq!(Holes::for_cells(40 * HOLES_LEAST).left, 4 * HOLES_LEAST);
    }

    #[test]
    fn the_last_sequence_number_fits() {
        let (mut cells, mut holes) = (vec![EMPTY], Holes::for_cells(1));
        assert_eq!(enter(&mut cells, 0, SEQ_END - 1, &mut holes), Arrival::InOrder);
        assert_eq!(enter(&mut cells, 0, SEQ_END - 1, &mut holes), Arrival::Duplicate);
        assert_eq!(enter(&mut cells, 0, 5, &mut holes), Arrival::Reordered);
        assert_eq!(seen(cells[0]), 2);
    }
}
