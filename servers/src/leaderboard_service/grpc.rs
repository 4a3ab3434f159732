//! The leaderboard over gRPC: HTTP/2 by prior knowledge, on the port that also takes HTTP/1.1.
//!
//! The `h2` crate does the protocol over two buffers, and is polled by the service's own threads after whatever could
//! have moved it; no runtime takes part. A call is carried out when its message is whole, and answered at once; `Bulk`
//! answers message by message, and reads no further while its client does not take the answers.
//! Signature and idempotency key are metadata, named as over HTTP; what is signed is what is signed over WebSocket.
//! Not here: compression, deadlines (nothing waits but for the disk). Source: grpc.io, "gRPC over HTTP2".

mod call;
mod pipe;

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
use super::thread::Turn;
use crate::fault::ThreadFaults;
use call::Call;
use pipe::{Pipe, PipeEnd};

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
}

enum Stage {
    Opening(Box<Handshake<PipeEnd, Bytes>>),
    Open(Box<Connection<PipeEnd, Bytes>>),
    Over,
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
        Grpc { pipe, stage: Stage::Opening(Box::new(opening)), calls: Vec::new(), woken, waker }
    }
}

impl Grpc {
    /// Takes what was read, carries out what is whole, and appends what is to be written.
    pub(super) fn answer(
        &mut self,
        bytes: &[u8],
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Turn {
        self.pipe.borrow_mut().came(bytes);
        let answered = self.turn(caller, faults);
        self.pipe.borrow_mut().take_outgoing(out);
        Turn { taken: bytes.len(), answered, closes: matches!(self.stage, Stage::Over) }
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
        let mut answered = self.turn(caller, faults);
        if let Stage::Open(connection) = &mut self.stage {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        answered += self.turn(caller, faults);
        self.pipe.borrow_mut().take_outgoing(out);
        answered
    }

    /// A call has begun and is not whole.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Opening(_)) || self.calls.iter().any(Call::is_waiting)
    }

    /// Moves on as far as that goes without further bytes. Returns how many messages were answered.
    fn turn(&mut self, caller: &Caller, faults: &mut ThreadFaults) -> usize {
        let mut answered = 0;
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
                        // What is wrong with the connection was told to the client.
                        Poll::Ready(Some(Err(_)) | None) => {
                            self.stage = Stage::Over;
                            self.calls.clear();
                            return answered;
                        }
                    }
                }
            }
            self.calls.retain_mut(|call| call.goes_on(&mut cx, caller, faults, &mut answered));
            if !self.woken.0.load(Ordering::Relaxed) {
                return answered;
            }
        }
    }
}
