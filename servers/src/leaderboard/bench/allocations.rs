//! An allocator that counts, for programs that measure.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// The system's allocator with two counters: `#[global_allocator] static COUNTING: CountingAllocator = CountingAllocator;`
pub struct CountingAllocator;

/// What a block takes on glibc's heap: a header of 8 bytes, rounded to 16, at least 32.
fn heap_bytes(layout: Layout) -> i64 {
    ((layout.size() + 8).next_multiple_of(16)).max(32) as i64
}

impl CountingAllocator {
    /// Whether this program uses it.
    pub fn is_installed() -> bool {
        Self::count() > 0
    }

    /// Allocations of all threads since the start.
    pub(super) fn count() -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    /// Bytes that are allocated now.
    pub(super) fn live_bytes() -> i64 {
        LIVE_BYTES.load(Ordering::Relaxed)
    }
}

// SAFETY: all memory comes from `System`; the counters do not touch it.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(heap_bytes(layout), Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(heap_bytes(layout), Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.dealloc(start, layout) };
    }
}
