//! One way of an emulated network: a queue of bytes, each with the instant at which it comes out.
//!
//! Pure. Invariant: order is kept as TCP keeps it, so no instant is before the one ahead of it: what follows a lost
//! segment waits for its retransmission.

use std::collections::VecDeque;

use super::{Path, SEGMENT_BYTES};

/// Memory of an empty queue beyond this is given back: most connections are idle most of the time.
const KEPT_BYTES: usize = 4096;

/// Bytes that went in and come out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(super) bytes: usize,
    pub(super) entered_ns: u64,
    pub(crate) release_ns: u64,
}

impl Piece {
    /// How long it was asked to be under way and was, ns.
    pub(crate) fn spans(&self, now_ns: u64) -> (u64, u64) {
        (self.release_ns - self.entered_ns, now_ns - self.entered_ns)
    }
}

/// A queue of bytes under way.
#[derive(Debug, Default)]
pub(crate) struct Way {
    bytes: VecDeque<u8>,
    pieces: VecDeque<Piece>,
    /// the link is sending until this instant
    busy_until_ns: u64,
    /// nothing comes out before this
    last_ns: u64,
}

impl Way {
    /// When a segment of so many bytes that enters now comes out. Zero bytes, as those of a handshake or of an end, take
    /// no bandwidth.
    pub(super) fn release_ns(
        &mut self,
        path: &Path,
        now_ns: u64,
        bytes: usize,
        rng: &mut fastrand::Rng,
    ) -> u64 {
        let mut sent_ns = now_ns.max(self.busy_until_ns);
        if path.bits_per_s > 0 {
            let bits = bytes as u128 * 8;
            sent_ns += (bits * 1_000_000_000).div_ceil(u128::from(path.bits_per_s)) as u64;
        }
        self.busy_until_ns = sent_ns;
        self.last_ns = self.last_ns.max(sent_ns + path.delay_ns(rng));
        self.last_ns
    }

    /// Nothing comes out before this instant.
    pub(super) fn hold_until(&mut self, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// Takes bytes that enter now, as far as they fit into `room_bytes`. Returns how many.
    pub(super) fn push<'b>(
        &mut self,
        path: &Path,
        now_ns: u64,
        slices: impl Iterator<Item = &'b [u8]>,
        room_bytes: usize,
        rng: &mut fastrand::Rng,
    ) -> usize {
        let (mut left, mut room_bytes) = (0, room_bytes);
        for slice in slices {
            let count = slice.len().min(room_bytes);
            self.bytes.extend(&slice[..count]);
            left += count;
            room_bytes -= count;
        }
        let pushed = left;
        while left > 0 {
            let bytes = left.min(SEGMENT_BYTES);
            left -= bytes;
            let release_ns = self.release_ns(path, now_ns, bytes, rng);
            match self.pieces.back_mut() {
                Some(last) if (last.entered_ns, last.release_ns) == (now_ns, release_ns) => {
                    last.bytes += bytes;
                }
                _ => self.pieces.push_back(Piece { bytes, entered_ns: now_ns, release_ns }),
            }
        }
        pushed
    }

    /// Takes a message that enters now and comes out whole.
    pub(crate) fn push_whole(&mut self, path: &Path, now_ns: u64, message: &[u8], rng: &mut fastrand::Rng) {
        self.bytes.extend(message);
        let (bytes, entered_ns) = (message.len(), now_ns);
        let release_ns = self.release_ns(path, now_ns, bytes, rng);
        self.pieces.push_back(Piece { bytes, entered_ns, release_ns });
    }

    /// The message at the front, where it is due; to be taken then.
    pub(crate) fn whole(&mut self, now_ns: u64) -> Option<&[u8]> {
        let count = self.pieces.front().filter(|piece| piece.release_ns <= now_ns)?.bytes;
        Some(&self.bytes.make_contiguous()[..count])
    }

    /// Bytes under way.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// When the next byte comes out.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.release_ns)
    }

    /// The bytes at the front that are due, as far as they are in one place; empty: none is.
    pub(super) fn due(&self, now_ns: u64) -> &[u8] {
        let due = self.pieces.iter().take_while(|piece| piece.release_ns <= now_ns);
        let count = due.map(|piece| piece.bytes).sum::<usize>();
        let (front, _) = self.bytes.as_slices();
        &front[..count.min(front.len())]
    }

    /// Removes bytes from the front and tells of each piece whose first byte is among them.
    pub(crate) fn take(&mut self, count: usize, mut tell: impl FnMut(&Piece)) {
        self.bytes.drain(..count);
        let mut left = count;
        while left > 0 {
            let Some(piece) = self.pieces.front_mut() else { break };
            // What is left of a piece that was begun has an entry of zero and was told.
            if piece.entered_ns > 0 {
                tell(piece);
            }
            if piece.bytes > left {
                piece.bytes -= left;
                piece.entered_ns = 0;
                break;
            }
            left -= piece.bytes;
            self.pieces.pop_front();
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            (self.bytes, self.pieces) = (VecDeque::new(), VecDeque::new());
        }
    }

    /// Forgets what is under way.
    pub(super) fn clear(&mut self) {
        (self.bytes, self.pieces) = (VecDeque::new(), VecDeque::new());
    }
}
