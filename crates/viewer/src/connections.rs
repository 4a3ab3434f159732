//! The viewer's connections: those without the token are few and short-lived.
//!
//! Anything on this machine may connect, including a page of any site. A connection is anonymous until a request on it
//! carries the token, and is kept from then on. Anonymous connections share a pool so small that they cannot exhaust
//! the descriptors of the climb in whose process we run. If it is full, the oldest is closed for a new one, so the
//! owner, whose browser sends its request at once, always gets in. A request head that does not complete is timed out.
//! Not here: who has the token (`gate`).

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::server::yield_to_others;

/// From the moment at which a request may begin to the end of its head; so a kept connection also idles no longer.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// A request's head. Browsers send the cookies of every server on 127.0.0.1 along, 4 KB each.
const HEAD_BYTES: usize = 64 << 10;
/// Connections without the token.
const STRANGERS: usize = 64;
/// Connections with the token; a browser opens at most 6 to a host.
const KNOWN: usize = 64;
/// After the system refused to accept for want of descriptors or memory.
const RETRY: Duration = Duration::from_millis(200);

/// Dropped, it ends the connection.
type Ending = oneshot::Sender<()>;

/// Who is connected, by a number that grows.
#[derive(Default)]
struct Seats {
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    strangers: BTreeMap<u64, Ending>,
    known: BTreeMap<u64, Ending>,
}

impl Seats {
    /// A seat for an anonymous connection, and the signal to give it up. The oldest one may have to go.
    fn take(self: &Arc<Self>) -> (Arc<Seat>, oneshot::Receiver<()>) {
        let mut taken = self.lock();
        if taken.strangers.len() >= STRANGERS {
            taken.strangers.pop_first();
        }
        let (ending, ended) = oneshot::channel();
        let number = taken.next;
        taken.next += 1;
        taken.strangers.insert(number, ending);
        (Arc::new(Seat { seats: self.clone(), number }), ended)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection's place, free again when the last of it is dropped.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    number: u64,
}

impl Seat {
    /// The token was brought: the connection stays. False where too many stay already.
    pub fn keep(&self) -> bool {
        let mut taken = self.seats.lock();
        if taken.known.contains_key(&self.number) {
            return true;
        }
        if taken.known.len() >= KNOWN {
            return false;
        }
        // Closed a moment ago and about to end; it is not kept.
        let Some(ending) = taken.strangers.remove(&self.number) else { return true };
        taken.known.insert(self.number, ending);
        true
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        taken.strangers.remove(&self.number);
        taken.known.remove(&self.number);
    }
}

/// Answers by `app` until it is `stopped` and the requests that were begun have been answered.
async fn answer(listener: TcpListener, app: Router, stopped: impl Future<Output = ()>) {
    let app = TowerToHyperService::new(app);
    let seats = Arc::new(Seats::default());
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES);
    let mut stopped = pin!(stopped);
    loop {
        let stream = tokio::select! {
            stream = accepted(&listener) => stream,
            () = &mut stopped => break,
        };
        // A live second is a small write that nothing follows.
        let _ = stream.set_nodelay(true);
        let (seat, left) = seats.take();
        let app = app.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(seat.clone());
            app.call(request)
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            tokio::select! {
                // A broken connection affects only its own client.
                _ = connection => {}
                _ = left => {}
            }
        });
        // A request already received is read before many more connections are accepted, and so before its connection is
        // the oldest: without this a burst of connections would be accepted in one go.
        tokio::task::yield_now().await;
    }
    drop(listener);
    seats.lock().strangers.clear();
    graceful.shutdown().await;
}

/// A separate thread that answers until this is dropped.
#[derive(Debug)]
pub(crate) struct Answering {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    /// Begins to answer on a listener that does not block. The thread yields to everything else. `last_words`: how long requests that
    /// were begun may take when it is dropped. Errors: no thread.
    pub fn begin(
        name: &str,
        listener: std::net::TcpListener,
        app: Router,
        last_words: Duration,
    ) -> io::Result<Answering> {
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let work = move || {
            yield_to_others();
            runtime.block_on(async move {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                let (tell_closing, closing) = oneshot::channel::<()>();
                let until_stopped = async move {
                    let _ = stopped.await;
                    let _ = tell_closing.send(());
                };
                let too_long = async move {
                    let _ = closing.await;
                    tokio::time::sleep(last_words).await;
                };
                tokio::select! {
                    () = answer(listener, app, until_stopped) => {}
                    () = too_long => {}
                }
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Answering { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accepted(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_the_connection(&error) => {}
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// Whether it was this connection's fault, so that the next may be better.
fn is_of_the_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_makes_room_and_whoever_is_known_stays() {
        let seats = Arc::new(Seats::default());
        let mut all: Vec<_> = (0..STRANGERS).map(|_| seats.take()).collect();
        assert!(all[0].0.keep() && all[0].0.keep(), "once or often");
        let mut more: Vec<_> = (0..3).map(|_| seats.take()).collect();
        let is_closed =
            |ended: &mut oneshot::Receiver<()>| ended.try_recv() == Err(oneshot::error::TryRecvError::Closed);
        let closed: Vec<usize> = (0..STRANGERS).filter(|at| is_closed(&mut all[*at].1)).collect();
        assert_eq!(closed, [1, 2], "one seat was free again");
        assert!(more.iter_mut().all(|(_, ended)| !is_closed(ended)));
        drop((all, more));
        let taken = seats.lock();
        assert_eq!((taken.strangers.len(), taken.known.len()), (0, 0));
    }

    #[test]
    fn more_than_so_many_are_not_kept_until_one_has_gone() {
        let seats = Arc::new(Seats::default());
        let mut known: Vec<_> = (0..KNOWN).map(|_| seats.take()).collect();
        assert!(known.iter().all(|(seat, _)| seat.keep()));
        let another = seats.take();
        assert!(!another.0.keep());
        known.pop();
        assert!(another.0.keep());
    }
}
