//! The two buffers between HTTP/2 and the socket.
//!
//! The `h2` crate wants a stream that it reads and writes itself. Here it gets an in-memory one, so that it is driven
//! like every other codec: the bytes of a read are put in, its output is taken out and flushed when it is time.
//! The crate ignores what arrives on a stream that the server has ended (RFC 9113, section 5.1: STREAM_CLOSED),
//! including a second answer; therefore frame headers are parsed here too. Nothing after such a frame is passed on.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::unfinished::{FREE_BYTES, Reservation};

/// Length, type, flags and stream stand before each frame. Source: RFC 9113, section 4.1.
const FRAME_HEADER_BYTES: usize = 9;
/// What a client says before its first frame. Source: RFC 9113, section 3.4.
const PREFACE_BYTES: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// Of DATA and HEADERS: nothing more comes on this stream.
const END_STREAM: u8 = 1;
/// Frames of requests. All others are answers to the server's.
const OF_REQUESTS: [u8; 3] = [DATA, HEADERS, CONTINUATION];

/// A quiet connection keeps no more room than this for what is unsent.
const OUTGOING_BYTES_KEPT: usize = 1024;

/// What is on its way between HTTP/2 and the socket.
pub struct Pipe {
    incoming: Vec<u8>,
    /// of `incoming`
    taken_bytes: usize,
    has_ended: bool,
    outgoing: Vec<u8>,
    /// of what comes
    answered: Frames,
    /// of what HTTP/2 writes
    asked: Frames,
    streams: Streams,
    surplus: Surplus,
    /// bytes of frames that belong to no request, since nothing was unsent
    answer_bytes: usize,
    /// for these
    answers: Reservation,
    has_too_many_answers: bool,
}

impl Default for Pipe {
    fn default() -> Self {
        Pipe {
            incoming: Vec::new(),
            taken_bytes: 0,
            has_ended: false,
            outgoing: Vec::new(),
            answered: Frames::behind(0),
            asked: Frames::behind(PREFACE_BYTES),
            streams: Streams::default(),
            surplus: Surplus::None,
            answer_bytes: 0,
            answers: Reservation::default(),
            has_too_many_answers: false,
        }
    }
}

/// Where one direction is among its frames.
struct Frames {
    header: [u8; FRAME_HEADER_BYTES],
    /// of `header`, as far as it is known
    header_bytes: usize,
    /// of the current frame, after its header
    left_bytes: usize,
}

/// The header of a frame.
struct Header {
    kind: u8,
    flags: u8,
    stream: u32,
    /// of the frame with its header
    bytes: usize,
}

impl Frames {
    /// Before the first frame, which comes after `bytes` bytes of something else (the preface).
    fn behind(bytes: usize) -> Self {
        Frames { header: [0; FRAME_HEADER_BYTES], header_bytes: 0, left_bytes: bytes }
    }

    /// The next header that is complete with these bytes, which are advanced past it.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<Header> {
        let skipped = self.left_bytes.min(bytes.len());
        self.left_bytes -= skipped;
        *bytes = &bytes[skipped..];
        let count = (FRAME_HEADER_BYTES - self.header_bytes).min(bytes.len());
        self.header[self.header_bytes..self.header_bytes + count].copy_from_slice(&bytes[..count]);
        self.header_bytes += count;
        *bytes = &bytes[count..];
        if self.left_bytes > 0 || self.header_bytes < FRAME_HEADER_BYTES {
            return None;
        }
        let [high, middle, low, kind, flags, stream @ ..] = self.header;
        self.left_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.header_bytes = 0;
        // The highest bit is reserved.
        let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
        Some(Header { kind, flags, stream, bytes: FRAME_HEADER_BYTES + self.left_bytes })
    }
}

/// The streams of requests. One that we reset stays open here until the server ends it, since its frames may be on their way.
#[derive(Default)]
struct Streams {
    /// those that the server has not ended
    open: Vec<u32>,
    begun_max: u32,
}

impl Streams {
    /// We wrote a frame.
    fn wrote(&mut self, frame: &Header) {
        if frame.kind == HEADERS && frame.stream > self.begun_max {
            self.begun_max = frame.stream;
            self.open.push(frame.stream);
        }
    }

    /// A frame came. False: the server had ended its stream. Frames of streams that are none of ours are the crate's to judge.
    fn takes(&mut self, frame: &Header) -> bool {
        let is_ours = frame.stream % 2 == 1 && frame.stream <= self.begun_max;
        if !is_ours || ![DATA, HEADERS].contains(&frame.kind) {
            return true;
        }
        let Some(at) = self.open.iter().position(|stream| *stream == frame.stream) else { return false };
        if frame.flags & END_STREAM != 0 {
            self.open.swap_remove(at);
        }
        true
    }
}

/// Whether something came on a stream that the server had ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Surplus {
    None,
    Came,
    Told,
}

impl Pipe {
    /// Bytes of answers to the server's own frames (pings, settings) that have come together since nothing was unsent.
    pub fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// Whether these were once more than is left for the answers to all servers.
    pub fn has_too_many_answers(&self) -> bool {
        self.has_too_many_answers
    }

    /// Bytes came from the socket.
    pub fn came(&mut self, bytes: &[u8]) {
        if self.surplus != Surplus::None {
            return;
        }
        let mut rest = bytes;
        while let Some(frame) = self.answered.next(&mut rest) {
            if !self.streams.takes(&frame) {
                self.surplus = Surplus::Came;
                // Without its last byte the crate sees no frame header yet, however the bytes were split.
                self.incoming.extend_from_slice(&bytes[..bytes.len() - rest.len() - 1]);
                return;
            }
        }
        self.incoming.extend_from_slice(bytes);
    }

    /// True, once, when something has come on a stream that the server had ended.
    pub fn take_surplus(&mut self) -> bool {
        let is_new = self.surplus == Surplus::Came;
        if is_new {
            self.surplus = Surplus::Told;
        }
        is_new
    }

    /// The socket will bring no more.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// HTTP/2 wrote these bytes.
    fn note_written(&mut self, mut bytes: &[u8]) {
        while let Some(frame) = self.asked.next(&mut bytes) {
            self.streams.wrote(&frame);
            if !OF_REQUESTS.contains(&frame.kind) {
                self.answer_bytes += frame.bytes;
                self.has_too_many_answers |= self.answers.grow_to(self.answer_bytes, FREE_BYTES).is_err();
            }
        }
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
        self.answers.release();
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
            // No task is woken: whoever adds bytes polls again.
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
        pipe.note_written(bytes);
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
            let mut pipe = Pipe::default();
            all.chunks(step).for_each(|piece| pipe.note_written(piece));
            assert_eq!(pipe.answer_bytes(), expected, "in pieces of {step}");
        }
    }

    /// A frame of a stream.
    fn of(stream: u8, kind: u8, flags: u8, payload_bytes: usize) -> Vec<u8> {
        let mut bytes = frame(kind, payload_bytes);
        (bytes[4], bytes[8]) = (flags, stream);
        bytes
    }

    /// After requests on the streams 1 and 3, in pieces of all lengths: how much of `came` is handed on if there is surplus.
    #[track_caller]
    fn handed_on(came: &[Vec<u8>]) -> Option<usize> {
        let came = came.concat();
        let of_each = (1..=came.len()).map(|step| {
            let mut pipe = Pipe::default();
            pipe.note_written(
                &[&[0; PREFACE_BYTES][..], &of(1, HEADERS, 1, 9), &of(3, HEADERS, 1, 9)].concat(),
            );
            came.chunks(step).for_each(|piece| pipe.came(piece));
            let is_surplus = pipe.take_surplus();
            assert!(!pipe.take_surplus(), "told once");
            assert!(is_surplus || pipe.incoming == came, "all is handed on");
            is_surplus.then_some(pipe.incoming.len())
        });
        let of_each: Vec<Option<usize>> = of_each.collect();
        assert!(of_each.iter().all(|one| *one == of_each[0]), "{of_each:?}");
        of_each[0]
    }

    #[test]
    fn what_comes_on_a_stream_that_the_server_has_ended_is_surplus() {
        let answer = |stream| [of(stream, HEADERS, 4, 5), of(stream, DATA, END_STREAM, 7)].concat();
        let before = answer(1).len() + FRAME_HEADER_BYTES - 1;
        assert_eq!(handed_on(&[answer(1), answer(1)]), Some(before));
        assert_eq!(handed_on(&[answer(1), of(1, DATA, 0, 0), answer(3)]), Some(before));
        assert!(handed_on(&[of(3, HEADERS, 5, 5), of(3, HEADERS, 5, 5)]).is_some());
    }

    #[test]
    fn what_may_come_is_no_surplus() {
        let answer = |stream| [of(stream, HEADERS, 4, 5), of(stream, DATA, END_STREAM, 7)].concat();
        let [priority, reset, window] = [2, 3, 8].map(|kind| of(1, kind, 0, 4));
        // What HTTP/2 allows after the end of a stream; an interim head; the rest of a head; streams that were not
        // begun.
        assert_eq!(handed_on(&[answer(1), priority, reset, window, answer(3)]), None);
        assert_eq!(handed_on(&[of(1, HEADERS, 4, 5), answer(1)]), None);
        assert_eq!(handed_on(&[of(1, HEADERS, END_STREAM, 5), of(1, CONTINUATION, 4, 5)]), None);
        assert_eq!(handed_on(&[answer(1), answer(0), answer(2), answer(5), answer(5)]), None);
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
