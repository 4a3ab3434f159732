//! A member's name in 16 bytes: in place up to 14 bytes, else behind one pointer.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const IN_PLACE: usize = 14;

/// An immutable name of at most 65,535 bytes; `default` is the empty one.
pub(super) enum Name {
    Short { len: u8, bytes: [u8; IN_PLACE] },
    Long(Thin),
}

/// A heap string whose length precedes its bytes, so that the pointer is 8 bytes and not 16.
pub(super) struct Thin(NonNull<u8>);

const LENGTH_BYTES: usize = size_of::<u16>();

// SAFETY: `Thin` owns its memory like a `Box<str>`.
unsafe impl Send for Thin {}
// SAFETY: shared access only reads.
unsafe impl Sync for Thin {}

impl Thin {
    fn new(name: &str) -> Self {
        let len = u16::try_from(name.len()).expect("names are bounded far below 65,535 bytes");
        let layout = Self::layout(name.len());
        // SAFETY: the layout holds at least the length, so it is not empty.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: the allocation holds the length and then the name's bytes, and is ours alone.
        unsafe {
            start.as_ptr().cast::<u16>().write(len);
            start.as_ptr().add(LENGTH_BYTES).copy_from_nonoverlapping(name.as_ptr(), name.len());
        }
        Self(start)
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(LENGTH_BYTES + len, align_of::<u16>()).expect("a small size")
    }

    fn len(&self) -> usize {
        // SAFETY: `new` wrote the length there, aligned.
        usize::from(unsafe { self.0.as_ptr().cast::<u16>().read() })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `new` wrote this many bytes behind the length.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(LENGTH_BYTES), self.len()) }
    }
}

impl Drop for Thin {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with the same layout.
        unsafe { dealloc(self.0.as_ptr(), Self::layout(self.len())) };
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::Short { len: 0, bytes: [0; IN_PLACE] }
    }
}

impl Name {
    pub(super) fn new(name: &str) -> Self {
        if name.len() > IN_PLACE {
            return Self::Long(Thin::new(name));
        }
        let mut bytes = [0; IN_PLACE];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Self::Short { len: name.len() as u8, bytes }
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => &bytes[..usize::from(*len)],
            Self::Long(thin) => thin.bytes(),
        }
    }

    #[inline(always)]
    pub(super) fn is(&self, name: &str) -> bool {
        self.bytes() == name.as_bytes()
    }

    pub(super) fn as_str(&self) -> &str {
        // SAFETY: the bytes are those of the `&str` given to `new`, whole.
        unsafe { std::str::from_utf8_unchecked(self.bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_come_back_as_they_were() {
        assert_eq!(size_of::<Name>(), 16);
        for len in 0..400 {
            let text = "é".repeat(len / 2) + &"x".repeat(len % 2);
            let name = Name::new(&text);
            assert_eq!(name.as_str(), text);
            assert!(name.is(&text) && !name.is(&(text + "y")));
        }
    }
}
