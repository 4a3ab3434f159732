//! An HTTP/2 connection with its socket, generic over how its answers are reported.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::Socket;
use tokio::io::AsyncWrite;

use super::channel::{Channel, End};
use crate::address::Address;
use crate::connect;
use crate::driver::{ANSWER_BYTES_MAX, Broken, Closed, Driver, OpenError, Refused};
use crate::http::fault::Fault;
use crate::http::fetch::Origin;
use crate::read_buffer::ReadBuffer;
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};

const PROTOCOL: &str = "HTTP/2";
/// Beyond this much unsent the connection takes no more.
const UNSENT_BYTES_MAX: usize = 128 * 1024;
/// So much of what another protocol says is shown.
const FIRST_BYTES: usize = 60;

/// What is between a socket and those who ask: it knows the open requests.
pub trait Turns: Sized + 'static {
    /// A request.
    type Send<'a>;
    /// What of an answer is reported at once.
    type Received<'d>;

    /// The most that [`Driver::requests_at_once`] tells, where the server allows as many; `None`: it tells nothing.
    const REQUESTS_MAX: Option<usize>;

    /// Of a new connection.
    fn new(channel: Channel, origin: Origin) -> Self;

    /// Takes a request. False: too many are open, or the connection takes no more.
    fn send(&mut self, what: Self::Send<'_>) -> bool;

    /// What has come next. After a fault, what HTTP/2 says of it is the rest of the buffer.
    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Result<Option<Self::Received<'d>>, Fault>;

    fn channel(&self) -> &Channel;

    fn channel_mut(&mut self) -> &mut Channel;

    /// Looks at every open request.
    fn gather(&mut self);

    /// Forgets all open requests. Whether the answer to one of them had begun.
    fn forget(&mut self) -> bool;

    /// True when something of an answer waits to be reported.
    fn has_told(&self) -> bool;

    /// Says hello. Until the server's settings have come it takes no request.
    fn begin(origin: Origin) -> impl Future<Output = Result<Self, h2::Error>> {
        async {
            let mut turns = Self::new(Channel::begin().await?, origin);
            turns.turn();
            Ok(turns)
        }
    }

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
pub struct Line<T> {
    stream: Stream,
    pub(crate) talk: Box<T>,
    shutdown: Shutdown,
}

impl<T: Turns> Line<T> {
    /// Over an established stream: waits until the server takes requests. Errors: it does not speak HTTP/2.
    pub(crate) async fn over(stream: Stream, to: &Address) -> Result<Self, OpenError> {
        let talk = T::begin(Origin::of(to)).await.map_err(io::Error::other)?;
        if to.tls.is_some() && stream.protocol() != Some(b"h2") {
            let why = "it does not offer h2 in the TLS handshake (ALPN)".to_owned();
            return Err(OpenError::WrongProtocol { protocol: PROTOCOL, why });
        }
        let mut opening = Line { stream, talk: Box::new(talk), shutdown: Shutdown::default() };
        opening.await_settings().await?;
        Ok(opening)
    }

    /// What is unsent leaves room for another request.
    fn has_room(&self) -> bool {
        self.unsent_bytes() <= UNSENT_BYTES_MAX
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

impl<T: Turns> Driver for Line<T> {
    type Connecting = Socket;
    type Send<'a> = T::Send<'a>;
    type Received<'d> = T::Received<'d>;

    fn begin_connect(to: &Address, from: Option<IpAddr>) -> Result<Socket, OpenError> {
        connect::begin(to.socket, from)
    }

    async fn open(begin_connect: Socket, to: &Address) -> Result<Self, OpenError> {
        let stream = Stream::open(begin_connect, to, |tls| &tls.config_http2).await?;
        Line::over(stream, to).await
    }

    /// Refuses when as many requests are open as the server allows, and after a GOAWAY.
    fn send(&mut self, what: T::Send<'_>) -> Result<(), Refused> {
        if self.has_room() && self.talk.send(what) { Ok(()) } else { Err(Refused(self.unsent_bytes())) }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
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

    fn next<'d>(&mut self, buffer: &'d mut ReadBuffer) -> Option<Result<T::Received<'d>, Broken>> {
        self.talk.next(buffer).map_err(Broken::Http).transpose()
    }

    fn close(&mut self) {
        if self.shutdown.say() {
            self.talk.close();
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.talk.channel().pipe().borrow().unsent().len()
    }

    fn tls_ns(&self) -> Option<u64> {
        self.stream.tls_ns()
    }

    /// None while much waits for the kernel, and after a GOAWAY.
    fn requests_at_once(&self) -> Option<usize> {
        let is_free = self.has_room() && !self.talk.channel().closes();
        let allowed = if is_free { self.talk.channel().requests_max() } else { 0 };
        T::REQUESTS_MAX.map(|max| max.min(allowed))
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
