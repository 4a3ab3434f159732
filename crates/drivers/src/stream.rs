//! The byte stream under all drivers over TCP: TCP, or TLS over it, either one directly or behind an emulated network;
//! and what all drivers do with a stream.

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
use crate::network::Wire;
use crate::unfinished::FREE_BYTES;

/// One open stream. All but a plain connection is boxed, so that that one stays small.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls<TcpStream>>),
    /// behind an emulated network
    Delayed(Box<Wire>),
    DelayedTls(Box<Tls<Wire>>),
}

/// A stream over TLS.
pub(crate) struct Tls<S> {
    stream: TlsStream<S>,
    handshake_ns: u64,
}

/// Calls a method of the stream that there is.
macro_rules! on {
    ($self:expr, $method:ident($($argument:expr),*)) => {
        match $self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).$method($($argument),*),
            Stream::Delayed(wire) => Pin::new(&mut **wire).$method($($argument),*),
            Stream::DelayedTls(tls) => Pin::new(&mut tls.stream).$method($($argument),*),
        }
    };
}

impl Stream {
    /// Waits until the connection is established and, if the address asks for it, TLS too. `config` is the one of the
    /// settings that offers the protocol to be spoken.
    pub(crate) async fn open(
        socket: Socket,
        to: &Address,
        config: impl Fn(&TlsSettings) -> &Arc<rustls::ClientConfig>,
    ) -> Result<Self, OpenError> {
        Stream::over(standing(socket).await?, to, false, config).await
    }

    /// The same over an established connection. `has_asked`: the first bytes of the protocol left with the connect.
    pub(crate) async fn over(
        tcp: TcpStream,
        to: &Address,
        has_asked: bool,
        config: impl Fn(&TlsSettings) -> &Arc<rustls::ClientConfig>,
    ) -> Result<Self, OpenError> {
        let Some(path) = &to.network else {
            return Ok(match &to.tls {
                None => Stream::Plain(tcp),
                Some(tls) => Stream::Tls(Tls::open(tcp, tls, config(tls)).await?),
            });
        };
        let wire = Wire::connect(tcp, path, has_asked).await;
        Ok(match &to.tls {
            None => Stream::Delayed(Box::new(wire)),
            Some(tls) => Stream::DelayedTls(Tls::open(wire, tls, config(tls)).await?),
        })
    }

    /// How long the TLS handshake took, ns.
    pub(crate) fn tls_ns(&self) -> Option<u64> {
        match self {
            Stream::Plain(_) | Stream::Delayed(_) => None,
            Stream::Tls(tls) => Some(tls.handshake_ns),
            Stream::DelayedTls(tls) => Some(tls.handshake_ns),
        }
    }

    /// What both sides agreed to speak in the TLS handshake.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) | Stream::Delayed(_) => None,
            Stream::Tls(tls) => tls.stream.get_ref().1.alpn_protocol(),
            Stream::DelayedTls(tls) => tls.stream.get_ref().1.alpn_protocol(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Tls<S> {
    async fn open(
        below: S,
        tls: &TlsSettings,
        config: &Arc<rustls::ClientConfig>,
    ) -> Result<Box<Self>, OpenError> {
        let begin = Instant::now();
        let stream = tokio_rustls::TlsConnector::from(config.clone())
            .connect(tls.name.clone(), below)
            .await
            .map_err(|error| OpenError::Tls(error.to_string()))?;
        Ok(Box::new(Tls { stream, handshake_ns: begin.elapsed().as_nanos() as u64 }))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, poll_shutdown(cx))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on!(self, poll_read(cx, room))
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
