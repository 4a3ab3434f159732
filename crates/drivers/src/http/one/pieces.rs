//! One request and its answer in pieces, and then the next: a connection's state between reads. No socket, no clock.
//!
//! Separate from `exchange`, which reports whole answers and recalls the last head, because a flag would cost its hot
//! path. Both use the same parsers: where a head and a body end, what is a fault, when the connection takes no more
//! requests.
//! The bytes of a read are in the read buffer and reported from there; only an incomplete head is kept.

use super::chunks::Chunks;
use super::connection::{End, State};
use super::head::{self, Body};
use super::request::Request;
use crate::address::Address;
use crate::http::fault::Fault;
use crate::http::fetch::{Fetch, Head, Headers, INTERIM_MAX, Origin, Piece};
use crate::read_buffer::ReadBuffer;
use crate::unfinished::Carried;

/// Where a connection is in its talk with the server.
#[derive(Default)]
pub struct Pieces {
    origin: Origin,
    /// the request, as far as it was asked
    wire: Vec<u8>,
    /// of these
    written_bytes: usize,
    stage: Stage,
    /// an incomplete head
    carried: Carried,
    tag: u32,
    /// interim heads before the one that is awaited
    interim_count: u8,
    /// the answer has no body, whatever its head says
    is_head: bool,
    /// the connection takes no further request
    closes: bool,
    /// bytes followed an answer without a request for them
    has_surplus: bool,
}

/// How far the answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// nothing was asked
    #[default]
    Idle,
    Head,
    /// so many bytes of the body are still to come, at least one
    Sized(u64),
    Chunked(Chunks),
    UntilEnd,
    /// all of it was reported but its end
    Whole,
}

impl State for Pieces {
    type Send<'a> = Fetch<'a>;
    type Received<'d> = Piece<'d>;

    fn new(to: &Address) -> Self {
        Pieces { origin: Origin::of(to), ..Pieces::default() }
    }

    fn send(&mut self, what: Fetch<'_>) -> bool {
        let request = Request::new(&what.parts(&self.origin));
        self.ask(request, what.tag)
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Piece<'d>>, Fault> {
        if self.has_surplus {
            return Err(Fault::Unasked);
        }
        if self.stage == Stage::Whole {
            return Ok(Some(self.finish(buffer)));
        }
        let rest_bytes = buffer.rest().len();
        if rest_bytes == 0 {
            return Ok(None);
        }
        let tag = self.tag;
        match self.stage {
            Stage::Idle | Stage::Whole => Err(Fault::Unasked),
            Stage::Head => self.hear_head(buffer),
            Stage::Sized(left) => {
                let taken = left.min(rest_bytes as u64);
                self.stage = if taken == left { Stage::Whole } else { Stage::Sized(left - taken) };
                Ok(Some(Piece::Part { tag, bytes: buffer.take(taken as usize) }))
            }
            Stage::UntilEnd => Ok(Some(Piece::Part { tag, bytes: buffer.take(rest_bytes) })),
            Stage::Chunked(mut chunks) => {
                let gathered = chunks.gather(buffer.rest_mut());
                self.stage = Stage::Chunked(chunks);
                match gathered {
                    Err((at, fault)) => {
                        buffer.take(at);
                        Err(fault)
                    }
                    Ok(walk) => {
                        if walk.is_end {
                            self.stage = Stage::Whole;
                        }
                        if walk.data_bytes > 0 {
                            let bytes = &buffer.take(walk.taken)[..walk.data_bytes as usize];
                            return Ok(Some(Piece::Part { tag, bytes }));
                        }
                        buffer.take(walk.taken);
                        Ok(walk.is_end.then(|| self.finish(buffer)))
                    }
                }
            }
        }
    }

    fn unsent(&self) -> &[u8] {
        &self.wire[self.written_bytes..]
    }

    fn wrote(&mut self, count: usize) {
        self.written_bytes += count;
        if self.unsent().is_empty() {
            self.forget_request();
        }
    }

    fn has_written(&self) -> bool {
        self.written_bytes > 0
    }

    fn stop_sending(&mut self) {
        self.closes = true;
        self.forget_request();
    }

    fn lay<'d>(&self, buffer: &'d mut ReadBuffer) -> &'d mut [u8] {
        buffer.lay(self.carried.bytes())
    }

    fn came(&mut self, count: usize, buffer: &mut ReadBuffer) {
        self.carried.clear();
        buffer.filled(count);
    }

    fn end(&mut self, is_clean: bool) -> End {
        match self.stage {
            Stage::UntilEnd if is_clean => {
                self.stage = Stage::Whole;
                End::OfAnswer
            }
            Stage::Head if self.carried.bytes().is_empty() => End::OfConnection,
            Stage::Idle | Stage::Whole => End::OfConnection,
            Stage::Head | Stage::Sized(_) | Stage::Chunked(_) | Stage::UntilEnd => End::CutOff,
        }
    }
}

impl Pieces {
    /// Takes a request. False: one is open, or the connection takes no more.
    pub fn ask(&mut self, request: Request, tag: u32) -> bool {
        if self.stage != Stage::Idle || !self.unsent().is_empty() || self.closes || self.has_surplus {
            return false;
        }
        let Request { wire, is_head, closes, .. } = request;
        (self.wire, self.written_bytes) = (wire.into_vec(), 0);
        (self.tag, self.interim_count, self.is_head, self.closes) = (tag, 0, is_head, closes);
        self.stage = Stage::Head;
        true
    }

    /// A quiet connection keeps no room for its last request.
    fn forget_request(&mut self) {
        (self.wire, self.written_bytes) = (Vec::new(), 0);
    }

    fn hear_head<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Piece<'d>>, Fault> {
        let head = loop {
            let rest_bytes = buffer.rest().len();
            if rest_bytes == 0 {
                return Ok(None);
            }
            match head::read(buffer.rest(), self.is_head)? {
                None => {
                    self.carried.keep(buffer.take(rest_bytes))?;
                    return Ok(None);
                }
                Some(head) if head.is_interim() => {
                    // Each is small, but a server may send them for ever.
                    self.interim_count += 1;
                    if self.interim_count > INTERIM_MAX {
                        return Err(Fault::HeadTooLarge);
                    }
                    buffer.take(head.bytes);
                }
                Some(head) => break head,
            }
        };
        self.closes |= head.closes;
        self.stage = match head.body {
            Body::Sized(0) => Stage::Whole,
            Body::Sized(length) => Stage::Sized(length),
            Body::Chunked => Stage::Chunked(Chunks::default()),
            Body::UntilEnd => Stage::UntilEnd,
        };
        let lines: &[u8] = buffer.take(head.bytes);
        let status_bytes = memchr::memchr(b'\n', lines).map_or(lines.len(), |at| at + 1);
        let (status_line, lines) = lines.split_at(status_bytes);
        // Behind `HTTP/1.1 200 `.
        let reason = status_line.get(13..).unwrap_or_default().trim_ascii_end();
        let headers = Headers::of(lines);
        Ok(Some(Piece::Head(Head { tag: self.tag, status: head.status, reason, headers })))
    }

    /// The answer is complete. A request that is not yet written needs no further byte, but its rest must not be taken
    /// for the next one.
    fn finish<'d>(&mut self, buffer: &ReadBuffer) -> Piece<'d> {
        self.stage = Stage::Idle;
        self.closes |= !self.unsent().is_empty();
        self.has_surplus = !buffer.rest().is_empty();
        Piece::End { tag: self.tag, closes: self.closes }
    }
}

#[cfg(test)]
mod tests;
