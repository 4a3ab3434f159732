//! The two buffers between HTTP/2 and the socket.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::thread::give_back;

/// What is on its way.
#[derive(Default)]
pub(super) struct Pipe {
    incoming: Vec<u8>,
    /// Of `incoming`.
    taken: usize,
    outgoing: Vec<u8>,
}

impl Pipe {
    /// Bytes came from the socket.
    pub(super) fn came(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// Moves what waits for the socket to `out`.
    pub(super) fn take_outgoing(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.outgoing);
        give_back(&mut self.outgoing);
    }
}

/// HTTP/2's end of the pipe.
pub(super) struct PipeEnd(pub(super) Rc<RefCell<Pipe>>);

impl AsyncRead for PipeEnd {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut pipe = self.0.borrow_mut();
        let waiting = &pipe.incoming[pipe.taken..];
        if waiting.is_empty() {
            // Nobody is woken: whoever adds bytes polls again.
            return Poll::Pending;
        }
        let count = waiting.len().min(room.remaining());
        room.put_slice(&waiting[..count]);
        pipe.taken += count;
        if pipe.taken == pipe.incoming.len() {
            (pipe.taken, pipe.incoming) = (0, Vec::new());
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PipeEnd {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
