//! Connections of the client, each passed on to the server while what passes by is noted.
//!
//! WebSocket messages are read and sent again by a library, so that they are noted whole. Compression is not offered to the
//! server, since the recording is to be read.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use console::say;
use console::signals::Interrupt;
use drivers::TlsSettings;
use futures_util::{SinkExt as _, StreamExt as _};
use recording::{Opening, Side, What};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_websockets::{ClientBuilder, Limits, Message, ServerBuilder};

use super::{Recorder, http};

/// A client that has closed its last connection may come back: a page that is loaded again, a client that reconnects.
const LEFT_AFTER: Duration = Duration::from_millis(1500);
const LOOK: Duration = Duration::from_millis(20);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const PIECE_BYTES: usize = 64 << 10;

/// The server.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    pub addresses: Vec<SocketAddr>,
    /// as it goes into the Host header
    pub authority: String,
    pub tls: Option<TlsSettings>,
    pub speaks_http: bool,
}

/// A connection to the server, plain or over TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Upstream {
    pub async fn connect(&self) -> anyhow::Result<BufReader<Box<dyn Stream>>> {
        let connect = async {
            let stream = TcpStream::connect(self.addresses.as_slice()).await?;
            stream.set_nodelay(true)?;
            Ok::<Box<dyn Stream>, std::io::Error>(match &self.tls {
                None => Box::new(stream),
                Some(tls) => {
                    let config = if self.speaks_http { tls.config_http1.clone() } else { tls.config.clone() };
                    Box::new(TlsConnector::from(config).connect(tls.name.clone(), stream).await?)
                }
            })
        };
        let connected = tokio::time::timeout(CONNECT_LIMIT, connect).await;
        let stream = connected
            .context("the server did not answer in 10 s")?
            .context("the server cannot be reached")?;
        Ok(BufReader::new(stream))
    }
}

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
                // Descriptors are used up, or the client has gone again.
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

/// Passes WebSocket messages on, after both handshakes.
pub(super) async fn messages(
    client: BufReader<TcpStream>,
    server: BufReader<Box<dyn Stream>>,
    recorder: &Recorder,
    number: usize,
) -> anyhow::Result<()> {
    let mut client = ServerBuilder::new().limits(Limits::unlimited()).serve(client);
    let mut server = ClientBuilder::new().limits(Limits::unlimited()).take_over(server);
    loop {
        let (side, message) = tokio::select! {
            message = client.next() => (Side::Client, message),
            message = server.next() => (Side::Server, message),
        };
        let message = match message {
            Some(Ok(message)) => message,
            // Without a closing handshake, as most clients end.
            _ => {
                recorder.note(number, What::Closed(side));
                let gone = Message::close(None, "");
                let _ = if side == Side::Client { server.send(gone).await } else { client.send(gone).await };
                return Ok(());
            }
        };
        // Pings are answered here, on both sides.
        if message.is_ping() || message.is_pong() {
            continue;
        }
        let passed_on = match message.as_close() {
            Some((code, reason)) => {
                recorder.note(number, What::Closed(side));
                Message::close(Some(code).filter(|code| !code.is_reserved()), reason)
            }
            None => {
                recorder.message(number, side, message.as_payload(), message.is_text());
                message
            }
        };
        let is_end = passed_on.is_close();
        let sent =
            if side == Side::Client { server.send(passed_on).await } else { client.send(passed_on).await };
        if is_end || sent.is_err() {
            return Ok(());
        }
    }
}
