//! The limit on memory that all connections of this process together may use for unfinished messages, and for replies
//! that servers request but do not read.
//!
//! Each message has its own cap, but a server that stalls before the last byte of each could fill one cap per
//! connection. So what a connection keeps from one read to the next is reserved here, and beyond the limit its message
//! fails. The same applies to pongs and acknowledgements that wait for the kernel; beyond the limit the connection
//! fails.
//! What arrived whole with one read is never kept, and a small remainder is free: neither is reserved.
//! A worker sums its own reservations, and takes its part of the limit in large steps: the single atomic is touched
//! once per `STEP_BYTES`, and there is no lock.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All connections of this process together may keep so much of unfinished messages.
pub const UNFINISHED_BYTES_MAX: usize = 16 << 20;
/// What a single message, or the answers of a connection, may keep besides: at 100,000 connections the remainders of honest
/// messages are many, and small.
pub const FREE_BYTES: usize = 8 * 1024;
/// A worker takes and gives back its part of the limit in multiples of this.
const STEP_BYTES: usize = 256 * 1024;
/// A connection keeps room for so much of an incomplete message; what a larger one took is given back after it.
pub(crate) const ROOM_BYTES_KEPT: usize = 4096;

/// The limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// What one unfinished message, or the answers of one connection, have reserved; given back when it is dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    /// no message that is kept is longer than 32 MiB
    bytes: u32,
    /// it belongs to the thread that summed it
    of_thread: PhantomData<*const ()>,
}

impl Reservation {
    /// Makes it large enough for what keeps `bytes` in all, of which `free` count for nothing; never smaller.
    /// Errors: it stays as it is.
    pub fn grow_to(&mut self, bytes: usize, free: usize) -> Result<(), Exhausted> {
        let wanted = bytes.saturating_sub(free).min(u32::MAX as usize) as u32;
        if wanted > self.bytes {
            WORKER.with(|worker| worker.reserve((wanted - self.bytes) as usize))?;
            self.bytes = wanted;
        }
        Ok(())
    }

    /// The message is finished or given up.
    pub fn release(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            // If the thread has ended, its part was returned as a whole.
            let _ = WORKER.try_with(|worker| worker.release(bytes as usize));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

/// The incomplete message that a read ended with, until the next read puts it first again.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    bytes: Vec<u8>,
    reserved: Reservation,
}

impl Carried {
    /// What came before anything was read; it is small.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Carried { bytes, reserved: Reservation::default() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that it has room for.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Keeps `rest` in place of what it held.
    pub(crate) fn keep(&mut self, rest: &[u8]) -> Result<(), Exhausted> {
        self.reserved.grow_to(rest.len(), FREE_BYTES)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(rest);
        Ok(())
    }

    /// It is in the read buffer now.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > ROOM_BYTES_KEPT {
            self.bytes = Vec::new();
            self.reserved.release();
        }
    }
}

/// What a thread has reserved, and its part of the limit.
struct Worker {
    reserved: Cell<usize>,
    /// at least `reserved`
    part: Cell<usize>,
}

impl Worker {
    const fn new() -> Self {
        Worker { reserved: Cell::new(0), part: Cell::new(0) }
    }

    fn reserve(&self, bytes: usize) -> Result<(), Exhausted> {
        let reserved = self.reserved.get() + bytes;
        let part = self.part.get();
        if reserved > part {
            // Near the limit the whole step may exceed what is left.
            let least = reserved - part;
            let most = least.next_multiple_of(STEP_BYTES);
            let taken = [most, least].into_iter().find(|wanted| with_limit(|limit| limit.take(*wanted)));
            self.part.set(part + taken.ok_or(Exhausted)?);
        }
        self.reserved.set(reserved);
        Ok(())
    }

    fn release(&self, bytes: usize) {
        let reserved = self.reserved.get() - bytes;
        self.reserved.set(reserved);
        // One step is kept, so that a message that comes and goes does not touch the limit each time.
        let surplus = self.part.get() - reserved;
        if surplus >= 2 * STEP_BYTES {
            self.part.set(reserved + STEP_BYTES);
            with_limit(|limit| limit.give_back(surplus - STEP_BYTES));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        with_limit(|limit| limit.give_back(self.part.get()));
    }
}

/// What is left of a limit that threads share.
struct Limit(AtomicUsize);

impl Limit {
    /// False: so much is not left, and nothing was taken.
    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

thread_local! {
    static WORKER: Worker = const { Worker::new() };
}

#[cfg(not(test))]
fn with_limit<T>(look: impl FnOnce(&Limit) -> T) -> T {
    static LIMIT: Limit = Limit(AtomicUsize::new(UNFINISHED_BYTES_MAX));
    look(&LIMIT)
}

/// Each test has its own limit, since tests share a process.
#[cfg(test)]
fn with_limit<T>(look: impl FnOnce(&Limit) -> T) -> T {
    thread_local! {
        static LIMIT: &'static Limit = Box::leak(Box::new(Limit(AtomicUsize::new(UNFINISHED_BYTES_MAX))));
    }
    LIMIT.with(|limit| look(limit))
}

/// What this thread has reserved.
#[cfg(test)]
pub(crate) fn reserved_bytes() -> usize {
    WORKER.with(|worker| worker.reserved.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left() -> usize {
        with_limit(|limit| limit.0.load(Ordering::Relaxed))
    }

    #[test]
    fn a_reservation_grows_up_to_the_limit_and_is_given_back_when_it_is_dropped() {
        let mut all: Vec<Reservation> = (0..10).map(|_| Reservation::default()).collect();
        let each = 2 << 20;
        let taken = all.iter_mut().filter_map(|one| one.grow_to(each, 0).ok()).count();
        assert_eq!((taken, reserved_bytes()), (8, UNFINISHED_BYTES_MAX));
        assert_eq!(all[8].grow_to(1, 0), Err(Exhausted));
        assert_eq!(all[8].grow_to(FREE_BYTES, FREE_BYTES), Ok(()), "a small remainder is free");
        assert_eq!(all[0].grow_to(each - 1, 0), Ok(()), "what is reserved stays so");
        all.remove(0);
        assert_eq!(all[7].grow_to(each, 0), Ok(()), "what was given back can be taken");
        all[7].release();
        all[7].release();
        assert_eq!(reserved_bytes(), UNFINISHED_BYTES_MAX - each);
        drop(all);
        assert_eq!(reserved_bytes(), 0);
        assert!(left() >= UNFINISHED_BYTES_MAX - STEP_BYTES, "{} bytes are left", left());
    }

    #[test]
    fn small_messages_that_come_and_go_leave_the_limit_alone() {
        let mut one = Reservation::default();
        one.grow_to(64 * 1024, 0).unwrap();
        let before = left();
        for _ in 0..100 {
            one.release();
            assert_eq!(left(), before);
            one.grow_to(200 * 1024, 0).unwrap();
            assert_eq!(left(), before);
        }
    }

    #[test]
    fn the_last_bytes_of_the_limit_can_be_reserved() {
        let mut one = Reservation::default();
        assert_eq!(one.grow_to(UNFINISHED_BYTES_MAX - 1000, 0), Ok(()));
        assert_eq!(one.grow_to(UNFINISHED_BYTES_MAX, 0), Ok(()));
        assert_eq!(one.grow_to(UNFINISHED_BYTES_MAX + 1, 0), Err(Exhausted));
    }

    #[test]
    fn a_thread_that_ends_gives_its_part_back() {
        static LIMIT: Limit = Limit(AtomicUsize::new(1000));
        assert!(LIMIT.take(600));
        assert!(!LIMIT.take(600));
        LIMIT.give_back(600);
        assert!(LIMIT.take(1000));
    }

    #[test]
    fn what_is_carried_is_reserved_while_it_is_held() {
        let mut carried = Carried::default();
        carried.keep(&[1; 60_000]).unwrap();
        assert_eq!((carried.bytes().len(), reserved_bytes()), (60_000, 60_000 - FREE_BYTES));
        carried.clear();
        assert_eq!((carried.bytes.capacity(), reserved_bytes()), (0, 0));
        carried.keep(&[1; 100]).unwrap();
        carried.clear();
        assert_eq!((carried.bytes.capacity(), reserved_bytes()), (100, 0), "its room stays");
    }
}
