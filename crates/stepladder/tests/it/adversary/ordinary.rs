//! Servers that behave like ordinary servers, in ways that a simple client gets wrong: they pass. Beside each kind is
//! one that is really wrong.
//!
//! Connections idle for half a second between two requests here.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use super::http1::{self, RIGHT};
use super::http2::{GOAWAY, greet, request, right};
use super::peer::Peer;
use super::websocket::{PING, TEXT, echo, message, open};
use super::{Fails, Load, Passes, Row, check, http2, row, websocket};

const HTTP_1: Load = Load::new("ordinary HTTP/1.1", "http://127.0.0.1:PORT/ --rate 8 --connections 4");

const HTTP_2: Load =
    Load::new("ordinary HTTP/2", "http://127.0.0.1:PORT/ --http 2 --rate 8 --connections 2 --streams 2");

const WEBSOCKET: Load = Load::new("ordinary WebSocket", "ws://127.0.0.1:PORT --bots echo --rungs 4");

const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// Answers so many requests of each connection, the last one like this, and closes it.
fn closes_after(count: usize, last: &'static str) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        for number in 1..=count {
            peer.head()?;
            peer.say(if number == count { last } else { RIGHT })?;
        }
        Ok(())
    }
}

fn answers(bytes: impl AsRef<[u8]>) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| http1::answers(peer, |_| bytes.as_ref().to_vec())
}

fn http_1() -> Vec<Row> {
    let waits = |first: &'static str| {
        move |peer: &mut Peer| {
            peer.waits_at_most(Duration::from_millis(100));
            loop {
                peer.head()?;
                peer.say(if peer.is_probe() { RIGHT } else { first })?;
            }
        }
    };
    vec![
        row("closes connections that idled for 100 ms", Passes, "", waits(RIGHT)),
        row("says that each answer is the last on its connection", Passes, "", closes_after(1, LAST)),
        row("closes behind each answer without a word", Passes, "", closes_after(1, RIGHT)),
        row("closes each connection after two answers", Passes, "", closes_after(2, LAST)),
        row(
            "answers in HTTP/1.0, with a body that ends with the connection",
            Passes,
            "",
            closes_after(1, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello"),
        ),
        row(
            "says 103 Early Hints before each answer",
            Passes,
            "",
            answers(format!("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n{RIGHT}")),
        ),
        row(
            "answers in chunks with a trailer",
            Passes,
            "",
            answers(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\n\r\n\
                 5;name=value\r\nhello\r\n0\r\nDigest: x\r\n\r\n",
            ),
        ),
        row(
            "answers what it has packed with gzip",
            Passes,
            "",
            answers(
                [
                    &b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n"[..],
                    b"\x1f\x8b\x08\0\0\0\0\0\0\0",
                ]
                .concat(),
            ),
        ),
        row("answers 204", Passes, "", answers("HTTP/1.1 204 No Content\r\n\r\n")),
        row("answers 304 with the length of what it does not send", Passes, "", {
            answers("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n")
        }),
        row("answers after 300 ms", Passes, "", |peer| {
            loop {
                peer.head()?;
                thread::sleep(Duration::from_millis(300));
                peer.say(RIGHT)?;
            }
        }),
        row(
            "closes in the middle of an answer",
            Fails,
            "cut off",
            waits("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"),
        ),
        row("closes each connection at its second request", Fails, "connection lost", |peer| {
            peer.head()?;
            peer.say(RIGHT)?;
            peer.head()?;
            thread::sleep(Duration::from_millis(700));
            Ok(())
        }),
        row(
            "closes behind each answer, and takes no further connection from the ninth on",
            Fails,
            "connection reset|attempts failed|stopped replying|closed early",
            |peer| {
                if peer.number > 8 {
                    return peer.reset();
                }
                closes_after(1, LAST)(peer)
            },
        ),
    ]
}

fn http_2() -> Vec<Row> {
    let goodbye =
        |last: u32, code: u32| http2::frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    // Every second request is answered after a GOAWAY that names it as the last.
    let leaves = move |code: u32| {
        move |peer: &mut Peer| {
            greet(peer, &[])?;
            let stream = request(peer)?;
            peer.say(right(stream))?;
            let stream = request(peer)?;
            peer.say_last([goodbye(stream, code), right(stream)].concat())
        }
    };
    vec![
        row("says goodbye at each second request of a connection", Passes, "", leaves(0)),
        row("answers each two requests in the other order", Passes, "", move |peer| {
            greet(peer, &[])?;
            loop {
                let first = request(peer)?;
                peer.waits_at_most(Duration::from_millis(150));
                let second = request(peer);
                peer.waits_at_most(Duration::from_secs(20));
                if let Ok(second) = second {
                    peer.say(right(second))?;
                }
                peer.say(right(first))?;
            }
        }),
        row("says goodbye because of an error at each second request", Fails, "http/2 error", leaves(2)),
    ]
}

fn websocket() -> Vec<Row> {
    let text = |payload: &[u8]| websocket::frame(TEXT, payload);
    vec![
        row("greets before the first message", Passes, "", move |peer| {
            open(peer)?;
            peer.say(text(b"welcome"))?;
            echo(peer, |payload, _| text(payload))
        }),
        row("pings with 100 bytes before each answer, which comes after 300 ms", Passes, "", move |peer| {
            open(peer)?;
            loop {
                let payload = message(peer)?;
                // The next message is read meanwhile.
                let mut writer = peer.writer()?;
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(300));
                    let _ =
                        writer.write_all(&[websocket::frame(PING, &[b'p'; 100]), text(&payload)].concat());
                });
            }
        }),
        row(
            "closes connections that idled for 30 ms",
            Fails,
            "connection lost|closed by the server",
            move |peer| {
                open(peer)?;
                if !peer.is_probe() {
                    peer.waits_at_most(Duration::from_millis(30));
                }
                echo(peer, |payload, _| text(payload))
            },
        ),
    ]
}

#[test]
fn ordinary_servers_pass_and_those_that_are_really_wrong_fail() {
    check(&HTTP_1, &http_1());
    check(&HTTP_2, &http_2());
    check(&WEBSOCKET, &websocket());
}
