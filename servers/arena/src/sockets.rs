//! One thread's sockets: a slot for each, and the bytes that did not fit into the system's buffer.
//!
//! An idle socket costs its slot (some 80 bytes) and nothing on the heap; `unsent` and the request exist only while
//! something is partial, and both are bounded.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::inbox::SocketKey;
use super::rules::{Player, Trigger};
use super::shots::Shots;
use super::thread::Late;
use servers_shared::stream;
use servers_shared::thread::Core;
use servers_shared::websocket::Receiver;

/// What a slow reader may leave unread beyond the system's buffer; then it is cut off.
const UNSENT_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct Socket {
    fd: OwnedFd,
    pub(crate) stage: Stage,
    pub(crate) trigger: Trigger,
    pub(crate) receiver: Receiver,
    /// Empty, without allocated memory, as long as the client reads.
    unsent: Vec<u8>,
}

/// Where in its life a socket is.
pub(crate) enum Stage {
    /// The request is not complete; what came so far.
    Opening(Vec<u8>),
    Waiting,
    Playing(Arc<Shots>, Player),
    /// It was sent the stop message; now it closes.
    Ended,
    /// Our close frame is out; everything more from there is ignored.
    Closing,
}

/// The connection is broken or too slow; it must be dropped.
#[derive(Debug)]
pub(crate) struct Broken;

/// Sending to one of a thread's sockets.
pub(crate) trait Sending {
    /// Sends now what fits and keeps the rest for `flush`. A closed socket takes everything, and so does each while an
    /// injected fault stops all answers.
    fn send(&mut self, key: SocketKey, bytes: &[u8]) -> Result<(), Broken>;

    /// The socket takes more now.
    fn flush(&mut self, key: SocketKey) -> Result<(), Broken>;
}

impl Sending for Core<Socket, Late> {
    fn send(&mut self, key: SocketKey, bytes: &[u8]) -> Result<(), Broken> {
        if self.faults.now.stops_answers {
            return Ok(());
        }
        let Some(socket) = self.clients.get_mut(key) else { return Ok(()) };
        if !socket.unsent.is_empty() {
            if socket.unsent.len() + bytes.len() > UNSENT_BYTES_MAX {
                return Err(Broken);
            }
            socket.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let sent = stream::write(&socket.fd, bytes).map_err(|()| Broken)?;
        if sent < bytes.len() {
            socket.unsent = bytes[sent..].to_vec();
            self.epoll.change(&socket.fd, key.to_bits(), true).map_err(|_| Broken)?;
        }
        Ok(())
    }

    fn flush(&mut self, key: SocketKey) -> Result<(), Broken> {
        let Some(socket) = self.clients.get_mut(key) else { return Ok(()) };
        if socket.unsent.is_empty() {
            return Ok(());
        }
        let sent = stream::write(&socket.fd, &socket.unsent).map_err(|()| Broken)?;
        socket.unsent.drain(..sent);
        if socket.unsent.is_empty() {
            socket.unsent = Vec::new();
            self.epoll.change(&socket.fd, key.to_bits(), false).map_err(|_| Broken)?;
            if matches!(socket.stage, Stage::Closing) {
                stream::finish_writing(&socket.fd);
            }
        }
        Ok(())
    }
}

impl Socket {
    pub(crate) fn new(fd: OwnedFd) -> Socket {
        Socket {
            fd,
            stage: Stage::Opening(Vec::new()),
            trigger: Trigger::default(),
            receiver: Receiver::default(),
            unsent: Vec::new(),
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> stream::Read {
        stream::read(&self.fd, buffer)
    }

    /// From now on dropping this socket resets the connection.
    pub(crate) fn reset_on_close(&self) {
        stream::reset_on_close(&self.fd);
    }

    /// Nothing more will be said: at once, or as soon as the rest is sent.
    pub(crate) fn finish(&mut self) {
        self.stage = Stage::Closing;
        if self.unsent.is_empty() {
            stream::finish_writing(&self.fd);
        }
    }
}
