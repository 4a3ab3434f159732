//! A TCP connection behind an emulated network: bytes wait on both ways, also the end of the stream and its errors.
//!
//! What is written is accepted at once and goes to the socket when its instant comes; what the socket has is read at once
//! and handed out when its instant comes. Either way holds at most `WINDOW_BYTES`, as a kernel's buffer would: a writer
//! waits then, and the socket is read no further, so that a slow reader still slows the server.
//! One task owns a wire.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::iter;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{Owner, Path, Sent, WINDOW_BYTES, Way, note, now_ns, rng_of, sleep_until};

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 * 1024].into_boxed_slice());
}

/// One connection.
pub(crate) struct Wire {
    tcp: TcpStream,
    path: Path,
    rng: fastrand::Rng,
    out: Way,
    back: Way,
    /// our end of the stream leaves at this instant
    out_ends_ns: Option<u64>,
    /// the socket took what we wrote no longer
    is_broken: bool,
    /// the server's end of the stream, or an error, arrives at this instant
    back_ends: Option<(u64, io::Result<()>)>,
    sent: Sent,
    owner: Owner,
    /// the last read found nothing
    is_awaited: bool,
}

impl Wire {
    /// A connection that the kernel has established; it can be used a round trip later, as one over that network.
    ///
    /// `has_asked`: its first bytes left with the connect. It can be used at once then, and what answers them comes when it
    /// would have come.
    pub(crate) async fn connect(tcp: TcpStream, path: &Path, has_asked: bool) -> Self {
        let mut wire = Wire {
            tcp,
            path: *path,
            rng: rng_of(path),
            out: Way::default(),
            back: Way::default(),
            out_ends_ns: None,
            is_broken: false,
            back_ends: None,
            sent: Sent::default(),
            owner: Owner::default(),
            is_awaited: false,
        };
        let there_ns = wire.out.release_ns(&wire.path, now_ns(), 0, &mut wire.rng);
        let back_ns = wire.back.release_ns(&wire.path, there_ns, 0, &mut wire.rng);
        if has_asked {
            let asked_ns = wire.out.release_ns(&wire.path, back_ns, 0, &mut wire.rng);
            wire.back.hold_until(asked_ns + path.latency_ns / 2);
        } else {
            sleep_until(back_ns).await;
        }
        wire
    }

    /// Hands to the socket what is due.
    fn pump_out(&mut self, now_ns: u64) {
        let Some(task) = self.owner.task().cloned() else { return };
        let cx = &mut Context::from_waker(&task);
        loop {
            let due = self.out.due(now_ns);
            if due.is_empty() {
                break;
            }
            match Pin::new(&mut self.tcp).poll_write(cx, due) {
                Poll::Ready(Ok(count)) => {
                    self.out.take(count, |piece| self.sent.went(piece, now_ns));
                }
                Poll::Ready(Err(_)) => {
                    // Reading reports what happened to the connection.
                    self.is_broken = true;
                    self.out.clear();
                }
                Poll::Pending => return,
            }
        }
        if self.out.is_empty() && self.out_ends_ns.is_some_and(|ends_ns| ends_ns <= now_ns) {
            self.out_ends_ns = None;
            // A TCP stream shuts down at once.
            let _ = Pin::new(&mut self.tcp).poll_shutdown(cx);
        }
    }

    /// Takes from the socket what is there.
    fn pump_back(&mut self, cx: &mut Context<'_>, now_ns: u64) {
        let entered_ns = now_ns - self.sent.made_up_ns;
        SCRATCH.with_borrow_mut(|scratch| {
            while self.back_ends.is_none() && self.back.len() < WINDOW_BYTES {
                let room_bytes = scratch.len().min(WINDOW_BYTES - self.back.len());
                let mut room = ReadBuf::new(&mut scratch[..room_bytes]);
                let end = match Pin::new(&mut self.tcp).poll_read(cx, &mut room) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(())) if room.filled().is_empty() => Ok(()),
                    Poll::Ready(Ok(())) => {
                        let (path, rng) = (&self.path, &mut self.rng);
                        self.back.push(path, entered_ns, iter::once(room.filled()), WINDOW_BYTES, rng);
                        continue;
                    }
                    Poll::Ready(Err(error)) => Err(error),
                };
                let ends_ns = self.back.release_ns(&self.path, entered_ns, 0, &mut self.rng);
                self.back_ends = Some((ends_ns, end));
            }
        });
    }

    /// Has the task woken at the next instant at which something comes out.
    fn arm(&mut self, now_ns: u64) {
        let end_ns = self.back_ends.as_ref().map(|(ends_ns, _)| *ends_ns);
        let back_ns = self.back.next_ns().or(end_ns).filter(|_| self.is_awaited);
        let out_ns = self.out.next_ns().or(self.out_ends_ns);
        self.owner.wake_at([back_ns, out_ns], now_ns);
    }

    /// Takes what may be written; pending: the way is full.
    fn accept<'b>(
        &mut self,
        cx: &mut Context<'_>,
        slices: impl Iterator<Item = &'b [u8]>,
    ) -> Poll<io::Result<usize>> {
        self.owner.keep(cx.waker());
        if self.is_broken {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let now_ns = now_ns();
        self.pump_out(now_ns);
        let room_bytes = WINDOW_BYTES - self.out.len();
        let count = self.out.push(&self.path, now_ns, slices, room_bytes, &mut self.rng);
        self.arm(now_ns);
        if room_bytes == 0 {
            return Poll::Pending;
        }
        Poll::Ready(Ok(count))
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        wire.owner.keep(cx.waker());
        let now_ns = now_ns();
        wire.pump_back(cx, now_ns);
        wire.pump_out(now_ns);
        let was_awaited = std::mem::take(&mut wire.is_awaited);
        let mut has_come = false;
        while room.remaining() > 0 {
            let due = wire.back.due(now_ns);
            if due.is_empty() {
                break;
            }
            let count = due.len().min(room.remaining());
            room.put_slice(&due[..count]);
            has_come = true;
            let (path, sent) = (wire.path.index, wire.sent);
            wire.back.take(count, |piece| {
                // What lay there because its bot was not reading is no lateness of ours.
                if was_awaited {
                    note(|passed| passed.came(path, sent, piece, now_ns));
                }
            });
        }
        if has_come {
            return Poll::Ready(Ok(()));
        }
        if wire.back.is_empty()
            && let Some((_, end)) = wire.back_ends.take_if(|(ends_ns, _)| *ends_ns <= now_ns)
        {
            // It is the end for every later read too.
            wire.back_ends = Some((0, Ok(())));
            return Poll::Ready(end);
        }
        wire.is_awaited = true;
        wire.arm(now_ns);
        Poll::Pending
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().accept(cx, iter::once(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().accept(cx, slices.iter().map(|slice| &**slice))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready although bytes are under way: they are out of the writer's hands, as in a kernel's buffer.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        wire.owner.keep(cx.waker());
        let now_ns = now_ns();
        wire.pump_out(now_ns);
        wire.arm(now_ns);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        wire.owner.keep(cx.waker());
        let now_ns = now_ns();
        wire.out_ends_ns = Some(wire.out.release_ns(&wire.path, now_ns, 0, &mut wire.rng));
        wire.pump_out(now_ns);
        wire.arm(now_ns);
        Poll::Ready(Ok(()))
    }
}
