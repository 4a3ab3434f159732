//! Client connections, each forwarded to the server while the traffic is recorded.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use console::say;
use console::signals::Interrupt;
use recording::{Opening, Side, What};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::http;
use super::recorder::Recorder;
use super::upstream::{Stream, Upstream};

/// A client that has closed its last connection may come back: a page that is loaded again, a client that reconnects.
const LEFT_AFTER: Duration = Duration::from_millis(1500);
const LOOK: Duration = Duration::from_millis(20);
const PIECE_BYTES: usize = 64 << 10;

/// Takes connections until the client has left, the time is over or the user wants it to end.
pub(super) fn run(
    listener: TcpListener,
    upstream: Upstream,
    recorder: &Arc<Recorder>,
    interrupt: &Interrupt,
    time: Option<Duration>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(take(listener, upstream, recorder, interrupt, time))
}

async fn take(
    listener: TcpListener,
    upstream: Upstream,
    recorder: &Arc<Recorder>,
    interrupt: &Interrupt,
    time: Option<Duration>,
) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let upstream = Arc::new(upstream);
    let mut connections = JoinSet::new();
    let (mut has_come, mut left_at) = (false, Instant::now());
    let end = time.map(|time| Instant::now() + time);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let _ = client.set_nodelay(true);
                    has_come = true;
                    connections.spawn(serve(client, upstream.clone(), recorder.clone(), address));
                }
                // Out of descriptors, or the client has already disconnected.
                Err(_) => tokio::time::sleep(LOOK).await,
            },
            Some(ended) = connections.join_next() => {
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => say::err_line!("a connection ended: {error:#}"),
                    Err(error) => anyhow::bail!("a connection's task ended: {error}"),
                }
                left_at = Instant::now();
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        let has_left = has_come && connections.is_empty() && left_at.elapsed() >= LEFT_AFTER;
        if has_left || interrupt.is_asked() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
    }
}

async fn serve(
    client: TcpStream,
    upstream: Arc<Upstream>,
    recorder: Arc<Recorder>,
    address: SocketAddr,
) -> anyhow::Result<()> {
    if upstream.speaks_http {
        return http::exchanges(BufReader::new(client), &upstream, &recorder, address).await;
    }
    let number = recorder.number();
    let at_ns = recorder.now_ns();
    let server = upstream.connect().await?;
    recorder.note_at(at_ns, number, What::Opened(Opening::Tcp));
    pieces(client, server, &recorder, number).await;
    Ok(())
}

/// Passes on what comes, piece by piece.
async fn pieces(client: TcpStream, server: BufReader<Box<dyn Stream>>, recorder: &Recorder, number: usize) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut said, mut heard) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    let mut client_listens_only = false;
    loop {
        tokio::select! {
            count = from_client.read(&mut said), if !client_listens_only => match count {
                Ok(count) if count > 0 => {
                    recorder.message(number, Side::Client, &said[..count], false);
                    if to_server.write_all(&said[..count]).await.is_err() { break; }
                }
                _ => {
                    recorder.note(number, What::Closed(Side::Client));
                    client_listens_only = true;
                    if to_server.shutdown().await.is_err() { break; }
                }
            },
            count = from_server.read(&mut heard) => match count {
                Ok(count) if count > 0 => {
                    recorder.message(number, Side::Server, &heard[..count], false);
                    if to_client.write_all(&heard[..count]).await.is_err() { break; }
                }
                _ => {
                    if !client_listens_only {
                        recorder.note(number, What::Closed(Side::Server));
                    }
                    break;
                }
            },
        }
    }
}
