//! Memory for large arrays: contiguous, on huge pages where the kernel has them.
//!
//! A random access to an array of 30 MB misses the TLB almost every time with pages of 4 KB, and under virtualisation
//! each miss walks two page tables. `MADV_HUGEPAGE` makes that rare. Arrays below 2 MB stay on the ordinary heap, so a
//! small board stays small.
//! Invariant: elements of `Chunked` never move once their chunk is full, and are dropped exactly once.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// The size and alignment of a huge page on x86-64 and on most ARM kernels, in bytes.
const HUGE_BYTES: usize = 2 << 20;

fn layout<T>(count: usize) -> Layout {
    let layout = Layout::array::<T>(count).expect("an array that fits the address space");
    let huge = layout.size() >= HUGE_BYTES;
    let layout = if huge { layout.align_to(HUGE_BYTES) } else { Ok(layout) };
    layout.expect("an alignment that is a power of two")
}

/// Room for `count` values (> 0, none of size 0), not initialised; advised to be huge from 2 MB on.
fn allocate<T>(count: usize) -> NonNull<T> {
    let layout = layout::<T>(count);
    debug_assert!(layout.size() > 0);
    // SAFETY: the layout's size is not 0, by this function's contract.
    let start = unsafe { alloc(layout) };
    let Some(start) = NonNull::new(start.cast::<T>()) else { handle_alloc_error(layout) };
    // Miri has no such call.
    #[cfg(all(target_os = "linux", not(miri)))]
    if layout.align() >= HUGE_BYTES {
        // Advice only: a kernel without huge pages refuses it, and everything works as before.
        // SAFETY: the range was just allocated, and the advice does not change its content.
        unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
    start
}

/// Gives back what `allocate(count)` returned; drops no values.
///
/// # Safety
/// `start` came from `allocate::<T>(count)` and is not used again.
unsafe fn free<T>(start: NonNull<T>, count: usize) {
    // SAFETY: same layout as at the allocation, by contract.
    unsafe { dealloc(start.as_ptr().cast(), layout::<T>(count)) };
}

/// Prefetches the cache line of `address`; never faults, whatever the address.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and does not fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A fixed array of words, all 0 at first.
pub(crate) struct Words {
    start: NonNull<u64>,
    count: usize,
}

// SAFETY: `Words` owns its memory like a `Box<[u64]>`.
unsafe impl Send for Words {}
// SAFETY: shared access only reads.
unsafe impl Sync for Words {}

impl Words {
    /// `count` words (> 0) of value 0.
    pub(crate) fn zeroed(count: usize) -> Self {
        let start = allocate::<u64>(count);
        // Written after the advice: pages that are touched before it are small ones.
        // SAFETY: the allocation holds `count` words.
        unsafe { start.as_ptr().write_bytes(0, count) };
        Self { start, count }
    }
}

impl std::ops::Deref for Words {
    type Target = [u64];
    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: `count` initialised words, borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl std::ops::DerefMut for Words {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: `count` initialised words, borrowed exclusively with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this count.
        unsafe { free(self.start, self.count) };
    }
}

/// A growing array in chunks, addressed by `u32`; pushing never copies more than the first chunk.
///
/// The first chunk grows by doubling, so small boards pay for what they hold; each further chunk has its full size, a
/// multiple of a huge page.
pub(crate) struct Chunked<T> {
    chunks: Vec<NonNull<T>>,
    /// Elements that the first chunk has room for.
    first_capacity: usize,
    len: usize,
}

// SAFETY: `Chunked` owns its elements like a `Vec<T>`.
unsafe impl<T: Send> Send for Chunked<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Chunked<T> {}

impl<T> Chunked<T> {
    /// Elements per chunk, as a power of two: the fewest that fill whole huge pages.
    const PER_CHUNK: usize = HUGE_BYTES >> size_of::<T>().trailing_zeros();
    const SHIFT: u32 = Self::PER_CHUNK.trailing_zeros();

    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), first_capacity: 0, len: 0 }
    }

    /// Appends `value` and returns its index.
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let index = self.len;
        let (chunk, offset) = (index >> Self::SHIFT, index & (Self::PER_CHUNK - 1));
        if chunk == 0 && offset == self.first_capacity {
            self.grow_first();
        } else if chunk == self.chunks.len() {
            self.chunks.push(allocate::<T>(Self::PER_CHUNK));
        }
        // SAFETY: the chunk exists and has room at `offset`, which is not initialised yet.
        unsafe { self.chunks[chunk].as_ptr().add(offset).write(value) };
        self.len += 1;
        u32::try_from(index).expect("callers keep the number of elements within u32")
    }

    fn grow_first(&mut self) {
        let mut capacity = (self.first_capacity * 2).clamp(4, Self::PER_CHUNK);
        if capacity * size_of::<T>() >= HUGE_BYTES / 4 {
            // From here on a huge page: the most used data, the board's inner nodes, would otherwise fill the TLB.
            capacity = capacity.max(HUGE_BYTES.div_ceil(size_of::<T>()));
        }
        let larger = allocate::<T>(capacity);
        if let Some(old) = self.chunks.first().copied() {
            // SAFETY: both hold `len` elements or more, and the old ones are not used or dropped after the move.
            unsafe {
                std::ptr::copy_nonoverlapping(old.as_ptr(), larger.as_ptr(), self.len);
                free(old, self.first_capacity);
            }
            self.chunks[0] = larger;
        } else {
            self.chunks.push(larger);
        }
        self.first_capacity = capacity;
    }

    #[inline(always)]
    fn address(&self, index: u32) -> *mut T {
        let index = index as usize;
        assert!(index < self.len);
        // SAFETY: an index below `len` lies in an existing chunk, within its capacity.
        unsafe {
            let chunk = self.chunks.get_unchecked(index >> Self::SHIFT).as_ptr();
            chunk.add(index & (Self::PER_CHUNK - 1))
        }
    }

    /// The address of an element, for `prefetch`.
    #[inline(always)]
    pub(crate) fn place(&self, index: u32) -> *const T {
        self.address(index)
    }

    /// Two different elements at once. Panics if they are the same.
    #[inline(always)]
    pub(crate) fn pair_mut(&mut self, one: u32, other: u32) -> (&mut T, &mut T) {
        assert!(one != other);
        // SAFETY: different indices are different elements, both initialised and borrowed exclusively with `self`.
        unsafe { (&mut *self.address(one), &mut *self.address(other)) }
    }
}

impl<T> std::ops::Index<u32> for Chunked<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        // SAFETY: `address` checked the index; the element is initialised.
        unsafe { &*self.address(index) }
    }
}

impl<T> std::ops::IndexMut<u32> for Chunked<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { &mut *self.address(index) }
    }
}

impl<T> Drop for Chunked<T> {
    fn drop(&mut self) {
        for index in 0..self.len {
            let (chunk, offset) = (index >> Self::SHIFT, index & (Self::PER_CHUNK - 1));
            // SAFETY: each element below `len` is initialised and dropped once, here.
            unsafe { std::ptr::drop_in_place(self.chunks[chunk].as_ptr().add(offset)) };
        }
        for (number, chunk) in self.chunks.drain(..).enumerate() {
            let capacity = if number == 0 { self.first_capacity } else { Self::PER_CHUNK };
            // SAFETY: allocated with this capacity, and no element is used any more.
            unsafe { free(chunk, capacity) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn elements_keep_their_values_across_chunks_and_are_dropped_once() {
        let witness = Arc::new(());
        let mut array: Chunked<(Arc<()>, [u64; 7])> = Chunked::new();
        let count = Chunked::<(Arc<()>, [u64; 7])>::PER_CHUNK + 5;
        for number in 0..count {
            assert_eq!(array.push((witness.clone(), [number as u64; 7])) as usize, number);
        }
        assert!((0..count).all(|number| array[number as u32].1 == [number as u64; 7]));
        let (one, other) = array.pair_mut(0, count as u32 - 1);
        std::mem::swap(&mut one.1, &mut other.1);
        assert_eq!(array[0].1[0], count as u64 - 1);
        assert_eq!(Arc::strong_count(&witness), count + 1);
        drop(array);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn words_begin_at_zero_on_either_side_of_a_huge_page() {
        for count in [1, 1000, HUGE_BYTES / 8, HUGE_BYTES / 4] {
            assert!(Words::zeroed(count).iter().all(|&word| word == 0), "{count}");
        }
    }
}
