//! HTTP/1.1 as a proxy reads it: heads are changed only where a proxy must, bodies pass unchanged.
//!
//! Each request uses its own connection to the server, so that none fails because the server closes an idle one.
//! Source: RFC 9112, sections 6 and 7.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use recording::{Answer, Opening, Request, What};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;

use super::recorder::Recorder;
use super::upstream::Upstream;
use super::websocket::messages;

const HEAD_BYTES_MAX: usize = 256 << 10;
const HEADERS_MAX: usize = 256;
const LINE_BYTES_MAX: u64 = 64 << 10;
const PIECE_BYTES: usize = 64 << 10;

/// Headers of one connection only, or that would keep the recording from being read.
const NOT_PASSED_ON: [&str; 7] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "accept-encoding",
    "sec-websocket-extensions",
    "expect",
    "host",
];

/// Where a body ends.
enum Ends {
    Nothing,
    After(u64),
    Chunked,
    WithConnection,
}

struct Head {
    /// method and path, or version and status
    first: [String; 2],
    headers: Vec<(String, String)>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.header(name)
            .is_some_and(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(word)))
    }

    fn body(&self) -> anyhow::Result<Ends> {
        if self.says("transfer-encoding", "chunked") {
            return Ok(Ends::Chunked);
        }
        Ok(match self.header("content-length") {
            Some(length) => Ends::After(length.trim().parse().context("Content-Length is no number")?),
            None => Ends::Nothing,
        })
    }

    fn bytes(&self, first: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let mut out = format!("{first}\r\n");
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(more.iter().copied()) {
            out += &format!("{name}: {value}\r\n");
        }
        out += "\r\n";
        // Header values were decoded as Latin-1.
        out.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect()
    }
}

/// All requests of a connection of the client, one after the other.
pub(super) async fn exchanges(
    mut client: BufReader<TcpStream>,
    upstream: &Upstream,
    recorder: &Arc<Recorder>,
    address: SocketAddr,
) -> anyhow::Result<()> {
    loop {
        let Some(bytes) = head_bytes(&mut client).await.context("the client's request")? else {
            return Ok(());
        };
        let mut head = request_head(&bytes)?;
        let number = recorder.number();
        let at_ns = recorder.now_ns();
        let said = head.headers.clone();
        let [method, path] = head.first.clone();
        let is_upgrade = head.says("upgrade", "websocket");
        let wants_continue = head.header("expect").is_some();
        let closes = head.says("connection", "close");
        let mut server = upstream.connect().await?;
        to_server(&mut head, upstream, address);
        let connection = if is_upgrade { "Upgrade" } else { "close" };
        let more = [("Host", upstream.authority.as_str()), ("Connection", connection)];
        let bytes = head.bytes(&format!("{method} {path} HTTP/1.1"), &more);
        server.write_all(&bytes).await.context("the server took no request")?;
        if wants_continue {
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body =
            pass(&mut client, &mut server, head.body()?, recorder).await.context("the client's request")?;
        server.flush().await?;
        let mut answer = answer_head(&mut server).await?;
        let status: u16 = answer.first[1].parse().unwrap_or(0);
        if is_upgrade && status == 101 {
            recorder.note_at(
                at_ns,
                number,
                What::Opened(Opening::WebSocket { elsewhere: None, path, headers: said }),
            );
            client
                .write_all(&answer.bytes("HTTP/1.1 101 Switching Protocols", &[("Connection", "Upgrade")]))
                .await?;
            return messages(client, server, recorder, number).await;
        }
        recorder.note_at(
            at_ns,
            number,
            What::Request(Request { elsewhere: None, method: method.clone(), path, headers: said, body }),
        );
        let heard = answer.headers.clone();
        let has_none = method == "HEAD" || status == 204 || status == 304;
        let ends = match answer.body()? {
            _ if has_none => Ends::Nothing,
            Ends::Nothing => Ends::WithConnection,
            ends => ends,
        };
        let is_last = closes || matches!(ends, Ends::WithConnection);
        to_client(&mut answer, upstream, address);
        let more = if is_last { [("Connection", "close")] } else { [("Connection", "keep-alive")] };
        client.write_all(&answer.bytes(&format!("HTTP/1.1 {status} "), &more)).await?;
        let body = pass(&mut server, &mut client, ends, recorder).await;
        let is_cut = body.is_err();
        recorder
            .note(number, What::Answer(Answer { status, headers: heard, body: body.unwrap_or_default() }));
        client.flush().await?;
        if is_last || is_cut {
            client.shutdown().await?;
            return Ok(());
        }
    }
}

/// Up to the empty line; `None`: the connection ended before it began.
async fn head_bytes(from: &mut (impl AsyncBufRead + Unpin)) -> anyhow::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        let count = from.take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes).await;
        match count {
            Ok(0) | Err(_) if bytes.is_empty() => return Ok(None),
            Ok(0) => bail!("the connection ended inside a head"),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let line = &bytes[before..];
        if (line == b"\r\n" || line == b"\n") && before > 0 {
            return Ok(Some(bytes));
        }
        if bytes.starts_with(b"PRI * HTTP/2") || bytes.len() > HEAD_BYTES_MAX || !line.ends_with(b"\n") {
            bail!("the client speaks no HTTP/1.1; for another protocol over TCP give --to tcp://HOST:PORT");
        }
    }
}

fn request_head(bytes: &[u8]) -> anyhow::Result<Head> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let read = request.parse(bytes).context("the client's request is no HTTP/1.1")?;
    if read.is_partial() {
        bail!("the client's request is no HTTP/1.1");
    }
    let path = request.path.unwrap_or("/");
    // Also in the absolute form that proxies get.
    let path = match path.split_once("://") {
        Some((_, rest)) if !path.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => path,
    };
    Ok(Head {
        first: [request.method.unwrap_or("GET").to_owned(), path.to_owned()],
        headers: pairs(request.headers),
    })
}

async fn answer_head(from: &mut (impl AsyncBufRead + Unpin)) -> anyhow::Result<Head> {
    loop {
        let bytes =
            head_bytes(from).await.context("the server's answer")?.context("the server gave no answer")?;
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut headers);
        answer.parse(&bytes).context("the server's answer is no HTTP/1.1")?;
        let status = answer.code.unwrap_or(0);
        // 100 and 103 only announce the answer.
        if status == 101 || status >= 200 {
            return Ok(Head {
                first: ["HTTP/1.1".to_owned(), status.to_string()],
                headers: pairs(answer.headers),
            });
        }
    }
}

fn pairs(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let latin1 = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
    headers.iter().map(|header| (header.name.to_owned(), latin1(header.value))).collect()
}

/// The client knows the proxy as the server.
fn to_server(head: &mut Head, upstream: &Upstream, address: SocketAddr) {
    head.headers.retain(|(name, _)| !NOT_PASSED_ON.contains(&name.to_ascii_lowercase().as_str()));
    let scheme = if upstream.tls.is_some() { "https" } else { "http" };
    let names = [format!("http://{address}"), format!("http://localhost:{}", address.port())];
    for (_, value) in head.headers.iter_mut().filter(|(name, _)| is_either(name, "origin", "referer")) {
        for name in &names {
            *value = value.replacen(name.as_str(), &format!("{scheme}://{}", upstream.authority), 1);
        }
    }
}

/// Where the server leads the client, it leads it to the proxy.
fn to_client(head: &mut Head, upstream: &Upstream, address: SocketAddr) {
    head.headers.retain(|(name, _)| {
        !is_either(name, "connection", "keep-alive")
            && !is_either(name, "strict-transport-security", "alt-svc")
    });
    for (name, value) in &mut head.headers {
        if name.eq_ignore_ascii_case("location") {
            for scheme in ["http", "https"] {
                *value = value.replacen(
                    &format!("{scheme}://{}", upstream.authority),
                    &format!("http://{address}"),
                    1,
                );
            }
        } else if name.eq_ignore_ascii_case("set-cookie") && upstream.tls.is_some() {
            let parts = value.split(';').filter(|part| !part.trim().eq_ignore_ascii_case("secure"));
            *value = parts.collect::<Vec<_>>().join(";");
        }
    }
}

fn is_either(name: &str, one: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(one) || name.eq_ignore_ascii_case(other)
}

/// Passes a body on as it comes, and returns it as far as it is kept.
async fn pass(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    ends: Ends,
    recorder: &Recorder,
) -> anyhow::Result<Vec<u8>> {
    let mut kept = Vec::new();
    match ends {
        Ends::Nothing => {}
        Ends::After(length) => part(from, to, Some(length), recorder, &mut kept).await?,
        Ends::WithConnection => part(from, to, None, recorder, &mut kept).await?,
        Ends::Chunked => loop {
            let line = line(from, to).await?;
            let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let digits = std::str::from_utf8(digits).unwrap_or_default().trim();
            let length = u64::from_str_radix(digits, 16).context("a chunk's length is no number")?;
            if length == 0 {
                // Trailers, and the empty line after them.
                while line_of(from, to).await?.len() > 2 {}
                break;
            }
            part(from, to, Some(length), recorder, &mut kept).await?;
            line_of(from, to).await?;
        },
    }
    Ok(kept)
}

async fn line(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> anyhow::Result<Vec<u8>> {
    line_of(from, to).await
}

async fn line_of(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> anyhow::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await?;
    if !line.ends_with(b"\n") {
        bail!("the connection ended inside a body");
    }
    to.write_all(&line).await?;
    to.flush().await?;
    Ok(line)
}

async fn part(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    length: Option<u64>,
    recorder: &Recorder,
    kept: &mut Vec<u8>,
) -> anyhow::Result<()> {
    let mut rest = length.unwrap_or(u64::MAX);
    let mut piece = vec![0; PIECE_BYTES];
    while rest > 0 {
        let most = usize::try_from(rest).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let count = from.read(&mut piece[..most]).await?;
        if count == 0 {
            match length {
                None => return Ok(()),
                Some(_) => bail!("the connection ended inside a body"),
            }
        }
        if recorder.may_keep(count) {
            kept.extend_from_slice(&piece[..count]);
        }
        to.write_all(&piece[..count]).await?;
        to.flush().await?;
        rest -= count as u64;
    }
    Ok(())
}
