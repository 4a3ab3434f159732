//! The two buffers between HTTP/2 and the socket.
//!
//! The `h2` crate wants a stream that it reads and writes itself. Here it gets one made of memory, so that it is driven
//! as every other codec: bytes of a read are laid in, what it answers is taken out and flushed when it is time.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Length, type, flags and stream stand before each frame. Source: RFC 9113, section 4.1.
const FRAME_HEADER_BYTES: usize = 9;
/// What a client says before its first frame. Source: RFC 9113, section 3.4.
const PREFACE_BYTES: usize = 24;
/// Frames of requests: DATA, HEADERS, CONTINUATION. All others are answers to the server's.
const OF_REQUESTS: [u8; 3] = [0, 1, 9];

/// A quiet connection keeps no more room than this for what is unsent.
const OUTGOING_BYTES_KEPT: usize = 1024;

/// What is on its way between HTTP/2 and the socket.
pub struct Pipe {
    incoming: Vec<u8>,
    /// of `incoming`
    taken_bytes: usize,
    has_ended: bool,
    outgoing: Vec<u8>,
    frames: Frames,
    /// bytes of frames that belong to no request, since nothing was unsent
    answer_bytes: usize,
}

impl Default for Pipe {
    fn default() -> Self {
        Pipe {
            incoming: Vec::new(),
            taken_bytes: 0,
            has_ended: false,
            outgoing: Vec::new(),
            frames: Frames { header: [0; FRAME_HEADER_BYTES], header_bytes: 0, left_bytes: PREFACE_BYTES },
            answer_bytes: 0,
        }
    }
}

/// Where HTTP/2 is among the frames that it writes.
struct Frames {
    header: [u8; FRAME_HEADER_BYTES],
    /// of `header`, as far as it was written
    header_bytes: usize,
    /// of the frame that is being written, behind its header
    left_bytes: usize,
}

impl Frames {
    /// Bytes of the frames that begin in `bytes` and belong to no request.
    fn answers_in(&mut self, mut bytes: &[u8]) -> usize {
        let mut sum = 0;
        loop {
            let skipped = self.left_bytes.min(bytes.len());
            self.left_bytes -= skipped;
            bytes = &bytes[skipped..];
            let count = (FRAME_HEADER_BYTES - self.header_bytes).min(bytes.len());
            self.header[self.header_bytes..self.header_bytes + count].copy_from_slice(&bytes[..count]);
            self.header_bytes += count;
            bytes = &bytes[count..];
            if self.left_bytes > 0 || self.header_bytes < FRAME_HEADER_BYTES {
                return sum;
            }
            let [high, middle, low, kind, ..] = self.header;
            self.left_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
            self.header_bytes = 0;
            if !OF_REQUESTS.contains(&kind) {
                sum += FRAME_HEADER_BYTES + self.left_bytes;
            }
        }
    }
}

impl Pipe {
    /// Bytes of answers to the server's own frames (pings, settings) that have come together since nothing was unsent.
    pub fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// Bytes came from the socket.
    pub fn came(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// The socket will bring no more.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// What waits for the kernel.
    pub fn unsent(&self) -> &[u8] {
        &self.outgoing
    }

    /// The kernel took so much of it.
    pub fn wrote(&mut self, count: usize) {
        if count < self.outgoing.len() {
            self.outgoing.drain(..count);
            return;
        }
        self.answer_bytes = 0;
        if self.outgoing.capacity() > OUTGOING_BYTES_KEPT {
            self.outgoing = Vec::new();
        } else {
            self.outgoing.clear();
        }
    }
}

/// HTTP/2's end of the pipe.
pub struct PipeEnd(pub Rc<RefCell<Pipe>>);

impl AsyncRead for PipeEnd {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.0.borrow_mut();
        let waiting = &pipe.incoming[pipe.taken_bytes..];
        if waiting.is_empty() {
            // No task is woken: the one that adds bytes polls again.
            return if pipe.has_ended { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let count = waiting.len().min(room.remaining());
        room.put_slice(&waiting[..count]);
        pipe.taken_bytes += count;
        if pipe.taken_bytes == pipe.incoming.len() {
            pipe.taken_bytes = 0;
            pipe.incoming = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PipeEnd {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.0.borrow_mut();
        pipe.outgoing.extend_from_slice(bytes);
        let answer_bytes = pipe.frames.answers_in(bytes);
        pipe.answer_bytes += answer_bytes;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload_bytes: usize) -> Vec<u8> {
        let mut bytes = (payload_bytes as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, 0, 0, 0, 0, 0]);
        bytes.resize(FRAME_HEADER_BYTES + payload_bytes, 7);
        bytes
    }

    #[test]
    fn answers_are_told_from_requests_wherever_they_are_cut() {
        const PING: u8 = 6;
        let (ping, data, headers, settings) = (frame(PING, 8), frame(0, 300), frame(1, 40), frame(4, 0));
        let all =
            [&[0; PREFACE_BYTES][..], &settings, &headers, &data, &ping, &data, &ping, &settings].concat();
        let expected = 2 * settings.len() + 2 * ping.len();
        for step in 1..all.len() {
            let mut frames = Pipe::default().frames;
            let sum: usize = all.chunks(step).map(|piece| frames.answers_in(piece)).sum();
            assert_eq!(sum, expected, "in pieces of {step}");
        }
    }

    #[test]
    fn answers_count_until_nothing_is_unsent() {
        let pipe = Rc::new(RefCell::new(Pipe::default()));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut write = |bytes: &[u8]| {
            let written = Pin::new(&mut PipeEnd(pipe.clone())).poll_write(&mut cx, bytes);
            assert!(matches!(written, Poll::Ready(Ok(count)) if count == bytes.len()));
        };
        write(&[0; PREFACE_BYTES]);
        write(&frame(6, 8));
        pipe.borrow_mut().wrote(PREFACE_BYTES);
        assert_eq!(pipe.borrow().answer_bytes(), 17);
        pipe.borrow_mut().wrote(17);
        assert_eq!(pipe.borrow().answer_bytes(), 0);
    }
}
