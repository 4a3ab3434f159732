//! The read buffer: one for all connections of a worker.
//!
//! A read lands here, messages are taken off the front as slices, and an incomplete remainder goes back to its driver,
//! which puts it first at its next read. So thousands of idle connections own no read buffer at all.

/// Room for one read; a message may be as large as this.
pub const READ_BUFFER_BYTES: usize = 128 * 1024;

/// The shared read buffer. `bytes[from..to]` is what the driver that reads has not taken yet.
pub struct ReadBuffer {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
    /// most bytes that one read may bring
    limit: usize,
    /// a message that came in pieces, joined
    pub(crate) joined: Vec<u8>,
}

impl Default for ReadBuffer {
    fn default() -> Self {
        ReadBuffer::new()
    }
}

impl ReadBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        ReadBuffer {
            bytes: vec![0; READ_BUFFER_BYTES].into_boxed_slice(),
            from: 0,
            to: 0,
            limit: usize::MAX,
            joined: Vec::new(),
        }
    }

    /// Clears it and puts `carried` first; returns the room after it, for one read, up to the limit.
    pub fn lay(&mut self, carried: &[u8]) -> &mut [u8] {
        self.from = 0;
        self.to = carried.len();
        self.bytes[..self.to].copy_from_slice(carried);
        let end = self.to.saturating_add(self.limit).min(self.bytes.len());
        &mut self.bytes[self.to..end]
    }

    /// The same for what cannot be read in parts: all the room, and how many bytes are enough for one read.
    pub(crate) fn lay_whole(&mut self) -> (&mut [u8], usize) {
        (self.from, self.to) = (0, 0);
        (&mut self.bytes, self.limit)
    }

    /// From now on a read brings at most `bytes`, for a connection that reads slowly on purpose. At least 1, since a read
    /// without room would look like the end of the stream.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes.max(1);
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

    /// The same, for who moves bytes within it.
    pub(crate) fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.to]
    }

    /// Takes `count` bytes off the front and returns them.
    pub fn take(&mut self, count: usize) -> &mut [u8] {
        let from = self.from;
        self.from += count;
        &mut self.bytes[from..from + count]
    }

    /// The last `count` bytes that were taken.
    pub(crate) fn taken(&self, count: usize) -> &[u8] {
        &self.bytes[self.from - count..self.from]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_bounds_the_read_and_not_what_was_carried() {
        let mut buffer = ReadBuffer::new();
        assert_eq!(buffer.lay(b"carried").len(), READ_BUFFER_BYTES - 7);
        for (limit, room) in [
            (1000, 1000),
            (0, 1),
            (READ_BUFFER_BYTES, READ_BUFFER_BYTES - 7),
            (usize::MAX, READ_BUFFER_BYTES - 7),
        ] {
            buffer.set_limit(limit);
            assert_eq!(buffer.lay(b"carried").len(), room, "limit {limit}");
        }
        buffer.lay(b"carried")[..3].copy_from_slice(b" on");
        buffer.filled(3);
        assert_eq!(buffer.rest(), b"carried on");
    }
}
