//! A socket and its session.

use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;

use super::outcome::DownCause;
use crate::tls::Stream;
use crate::wire::{Session, Uuid};

/// Slices of one vectored write.
const SLICES: usize = 64;

/// One connection. Readiness is edge-triggered: a flag stays until the kernel says that it has no more.
pub(super) struct Connection<T> {
    pub stream: Stream<TcpStream>,
    pub session: Session<T>,
    pub address: SocketAddr,
    /// once it has let us in
    pub member: Option<Uuid>,
    pub is_readable: bool,
    pub is_writable: bool,
    is_open: bool,
}

impl<T> Connection<T> {
    /// A connection on its way.
    pub fn new(stream: Stream<TcpStream>, session: Session<T>, address: SocketAddr) -> Self {
        Connection {
            stream,
            session,
            address,
            member: None,
            is_readable: false,
            is_writable: false,
            is_open: false,
        }
    }

    /// Writes until the send buffer is empty or the kernel takes no more.
    pub fn flush(&mut self) -> Result<(), DownCause> {
        if !self.is_open {
            if !self.is_writable {
                return Ok(());
            }
            if let Some(error) = self.stream.socket().take_error()? {
                return Err(error.into());
            }
            self.stream.socket().set_nodelay(true)?;
            self.is_open = true;
        }
        while self.is_writable && !self.session.send_buffer().is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let filled = self.session.send_buffer().slices(&mut slices);
            let written = match &slices[..filled] {
                [one] => self.stream.write(one),
                many => self.stream.write_vectored(many),
            };
            match written {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(count) => self.session.sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.is_writable && self.stream.has_unsent() {
            match self.stream.flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_writable = false,
                flushed => flushed?,
            }
        }
        Ok(())
    }

    /// Whether the kernel has not taken everything that is to be sent.
    pub fn is_behind(&self) -> bool {
        !self.session.send_buffer().is_empty() || self.stream.has_unsent()
    }

    /// Reads once; returns how many bytes came, 0 when there are none for now.
    pub fn read(&mut self, now_ns: u64) -> Result<usize, DownCause> {
        loop {
            let room = self.session.room();
            let room_bytes = room.len();
            return match self.stream.read(room) {
                Ok(0) => Err(DownCause::ClosedByMember),
                Ok(count) => {
                    // Less than there was room for: the kernel had no more, so the next byte is a new edge.
                    self.is_readable = count == room_bytes || self.stream.may_have_more();
                    self.session.filled(count, now_ns);
                    Ok(count)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_readable = false;
                    Ok(0)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error.into()),
            };
        }
    }
}
