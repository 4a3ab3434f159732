//! The byte stream under all drivers but those of plain TCP: TCP, or TLS over it; and what all drivers do with a
//! stream.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::address::{Address, TlsSettings};
use crate::driver::OpenError;
use crate::unfinished::FREE_BYTES;

/// One open stream. TLS is boxed, so that a plain connection stays small.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// A stream over TLS.
pub(crate) struct Tls {
    stream: TlsStream<TcpStream>,
    handshake_ns: u64,
}

impl Stream {
    /// Waits until the connection is established and, if the address asks for it, TLS too. `config` is the one of the
    /// settings that offers the protocol to be spoken.
    pub(crate) async fn open(
        socket: Socket,
        to: &Address,
        config: impl Fn(&TlsSettings) -> &Arc<rustls::ClientConfig>,
    ) -> Result<Self, OpenError> {
        Stream::over(standing(socket).await?, to, config).await
    }

    /// The same over an established connection.
    pub(crate) async fn over(
        tcp: TcpStream,
        to: &Address,
        config: impl Fn(&TlsSettings) -> &Arc<rustls::ClientConfig>,
    ) -> Result<Self, OpenError> {
        let Some(tls) = &to.tls else { return Ok(Stream::Plain(tcp)) };
        let begin = Instant::now();
        let stream = tokio_rustls::TlsConnector::from(config(tls).clone())
            .connect(tls.name.clone(), tcp)
            .await
            .map_err(|error| OpenError::Tls(error.to_string()))?;
        let handshake_ns = begin.elapsed().as_nanos() as u64;
        Ok(Stream::Tls(Box::new(Tls { stream, handshake_ns })))
    }

    /// How long the TLS handshake took, ns.
    pub(crate) fn tls_ns(&self) -> Option<u64> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => Some(tls.handshake_ns),
        }
    }

    /// What both sides agreed to speak in the TLS handshake.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => tls.stream.get_ref().1.alpn_protocol(),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, room),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_read(cx, room),
        }
    }
}

/// Waits until the connection is established.
pub(crate) async fn standing(socket: Socket) -> Result<TcpStream, OpenError> {
    let tcp = TcpStream::from_std(socket.into())?;
    tcp.writable().await?;
    match tcp.take_error()? {
        Some(error) => Err(error.into()),
        None => Ok(tcp),
    }
}

/// Reads once into `room`; 0 at the end of the stream.
pub(crate) fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::new(room);
    Pin::new(stream).poll_read(cx, &mut room).map_ok(|()| room.filled().len())
}

/// Writes until nothing is unsent or the stream takes no more.
pub(crate) fn poll_write_all(
    stream: &mut (impl AsyncWrite + Unpin),
    cx: &mut Context<'_>,
    unsent: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    while !unsent.is_empty() {
        let count = ready!(Pin::new(&mut *stream).poll_write(cx, unsent))?;
        if count < unsent.len() {
            unsent.drain(..count);
        } else if unsent.capacity() > FREE_BYTES {
            // Memory for thousands of replies that a server made us send is not kept.
            *unsent = Vec::new();
        } else {
            unsent.clear();
        }
    }
    Poll::Ready(Ok(()))
}
