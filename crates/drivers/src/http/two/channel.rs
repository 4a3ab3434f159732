//! HTTP/2 itself, between its pipe and its callers.
//!
//! The `h2` crate implements the protocol. It is polled here after anything that could have made progress, as long as
//! it wakes itself, so that no task and no waker of a runtime is involved.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};

use super::pipe::{Pipe, PipeEnd};
use super::request::Request;
use crate::http::fault::Fault;
use crate::http::message::HEAD_BYTES_MAX;
use crate::read_buffer::ReadBuffer;

/// So much of an answer may be on its way, on a stream and on the connection; what comes is released at once.
const WINDOW_BYTES: u32 = 1 << 20;

/// One connection of HTTP/2.
pub struct Channel {
    pipe: Rc<RefCell<Pipe>>,
    /// `None` once it has ended
    connection: Option<Connection<PipeEnd, Bytes>>,
    /// `None` once we closed it
    requests: Option<SendRequest<Bytes>>,
    /// no further request is taken
    closes: bool,
    /// its GOAWAY was received
    has_left: bool,
    /// its GOAWAY was an error, which `finish` reports
    is_cast_out: bool,
    /// why the connection ended, until that is reported
    end: Option<End>,
    /// the first error, and HTTP/2's description of it; reported after everything that came complete
    pub(super) fault: Option<(Fault, String)>,
    woken: Arc<Woken>,
    waker: Waker,
}

/// What the end of the connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// nothing was under way
    OfConnection,
    /// an answer's rest will never come
    CutOff,
}

/// That something could move.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Channel {
    /// Says hello. Until the server's settings have come it takes no request.
    pub(super) async fn begin() -> Result<Self, h2::Error> {
        let pipe = Rc::new(RefCell::new(Pipe::default()));
        let (requests, connection) = Builder::new()
            .enable_push(false)
            .initial_max_send_streams(0)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .handshake(PipeEnd(pipe.clone()))
            .await?;
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        Ok(Channel {
            pipe,
            connection: Some(connection),
            requests: Some(requests),
            closes: false,
            has_left: false,
            is_cast_out: false,
            end: None,
            fault: None,
            woken,
            waker,
        })
    }

    /// Sends a request, while `open_count` are open. `None`: too many are, or the connection takes no more.
    pub(super) fn send(&mut self, request: &Request, open_count: usize) -> Option<ResponseFuture> {
        if self.closes || open_count >= self.requests_max() {
            return None;
        }
        let (requests, head) = (self.requests.as_mut()?, request.head.as_ref()?);
        let (answer, mut body) = requests.send_request(head.clone(), request.body.is_empty()).ok()?;
        if !request.body.is_empty() {
            body.send_data(request.body.clone(), true).ok()?;
        }
        self.closes |= request.closes;
        Some(answer)
    }

    /// Whether the server has sent GOAWAY without an error; true once. While answers are pending there is no other way
    /// to notice it.
    pub(super) fn hears_goodbye(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(requests) = &mut self.requests else { return false };
        let Poll::Ready(Err(error)) = requests.poll_ready(cx) else { return false };
        self.closes = true;
        self.is_cast_out = !is_goodbye(&error);
        !self.is_cast_out && !std::mem::replace(&mut self.has_left, true)
    }

    /// No further request is taken.
    pub(super) fn closes(&self) -> bool {
        self.closes
    }

    /// The server's GOAWAY was an error.
    pub(super) fn is_cast_out(&self) -> bool {
        self.is_cast_out
    }

    /// After this answer the server closes the connection and means no error by it.
    pub(super) fn closes_politely(&self) -> bool {
        self.closes && !self.is_cast_out
    }

    /// Closes our side.
    pub(super) fn leave(&mut self) {
        self.closes = true;
        self.requests = None;
    }

    /// The connection is over; `was_cut`: an answer had begun.
    pub(super) fn finish(&mut self, error: Option<h2::Error>, was_cut: bool) {
        self.closes = true;
        self.end = Some(if was_cut { End::CutOff } else { End::OfConnection });
        if let Some(error) = error.filter(|error| !is_goodbye(error)) {
            self.fail(Fault::Two, error.to_string());
        }
    }

    /// Something went wrong with the connection; the first counts.
    pub(super) fn fail(&mut self, fault: Fault, words: String) {
        self.fault.get_or_insert((fault, words));
    }

    /// Reports what went wrong, once; what HTTP/2 says of it is the rest of the buffer then.
    pub(super) fn take_fault(&mut self, buffer: &mut ReadBuffer) -> Result<(), Fault> {
        let Some((fault, words)) = self.fault.take() else { return Ok(()) };
        buffer.lay(words.as_bytes());
        Err(fault)
    }

    /// How the connection ended, if it has.
    pub(super) fn end(&self) -> Option<End> {
        self.end
    }

    /// What is between it and the socket.
    pub(super) fn pipe(&self) -> &RefCell<Pipe> {
        &self.pipe
    }

    /// So many requests may be open at once, as the server allows; 0 until it has said so.
    pub(super) fn requests_max(&self) -> usize {
        self.requests.as_ref().map_or(0, SendRequest::current_max_send_streams)
    }

    /// What wakes it.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Makes progress once. Ready: the connection ended, which is reported once.
    pub(super) fn poll(&mut self) -> Poll<Result<(), h2::Error>> {
        self.woken.0.store(false, Ordering::Relaxed);
        let mut cx = Context::from_waker(&self.waker);
        let Some(connection) = &mut self.connection else { return Poll::Pending };
        let outcome = Pin::new(connection).poll(&mut cx);
        if outcome.is_ready() {
            self.connection = None;
        }
        outcome
    }

    pub(super) fn has_ended(&self) -> bool {
        self.connection.is_none()
    }

    /// Something could move since the last `poll`.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed)
    }
}

/// An end without a fault: the server sent GOAWAY, or the stream is over.
pub(super) fn is_goodbye(error: &h2::Error) -> bool {
    error.is_io() || (error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR))
}
