//! Locks that measure wait times. An uncontended lock costs nothing extra.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Waits of all threads since the board was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// How often a lock was not free.
    pub count: u64,
    /// How long threads waited then, in all.
    pub total_ns: u64,
}

/// Adds up waits.
#[derive(Default)]
pub(super) struct Waits {
    count: AtomicU64,
    total_ns: AtomicU64,
}

impl Waits {
    pub(super) fn read(&self) -> LockWaits {
        LockWaits {
            count: self.count.load(Ordering::Relaxed),
            total_ns: self.total_ns.load(Ordering::Relaxed),
        }
    }

    /// Runs `wait` and adds how long it took.
    #[cold]
    pub(super) fn during<R>(&self, wait: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = wait();
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    #[inline]
    pub(super) fn read_lock<'a, T>(&self, lock: &'a RwLock<T>) -> RwLockReadGuard<'a, T> {
        lock.try_read().unwrap_or_else(|| self.during(|| lock.read()))
    }

    #[inline]
    pub(super) fn write_lock<'a, T>(&self, lock: &'a RwLock<T>) -> RwLockWriteGuard<'a, T> {
        lock.try_write().unwrap_or_else(|| self.during(|| lock.write()))
    }
}
