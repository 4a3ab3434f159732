//! The desk: one read buffer for all connections of a worker.
//!
//! A read lands here, messages are taken off the front as slices, and what is left incomplete goes back to its driver,
//! which puts it first at its next read. So thousands of idle connections own no read buffer at all.

/// Room for one read; a message may be as large as this.
pub const DESK_BYTES: usize = 128 * 1024;

/// The shared read buffer. `bytes[from..to]` is what the driver at the desk has not taken yet.
pub struct Desk {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
    /// a message that came in pieces, joined
    pub(crate) joined: Vec<u8>,
}

impl Default for Desk {
    fn default() -> Self {
        Desk::new()
    }
}

impl Desk {
    /// An empty desk.
    pub fn new() -> Self {
        Desk { bytes: vec![0; DESK_BYTES].into_boxed_slice(), from: 0, to: 0, joined: Vec::new() }
    }

    /// Clears it and puts `carried` first; returns the free room behind, for one read.
    pub fn lay(&mut self, carried: &[u8]) -> &mut [u8] {
        self.from = 0;
        self.to = carried.len();
        self.bytes[..self.to].copy_from_slice(carried);
        &mut self.bytes[self.to..]
    }

    /// `count` bytes were read into the free room.
    pub fn filled(&mut self, count: usize) {
        self.to += count;
        debug_assert!(self.to <= self.bytes.len());
    }

    /// What has not been taken yet.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Takes `count` bytes off the front and returns them.
    pub fn take(&mut self, count: usize) -> &mut [u8] {
        let from = self.from;
        self.from += count;
        &mut self.bytes[from..from + count]
    }
}
