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

/// A quiet connection keeps no more room than this for what is unsent.
const OUTGOING_BYTES_KEPT: usize = 1024;

/// What is on its way between HTTP/2 and the socket.
#[derive(Default)]
pub struct Pipe {
    incoming: Vec<u8>,
    /// of `incoming`
    taken_bytes: usize,
    has_ended: bool,
    outgoing: Vec<u8>,
}

impl Pipe {
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
        } else if self.outgoing.capacity() > OUTGOING_BYTES_KEPT {
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
