//! TLS over a socket, blocking or not: decrypts what arrives, and encrypts what is sent.
//!
//! `rustls::StreamOwned` first writes what is left over before it reads, so a peer that reads only after it was read
//! from would block it; and it reads a socket in pieces of 4 KB. This stream reads whatever it has to write.
//! Invariant: it holds at most one buffer of received bytes, and of sent ones what rustls holds (64 KB).
//! Not here: which certificates are trusted (`rustls::ClientConfig`), name resolution (`reactor`).

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// What one read of the socket can bring.
const INPUT_BYTES: usize = 64 << 10;

/// A socket, with TLS over it or without.
#[derive(Debug)]
pub enum Stream<S> {
    /// as it is
    Plain(S),
    /// with TLS; boxed, so that a plain one stays small
    Tls(Box<Tls<S>>),
}

/// A client's TLS over a socket.
#[derive(Debug)]
pub struct Tls<S> {
    socket: S,
    session: ClientConnection,
    input: Box<[u8]>,
    /// of `input`: what rustls has not taken yet
    unread: std::ops::Range<usize>,
    /// whether the last read of the socket filled `input`, so that there may be more
    was_full: bool,
}

impl<S: Read + Write> Stream<S> {
    /// With TLS where `tls` says what it trusts and the name that the certificate must carry. The handshake begins with the
    /// first `write` or `flush` and goes on with each `read`. Errors: settings that contradict each other.
    pub fn new(
        socket: S,
        tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    ) -> Result<Self, rustls::Error> {
        let Some((config, name)) = tls else { return Ok(Stream::Plain(socket)) };
        let session = ClientConnection::new(config, name)?;
        let input = vec![0; INPUT_BYTES].into_boxed_slice();
        Ok(Stream::Tls(Box::new(Tls { socket, session, input, unread: 0..0, was_full: false })))
    }

    /// The socket below.
    pub fn socket(&self) -> &S {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => &tls.socket,
        }
    }

    /// Whether TLS has bytes that the socket has not taken: `flush` sends them.
    pub fn has_unsent(&self) -> bool {
        matches!(self, Stream::Tls(tls) if tls.session.wants_write())
    }

    /// Whether a read might bring something though the socket itself reports nothing new.
    pub fn may_have_more(&self) -> bool {
        matches!(self, Stream::Tls(tls) if tls.was_full || !tls.unread.is_empty())
    }
}

/// Whether TLS failed, not the socket below it.
pub fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}

impl<S: Read + Write> Tls<S> {
    /// Sends what TLS has to send.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Sends what can be sent now. Errors: not those of a full socket.
    fn send_what_fits(&mut self) -> io::Result<()> {
        match self.send() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(room) {
                // Nothing is decrypted at the moment.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // An end without close_notify. Messages carry their length, so none can be truncated unnoticed.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            if self.unread.is_empty() {
                self.was_full = false;
                let count = self.socket.read(&mut self.input)?;
                if count == 0 {
                    // rustls learns of the end from an empty read.
                    self.session.read_tls(&mut io::empty())?;
                }
                self.was_full = count == self.input.len();
                self.unread = 0..count;
            }
            if !self.unread.is_empty() {
                self.unread.start += self.session.read_tls(&mut &self.input[self.unread.clone()])?;
            }
            if let Err(error) = self.session.process_new_packets() {
                // The alert that says why; the error matters more than whether the alert could be sent.
                let _ = self.send();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            self.send_what_fits()?;
        }
    }
}

impl<S: Read + Write> Read for Stream<S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(room),
            Stream::Tls(tls) => tls.receive(room),
        }
    }
}

impl<S: Read + Write> Write for Stream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(_) => self.write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let tls = match self {
            Stream::Plain(socket) => return socket.write_vectored(slices),
            Stream::Tls(tls) => tls,
        };
        // First what is left over, so that no more is held than rustls holds.
        tls.send()?;
        let count = tls.session.writer().write_vectored(slices)?;
        tls.send_what_fits()?;
        let is_nothing = slices.iter().all(|slice| slice.is_empty());
        // The handshake is not complete, and its queue is full.
        if count == 0 && !is_nothing { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(tls) => tls.send(),
        }
    }
}
