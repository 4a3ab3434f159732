//! The leaderboard over gRPC: HTTP/2 by prior knowledge, on the port that also takes HTTP/1.1.
//!
//! The `h2` crate implements the protocol over two buffers, and is polled by the service's own threads after anything
//! that could have made progress; no runtime is involved. A call is executed when its message is complete, and answered
//! at once, up to a limit over all calls in a turn. `Bulk` answers message by message, and reads no further while its
//! client does not read the answers. While a client leaves no room for its pending answers, none of its calls is
//! executed. Incomplete messages share bounded memory; a call beyond it is refused.
//! Signature and idempotency key are metadata, named as over HTTP; what is signed is what is signed over WebSocket.
//! Not here: compression, deadlines set by calls (nothing waits except for the disk).
//! Source: grpc.io, "gRPC over HTTP2".

mod call;
mod pipe;
#[cfg(test)]
pub(super) mod tests;

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection, Handshake};

use super::calls::Caller;
use super::thread::{PORTION_ANSWERS, PORTION_BYTES, Turn};
use call::{Call, Missing};
use pipe::{Pipe, PipeEnd};
use servers_shared::clock;
use servers_shared::fault::ThreadFaults;

/// What a connection of HTTP/2 begins with.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Calls of one connection at once.
const CALLS_MAX: u32 = 128;

/// Bytes of metadata of one call.
const HEAD_BYTES_MAX: u32 = 16 * 1024;

/// A connection that speaks gRPC.
pub(super) struct Grpc {
    pipe: Rc<RefCell<Pipe>>,
    stage: Stage,
    calls: Vec<Call>,
    woken: Arc<Woken>,
    waker: Waker,
    /// When the connection began, monotonic ns.
    began_ns: u64,
    /// Answers that wait for room in the client's windows.
    held_bytes: usize,
    /// Memory of messages that are incomplete, or not executed yet.
    unfinished_bytes: usize,
}

enum Stage {
    Opening(Box<Handshake<PipeEnd, Bytes>>),
    Open(Box<Connection<PipeEnd, Bytes>>),
    Over,
}

/// Answers of one connection that wait for room in its windows: beyond this many bytes no further call is executed. One
/// answer may exceed it.
const HELD_BYTES_MAX: usize = 1024 * 1024;

/// What a turn has executed, over all calls of the connection.
#[derive(Default)]
struct Portion {
    answered: usize,
    /// Of the answers.
    bytes: usize,
    /// Answers of all calls that wait for room.
    held_bytes: usize,
    /// Memory of what has come of the messages of all other calls.
    unfinished_bytes: usize,
    /// A call could not be executed, as the portion was full or too many answers waited.
    keeps_waiting: bool,
    /// The turn's time, once it was read.
    now_ns: Option<u64>,
}

impl Portion {
    /// Nothing more is executed in this turn.
    fn is_full(&self) -> bool {
        self.answered >= PORTION_ANSWERS || self.bytes >= PORTION_BYTES
    }

    /// Whether one more message may be executed.
    fn has_room(&self) -> bool {
        !self.is_full() && self.held_bytes < HELD_BYTES_MAX
    }

    fn count_bytes(&mut self, answer: usize) {
        self.bytes += answer;
        self.held_bytes += answer;
    }

    fn now_ns(&mut self) -> u64 {
        *self.now_ns.get_or_insert_with(clock::now_ns)
    }
}

/// That something could move.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Default for Grpc {
    fn default() -> Grpc {
        let pipe = Rc::new(RefCell::new(Pipe::default()));
        let opening = Builder::new()
            .max_concurrent_streams(CALLS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            .handshake(PipeEnd(pipe.clone()));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let (stage, calls) = (Stage::Opening(Box::new(opening)), Vec::new());
        let (began_ns, held_bytes, unfinished_bytes) = (clock::now_ns(), 0, 0);
        Grpc { pipe, stage, calls, woken, waker, began_ns, held_bytes, unfinished_bytes }
    }
}

impl Grpc {
    /// Takes what was read, carries out what is whole, up to a portion, and appends what is to be written.
    pub(super) fn answer(
        &mut self,
        bytes: &[u8],
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Turn {
        self.pipe.borrow_mut().came(bytes);
        let portion = self.turn(caller, faults);
        self.pipe.borrow_mut().take_outgoing(out);
        let has_more = portion.is_full() && !self.calls.is_empty();
        let closes = matches!(self.stage, Stage::Over);
        Turn { taken: bytes.len(), answered: portion.answered, closes, has_more }
    }

    /// Says that the server goes down: calls that are not whole are answered so, and no further ones taken.
    ///
    /// Returns how many messages were answered all the same: those that came whole and were not looked at yet.
    pub(super) fn take_leave(
        &mut self,
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> usize {
        for call in self.calls.drain(..) {
            call.refuse_late();
        }
        (self.held_bytes, self.unfinished_bytes) = (0, 0);
        let mut answered = self.turn_to_the_end(caller, faults);
        if let Stage::Open(connection) = &mut self.stage {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        answered += self.turn_to_the_end(caller, faults);
        self.pipe.borrow_mut().take_outgoing(out);
        answered
    }

    /// Since when the client has owed the rest of a message or of its greeting, monotonic ns. Of several, the oldest.
    pub(super) fn incomplete_since_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Opening(_) => Some(self.began_ns),
            _ => self.missing_since_ns(Missing::Message),
        }
    }

    /// Since when answers have waited for room in the client's windows. The oldest, if there are several.
    pub(super) fn untaken_since_ns(&self) -> Option<u64> {
        self.missing_since_ns(Missing::Room)
    }

    fn missing_since_ns(&self, what: Missing) -> Option<u64> {
        let missing = self.calls.iter().filter_map(Call::missing);
        missing.filter(|(missing, _)| *missing == what).map(|(_, since_ns)| since_ns).min()
    }

    /// Bytes of answers that wait for room in the client's windows.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Memory of messages that are incomplete, or not executed yet.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.unfinished_bytes
    }

    /// Moves on as far as that goes without further bytes, whatever it costs. Returns how many messages were answered.
    fn turn_to_the_end(&mut self, caller: &Caller, faults: &mut ThreadFaults) -> usize {
        let mut answered = 0;
        loop {
            let portion = self.turn(caller, faults);
            answered += portion.answered;
            if !portion.is_full() {
                return answered;
            }
        }
    }

    /// Moves on as far as that goes without further bytes, up to a portion. Returns what was answered.
    fn turn(&mut self, caller: &Caller, faults: &mut ThreadFaults) -> Portion {
        let (held_bytes, unfinished_bytes) = (self.held_bytes, self.unfinished_bytes);
        let mut portion = Portion { held_bytes, unfinished_bytes, ..Portion::default() };
        loop {
            self.woken.0.store(false, Ordering::Relaxed);
            let mut cx = Context::from_waker(&self.waker);
            if let Stage::Opening(opening) = &mut self.stage {
                match Pin::new(opening).poll(&mut cx) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(connection)) => self.stage = Stage::Open(Box::new(connection)),
                    Poll::Ready(Err(_)) => self.stage = Stage::Over,
                }
            }
            if let Stage::Open(connection) = &mut self.stage {
                loop {
                    match connection.poll_accept(&mut cx) {
                        Poll::Pending => break,
                        Poll::Ready(Some(Ok((request, respond)))) => {
                            self.calls.extend(Call::begin(request, respond));
                        }
                        // The connection's error was reported to the client.
                        Poll::Ready(Some(Err(_)) | None) => {
                            self.stage = Stage::Over;
                            self.calls.clear();
                            (self.held_bytes, self.unfinished_bytes) = (0, 0);
                            return portion;
                        }
                    }
                }
            }
            self.carry_on(caller, faults, &mut portion);
            // Nothing wakes a call that was kept waiting and became executable because another's answer was taken.
            let has_room_again = std::mem::take(&mut portion.keeps_waiting) && portion.has_room();
            if !self.woken.0.load(Ordering::Relaxed) && !has_room_again {
                (self.held_bytes, self.unfinished_bytes) = (portion.held_bytes, portion.unfinished_bytes);
                return portion;
            }
        }
    }

    /// Advances one call after the other. Complete messages are executed until the portion is full.
    fn carry_on(&mut self, caller: &Caller, faults: &mut ThreadFaults, portion: &mut Portion) {
        let mut cx = Context::from_waker(&self.waker);
        let (mut place, mut next) = (0, None);
        let mut keeps_waiting = false;
        self.calls.retain_mut(|call| {
            let answered = portion.answered;
            portion.keeps_waiting = false;
            portion.unfinished_bytes -= call.unfinished_bytes();
            let goes_on = call.goes_on(&mut cx, caller, faults, portion);
            portion.unfinished_bytes += if goes_on { call.unfinished_bytes() } else { 0 };
            if portion.keeps_waiting && portion.answered == answered {
                next.get_or_insert(place);
            }
            keeps_waiting |= portion.keeps_waiting;
            place += usize::from(goes_on);
            goes_on
        });
        portion.keeps_waiting = keeps_waiting;
        // A stream of bulks that fills portion after portion must not starve the calls after it.
        self.calls.rotate_left(next.unwrap_or(0));
    }
}
