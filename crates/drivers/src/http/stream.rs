//! The byte stream under HTTP: TCP, or TLS over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use socket2::Socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::address::{Address, TlsSettings};
use crate::driver::OpenError;

/// One open stream. TLS is boxed, so that a plain connection stays small.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// A stream behind TLS.
pub struct Tls {
    stream: TlsStream<TcpStream>,
    handshake_ns: u64,
}

impl Stream {
    /// Waits until the connection stands and, where the address asks for it, until TLS does. `config` is the one of
    /// the settings that offers what will be spoken.
    pub async fn open(
        socket: Socket,
        to: &Address,
        config: impl Fn(&TlsSettings) -> &Arc<rustls::ClientConfig>,
    ) -> Result<Self, OpenError> {
        let tcp = TcpStream::from_std(socket.into())?;
        tcp.writable().await?;
        if let Some(error) = tcp.take_error()? {
            return Err(error.into());
        }
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
    pub fn tls_ns(&self) -> Option<u64> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => Some(tls.handshake_ns),
        }
    }

    /// What both sides agreed to speak in the TLS handshake.
    pub fn protocol(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => tls.stream.get_ref().1.alpn_protocol(),
        }
    }

    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_write(cx, bytes),
        }
    }

    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_flush(cx),
        }
    }

    pub fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_shutdown(cx),
        }
    }

    /// Reads once into `room`; 0 at the end of the stream.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        let read = match self {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, &mut room),
            Stream::Tls(tls) => Pin::new(&mut tls.stream).poll_read(cx, &mut room),
        };
        read.map_ok(|()| room.filled().len())
    }
}
