//! One request and its answer, and then the next: a connection's state between reads. No socket, no clock.
//!
//! The bytes of a read are in the read buffer. A complete answer is reported in place. Of any other, the head is kept
//! until it is complete, and the body is counted or gathered in `store`, each byte once.

use std::rc::Rc;

use super::Prepared;
use super::chunks::Chunks;
use super::connection::{End, State};
use super::head::{self, Body, Head};
use super::request::Request;
use crate::address::Address;
use crate::http::fault::Fault;
use crate::http::message::{Answer, Media, Outgoing, Received};
use crate::read_buffer::ReadBuffer;
use crate::unfinished::{FREE_BYTES, Reservation};

/// So much room a body has at most before its bytes come: its own, or where it does not say its length that of the last.
const EARLY_ROOM_BYTES_MAX: usize = 256 * 1024;

/// Where a connection is in its talk with the server.
#[derive(Default)]
pub struct Exchange {
    /// the request that is open, or whose rest still waits for the kernel
    asked: Option<Rc<Request>>,
    /// of the request; beyond its end when the rest is given up
    written_bytes: usize,
    stage: Stage,
    /// an incomplete head; or the location, followed by the received part of a body that is kept
    store: Vec<u8>,
    /// for `store`
    reserved: Reservation,
    location_bytes: u16,
    /// of the last head
    media: Option<Media>,
    status: u16,
    tag: u32,
    /// of the body so far
    body_bytes: u64,
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
    Head {
        has_begun: bool,
    },
    /// so many bytes of the body are still to come
    Sized(u64),
    Chunked(Chunks),
    UntilEnd,
    /// the connection ended, and the answer with it
    Ended,
}

impl State for Exchange {
    type Send<'a> = Outgoing<'a, Prepared>;
    type Received<'d> = Received<'d>;

    fn new(_: &Address) -> Self {
        Exchange::default()
    }

    fn send(&mut self, what: Outgoing<'_, Prepared>) -> bool {
        self.ask(&what.prepared.0, what.tag)
    }

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Received<'d>>, Fault> {
        match self.stage {
            _ if self.has_surplus => Err(Fault::Unasked),
            Stage::Ended => Ok(Some(Received::Answer(self.gathered(buffer)))),
            _ if buffer.rest().is_empty() => Ok(None),
            Stage::Idle => Err(Fault::Unasked),
            Stage::Head { has_begun } => self.hear_head(has_begun, buffer),
            Stage::Sized(_) | Stage::Chunked(_) | Stage::UntilEnd => self.hear_body(buffer),
        }
    }

    fn unsent(&self) -> &[u8] {
        self.asked.as_ref().and_then(|request| request.wire.get(self.written_bytes..)).unwrap_or_default()
    }

    fn wrote(&mut self, count: usize) {
        self.written_bytes += count;
        self.forget_written();
    }

    fn has_written(&self) -> bool {
        self.written_bytes > 0
    }

    fn stop_sending(&mut self) {
        self.written_bytes = usize::MAX;
        self.closes = true;
        self.forget_written();
    }

    fn lay<'d>(&self, buffer: &'d mut ReadBuffer) -> &'d mut [u8] {
        buffer.lay(if self.awaits_head() { &self.store } else { &[] })
    }

    fn came(&mut self, count: usize, buffer: &mut ReadBuffer) {
        if self.awaits_head() {
            self.store.clear();
        }
        buffer.filled(count);
    }

    fn end(&mut self, is_clean: bool) -> End {
        match self.stage {
            Stage::UntilEnd if is_clean => {
                self.stage = Stage::Ended;
                End::OfAnswer
            }
            Stage::Head { .. } if self.store.is_empty() => End::OfConnection,
            Stage::Idle | Stage::Ended => End::OfConnection,
            Stage::Head { .. } | Stage::Sized(_) | Stage::Chunked(_) | Stage::UntilEnd => End::CutOff,
        }
    }
}

impl Exchange {
    /// Takes a request. False: one is open, or the connection takes no more.
    pub fn ask(&mut self, request: &Rc<Request>, tag: u32) -> bool {
        let is_free = self.stage == Stage::Idle && self.asked.is_none();
        if !is_free || self.closes || self.has_surplus {
            return false;
        }
        self.asked = Some(request.clone());
        self.written_bytes = 0;
        self.tag = tag;
        self.stage = Stage::Head { has_begun: false };
        true
    }

    /// What the body is of the last answer whose head has come.
    pub fn media(&self) -> Option<Media> {
        self.media
    }

    /// An early answer leaves its request pending until that is written.
    fn forget_written(&mut self) {
        if self.stage == Stage::Idle && self.unsent().is_empty() {
            self.asked = None;
        }
    }

    fn awaits_head(&self) -> bool {
        matches!(self.stage, Stage::Head { .. })
    }

    fn hear_head<'d>(
        &mut self,
        has_begun: bool,
        buffer: &'d mut ReadBuffer,
    ) -> Result<Option<Received<'d>>, Fault> {
        let Some(request) = self.asked.clone() else { return Err(Fault::Unasked) };
        let head = loop {
            if buffer.rest().is_empty() {
                return Ok(None);
            }
            match find_head(&request, buffer.rest())? {
                None => return self.carry_head(has_begun, buffer),
                Some(head) if head.is_interim() => drop(buffer.take(head.bytes)),
                Some(head) => break head,
            }
        };
        self.status = head.status;
        self.media = Some(head.media);
        self.closes |= head.closes;
        let behind = &buffer.rest()[head.bytes..];
        let cap = request.body_cap;
        match head.body {
            Body::Sized(length) if length > cap => Err(Fault::BodyTooLarge),
            Body::Sized(length) if length <= behind.len() as u64 => {
                Ok(Some(self.whole(&request, &head, length as usize, buffer)))
            }
            Body::Chunked => match Chunks::default().walk(behind, cap, |_| {}) {
                Ok(walk) if walk.is_end => Ok(Some(self.whole(&request, &head, walk.taken, buffer))),
                Ok(_) => self.begin_body(&request, &head, has_begun, buffer),
                Err((at, fault)) => {
                    buffer.take(head.bytes + at);
                    Err(fault)
                }
            },
            Body::Sized(_) | Body::UntilEnd => self.begin_body(&request, &head, has_begun, buffer),
        }
    }

    /// Keeps an incomplete head until its rest comes.
    fn carry_head<'d>(
        &mut self,
        has_begun: bool,
        buffer: &mut ReadBuffer,
    ) -> Result<Option<Received<'d>>, Fault> {
        let begins = !has_begun && !head::begins_interim(buffer.rest());
        let rest_bytes = buffer.rest().len();
        self.reserved.grow_to(rest_bytes, FREE_BYTES)?;
        self.store.clear();
        self.store.extend_from_slice(buffer.take(rest_bytes));
        self.stage = Stage::Head { has_begun: has_begun || begins };
        Ok(begins.then_some(Received::Began { tag: self.tag }))
    }

    /// An answer that is completely in the buffer, with `wire_bytes` after its head.
    fn whole<'d>(
        &mut self,
        request: &Request,
        head: &Head,
        wire_bytes: usize,
        buffer: &'d mut ReadBuffer,
    ) -> Received<'d> {
        self.finish(request);
        if self.store.capacity() > 0 {
            self.store = Vec::new();
            self.reserved.release();
        }
        let total_bytes = head.bytes + wire_bytes;
        self.has_surplus = buffer.rest().len() > total_bytes;
        let (lines, body) = buffer.take(total_bytes).split_at_mut(head.bytes);
        let body_bytes = match head.body {
            Body::Chunked => Chunks::join(body, request.keeps_body),
            Body::Sized(_) | Body::UntilEnd => wire_bytes,
        };
        let location = head.location.clone().and_then(|range| lines.get(range));
        Received::Answer(Answer {
            tag: self.tag,
            status: head.status,
            body: if request.keeps_body { &body[..body_bytes] } else { &[] },
            body_bytes: body_bytes as u64,
            location: location.and_then(|location| std::str::from_utf8(location).ok()),
            closes: self.closes,
            grpc: None,
        })
    }

    /// The head is here and the body is not, or not all of it.
    fn begin_body<'d>(
        &mut self,
        request: &Request,
        head: &Head,
        has_begun: bool,
        buffer: &'d mut ReadBuffer,
    ) -> Result<Option<Received<'d>>, Fault> {
        if request.keeps_body || head.location.is_some() {
            self.reuse_room(head.body, request.free_bytes, buffer);
        }
        self.store.clear();
        let lines = buffer.take(head.bytes);
        if let Some(range) = &head.location {
            self.store.extend_from_slice(&lines[range.clone()]);
        }
        self.location_bytes = self.store.len() as u16;
        self.body_bytes = 0;
        self.stage = match head.body {
            Body::Sized(length) => {
                if request.keeps_body {
                    // Grow only as data arrives: the length is the server's claim, and the allocator keeps large
                    // buffers.
                    self.store.reserve_exact((length as usize).min(EARLY_ROOM_BYTES_MAX));
                }
                Stage::Sized(length)
            }
            Body::Chunked => Stage::Chunked(Chunks::default()),
            Body::UntilEnd => Stage::UntilEnd,
        };
        let tag = self.tag;
        let received = self.hear_body(buffer)?;
        Ok(received.or((!has_begun).then_some(Received::Began { tag })))
    }

    /// Gathers this answer in the room that the last one took in the buffer, unless that may be much more than it needs:
    /// a small answer that stalls would keep it.
    fn reuse_room(&mut self, body: Body, free_bytes: usize, buffer: &mut ReadBuffer) {
        let room = std::mem::take(&mut buffer.joined);
        let fits = match body {
            Body::Sized(length) => room.capacity() as u64 / 2 <= length,
            Body::Chunked | Body::UntilEnd => room.capacity() <= EARLY_ROOM_BYTES_MAX,
        };
        let is_reserved = fits && self.reserved.grow_to(room.capacity(), free_bytes).is_ok();
        self.store = if is_reserved { room } else { Vec::new() };
    }

    /// More of a body whose head came with an earlier read, or with this one.
    fn hear_body<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Received<'d>>, Fault> {
        let Some(request) = self.asked.clone() else { return Err(Fault::Unasked) };
        let rest = buffer.rest();
        let room = request.body_cap - self.body_bytes;
        let ends_here = matches!(self.stage, Stage::Sized(left) if left <= rest.len() as u64);
        if request.keeps_body && !ends_here {
            // Before the bytes are kept, so that a refused body has touched no memory.
            self.reserved.grow_to(self.store.len() + rest.len(), request.free_bytes)?;
        }
        let (taken, data_bytes, is_end) = match &mut self.stage {
            Stage::Sized(left) => {
                let taken = (*left).min(rest.len() as u64);
                *left -= taken;
                request.keep(&mut self.store, &rest[..taken as usize]);
                (taken as usize, taken, *left == 0)
            }
            Stage::Chunked(chunks) => {
                match chunks.walk(rest, room, |data| request.keep(&mut self.store, &rest[data])) {
                    Ok(walk) => (walk.taken, walk.data_bytes, walk.is_end),
                    Err((at, fault)) => {
                        buffer.take(at);
                        return Err(fault);
                    }
                }
            }
            _ if rest.len() as u64 > room => return Err(Fault::BodyTooLarge),
            _ => {
                request.keep(&mut self.store, rest);
                (rest.len(), rest.len() as u64, false)
            }
        };
        buffer.take(taken);
        self.body_bytes += data_bytes;
        if !is_end {
            return Ok(None);
        }
        self.has_surplus = !buffer.rest().is_empty();
        Ok(Some(Received::Answer(self.gathered(buffer))))
    }

    /// An answer that came in pieces. What was kept of it goes to the buffer, so that nothing stays with the connection.
    fn gathered<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Answer<'d> {
        if let Some(request) = self.asked.clone() {
            self.finish(&request);
        }
        if self.store.capacity() > 0 {
            buffer.joined = std::mem::take(&mut self.store);
        } else {
            buffer.joined.clear();
        }
        self.reserved.release();
        let (location, body) = buffer.joined.split_at(usize::from(self.location_bytes));
        Answer {
            tag: self.tag,
            status: self.status,
            body,
            body_bytes: self.body_bytes,
            location: std::str::from_utf8(location).ok().filter(|location| !location.is_empty()),
            closes: self.closes,
            grpc: None,
        }
    }

    /// The answer is complete. A request that is not yet written needs no further byte, but its rest must not be taken
    /// for the next one.
    fn finish(&mut self, request: &Request) {
        self.stage = Stage::Idle;
        self.closes |= request.closes;
        if !self.unsent().is_empty() {
            self.closes = true;
        } else {
            self.asked = None;
        }
    }
}

/// The head at the beginning of `bytes`, read or recalled.
fn find_head(request: &Request, bytes: &[u8]) -> Result<Option<Head>, Fault> {
    if let Some(head) = request.memo.borrow().recall(bytes) {
        return Ok(Some(head.clone()));
    }
    let head = head::read(bytes, request.is_head)?;
    if let Some(head) = head.as_ref().filter(|head| !head.is_interim()) {
        request.memo.borrow_mut().keep(bytes, head);
    }
    Ok(head)
}

#[cfg(test)]
pub(super) mod tests;
