//! How much memory a thread holds: an allocator that counts, for all programs of this crate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Bytes that this thread has taken and not given back. Below 0 where another thread took them.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static HIGHEST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends has no locals any more, and nothing is counted then.
    let _ = HELD.try_with(|held| {
        let now = held.get() + bytes;
        held.set(now);
        let _ = HIGHEST.try_with(|highest| highest.set(highest.get().max(now)));
    });
}

// SAFETY: every call is handed to `System` as it came; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps what `alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps what `alloc_zeroed` asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps what `dealloc` asks for.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as isize - layout.size() as isize);
        // SAFETY: the caller keeps what `realloc` asks for.
        unsafe { System.realloc(memory, layout, new_size) }
    }
}

/// The most bytes that this thread held during `run`, beyond what it held before.
pub(crate) fn highest(run: impl FnOnce()) -> usize {
    let before = HELD.get();
    HIGHEST.set(before);
    run();
    (HIGHEST.get() - before).max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_counts_what_was_given_back_meanwhile_and_nothing_from_before() {
        let before = vec![0_u8; 1 << 20];
        let bytes = highest(|| {
            drop(std::hint::black_box(vec![1_u8; 70_000]));
            drop(std::hint::black_box(vec![1_u8; 50_000]));
        });
        assert!((70_000..100_000).contains(&bytes), "{bytes}");
        assert!(highest(|| drop(before)) < 1000);
    }
}
