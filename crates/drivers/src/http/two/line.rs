//! An HTTP/2 connection with its socket, generic over how its answers are reported.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::channel::{Channel, End};
use crate::address::Address;
use crate::driver::{ANSWER_BYTES_MAX, Broken, Closed, OpenError};
use crate::http::fault::Fault;
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};

const PROTOCOL: &str = "HTTP/2";
/// Beyond this much unsent the connection takes no more.
const UNSENT_BYTES_MAX: usize = 128 * 1024;
/// So much of what another protocol says is shown.
const FIRST_BYTES: usize = 60;

/// What is between a socket and those who ask: it knows the open requests.
pub(super) trait Turns {
    fn channel(&self) -> &Channel;

    fn channel_mut(&mut self) -> &mut Channel;

    /// Looks at every open request.
    fn gather(&mut self);

    /// Forgets all open requests. Whether the answer to one of them had begun.
    fn forget(&mut self) -> bool;

    /// True when something of an answer waits to be reported.
    fn has_told(&self) -> bool;

    /// Moves on as far as that goes without further bytes.
    fn turn(&mut self) {
        loop {
            if let Poll::Ready(outcome) = self.channel_mut().poll() {
                self.gather();
                let was_cut = self.forget();
                self.channel_mut().finish(outcome.err(), was_cut);
                break;
            }
            self.gather();
            if !self.channel().is_woken() {
                break;
            }
        }
        let has_surplus = self.channel().pipe().borrow_mut().take_surplus();
        if has_surplus {
            let words = "a frame on a stream that the server has ended: an answer came twice, or went on";
            self.channel_mut().fail(Fault::Unasked, words.to_owned());
        }
    }

    /// True when something can be reported.
    fn has_news(&self) -> bool {
        self.has_told() || self.channel().fault.is_some()
    }

    /// Closes: open requests are given up, and no further one is taken.
    fn close(&mut self) {
        self.forget();
        self.channel_mut().leave();
        self.turn();
    }
}

/// One open connection.
pub(super) struct Line<T> {
    stream: Stream,
    pub(super) talk: Box<T>,
    shutdown: Shutdown,
}

impl<T: Turns> Line<T> {
    /// Waits until the server takes requests. Errors: it does not speak HTTP/2.
    pub(super) async fn open(stream: Stream, to: &Address, talk: T) -> Result<Self, OpenError> {
        if to.tls.is_some() && stream.protocol() != Some(b"h2") {
            let why = "it does not offer h2 in the TLS handshake (ALPN)".to_owned();
            return Err(OpenError::WrongProtocol { protocol: PROTOCOL, why });
        }
        let mut opening = Line { stream, talk: Box::new(talk), shutdown: Shutdown::default() };
        opening.await_settings().await?;
        Ok(opening)
    }

    /// What is unsent leaves room for another request.
    pub(super) fn has_room(&self) -> bool {
        self.unsent_bytes() <= UNSENT_BYTES_MAX
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut pipe = self.talk.channel().pipe().borrow_mut();
            if pipe.unsent().is_empty() {
                break;
            }
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, pipe.unsent()))?;
            pipe.wrote(count);
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.shutdown.poll_send(|| Pin::new(&mut self.stream).poll_shutdown(cx)).map(Ok)
    }

    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuffer,
    ) -> Poll<Result<usize, Closed>> {
        if let Some(end) = self.talk.channel().end() {
            return Poll::Ready(self.end(end));
        }
        // Before a read, because the replies that one read requests are bounded and were offered to the kernel since.
        if self.talk.channel().pipe().borrow().answer_bytes() > ANSWER_BYTES_MAX {
            return Poll::Ready(Err(Closed::Broken(Broken::UnreadAnswers)));
        }
        let count = match ready!(stream::poll_read(&mut self.stream, cx, buffer.lay(&[]))) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Poll::Ready(Err(Closed::Failed(error)));
            }
            Ok(count) if count > 0 => {
                buffer.filled(count);
                self.talk.channel().pipe().borrow_mut().came(buffer.take(count));
                count
            }
            Ok(_) | Err(_) => {
                self.talk.channel().pipe().borrow_mut().end();
                0
            }
        };
        self.talk.turn();
        if self.talk.channel().pipe().borrow().has_too_many_answers() {
            return Poll::Ready(Err(Closed::Broken(Broken::UnreadAnswers)));
        }
        match self.talk.channel().end() {
            Some(end) if count == 0 => Poll::Ready(self.end(end)),
            _ => Poll::Ready(Ok(count)),
        }
    }

    pub(super) fn close(&mut self) {
        if self.shutdown.say() {
            self.talk.close();
        }
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.talk.channel().pipe().borrow().unsent().len()
    }

    pub(super) fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }

    /// What came before the end is reported first.
    fn end(&self, end: End) -> Result<usize, Closed> {
        match end {
            _ if self.talk.has_news() => Ok(0),
            End::OfConnection => Err(Closed::ByPeer(None)),
            End::CutOff => Err(Closed::Broken(Broken::Http(Fault::CutOff))),
        }
    }

    /// Exchanges settings. A server that speaks something else says so with its first bytes.
    async fn await_settings(&mut self) -> Result<(), OpenError> {
        let (mut room, mut first) = ([0; 1024], Vec::new());
        loop {
            poll_fn(|cx| self.poll_flush(cx)).await?;
            if self.talk.channel().requests_max() > 0 {
                return Ok(());
            }
            let count = poll_fn(|cx| stream::poll_read(&mut self.stream, cx, &mut room)).await?;
            if count == 0 {
                return Err(OpenError::ClosedEarly);
            }
            let missing = FIRST_BYTES.saturating_sub(first.len()).min(count);
            first.extend_from_slice(&room[..missing]);
            self.talk.channel().pipe().borrow_mut().came(&room[..count]);
            self.talk.turn();
            if self.talk.channel().end().is_some() {
                return Err(wrong_protocol(&first));
            }
        }
    }
}

/// It ended what we began, and these were its first bytes.
fn wrong_protocol(first: &[u8]) -> OpenError {
    let line = first.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let why = if line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') && !line.is_empty() {
        format!("it answers \"{}\"", String::from_utf8_lossy(line))
    } else {
        "it ends the connection over our settings".to_owned()
    };
    OpenError::WrongProtocol { protocol: PROTOCOL, why }
}
