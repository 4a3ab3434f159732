//! An allocator that counts while a benchmark runs, and otherwise only forwards.

#[cfg(not(target_env = "musl"))]
use std::alloc::System as MEMORY;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// That of the C library musl takes one lock for all threads.
#[cfg(target_env = "musl")]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Only ever switched on.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

/// The system's allocator with two counters: `#[global_allocator] static COUNTING: CountingAllocator = CountingAllocator;`
///
/// Until `start` a call costs one load and one branch more than the system's, which cannot be told from none; while it counts,
/// a block allocated and given back takes 8 to 12 ns more than the system's 17 to 32 (the example `allocator_cost`).
pub struct CountingAllocator;

/// What a block takes on glibc's heap: a header of 8 bytes, rounded to 16, at least 32.
fn heap_bytes(size: usize) -> i64 {
    ((size + 8).next_multiple_of(16)).max(32) as i64
}

impl CountingAllocator {
    /// Allocations are counted from now on, those of all threads.
    pub fn start() {
        IS_COUNTING.store(true, Ordering::Relaxed);
    }

    /// Whether this program uses it, and it has been started.
    pub fn is_counting() -> bool {
        Self::count() > 0
    }

    /// Allocations of all threads since the start.
    pub fn count() -> u64 {
        COUNT.load(Ordering::Relaxed)
    }

    /// Bytes that were allocated since the start, less those that were given back.
    pub(super) fn live_bytes() -> i64 {
        LIVE_BYTES.load(Ordering::Relaxed)
    }
}

#[inline(always)]
fn count(allocations: u64, bytes: impl FnOnce() -> i64) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        COUNT.fetch_add(allocations, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(bytes(), Ordering::Relaxed);
    }
}

// SAFETY: all memory comes from `MEMORY`; the counters do not touch it.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, || heap_bytes(layout.size()));
        // SAFETY: the caller's contract is passed on.
        unsafe { MEMORY.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, || heap_bytes(layout.size()));
        // SAFETY: the caller's contract is passed on.
        unsafe { MEMORY.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, || heap_bytes(size) - heap_bytes(layout.size()));
        // SAFETY: the caller's contract is passed on.
        unsafe { MEMORY.realloc(start, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(0, || -heap_bytes(layout.size()));
        // SAFETY: the caller's contract is passed on.
        unsafe { MEMORY.dealloc(start, layout) };
    }
}
