//! What waits to be sent: many requests in one buffer, handed to the kernel in one call. It knows no protocol.
//!
//! Small contents are copied behind one another; large ones are only referred to and go out by a vectored write, so that
//! sending a large value copies it once, into the kernel. Positions count all bytes since the connection began: an
//! operation whose end lies beyond `sent_until` has certainly not been carried out.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

/// From here on a content is referred to instead of copied.
pub const REFERRED_FROM_BYTES: usize = 4096;
/// An empty buffer keeps so much room.
const KEPT_BYTES: usize = 256 * 1024;

/// A content that is referred to.
#[derive(Debug)]
struct Referred {
    /// how much of `copied` goes out before it
    after: usize,
    content: Bytes,
    sent: usize,
}

/// Bytes on their way out.
#[derive(Debug, Default)]
pub struct SendBuffer {
    copied: Vec<u8>,
    copied_sent: usize,
    referred: VecDeque<Referred>,
    /// bytes of `copied` and of `referred` that have been put since the last time it was empty
    queued_until: u64,
    /// as `copied.len()` when `queued_until` was reckoned last
    counted: usize,
    sent_until: u64,
}

impl SendBuffer {
    /// Bytes that this buffer itself holds; what is referred to is not among them.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.copied.len() - self.copied_sent
    }

    /// Appends a content: by reference from 4 KB on, else as a copy.
    #[inline]
    pub fn put(&mut self, content: &Bytes) {
        if content.len() >= REFERRED_FROM_BYTES {
            self.refer(content.clone());
        } else {
            self.copied.extend_from_slice(content);
        }
    }

    /// Bytes that wait.
    #[inline]
    pub fn unsent_bytes(&self) -> usize {
        (self.queued_until - self.sent_until) as usize
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queued_until == self.sent_until
    }

    /// The position behind all that was put; `written` is to be called after writing into `buffer`.
    #[inline]
    pub fn queued_until(&self) -> u64 {
        self.queued_until
    }

    /// The position up to which the kernel has taken all.
    #[inline]
    pub fn sent_until(&self) -> u64 {
        self.sent_until
    }

    /// To append to. `written` is to be called afterwards.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.copied
    }

    /// Counts what was appended to `buffer`.
    #[inline]
    pub fn written(&mut self) {
        self.queued_until += (self.copied.len() - self.counted) as u64;
        self.counted = self.copied.len();
    }

    /// Appends a content, by reference.
    #[inline]
    pub fn refer(&mut self, content: Bytes) {
        self.written();
        self.queued_until += content.len() as u64;
        self.referred.push_back(Referred { after: self.copied.len(), content, sent: 0 });
    }

    /// Fills `slices` with what waits, in order; returns how many were filled.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut put = |bytes: &'a [u8]| {
            if bytes.is_empty() {
                return true;
            }
            let Some(slice) = slices.get_mut(filled) else { return false };
            *slice = IoSlice::new(bytes);
            filled += 1;
            true
        };
        let mut from = self.copied_sent;
        for referred in &self.referred {
            if !put(&self.copied[from..referred.after]) || !put(&referred.content[referred.sent..]) {
                return filled;
            }
            from = referred.after;
        }
        put(&self.copied[from..]);
        filled
    }

    /// The kernel took `count` bytes.
    pub fn sent(&mut self, count: usize) {
        let mut left = count.min(self.unsent_bytes());
        self.sent_until += left as u64;
        if self.is_empty() {
            self.clear();
            return;
        }
        while left > 0 {
            let until = self.referred.front().map_or(self.copied.len(), |referred| referred.after);
            let of_copied = left.min(until - self.copied_sent);
            self.copied_sent += of_copied;
            left -= of_copied;
            let Some(referred) = self.referred.front_mut() else { break };
            let of_referred = left.min(referred.content.len() - referred.sent);
            referred.sent += of_referred;
            left -= of_referred;
            if referred.sent == referred.content.len() {
                self.referred.pop_front();
            }
        }
        // A connection that always has something to send would otherwise never give back what was sent.
        if self.copied_sent > KEPT_BYTES && self.copied_sent > self.copied.len() / 2 {
            self.copied.drain(..self.copied_sent);
            self.referred.iter_mut().for_each(|referred| referred.after -= self.copied_sent);
            self.counted -= self.copied_sent;
            self.copied_sent = 0;
        }
    }

    fn clear(&mut self) {
        self.copied.clear();
        self.copied.shrink_to(KEPT_BYTES);
        self.copied_sent = 0;
        self.counted = 0;
        self.referred.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(buffer: &SendBuffer) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 16];
        let count = buffer.slices(&mut slices);
        slices[..count].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn bytes_leave_in_the_order_in_which_they_were_put_however_the_kernel_takes_them() {
        for step in 1..40 {
            let mut buffer = SendBuffer::default();
            let mut expected = Vec::new();
            for round in 0..3u8 {
                buffer.buffer().extend_from_slice(&[round; 5]);
                buffer.written();
                buffer.refer(Bytes::from(vec![100 + round; 11]));
                buffer.refer(Bytes::from(vec![200 + round; 3]));
                expected.extend([vec![round; 5], vec![100 + round; 11], vec![200 + round; 3]].concat());
            }
            buffer.buffer().push(9);
            buffer.written();
            expected.push(9);
            let mut left = Vec::new();
            while !buffer.is_empty() {
                let bytes = waiting(&buffer);
                assert_eq!(bytes.len(), buffer.unsent_bytes(), "step {step}");
                let count = step.min(bytes.len());
                left.extend_from_slice(&bytes[..count]);
                buffer.sent(count);
            }
            assert_eq!(left, expected, "step {step}");
            assert_eq!(buffer.sent_until(), expected.len() as u64);
        }
    }

    #[test]
    fn more_slices_than_fit_are_left_for_the_next_write() {
        let mut buffer = SendBuffer::default();
        for byte in 0..5 {
            buffer.refer(Bytes::from(vec![byte; 2]));
        }
        let mut slices = [IoSlice::new(&[]); 2];
        assert_eq!(buffer.slices(&mut slices), 2);
        assert_eq!(&slices[1][..], [1, 1]);
    }

    #[test]
    fn a_buffer_that_is_never_empty_gives_back_what_was_sent() {
        let mut buffer = SendBuffer::default();
        for _ in 0..10_000 {
            buffer.buffer().extend_from_slice(&[1; 1000]);
            buffer.written();
            buffer.sent(if buffer.unsent_bytes() > 1000 { 1000 } else { 500 });
        }
        assert!(buffer.buffer().capacity() < 8 * KEPT_BYTES, "{}", buffer.buffer().capacity());
    }
}
