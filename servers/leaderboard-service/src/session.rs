//! The protocols that a connection may switch to from HTTP/1.1.

use super::calls::Caller;
use super::grpc::{self, Grpc};
use super::thread::Turn;
use super::websocket::WebSocket;
use servers_shared::fault::ThreadFaults;

/// What is spoken on a connection instead.
pub(super) enum Session {
    WebSocket(WebSocket),
    Grpc(Grpc),
}

/// What has begun and is not whole.
pub(super) enum Incomplete {
    None,
    /// The only one there can be at a time.
    One,
    /// Several at a time, the oldest of which began at this instant, monotonic ns.
    Since(u64),
}

/// Whether bytes that would be a request are the beginning of something else.
pub(super) enum Start {
    None,
    /// Too few to tell.
    Incomplete,
    /// A session, and how many bytes it took.
    Begun(Session, usize),
}

/// Looks for the preface of HTTP/2, which is no request of HTTP/1.1.
pub(super) fn start(bytes: &[u8], going_down: bool) -> Start {
    if going_down || !bytes.starts_with(b"PRI") {
        return Start::None;
    }
    if bytes.starts_with(grpc::PREFACE) {
        // Consumed by HTTP/2 itself.
        return Start::Begun(Session::Grpc(Grpc::default()), 0);
    }
    if grpc::PREFACE.starts_with(bytes) { Start::Incomplete } else { Start::None }
}

impl Session {
    /// Answers what is whole at the front of `bytes`, up to a portion. They are scribbled on.
    pub(super) fn answer(
        &mut self,
        bytes: &mut [u8],
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> Turn {
        match self {
            Session::WebSocket(socket) => socket.answer(bytes, caller, faults, out),
            Session::Grpc(grpc) => grpc.answer(bytes, caller, faults, out),
        }
    }

    /// Announces the shutdown. It is the last message. Returns how many requests were still answered.
    pub(super) fn take_leave(
        &mut self,
        caller: &Caller,
        faults: &mut ThreadFaults,
        out: &mut Vec<u8>,
    ) -> usize {
        match self {
            Session::WebSocket(_) => {
                WebSocket::take_leave(out);
                0
            }
            Session::Grpc(grpc) => grpc.take_leave(caller, faults, out),
        }
    }

    /// Something has begun and is not whole.
    pub(super) fn incomplete(&self) -> Incomplete {
        match self {
            Session::WebSocket(socket) if socket.is_waiting() => Incomplete::One,
            Session::WebSocket(_) => Incomplete::None,
            Session::Grpc(grpc) => grpc.incomplete_since_ns().map_or(Incomplete::None, Incomplete::Since),
        }
    }

    /// Memory of requests that are incomplete, or not executed yet.
    pub(super) fn unfinished_bytes(&self) -> usize {
        match self {
            Session::WebSocket(socket) => socket.unfinished_bytes(),
            Session::Grpc(grpc) => grpc.unfinished_bytes(),
        }
    }

    /// Since when answers have waited until the client lets them be sent, monotonic ns. Of several, the oldest.
    pub(super) fn untaken_since_ns(&self) -> Option<u64> {
        match self {
            Session::WebSocket(_) => None,
            Session::Grpc(grpc) => grpc.untaken_since_ns(),
        }
    }

    /// Bytes of these answers.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Session::WebSocket(_) => 0,
            Session::Grpc(grpc) => grpc.held_bytes(),
        }
    }
}
