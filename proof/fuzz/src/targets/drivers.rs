//! What our clients read of servers.

use std::cell::RefCell;
use std::rc::Rc;

use drivers::ReadBuffer;
use drivers::http::one::connection::{End, State as _};
use drivers::http::one::exchange::Exchange;
use drivers::http::one::pieces::Pieces;
use drivers::http::one::request::Request;
use drivers::http::{self, Parts, Piece};
use drivers::redis::resp;
use drivers::websocket::codec::{Codec, Received};
use drivers::websocket::handshake::Accepted;
use drivers::websocket::{frame, handshake, redirect};

use crate::split::same_however_split;

thread_local! {
    /// As in a worker: one for all connections.
    static BUFFER: RefCell<ReadBuffer> = RefCell::new(ReadBuffer::new());
}

/// Lays `piece` behind what was carried.
fn fill(room: &mut [u8], piece: &[u8]) -> usize {
    room[..piece.len()].copy_from_slice(piece);
    piece.len()
}

#[derive(Debug, PartialEq)]
enum Heard {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Broken(String),
    Ended(String),
}

/// Frames of a server: the same messages, the same pongs and the same end however they are split.
pub(super) fn websocket_client(input: &[u8]) {
    BUFFER.with_borrow_mut(|buffer| {
        same_however_split(input, |pieces| {
            let mut codec = Codec::default();
            let mut told = Vec::new();
            'reads: for piece in pieces {
                if codec.ended().is_some() {
                    break;
                }
                let count = fill(codec.lay(buffer), piece);
                codec.came(count, buffer);
                while let Some(next) = codec.next(buffer) {
                    told.push(match next {
                        Ok(Received::Text(text)) => {
                            assert!(std::str::from_utf8(text).is_ok(), "text that is not UTF-8");
                            Heard::Text(text.to_vec())
                        }
                        Ok(Received::Binary(bytes)) => Heard::Binary(bytes.to_vec()),
                        Err(broken) => Heard::Broken(format!("{broken:?}")),
                    });
                    if matches!(told.last(), Some(Heard::Broken(_))) {
                        break 'reads;
                    }
                }
            }
            if let Some(end) = codec.ended() {
                told.push(Heard::Ended(format!("{end:?}")));
            }
            (told, answers(codec.unsent()))
        });
    });
}

/// The frames that a client wrote, unmasked: opcode and payload of each. Its masks are drawn, so bytes cannot be compared.
fn answers(mut wire: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [first, second, rest @ ..] = wire {
        assert_eq!(first & 0xf0, 0x80, "a pong or a close is whole and has no reserved bit");
        let length = usize::from(second & 0x7f);
        assert!(second & 0x80 != 0 && length <= 125, "a client's control frame is masked and short");
        let (mask, payload) = rest[..4 + length].split_at(4);
        frames.push((
            first & 0xf,
            payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect(),
        ));
        wire = &rest[4 + length..];
    }
    assert!(wire.is_empty(), "half a frame");
    frames
}

fn server_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        short @ 0..=125 => out.push(short as u8),
        long => {
            out.push(126);
            out.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
    out
}

pub(super) fn websocket_seeds() -> Vec<Vec<u8>> {
    vec![
        server_frame(0x81, "a tick, and \u{20ac}".as_bytes()),
        server_frame(0x82, &[7; 300]),
        [server_frame(0x01, b"piece \xe2"), server_frame(0x89, b"ping"), server_frame(0x80, b"\x82\xac")]
            .concat(),
        [server_frame(0x81, b"last"), server_frame(0x88, b"\x03\xe8bye")].concat(),
        [server_frame(0x8a, b""), server_frame(0x88, b"")].concat(),
        vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0, 1],
    ]
}

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// The answer to our upgrade request: read only when whole, and the same wherever the stream is cut before.
pub(super) fn websocket_answer(input: &[u8]) {
    if let Ok(Some(Accepted { header_bytes, .. })) = handshake::read_answer(input, KEY, &[]) {
        assert!(header_bytes <= input.len());
        for cut in 0..header_bytes {
            let early = handshake::read_answer(&input[..cut], KEY, &[]);
            assert!(matches!(early, Ok(None)), "at {cut} of {header_bytes} it was already {early:?}");
        }
    }
    // What our own encoder writes is a frame by our own reader once the mask is taken off.
    let mut wire = Vec::new();
    frame::write_frame(&mut wire, frame::Opcode::Binary, input, [1, 2, 3, 4]);
    assert_eq!(wire.len() - input.len(), 6 + if input.len() > 125 { 2 } else { 0 });
}

pub(super) const HTTP_WORDS: &[&str] = &[
    "HTTP/1.1 ",
    "HTTP/1.0 ",
    "101 Switching Protocols\r\n",
    "200 OK\r\n",
    "204 No Content\r\n",
    "100 Continue\r\n\r\n",
    "304 Not Modified\r\n",
    "302 Found\r\nLocation: /next\r\n",
    "\r\n",
    "\r\n\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Upgrade: websocket\r\n",
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
    "0\r\n\r\n",
    ";name=value",
    "\t",
    ", ",
];

pub(super) fn websocket_answers() -> Vec<Vec<u8>> {
    vec![
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x81\x01a"
            .to_vec(),
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec(),
    ]
}

/// A redirect of a handshake: what is followed is on this machine, and its path can stand in a request.
pub(super) fn websocket_redirect(input: &[u8]) {
    let from = drivers::Address::plain(([127, 0, 0, 1], 80).into());
    let alone = String::from_utf8(input.to_vec()).ok();
    let alone = alone.map(|location| redirect::Redirect { status: 307, location });
    for redirect in [redirect::read(input), alone].into_iter().flatten() {
        let location = &redirect.location;
        if let Ok(to) = redirect::follow(&from, &redirect) {
            assert!(
                to.socket.ip().is_loopback() && to.socket.port() > 0,
                "{location} leads to {}",
                to.socket
            );
            assert!(to.path.starts_with('/'), "{location}");
            assert!(to.path.bytes().chain(to.host.bytes()).all(|byte| byte.is_ascii_graphic()), "{location}");
        }
    }
}

pub(super) fn redirect_seeds() -> Vec<Vec<u8>> {
    vec![
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: ws://127.0.0.1:81/a?ticket=7\r\n\r\n".to_vec(),
        b"ws://[::1]:81/".to_vec(),
        b"http://localhost".to_vec(),
        b"wss://8.8.8.8/".to_vec(),
        b"/next?c=1".to_vec(),
    ]
}

pub(super) const REDIRECT_WORDS: &[&str] = &[
    "ws://",
    "wss://",
    "//",
    "127.0.0.1",
    "localhost",
    "[::1]",
    ":",
    "@",
    "/",
    "?",
    "#",
    "Location: ",
    "\r\n",
];

/// Replies of a Redis: the same ones however they are cut, none before it is whole, and `missing` never asks for too much.
pub(super) fn resp_client(input: &[u8]) {
    let mut from = 0;
    while let Ok(Some((reply, length))) = resp::reply(&input[from..]) {
        assert!((1..=input.len() - from).contains(&length));
        let whole = &input[from..from + length];
        // The cut next to each end and one between them: all would be quadratic.
        for cut in [0, 1, length / 2, length - 1] {
            let early = resp::reply(&whole[..cut.min(length - 1)]);
            assert_eq!(early, Ok(None), "at {cut} of {length}");
            assert!(resp::missing(&whole[..cut.min(length - 1)]) <= length - cut.min(length - 1));
        }
        if let resp::Resp::Bulk(Some(bytes)) = reply {
            let mut again = Vec::new();
            resp::put_bulk(&mut again, bytes);
            assert_eq!(resp::reply(&again), Ok(Some((reply, again.len()))));
        }
        from += length;
    }
    assert!(resp::missing(&input[from..]) <= resp::BULK_BYTES_MAX + 2);
}

pub(super) fn resp_seeds() -> Vec<Vec<u8>> {
    vec![
        b"+OK\r\n$3\r\nabc\r\n$-1\r\n:42\r\n-ERR no\r\n$0\r\n\r\n".to_vec(),
        b"$5\r\nab\r\nc\r\n:-7\r\n".to_vec(),
    ]
}

/// Answers of a server over HTTP/1.1 to a row of requests: the same answers and the same fault however they are split.
/// The first byte chooses what is asked.
pub(super) fn http1_client(input: &[u8]) {
    let Some((&first, stream)) = input.split_first() else { return };
    let parts = Parts {
        method: if first & 1 == 0 { "GET" } else { "HEAD" },
        authority: "a",
        keep_alive: first & 2 == 0,
        keeps_body: first & 4 == 0,
        body_bytes_max: if first & 8 == 0 { 1 << 20 } else { 100 },
        ..Parts::get("/")
    };
    BUFFER.with_borrow_mut(|buffer| same_however_split(stream, |pieces| http1_talk(&parts, pieces, buffer)));
}

fn http1_talk(parts: &Parts<'_>, pieces: &[&[u8]], buffer: &mut ReadBuffer) -> (Vec<String>, Option<String>) {
    let request = Rc::new(Request::new(parts));
    let mut exchange = Exchange::default();
    let mut told = Vec::new();
    let mut fault = None;
    let ask = |exchange: &mut Exchange| {
        if exchange.ask(&request, 1) {
            exchange.wrote(request.wire.len());
        }
    };
    ask(&mut exchange);
    'reads: for piece in pieces {
        let count = fill(exchange.lay(buffer), piece);
        exchange.came(count, buffer);
        loop {
            match exchange.next(buffer) {
                Ok(None) => break,
                // When an answer begins depends on the reads; that and how it is ended does not.
                Ok(Some(http::Received::Began { .. })) => {}
                Ok(Some(
                    http::Received::Unpaired { .. } | http::Received::Leaving | http::Received::PutOff { .. },
                )) => panic!("an answer of HTTP/1.1 has its request"),
                Ok(Some(http::Received::Answer(answer))) => {
                    assert!(answer.body.is_empty() || answer.body.len() as u64 == answer.body_bytes);
                    told.push(format!("{answer:?}"));
                }
                Err(error) => {
                    fault = Some(format!("{error:?}"));
                    break 'reads;
                }
            }
        }
    }
    if fault.is_none() && exchange.end(true) == End::OfAnswer {
        buffer.lay(b"");
        if let Ok(Some(http::Received::Answer(answer))) = exchange.next(buffer) {
            told.push(format!("{answer:?}"));
        }
    }
    (told, fault)
}

/// The same for one request whose answer is passed on in pieces: the same head, body and end, or fault, however it is split.
pub(super) fn http1_pieces(input: &[u8]) {
    let Some((&first, stream)) = input.split_first() else { return };
    let parts = Parts {
        method: if first & 1 == 0 { "GET" } else { "HEAD" },
        authority: "a",
        body: if first & 4 == 0 { b"" } else { b"body" },
        keep_alive: first & 2 == 0,
        ..Parts::get("/")
    };
    BUFFER
        .with_borrow_mut(|buffer| same_however_split(stream, |reads| http1_passed_on(&parts, reads, buffer)));
}

/// Head, body, and how it ended.
fn http1_passed_on(
    parts: &Parts<'_>,
    reads: &[&[u8]],
    buffer: &mut ReadBuffer,
) -> (Vec<String>, Vec<u8>, String) {
    let mut pieces = Pieces::default();
    assert!(pieces.ask(Request::new(parts), 7), "a new connection takes a request");
    pieces.wrote(pieces.unsent().len());
    let (mut told, mut body) = (Vec::new(), Vec::new());
    for read in reads {
        let count = fill(pieces.lay(buffer), read);
        pieces.came(count, buffer);
        loop {
            match pieces.next(buffer) {
                Ok(None) => break,
                Ok(Some(Piece::Head(head))) => {
                    assert!(told.is_empty(), "one head");
                    told.push(format!(
                        "{} {:?} {:?}",
                        head.status,
                        head.reason,
                        head.headers.iter().collect::<Vec<_>>()
                    ));
                }
                Ok(Some(Piece::Part { tag, bytes })) => {
                    assert!(tag == 7 && !bytes.is_empty() && told.len() == 1, "a body behind its head");
                    body.extend_from_slice(bytes);
                }
                Ok(Some(Piece::End { tag, closes })) => {
                    assert!(tag == 7 && told.len() == 1, "an end behind its head");
                    told.push(format!("whole, closes: {closes}"));
                }
                Ok(Some(other)) => panic!("HTTP/1.1 has no {other:?}"),
                Err(fault) => return (told, body, format!("{fault:?}")),
            }
        }
    }
    let end = pieces.end(true);
    buffer.lay(b"");
    if end == End::OfAnswer {
        assert!(
            matches!(pieces.next(buffer), Ok(Some(Piece::End { tag: 7, closes: true }))),
            "its end is told"
        );
    }
    (told, body, format!("{end:?}"))
}

pub(super) fn http1_seeds() -> Vec<Vec<u8>> {
    [
        "\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        "\0HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n",
        "\0HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "\u{1}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "\u{2}HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        "\u{c}HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhel",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
