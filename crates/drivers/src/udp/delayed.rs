//! Datagrams behind an emulated network: under way on both ways, or lost. Their order is kept.
//!
//! A way that is full loses what comes, as a router's queue does. Datagrams have their length in front, as in the
//! driver's buffers.

use super::{HEADER_BYTES, datagram};
use crate::network::{Owner, Path, Sent, WINDOW_BYTES, Way, note, now_ns, rng_of};

/// The datagrams under way of one socket.
pub(super) struct Delayed {
    /// without its loss, which is no delay here
    path: Path,
    loss: f64,
    rng: fastrand::Rng,
    out: Way,
    back: Way,
    owner: Owner,
    sent: Sent,
    /// the last read found nothing
    is_awaited: bool,
}

impl Delayed {
    pub(super) fn new(path: &Path) -> Self {
        Delayed {
            path: Path { loss: 0.0, ..*path },
            loss: path.loss,
            rng: rng_of(path),
            out: Way::default(),
            back: Way::default(),
            owner: Owner::default(),
            sent: Sent::default(),
            is_awaited: false,
        }
    }

    pub(super) fn owner(&mut self) -> &mut Owner {
        &mut self.owner
    }

    /// Takes all datagrams that are to be sent.
    pub(super) fn take(&mut self, mut unsent: &[u8]) {
        let now_ns = now_ns();
        while let Some(next) = datagram(unsent) {
            let (one, rest) = unsent.split_at(HEADER_BYTES + next.len());
            if self.out.len() < WINDOW_BYTES && self.rng.f64() >= self.loss {
                self.out.push_whole(&self.path, now_ns, one, &mut self.rng);
            }
            unsent = rest;
        }
    }

    /// Whether one that came can be taken; else it stays with the kernel.
    pub(super) fn has_room(&self) -> bool {
        self.back.len() < WINDOW_BYTES
    }

    /// Takes a datagram that came.
    pub(super) fn receive(&mut self, one: &[u8]) {
        if self.rng.f64() >= self.loss {
            self.back.push_whole(&self.path, now_ns() - self.sent.made_up_ns, one, &mut self.rng);
        }
    }

    /// The next datagram to send now.
    pub(super) fn next_to_send(&mut self, now_ns: u64) -> Option<&[u8]> {
        datagram(self.out.whole(now_ns)?)
    }

    /// It was sent.
    pub(super) fn sent(&mut self, bytes: usize, now_ns: u64) {
        self.out.take(HEADER_BYTES + bytes, |piece| self.sent.went(piece, now_ns));
    }

    /// Puts the next datagram that has come into `room`, and returns how many bytes it takes there.
    pub(super) fn read(&mut self, now_ns: u64, room: &mut [u8]) -> Option<usize> {
        let one = self.back.whole(now_ns)?;
        let count = one.len();
        room[..count].copy_from_slice(one);
        let (path, sent, was_awaited) = (self.path.index, self.sent, self.is_awaited);
        self.back.take(count, |piece| {
            // What lay there because its bot was not reading is no lateness of ours.
            if was_awaited {
                note(|passed| passed.came(path, sent, piece, now_ns));
            }
        });
        Some(count)
    }

    pub(super) fn awaits(&mut self, is_awaited: bool) {
        self.is_awaited = is_awaited;
    }

    /// Nothing is left to send.
    pub(super) fn has_sent_all(&self) -> bool {
        self.out.is_empty()
    }

    /// Has the task woken when the next datagram comes out.
    pub(super) fn arm(&mut self, now_ns: u64) {
        let back_ns = self.back.next_ns().filter(|_| self.is_awaited);
        self.owner.wake_at([self.out.next_ns(), back_ns], now_ns);
    }
}
