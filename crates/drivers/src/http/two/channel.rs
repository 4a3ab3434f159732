//! HTTP/2 itself, between its pipe and those who ask on it.
//!
//! The `h2` crate does the protocol. It is polled here after whatever could have moved it, as long as it wakes itself,
//! so that no task and no waker of a runtime takes part.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};

use super::pipe::{Pipe, PipeEnd};
use crate::http::HEAD_BYTES_MAX;

/// So much of an answer may be on its way, on a stream and on the connection; what comes is released at once.
const WINDOW_BYTES: u32 = 1 << 20;

/// One connection of HTTP/2.
pub struct Channel {
    pipe: Rc<RefCell<Pipe>>,
    /// `None` once it has ended
    connection: Option<Connection<PipeEnd, Bytes>>,
    /// `None` once we said goodbye
    pub(super) requests: Option<SendRequest<Bytes>>,
    woken: Arc<Woken>,
    waker: Waker,
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
        Ok(Channel { pipe, connection: Some(connection), requests: Some(requests), woken, waker })
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

    /// Moves on once. Ready: the connection ended, which is said once.
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

/// An end without a fault: the server said goodbye, or the stream is over.
pub(super) fn is_goodbye(error: &h2::Error) -> bool {
    error.is_io() || (error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR))
}
