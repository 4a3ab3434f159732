//! A hyper server whose answers depend on the request alone.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;

/// So many requests may be open on one connection of HTTP/2.
pub const STREAMS_MAX: u32 = 64;

/// The versions that it speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Over {
    One,
    Two,
    Either,
}

/// A stream, whatever it is over.
pub trait Both: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Both for S {}

pub struct Server {
    pub socket: SocketAddr,
}

impl Server {
    /// Serves on a free port until the runtime ends.
    pub async fn start(over: Over, tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = listener.local_addr().unwrap();
        let acceptor = tls.then(|| acceptor(over));
        spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // Otherwise the kernel holds back the last piece of an answer for 40 ms.
                stream.set_nodelay(true).unwrap();
                let acceptor = acceptor.clone();
                spawn_local(async move {
                    let Some(acceptor) = acceptor else { return serve_plain(stream, over).await };
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve(stream, if is_two { Over::Two } else { Over::One }).await;
                });
            }
        });
        Server { socket }
    }
}

/// In clear, the client's first bytes say which version it speaks.
async fn serve_plain(stream: TcpStream, over: Over) {
    let mut first = [0; 3];
    while matches!(stream.peek(&mut first).await, Ok(1 | 2)) {
        tokio::task::yield_now().await;
    }
    let speaks_two = over == Over::Two || (over == Over::Either && &first == b"PRI");
    serve(stream, if speaks_two { Over::Two } else { Over::One }).await;
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(stream: S, over: Over) {
    let io = TokioIo::new(stream);
    // Errors caused by the client do not matter here.
    let _ = match over {
        Over::Two => {
            let mut builder = hyper::server::conn::http2::Builder::new(Here);
            builder.max_concurrent_streams(STREAMS_MAX).serve_connection(io, service_fn(respond)).await
        }
        Over::One | Over::Either => {
            hyper::server::conn::http1::Builder::new().serve_connection(io, service_fn(respond)).await
        }
    };
}

#[derive(Clone)]
struct Here;

impl<F: Future + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}

/// Status, body and location of `/STATUS/BYTES/PIECES` and of `/echo`.
pub fn answer(method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>, Option<String>) {
    let (status, bytes, _) = read_path(path);
    let has_none = method == "HEAD" || status == 204 || status == 304;
    let text = if path == "/echo" {
        body.to_vec()
    } else {
        (0..bytes as u32).map(|at| (at.wrapping_mul(31) + body.len() as u32) as u8).collect()
    };
    let location = (status == 302).then(|| format!("/elsewhere?from={bytes}"));
    (status, if has_none { Vec::new() } else { text }, location)
}

fn read_path(path: &str) -> (u16, usize, usize) {
    let mut words = path.split(['/', '?']).skip(1);
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok());
    (number().unwrap_or(200) as u16, number().unwrap_or(0), number().unwrap_or(0))
}

async fn respond(
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let path = head.uri.path().to_owned();
    let (status, text, location) = answer(head.method.as_str(), &path, &body);
    let mut response = Response::builder().status(status);
    if let Some(location) = location {
        response = response.header("Location", location);
    }
    let body = match (path.as_str(), read_path(&path).2) {
        ("/version", _) => Full::from(format!("{:?}", head.version)).boxed_unsync(),
        ("/slow", _) => in_pieces(vec![b'x'; 300], 100),
        (_, 0) => Full::from(text).boxed_unsync(),
        (_, pieces) => {
            let piece_bytes = (text.len() / pieces).max(1);
            in_pieces(text, piece_bytes)
        }
    };
    Ok(response.body(body).unwrap())
}

/// A body of unknown length, each piece in a separate turn.
fn in_pieces(text: Vec<u8>, piece_bytes: usize) -> UnsyncBoxBody<Bytes, Infallible> {
    let text = Bytes::from(text);
    let pieces = futures_util::stream::unfold(text, move |mut rest| async move {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        if rest.is_empty() {
            return None;
        }
        let piece = rest.split_to(piece_bytes.min(rest.len()));
        Some((Ok(Frame::data(piece)), rest))
    });
    BodyExt::boxed_unsync(StreamBody::new(pieces))
}

pub fn acceptor(over: Over) -> TlsAcceptor {
    let file = |name: &str| format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(file("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = match over {
        // It offers no ALPN protocols, like old servers.
        Over::One => Vec::new(),
        Over::Two => vec![b"h2".to_vec()],
        Over::Either => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    TlsAcceptor::from(Arc::new(config))
}
